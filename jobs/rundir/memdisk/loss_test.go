package memdisk_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"strings"
	"syscall"
	"testing"

	"dcs-tui/internal/polltest"
	"dcs-tui/jobs/rundir"
	"dcs-tui/jobs/rundir/memdisk"
)

var must = polltest.Must

func create(t testing.TB, d rundir.Disk, path string) rundir.File {
	t.Helper()
	f, err := d.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	must(t, err)
	return f
}

func put(t testing.TB, f rundir.File, off int64, text string) {
	t.Helper()
	if n, err := f.WriteAt([]byte(text), off); err != nil || n != len(text) {
		t.Fatal(n, err)
	}
}

func content(d rundir.Disk, path string) string {
	b, err := rundir.ReadFile(d, path)
	if err != nil {
		return "error"
	}
	return strings.ReplaceAll(string(b), "\x00", "0")
}

// TestSyncedBytesSurviveAPowerLoss checks that synced bytes survive a power failure, and that the
// caller decides exactly which other bytes survive.
func TestSyncedBytesSurviveAPowerLoss(t *testing.T) {
	for _, c := range []struct {
		fates []memdisk.Fate // of two writes and a truncation
		want  string
	}{
		{nil, "durable"}, // all lost
		{[]memdisk.Fate{{Keep: 99}, {Keep: 99}, {Keep: 1}}, "durableone"},
		{[]memdisk.Fate{{Keep: 3}, {Keep: 99}, {}}, "durableonetwo"},
		{[]memdisk.Fate{{}, {Keep: 99}, {}}, "durable000two"},
		{[]memdisk.Fate{{Keep: 1}, {}, {}}, "durableo"},
		{[]memdisk.Fate{{Keep: 1, Zeros: true}, {}, {}}, "durableo00"},
		{[]memdisk.Fate{{}, {Zeros: true, Keep: 2}, {}}, "durable000tw0"},
	} {
		m := newDisk(t)
		f := create(t, m, "/w/x")
		put(t, f, 0, "durable")
		must(t, f.Sync())
		must(t, m.SyncDir("/w"))
		must(t, m.SyncDir("/"))
		put(t, f, 7, "one")
		put(t, f, 10, "two")
		must(t, f.Truncate(10))
		asked := 0
		m.PowerLoss(func(l memdisk.Loss) memdisk.Fate {
			if asked++; asked > len(c.fates) {
				return memdisk.Fate{}
			}
			return c.fates[asked-1]
		})
		if got := content(m, "/w/x"); got != c.want {
			t.Errorf("%v: %q, want %q", c.fates, got, c.want)
		}
		if asked != 3 {
			t.Errorf("asked about %d changes, want 3", asked)
		}
	}
}

// TestSyncedNamesSurviveAPowerLoss checks that names survive if their directory was synced, and
// that a rename is one change.
func TestSyncedNamesSurviveAPowerLoss(t *testing.T) {
	lost := func(memdisk.Loss) memdisk.Fate { return memdisk.Fate{} }
	kept := func(l memdisk.Loss) memdisk.Fate { return memdisk.Fate{Keep: l.Len} }
	for _, c := range []struct {
		fate func(memdisk.Loss) memdisk.Fate
		want string
	}{{lost, "[a b] old"}, {kept, "[a c] new"}, {nil, "[a b] old"}} {
		m := newDisk(t)
		must(t, m.SyncDir("/"))
		a := create(t, m, "/w/a")
		put(t, a, 0, "old")
		b := create(t, m, "/w/b")
		put(t, b, 0, "new")
		must(t, a.Sync())
		must(t, b.Sync())
		must(t, m.SyncDir("/w"))
		must(t, m.Rename("/w/b", "/w/a"))
		must(t, create(t, m, "/w/c").Close())
		m.PowerLoss(c.fate)
		names, err := m.Names("/w")
		if got := fmt.Sprint(names, " ", content(m, "/w/a")); err != nil || got != c.want {
			t.Errorf("%s, %v; want %s", got, err, c.want)
		}
		m.PowerLoss(func(l memdisk.Loss) memdisk.Fate {
			t.Errorf("%v is not settled after a loss of power", l)
			return memdisk.Fate{}
		})
	}
}

// TestMachinesSeeEachOthersChanges checks that machines see each other's changes at once, and that
// a power failure of one machine does not affect the others.
func TestMachinesSeeEachOthersChanges(t *testing.T) {
	s := memdisk.New()
	s.NamesDurable = true
	a, b := s.Mount("a"), s.Mount("b")
	must(t, a.Mkdir("/w", 0o700))
	fa := create(t, a, "/w/x")
	fb, err := b.OpenFile("/w/x", os.O_RDWR, 0)
	must(t, err)
	put(t, fa, 0, "aaaa")
	put(t, fb, 2, "bbbb")
	if got := content(a, "/w/x"); got != "aabbbb" {
		t.Errorf("x holds %q, want \"aabbbb\"", got)
	}
	a.PowerLoss(nil)
	if got := content(b, "/w/x"); got != "00bbbb" {
		t.Errorf("after the loss of the first machine: %q", got)
	}
	if _, err := fa.WriteAt([]byte("z"), 0); !errors.Is(err, syscall.ESTALE) {
		t.Errorf("its open file: %v", err)
	}
	must(t, fb.Sync())
	b.PowerLoss(nil)
	if got := content(a, "/w/x"); got != "00bbbb" {
		t.Errorf("synced, and lost: %q", got)
	}
	if _, err := b.OpenFile("/w/x", os.O_RDWR|os.O_CREATE|os.O_EXCL, 0); !errors.Is(err, fs.ErrExist) {
		t.Errorf("O_EXCL among machines: %v", err)
	}
}

