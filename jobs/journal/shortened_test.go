package journal

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"dcs-tui/jobs/rundir"
)

// TestShortenedJournalIsDamaged checks promises 1 and 2: a journal from which complete lines are
// missing is damaged if a heartbeat had counted them. The next dispatcher and every later one know
// that. Lines that were written after the last heartbeat may be missing, as after a death in
// between.
func TestShortenedJournalIsDamaged(t *testing.T) {
	for name, c := range map[string]struct {
		keep    func(text []byte) []byte
		damaged bool
	}{
		"whole":                   {func(b []byte) []byte { return b }, false},
		"without what came later": {func(b []byte) []byte { return lines(b, 3) }, false},
		"a line less":             {func(b []byte) []byte { return lines(b, 2) }, true},
		"the first line":          {func(b []byte) []byte { return lines(b, 1) }, true},
		"empty":                   {func([]byte) []byte { return nil }, true},
		"half a line":             {func(b []byte) []byte { return lines(b, 3)[:len(lines(b, 3))-9] }, true},
		"a line is another": {func(b []byte) []byte {
			other := event("another")
			return append(slices.Clone(lines(b, 2)), appendLine(nil, &other)...)
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			_, r := inMemory(t)
			j, _, _ := mustTake(t, r, force)
			record(t, j, event("one"), event("two"))
			must(t, j.Heartbeat())
			record(t, j, event("three"))
			crash(t, j)
			putJournal(t, r, 1, c.keep(content(t, r, 1)))
			for epoch := 2; epoch <= 3; epoch++ {
				_, table, report := mustTake(t, r, force)
				if report.Damaged != c.damaged || table.Damaged != c.damaged ||
					(len(report.Warnings) > 0) != c.damaged {
					t.Errorf("epoch %d: damaged %v, table %v, want %v; warnings %q", epoch, report.Damaged,
						table.Damaged, c.damaged, report.Warnings)
				}
			}
		})
	}
}

// TestShortenedBeforeTheFirstRecord checks that a dispatcher that dies before its first record
// passes on the journal length from its predecessor's last heartbeat.
func TestShortenedBeforeTheFirstRecord(t *testing.T) {
	_, r := inMemory(t)
	j, _, _ := mustTake(t, r, force)
	must(t, j.Heartbeat())
	mustTake(t, r, force)
	owner, err := ReadOwner(r)
	must(t, err)
	owner.File, owner.Bytes, owner.Sum = 1, j.durable, j.sum // as Take writes it
	text, err := owner.encode()
	must(t, err)
	putFile(t, r, r.Path(rundir.OwnerFile), text)
	putJournal(t, r, 1, nil)
	putJournal(t, r, 2, nil)
	must(t, r.Disk.Remove(r.Path(rundir.JournalDir, fileOf(2).marksName())))
	_, _, report := mustTake(t, r, force)
	if !report.Damaged {
		t.Errorf("the emptied file of epoch 1 is taken for whole: %+v", report)
	}
}

// TestCopiedRunDirectoryIsDamaged checks that a copy of a run directory counts as damaged, and that
// a run directory that was moved does not.
func TestCopiedRunDirectoryIsDamaged(t *testing.T) {
	for _, copied := range []bool{false, true} {
		t.Run(fmt.Sprintf("copied %v", copied), func(t *testing.T) {
			r := newRun(t)
			j, _, _ := mustTake(t, r, force)
			must(t, j.Close())
			to := filepath.Join(t.TempDir(), "elsewhere")
			err := os.Rename(r.Dir, to)
			if copied {
				err = os.CopyFS(r.Dir, os.DirFS(to))
				to = r.Dir
			}
			must(t, err)
			other := &rundir.Run{Dir: to, Nonce: r.Nonce, Settings: r.Settings, Disk: r.Disk}
			_, _, report := mustTake(t, other, force)
			if report.Damaged != copied || copied && !strings.Contains(strings.Join(report.Warnings, "\n"),
				"is a copy of") {
				t.Errorf("damaged %v, want %v: %q", report.Damaged, copied, report.Warnings)
			}
		})
	}
}

// TestWhatProvesACopy checks that a different device number proves a copy only within one boot, and
// only on file systems with a device of their own. On others, such as NFS, the number changes with
// every mount.
func TestWhatProvesACopy(t *testing.T) {
	had := &Owner{process: process{Boot: "b"}, Inode: 7, Device: unix.Mkdev(8, 1)}
	for name, c := range map[string]struct {
		now  Owner
		want bool
	}{
		"the same":               {Owner{process: process{Boot: "b"}, Inode: 7, Device: unix.Mkdev(8, 1)}, false},
		"another inode":          {Owner{process: process{Boot: "b"}, Inode: 8, Device: unix.Mkdev(8, 1)}, true},
		"another device":         {Owner{process: process{Boot: "b"}, Inode: 7, Device: unix.Mkdev(8, 2)}, true},
		"another boot":           {Owner{process: process{Boot: "c"}, Inode: 7, Device: unix.Mkdev(8, 2)}, false},
		"no device of its own":   {Owner{process: process{Boot: "b"}, Inode: 7}, false},
		"an inode without sense": {Owner{process: process{Boot: "b"}, Device: unix.Mkdev(8, 2)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := c.now.isElsewhere(had); got != c.want {
				t.Errorf("%s: %v", name, got)
			}
			if got := had.isElsewhere(&c.now); got != c.want {
				t.Errorf("%s, before: %v", name, got)
			}
		})
	}
	o := new(Owner)
	if err := o.identify(&rundir.Run{Dir: "/proc", Disk: rundir.OS}); err != nil || o.Device != 0 || o.Inode == 0 {
		t.Errorf("a file system without a device: %+v, %v", o, err)
	}
}

// TestNextTakeSkipsLaterEpochs checks that hosts may know later epochs than a directory that was
// restored. The next Take begins after the reported epoch, within bounds, unless the directory
// itself has a newer epoch.
func TestNextTakeSkipsLaterEpochs(t *testing.T) {
	r := newRun(t)
	j, _, _ := mustTake(t, r, force)
	if ok, err := j.SkipTo(maxSkip + 2); ok || err != nil {
		t.Errorf("too far: %v, %v", ok, err)
	}
	if ok, err := j.SkipTo(7); !ok || err != nil {
		t.Errorf("to 7: %v, %v", ok, err)
	}
	crash(t, j)
	k, _, report := mustTake(t, r, force)
	if k.Epoch() != 8 || report.Damaged {
		t.Errorf("epoch %d, want 8; %+v", k.Epoch(), report)
	}
	if ok, err := j.SkipTo(9); ok || err != nil {
		t.Errorf("by a dispatcher that was overtaken: %v, %v", ok, err)
	}
}
