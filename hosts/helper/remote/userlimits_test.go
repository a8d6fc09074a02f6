//go:build linux

package remote

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"dcs-tui/hosts"
)

// administer writes the file in which the administrators of the world's machine limit users.
func (w *world) administer(text string) {
	w.t.Helper()
	w.machine().file(hosts.UserLimitsFile, text)
}

// TestAdministratorsLimitUsers checks that slots and memory of a host are at most what its
// administrators allow, and that the limits are named.
func TestAdministratorsLimitUsers(t *testing.T) {
	w := newWorld(t)
	w.administer("slots = 1\nmemory = '1M'\n[user.nobody-of-this-name]\nslots = 3\n")
	o := w.open()
	o.Slots = 3
	f := w.start(o)
	h := f.hello
	if h.Slots != 1 || h.MaxSlots != 1 || h.MemBytes != 1<<20 || len(h.Warnings) > 0 {
		t.Errorf("the host offers %d slots and %d bytes, and warns %q", h.Slots, h.MemBytes, h.Warnings)
	}
	var kinds []hosts.CapacityKind
	for _, l := range h.Limits {
		kinds = append(kinds, l.Kind)
	}
	if !slices.Contains(kinds, hosts.CapacityOfSlots) || !slices.Contains(kinds, hosts.CapacityOfReservations) {
		t.Errorf("limits %v", h.Limits)
	}
	if b := f.heartbeat(func(*hosts.Heartbeat) bool { return true }); b.MemFree > 1<<20 {
		t.Errorf("%d bytes of memory are free", b.MemFree)
	}
}

// twoLimitedRuns starts two runs of a user to whom a host allows two of its six slots. The first run
// holds both, with the jobs 1 and 2 of world w. env is the environment of the second one.
func twoLimitedRuns(t *testing.T, env ...string) (w *world, first, second *helperProcess) {
	t.Helper()
	const limit = "slots = 2\n"
	w = newWorld(t)
	w.administer(limit)
	o := w.open()
	o.Slots = 6
	first = w.start(o)
	first.send(&hosts.Share{Slots: 2, Want: 2}, &hosts.Limit{Slots: 2})
	first.hold("1.1", "")
	first.hold("2.1", "")
	w2, o2 := w.sameHost(t, env...)
	w2.administer(limit)
	o2.Slots = 6
	return w, first, w2.start(o2)
}

// TestRunsOfAUserShareTheLimit checks that the limit of a user is divided between the runs of that
// user, although the host has more slots.
func TestRunsOfAUserShareTheLimit(t *testing.T) {
	w, f, g := twoLimitedRuns(t)
	if s := g.hello.Sharing; s == nil || s.Slots != 0 || s.Held != 2 {
		t.Errorf("the hello of another run says %+v", s)
	}
	g.send(&hosts.Share{Slots: 2, Want: 2}, &hosts.Limit{Slots: 2})
	f.shares(1)
	f.send(&hosts.Limit{Slots: 1})
	w.release("1.1")
	f.succeeds("1.1")
	g.shares(1)
	w.release("2.1")
	f.succeeds("2.1")
}

// TestLastSlotIsWithinTheLimit checks that a run that has waited for a slot starts nothing while the
// other runs of its user have all that the administrators allow.
func TestLastSlotIsWithinTheLimit(t *testing.T) {
	w, f, g := twoLimitedRuns(t, lastSlotEnv+"=1ms")
	g.send(&hosts.Share{Slots: 2, Want: 2}, &hosts.Limit{Slots: 2})
	f.shares(1)
	for range 5 {
		b := g.heartbeat(func(b *hosts.Heartbeat) bool { return b.Sharing != nil })
		if b.Sharing.Slots != 0 {
			t.Fatalf("the run may use %d slots beside the 2 that its user may have", b.Sharing.Slots)
		}
	}
	for _, id := range []string{"1.1", "2.1"} {
		w.release(id)
		f.succeeds(id)
	}
}