// TestListingHasOwnChanges checks that a listing may be stale, but always contains the machine's
// own changes.
func TestListingHasOwnChanges(t *testing.T) {
	s := memdisk.New()
	a, b := s.Mount("a"), s.Mount("b")
	list := func() string {
		names, err := a.Names("/")
		must(t, err)
		return fmt.Sprint(names)
	}
	a.Stale = func(string) bool { return true }
	must(t, create(t, b, "/x").Close())
	if list() != "[x]" {
		t.Error("the first listing is fresh")
	}
	must(t, create(t, b, "/y").Close())
	if list() != "[x]" {
		t.Error("not stale")
	}
	must(t, a.Mkdir("/z", 0o700))
	if list() != "[x y z]" {
		t.Error("it does not know what it did")
	}
	must(t, b.Remove("/x"))
	if list() != "[x y z]" {
		t.Error("not stale")
	}
	a.Stale = nil
	if list() != "[y z]" {
		t.Error("stale unasked")
	}
}

// TestFailedOperationChangesNothing checks that a failed operation changes nothing, except for what
// a short write has written and what a failed sync has lost.
func TestFailedOperationChangesNothing(t *testing.T) {
	m := newDisk(t)
	f := create(t, m, "/w/x")
	put(t, f, 0, "start ")
	must(t, f.Sync())
	next, ops := error(nil), []string{}
	m.Fault = func(op, path string) error {
		ops = append(ops, op+" "+path)
		err := next
		next = nil
		return err
	}
	next = syscall.ENOSPC
	if n, err := f.WriteAt([]byte("abc"), 6); n != 0 || !errors.Is(err, syscall.ENOSPC) {
		t.Error(n, err)
	}
	next = memdisk.ShortWrite{N: 2, Err: syscall.EDQUOT}
	if n, err := f.WriteAt([]byte("abc"), 6); n != 2 || !errors.Is(err, syscall.EDQUOT) {
		t.Error(n, err)
	}
	if got := content(m, "/w/x"); got != "start ab" {
		t.Errorf("x holds %q, want \"start ab\"", got)
	}
	next = memdisk.LostWrites{Err: syscall.EIO}
	if err := f.Sync(); !errors.Is(err, syscall.EIO) {
		t.Error(err)
	}
	must(t, f.Sync())
	if got := content(m, "/w/x"); got != "start " {
		t.Errorf("a failed sync has lost its bytes, and there is %q", got)
	}
	next = syscall.EIO
	if err := f.Close(); !errors.Is(err, syscall.EIO) {
		t.Error(err)
	}
	if err := f.Sync(); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("it is closed all the same: %v", err)
	}
	want := "write /w/x|write /w/x|open /w/x|fstat /w/x|read /w/x|close /w/x|sync /w/x|sync /w/x|open /w/x|fstat " +
		"/w/x|read /w/x|close /w/x|close /w/x|sync /w/x"
	if got := strings.Join(ops, "|"); got != want {
		t.Errorf("asked about\n%s, want\n%s", got, want)
	}
}

// TestDeterministic checks that the same calls and the same answers give the same bytes. The
// simulator's promise that a seed replays exactly depends on it.
func TestDeterministic(t *testing.T) {
	once := func(seed uint64) string {
		m := newDisk(t)
		rng := rand.New(rand.NewPCG(seed, 2))
		var log bytes.Buffer
		for range 20 {
			m.Fault = func(op, path string) error {
				fmt.Fprintln(&log, op, path)
				if rng.IntN(10) == 0 {
					return syscall.EIO
				}
				return nil
			}
			for i := range 20 {
				path := fmt.Sprint("/w/", rng.IntN(9))
				f, err := m.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
				if err != nil {
					continue
				}
				_, _ = f.WriteAt([]byte(fmt.Sprint("text ", i)), rng.Int64N(50))
				_ = f.Close()
				_ = m.SyncDir("/w")
			}
			m.PowerLoss(func(l memdisk.Loss) memdisk.Fate {
				f := memdisk.Fate{Keep: rng.IntN(l.Len + 1), Zeros: rng.IntN(2) == 0}
				if l.Name == "w" {
					f.Keep = 1
				}
				fmt.Fprintln(&log, l, f)
				return f
			})
		}
		m.Fault = nil
		for i := range 9 {
			fmt.Fprintln(&log, content(m, fmt.Sprint("/w/", i)))
		}
		return log.String()
	}
	for seed := range uint64(5) {
		if a, b := once(seed), once(seed); a != b {
			t.Fatalf("seed %d: two runs differ", seed)
		}
	}
}
