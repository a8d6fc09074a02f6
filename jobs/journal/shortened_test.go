package journal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"dcs-tui/jobs"
	"dcs-tui/jobs/rundir"
	"dcs-tui/jobs/rundir/disktest"
)

// TestShortenedJournal checks promises 1 and 2: a journal from which complete lines are missing is
// damaged if a heartbeat had counted them. The next dispatcher and every later one know that. Lines
// that were written after the last heartbeat may be missing, as after a death in between.
func TestShortenedJournal(t *testing.T) {
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
			other := jobs.Record{Kind: jobs.KindEvent, Reason: "another"}
			return append(slices.Clone(lines(b, 2)), appendLine(nil, &other)...)
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRun(t)
			j, _, _ := take1(t, r, force)
			write := func(text string) {
				t.Helper()
				if err := j.Append([]jobs.Record{{Kind: jobs.KindEvent, Reason: text}}); err != nil {
					t.Fatal(err)
				}
				if err := j.Sync(); err != nil {
					t.Fatal(err)
				}
			}
			write("one")
			write("two")
			if err := j.Beat(); err != nil {
				t.Fatal(err)
			}
			write("three")
			crash(t, j)
			path := fileOf(1).path(r)
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, c.keep(text), 0o600); err != nil {
				t.Fatal(err)
			}
			for epoch := 2; epoch <= 3; epoch++ {
				j, table, report := take1(t, r, force)
				if report.Damaged != c.damaged || table.Damaged != c.damaged || (len(report.Warnings) > 0) != c.damaged {
					t.Errorf("epoch %d: damaged %v, table %v, want %v; warnings %q", epoch, report.Damaged, table.Damaged, c.damaged, report.Warnings)
				}
				crash(t, j)
			}
		})
	}
}

// lines returns the first n lines.
func lines(b []byte, n int) []byte {
	end := 0
	for range n {
		end += slices.Index(b[end:], '\n') + 1
	}
	return b[:end]
}