// TestLimitAmongOtherUsers checks that slots and memory that other users hold count only if the
// host has not enough left for what is allowed.
func TestLimitAmongOtherUsers(t *testing.T) {
	const me, other = 1, 2
	claims := []hosts.SlotClaim{{User: me, Run: "a", Weight: 1, Want: 9},
		{User: other, Run: "b", Weight: 1, Want: 50, Held: 50, Memory: 60},
		{User: me, Run: "c", Weight: 1, Want: 9, Held: 2, Memory: 5}}
	l := userLimits{hosts.UserLimits{Slots: 4, Memory: 20}}
	if got := l.slotBound(claims, 0, 0); got != 2 {
		t.Errorf("the run may use %d slots, want half of 4", got)
	}
	if got := (userLimits{}).slotBound(claims, 0, 0); got < 50 {
		t.Errorf("without a limit, the run may use %d slots", got)
	}
	for total, want := range map[int64]int64{1000: 5, 85: 5, 80: 5, 70: 5, 60: 5, 44: 5, 40: 5, 30: 10, 18: 14} {
		if got := l.memoryOfOthers(total, claims, 0); got != want {
			t.Errorf("of %d bytes, the others have %d, want %d", total, got, want)
		}
	}
}

// TestClosedHost checks that a check reports a host that is closed by its administrators, that a
// run starts nothing there, and that it continues when the host is open again.
func TestClosedHost(t *testing.T) {
	const why = "it is closed by its administrators: exam week"
	w := newWorld(t)
	w.administer("closed = 'exam week'\n")
	o := w.open()
	o.Check = true
	w.mustNotStart(o, why)
	f := w.start(w.open())
	if got := f.hello.Owner; got != (hosts.Owner{Who: why}) {
		t.Errorf("the hello says %+v, want %s", got, why)
	}
	w.administer("")
	f.heartbeat(func(b *hosts.Heartbeat) bool { return b.Owner.Who == "" })
	w.administer("closed = 'exam week'\n")
	f.heartbeat(func(b *hosts.Heartbeat) bool { return b.Owner.Who == why })
	o2 := newOwners(&hosts.Open{}, site{w.machine().root, os.Getuid(), -1})
	if got := o2.currentOwner().Who; got != why {
		t.Errorf("it is held by %q, not closed", got)
	}
	w.administer("closed = 'exam")
	if got := o2.currentOwner().Who; got != why {
		t.Errorf("while its limits are edited, it is held by %q, not closed", got)
	}
}

// TestOnlyAdministratorsLimitUsers checks that a file that others can write, that is not root's, or
// that is no plain file does not count, and that a host without the file has no limits and no
// warning.
func TestOnlyAdministratorsLimitUsers(t *testing.T) {
	for name, c := range map[string]struct {
		set     func(m machine, path string)
		admin   int
		problem string
	}{
		"none": {func(machine, string) {}, os.Getuid(), ""},
		"of another user": {func(m machine, _ string) { m.file(hosts.UserLimitsFile, "slots = 1\n") }, -1,
			"it must belong to root"},
		"others write it": {func(m machine, path string) {
			m.file(hosts.UserLimitsFile, "slots = 1\n")
			must(t, os.Chmod(path, 0o622))
		}, os.Getuid(), "others must not be able to write it"},
		"too large": {func(m machine, _ string) {
			m.file(hosts.UserLimitsFile, strings.Repeat("#", maxTrustedFile+1))
		}, os.Getuid(), "it has 65537 bytes"},
		"a directory": {func(_ machine, path string) { must(t, os.MkdirAll(path, 0o755)) }, os.Getuid(),
			"not an ordinary file"},
		"a link": {func(_ machine, path string) { must(t, os.Symlink("/dev/null", path)) }, os.Getuid(), "is ignored"},
		"a typing error": {func(m machine, _ string) { m.file(hosts.UserLimitsFile, "slot = 1\n") }, os.Getuid(),
			"/etc/dcs-tui/limits.toml: slot: unknown key"},
	} {
		t.Run(name, func(t *testing.T) {
			m := machine{t, t.TempDir()}
			c.set(m, m.path(hosts.UserLimitsFile))
			allowed, problem := site{root: m.root, adminUID: c.admin}.userLimits()
			if allowed != (userLimits{}) || (problem == "") != (c.problem == "") ||
				!strings.Contains(problem, c.problem) {
				t.Errorf("got %+v and %q, want a problem about %q", allowed, problem, c.problem)
			}
		})
	}
	if _, problem := (site{root: filepath.Join(t.TempDir(), "none")}).userLimits(); problem != "" {
		t.Errorf("got %q", problem)
	}
}