// TestShortenedBeforeTheFirstRecord checks that a dispatcher that dies before its first record
// passes on the journal length from its predecessor's last heartbeat.
func TestShortenedBeforeTheFirstRecord(t *testing.T) {
	r := newRun(t)
	j, _, _ := take1(t, r, force)
	if err := j.Beat(); err != nil {
		t.Fatal(err)
	}
	crash(t, j)
	second, _, _ := take1(t, r, force)
	crash(t, second)
	owner, err := ReadOwner(r)
	if err != nil {
		t.Fatal(err)
	}
	owner.File, owner.Bytes, owner.Sum = 1, j.durable, j.sum // as Take writes it
	content, err := owner.encode()
	if err != nil {
		t.Fatal(err)
	}
	for path, b := range map[string][]byte{r.Path(rundir.OwnerFile): content, fileOf(2).path(r): nil, fileOf(1).path(r): nil} {
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Remove(r.Path(rundir.JournalDir, fileOf(2).marks())); err != nil {
		t.Fatal(err)
	}
	third, _, report := take1(t, r, force)
	defer crash(t, third)
	if !report.Damaged {
		t.Errorf("the emptied file of epoch 1 is taken for whole: %+v", report)
	}
}

// A copy of a run directory counts as damaged. A run directory that was moved does not.
func TestCopiedRunDirectory(t *testing.T) {
	for _, copied := range []bool{false, true} {
		t.Run(fmt.Sprintf("copied %v", copied), func(t *testing.T) {
			r := newRun(t)
			j, _, _ := take1(t, r, force)
			if err := j.Close(); err != nil {
				t.Fatal(err)
			}
			to := filepath.Join(t.TempDir(), "elsewhere")
			err := os.Rename(r.Dir, to)
			if copied {
				err = os.CopyFS(r.Dir, os.DirFS(to))
				to = r.Dir
			}
			if err != nil {
				t.Fatal(err)
			}
			other := &rundir.Run{Dir: to, Nonce: r.Nonce, Asked: r.Asked, Disk: r.Disk}
			k, _, report := take1(t, other, force)
			defer crash(t, k)
			if report.Damaged != copied || copied && !strings.Contains(strings.Join(report.Warnings, "\n"), "is a copy of") {
				t.Errorf("damaged %v, want %v: %q", report.Damaged, copied, report.Warnings)
			}
		})
	}
}

// TestTakesThatFailForgetNoDamage checks that a Take that fails or dies at any point forgets
// neither that the directory is a copy nor that a journal file is missing. The next Take reports
// it.
func TestTakesThatFailForgetNoDamage(t *testing.T) {
	for name, damage := range map[string]func(t *testing.T, r *rundir.Run) error{
		"a copy": func(t *testing.T, r *rundir.Run) error {
			moved := filepath.Join(t.TempDir(), "moved")
			return errors.Join(os.Rename(r.Dir, moved), os.CopyFS(r.Dir, os.DirFS(moved)))
		},
		"a file that is gone": func(_ *testing.T, r *rundir.Run) error { return os.Remove(fileOf(1).path(r)) },
		"an empty file":       func(_ *testing.T, r *rundir.Run) error { return os.Truncate(fileOf(1).path(r), 0) },
	} {
		t.Run(name, func(t *testing.T) {
			failures := 0
			for n := 1; ; n++ {
				r := newRun(t)
				j, _, _ := take1(t, r, force)
				if err := j.Close(); err != nil {
					t.Fatal(err)
				}
				if err := damage(t, r); err != nil {
					t.Fatal(err)
				}
				d := &disktest.Disk{}
				d.FailAt(n, syscall.EIO, false)
				k, _, _, err := Take(t.Context(), &rundir.Run{Dir: r.Dir, Nonce: r.Nonce, Asked: r.Asked, Disk: d}, force)
				failed := d.Failed
				d.FailAt(0, nil, false)
				if err == nil {
					crash(t, k)
				}
				if failed == "" {
					break
				}
				failures++
				k, table, report := take1(t, r, force)
				if !report.Damaged || !table.Damaged {
					t.Errorf("after %s failed: it is taken for whole", failed)
				}
				crash(t, k)
			}
			if failures < 10 {
				t.Errorf("only %d operations failed", failures)
			}
		})
	}
}

// TestElsewhere checks that a different device number proves a copy only within one boot, and only
// on file systems with a device of their own. On others, such as NFS, the number changes with every
// mount.
func TestElsewhere(t *testing.T) {
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
		if got := c.now.elsewhere(had); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
		if got := had.elsewhere(&c.now); got != c.want {
			t.Errorf("%s, before: %v", name, got)
		}
	}
	o := new(Owner)
	if err := o.identify(&rundir.Run{Dir: "/proc", Disk: rundir.OS}); err != nil || o.Device != 0 || o.Inode == 0 {
		t.Errorf("a file system without a device: %+v, %v", o, err)
	}
}

// TestSkipTo checks that hosts may know later epochs than a directory that was restored. The next
// Take begins after the reported epoch, within bounds, unless the directory itself has a newer
// epoch.
func TestSkipTo(t *testing.T) {
	r := newRun(t)
	j, _, _ := take1(t, r, force)
	if ok, err := j.SkipTo(maxSkip + 2); ok || err != nil {
		t.Errorf("too far: %v, %v", ok, err)
	}
	if ok, err := j.SkipTo(7); !ok || err != nil {
		t.Errorf("to 7: %v, %v", ok, err)
	}
	crash(t, j)
	k, _, report := take1(t, r, force)
	if k.Epoch() != 8 || report.Damaged {
		t.Errorf("epoch %d, want 8; %+v", k.Epoch(), report)
	}
	if ok, err := j.SkipTo(9); ok || err != nil {
		t.Errorf("by a dispatcher that was overtaken: %v, %v", ok, err)
	}
	crash(t, k)
}
