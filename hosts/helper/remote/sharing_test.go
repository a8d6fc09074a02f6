//go:build linux

package remote

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"dcs-tui/hosts"
	"dcs-tui/hosts/hosttest"
	"dcs-tui/internal/polltest"
)

// shares waits until the helper reports that the run may use the given number of slots.
func (f *helperProcess) shares(slots int) *hosts.Sharing {
	f.w.t.Helper()
	return f.heartbeat(func(b *hosts.Heartbeat) bool { return b.Sharing != nil && b.Sharing.Slots == slots }).Sharing
}

// TestShareDirThatIsNone checks that a helper reports which host does not share its slots, and why.
func TestShareDirThatIsNone(t *testing.T) {
	w := newWorld(t)
	o := w.open()
	write(t, o.ShareDir, "")
	f := w.start(o)
	f.send(&hosts.Share{Slots: 2, Want: 2}, &hosts.Limit{Slots: 2})
	m := await(f, func(m *hosts.Trouble) bool { return strings.Contains(m.Text, "not a directory") })
	if !strings.HasPrefix(m.Text, o.Host+" does not share its slots") {
		t.Errorf("got %q", m.Text)
	}
	f.endRun()
}

// TestSlotsAreShared checks that two runs share the slots of a host: the second run gets its part
// as jobs of the first end (K11). When the first run is killed, nothing is left of it.
func TestSlotsAreShared(t *testing.T) {
	w := newWorld(t)
	f := w.start(w.open())
	f.mayDie = true
	f.send(&hosts.Share{Slots: 2, Want: 2}, &hosts.Limit{Slots: 2})
	f.hold("1.1", "")
	f.hold("2.1", "")

	w2, o := w.sameHost(t)
	o.RunName = "second"
	g := w2.start(o)
	if s := g.hello.Sharing; s == nil || s.Slots != 0 || s.Held != 2 || !strings.Contains(s.Text(), " 2 slots (test)") {
		t.Errorf("the hello of another run says %+v: %s", s, s.Text())
	}
	g.send(&hosts.Share{Slots: 2, Want: 2}, &hosts.Limit{Slots: 2})
	ran, end := w2.fifo("ran"), w2.fifo("end")
	g.launch(job("1.1", "echo ran > "+ran+"; read x < "+end))
	s := f.shares(1)
	if !strings.Contains(s.Text(), "of 4 wanted (") {
		t.Errorf("the first run hears of %s", s.Text())
	}
	g.answers("1.1", hosts.Buffered)
	f.send(&hosts.Limit{Slots: 1})
	w.release("1.1")
	f.exit("1.1")
	w2.receive(ran) // it has the slot

	f.crash() // ends the helper; the supervisor of 2.1 still holds a slot
	g.shares(1)
	for pid, p := range scan(nil) {
		if isEndable(p) && strings.Contains(string(procFile(pid, "cmdline")), w.base) {
			unix.Kill(pid, unix.SIGKILL)
		}
	}
	g.heartbeat(func(b *hosts.Heartbeat) bool { return b.Sharing == nil })
	write(t, end, "\n")
	g.exit("1.1")
	g.endRun()
	again := w.open()
	again.Epoch = 2
	w.start(again).endRun() // this helper has made no claim itself
	if left, _ := filepath.Glob(o.ShareDir + "/claim-*"); left != nil {
		t.Errorf("%v is left of runs that have ended", left)
	}
}

// TestRunIsNotStarvedByItsUser checks that a run that has waited for a slot starts one job although
// another run of the same user holds all slots.
func TestRunIsNotStarvedByItsUser(t *testing.T) {
	w := newWorld(t)
	f := w.start(w.open())
	f.send(&hosts.Share{Slots: 2, Want: 2}, &hosts.Limit{Slots: 2})
	f.hold("1.1", "")
	f.hold("2.1", "")
	w2, o := w.sameHost(t, lastSlotEnv+"=300ms")
	g := w2.start(o)
	g.send(&hosts.Share{Slots: 1, Want: 1}, &hosts.Limit{Slots: 1})
	g.shares(1)
	g.launch(job("1.1", "exit 7"))
	g.exits("1.1", 7)
	w.release("1.1")
	w.release("2.1")
	f.exit("1.1")
	f.exit("2.1")
}

// TestSessionWithFewCoresFindsSlots checks that a run whose session may not use all cores of the
// machine divides the slots of a run that may.
func TestSessionWithFewCoresFindsSlots(t *testing.T) {
	if machineCores() < 2 {
		hosttest.LeaveOut(t, "this machine has a single core: sessions that may not use all cores")
	}
	w := newWorld(t)
	f := w.start(w.open())
	f.send(&hosts.Share{Rule: 2, Slots: 2, Want: 1}, &hosts.Limit{Slots: 2})
	f.hold("1.1", "")
	w2, o := w.sameHost(t, lastSlotEnv+"=1h")
	var all, one unix.CPUSet
	must(t, unix.SchedGetaffinity(0, &all))
	for i := 0; one.Count() == 0; i++ {
		if all.IsSet(i) {
			one.Set(i)
		}
	}
	runtime.LockOSThread() // the helper inherits the cores of this thread
	must(t, unix.SchedSetaffinity(0, &one))
	g := w2.start(o)
	must(t, unix.SchedSetaffinity(0, &all))
	runtime.UnlockOSThread()
	g.send(&hosts.Share{Rule: 1, Slots: 1, Want: 1}, &hosts.Limit{Slots: 1})
	g.shares(1)
	g.launch(job("1.1", "exit 7"))
	g.exits("1.1", 7)
	w.release("1.1")
	f.exit("1.1")
}

// TestNextDispatcherSharesNothing checks that a dispatcher that shares no slots uses all slots of a
// host that an earlier dispatcher of the run shared with another run.
func TestNextDispatcherSharesNothing(t *testing.T) {
	w := newWorld(t)
	f := w.start(w.open())
	f.send(&hosts.Share{Slots: 2, Want: 1}, &hosts.Limit{Slots: 2})
	f.hold("1.1", "")
	w2, o := w.sameHost(t)
	g := w2.start(o)
	g.send(&hosts.Share{Slots: 2, Want: 1}, &hosts.Limit{Slots: 2})
	g.hold("1.1", "")
	f.crash()

	o = w.open()
	o.ShareWeight = 0
	f = w.start(o)
	f.send(&hosts.Limit{Slots: 2})
	f.launch(job("2.1", "exit 7"))
	f.exits("2.1", 7)
	w.release("1.1")
	f.exit("1.1")
	w2.release("1.1")
	g.exit("1.1")
}

// TestMemoryIsShared checks that other runs know how much memory a running job may use, for as long
// as the job runs or its supervisor lives.
func TestMemoryIsShared(t *testing.T) {
	w := newWorld(t)
	gate := w.fifo("gate")
	f := w.start(w.open())
	f.send(&hosts.Share{Slots: 2, Want: 1})
	large := job("1.1", "read x < "+gate)
	large.Mem = 200 << 20
	f.launch(large)
	f.started("1.1")
	w2, o := w.sameHost(t)
	g := w2.start(o)
	if s := g.hello.Sharing; s == nil || s.Memory != 200<<20 || s.Users[0].Memory != 200<<20 {
		t.Errorf("the hello of another run says %+v, want 200 MiB in use", s)
	}
	g.send(&hosts.Share{Slots: 2, Want: 1})
	write(t, gate, "\n")
	f.exit("1.1")
	g.heartbeat(func(b *hosts.Heartbeat) bool { return b.Sharing == nil || b.Sharing.Memory == 0 })
}

// TestWideJobWaitsForItsSlots checks that a job of several slots starts only when all of them are
// free.
func TestWideJobWaitsForItsSlots(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f := w.start(w.open())
	f.send(&hosts.Share{Slots: 2, Want: 1})
	f.hold("1.1", "")
	w2, o := w.sameHost(t)
	g := w2.start(o)
	g.send(&hosts.Share{Slots: 2, Want: 2})
	wide := job("1.1", "true")
	wide.Slots = 2
	g.launch(wide)
	g.withdrawn("1.1")
	w.release("1.1")
	f.exit("1.1")
	wide = job("1.2", "exit 7")
	wide.Slots = 2
	g.launch(wide)
	g.exits("1.2", 7)
}

// TestOnlyRootSetsWeights checks that only root can set the weights of users and the half-life of their
// usage: the file must belong to root, must not be a link, and must not be writable for others.
func TestOnlyRootSetsWeights(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("makes files of another user, which needs root")
	}
	const alice, bob = 4242, 4243
	const text = "4242 3\nuser 4243 5\n4243 2 extra\n4243 many\nhalf-life 2h\n\n"
	for name, c := range map[string]struct {
		owner int
		mode  os.FileMode
		link  bool
		want  map[int]int
	}{
		"root's":            {0, 0o644, false, map[int]int{alice: 3}},
		"a user's":          {alice, 0o644, false, nil},
		"writable by group": {0, 0o664, false, nil},
		"writable by all":   {0, 0o666, false, nil},
		"a link to root's":  {0, 0o644, true, nil},
		"missing":           {-1, 0, false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := dir + "/" + sharesFile
			if c.link {
				must(t, os.Symlink(dir+"/real", path))
				path = dir + "/real"
			}
			if c.owner >= 0 {
				must(t, errors.Join(os.WriteFile(path, []byte(text), 0o600), os.Chmod(path, c.mode),
					os.Chown(path, c.owner, c.owner)))
			}
			got := readShares(dir, []hosts.SlotClaim{{User: alice}, {User: bob}})
			if !maps.Equal(got.weights, c.want) || (got.halfLife == 2*time.Hour) != (c.want != nil) {
				t.Errorf("%+v, want the weights %v", got, c.want)
			}
		})
	}
}

// TestForgedClaimsGainNothing checks that files of a malicious user in the shared directory cost no
// user the last slot, give no user more slots, and are reported once.
func TestForgedClaimsGainNothing(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("makes files of another user, which needs root")
	}
	defer unix.Umask(unix.Umask(0o022)) // a file that only its owner can read counts as being created
	w := newWorld(t, lastSlotEnv+"=300ms")
	o := w.open()
	dirfd, err := openShare(o.ShareDir, true)
	must(t, err)
	defer unix.Close(dirfd)

	forged := (&claimText{run: w.run, group: "evil", name: "evil\x1b[2J", want: maxSlots, weight: 1000,
		held: maxSlots}).bytes()
	file := func(name string, text []byte, size int64) {
		path := o.ShareDir + "/" + claimPrefix + name
		f, err := os.Create(path)
		if err == nil {
			_, err = f.Write(text)
		}
		if err = errors.Join(err, f.Truncate(max(size, int64(len(text)))), f.Chown(evil, evil),
			lockRange(int(f.Fd()), path, 0, 0)); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
	}
	file("forged", forged, 0)
	file("huge", forged, 1<<40)
	file("garbage", []byte("DSH3 and more"), 0)
	err = errors.Join(os.Symlink("/etc/passwd", o.ShareDir+"/"+claimPrefix+"link"),
		unix.Mkfifo(o.ShareDir+"/"+claimPrefix+"fifo", 0o666),
		os.Mkdir(o.ShareDir+"/"+claimPrefix+"dir", 0o777))
	must(t, err)

	f := w.start(o)
	if s := f.hello.Sharing; s == nil || s.Slots != 0 {
		t.Errorf("the hello says %+v", s)
	}
	f.send(&hosts.Share{Slots: 2, Want: 2})
	for _, name := range []string{"huge", "garbage", "link", "fifo", "dir"} {
		await(f, func(m *hosts.Trouble) bool { return strings.Contains(m.Text, claimPrefix+name) })
	}
	f.launch(job("1.1", "true"), job("2.1", "true"))
	f.shares(1)
	f.exit("1.1")
	f.exit("2.1")
	if s := f.shares(1); s.Held > 3 || len(s.Users) != 2 {
		t.Errorf("shares: got %+v, want at most 3 slots held, and 2 users", s)
	}
	f.endRun()
	for _, m := range f.pending {
		if m, ok := m.(*hosts.Trouble); ok {
			t.Errorf("reported again: %s", m.Text)
		}
	}
}

// sharingHelper returns the helper of a run on a host with a number of slots, which shares them in a directory of
// the test.
func sharingHelper(t *testing.T, slots int) *helper {
	dir, _ := sharedTestDir(t)
	control, err := openControl(t.TempDir())
	must(t, err)
	control.setShare(hosts.Share{Rule: slots, Slots: slots})
	h := &helper{open: &hosts.Open{ShareWeight: 1}, slots: slots, control: control,
		config: slotConfig{ShareDir: dir, Run: "ours", Host: "h"}}
	t.Cleanup(h.removeClaims)
	return h
}

// TestTriedSlotIsNotHeld checks that a run gets no slot beside runs that hold all of them because one of its
// supervisors has claimed a slot for a moment, to find that none is free.
func TestTriedSlotIsNotHeld(t *testing.T) {
	h := sharingHelper(t, 2)
	dir, control, config := h.config.ShareDir, h.control, h.config
	other := claimText{run: "other", group: "other", name: "other", want: 2, weight: 1, slots: 2, held: 2}
	made(t, dir, claimPrefix+"other", ownUID, other.bytes(), byteRange{})
	s := slot{control: control, config: &config}
	defer s.claim.remove()
	dirfd, err := openShare(dir, true)
	must(t, err)
	defer closeFile(dirfd, dir)
	for tried := 1; tried >= 0; tried-- {
		must(t, s.claim.write(dirfd, dir, claimText{run: "ours", group: claimGroup("ours", "h"), slots: 2, held: 1,
			tried: tried}))
		h.updateShare(&hosts.Share{Rule: 2, Slots: 2, Want: 2}, time.Hour)
		if last := control.word(ctlLast).Load(); (last == 0) != (tried > 0) {
			t.Errorf("%d slots are tried; %d slots beyond those of others", tried, last)
		}
	}
	s.claim.text.held = 0
	control.word(ctlLast).Store(0)
	if s.holdSlots(1) || s.claim.text.held+s.claim.text.tried != 0 {
		t.Errorf("a supervisor holds a slot, or its claim says %+v; want neither", s.claim.text)
	}
	control.word(ctlLast).Store(1)
	if !s.holdSlots(1) || s.claim.text.held != 1 || s.claim.text.tried != 0 {
		t.Errorf("a supervisor holds no slot, or its claim says %+v; want a slot that is held", s.claim.text)
	}
}

// TestTryEndsWithItsSupervisor checks that a supervisor that is killed while it tries to get a slot leaves nothing
// behind: the run then holds what its other supervisors hold, and no less.
func TestTryEndsWithItsSupervisor(t *testing.T) {
	h := sharingHelper(t, 2)
	dir := h.config.ShareDir
	other := claimText{run: "other", group: "other", name: "other", want: 2, weight: 1, slots: 2, held: 1}
	made(t, dir, claimPrefix+"other", ownUID, other.bytes(), byteRange{})
	holding := claimText{run: "ours", group: claimGroup("ours", "h"), slots: 2, held: 1}
	trying := holding
	trying.tried = 1
	made(t, dir, claimFiles(holding.group)+"holds", ownUID, holding.bytes(), byteRange{})
	killed := made(t, dir, claimFiles(holding.group)+"tries", ownUID, trying.bytes(), byteRange{})
	for _, want := range []int{2, 1} {
		dirfd, err := openShare(dir, true)
		must(t, err)
		claims, _, err := readClaims(dirfd, dir, holding.group, "ours", nil)
		must(t, err)
		closeFile(dirfd, dir)
		c := claims[indexOfOwn(claims, holding.group)]
		if c.Held != want || c.Held-c.tried != 1 {
			t.Errorf("%d slots are held, %d of them tried; want %d, and 1 that is not tried", c.Held, c.tried, want)
		}
		killed.Close() // as the end of its process does
	}
}

// TestFalseClaimTakesNoHeldSlot checks that a run whose supervisors hold slots when another user claims to
// hold all of them keeps its part: a supervisor that released its slot takes it again, and no more.
func TestFalseClaimTakesNoHeldSlot(t *testing.T) {
	h := sharingHelper(t, 9)
	dir, control, config := h.config.ShareDir, h.control, h.config
	look := func(slots, beyond int) {
		t.Helper()
		h.updateShare(&hosts.Share{Rule: 9, Slots: 9, Want: 9}, time.Hour)
		last := control.word(ctlLast).Load()
		if s := h.sharing.current.Load(); s == nil || s.Slots != slots || last != int64(beyond) {
			t.Errorf("%+v, and %d slots beyond; want %d and %d", s, last, slots, beyond)
		}
	}
	claim := func(group string, user, held int) {
		c := claimText{run: group, group: group, name: group, want: 8, weight: 1, slots: 9, held: held}
		made(t, dir, claimPrefix+group, user, c.bytes(), byteRange{})
	}
	claim("honest", victim, 6)
	var supervisors [5]slot
	for i := range supervisors {
		s := &supervisors[i]
		s.control, s.config = control, &config
		defer s.claim.remove()
		if held := s.holdSlots(1); held != (i < 3) {
			t.Errorf("supervisor %d holds a slot: %v", i, held)
		}
	}
	look(3, 0)
	claim("evil", evil, 9)
	look(3, 3)
	supervisors[1].releaseSlots()
	supervisors[2].releaseSlots()
	look(3, 3)
	for i, want := range []bool{true, true, true, false, false} {
		if held := supervisors[i].holdSlots(1); held != want {
			t.Errorf("supervisor %d holds a slot beside a false claim: %v, want %v", i, held, want)
		}
	}
}

// TestRunIsListedOnce checks that a run that has this machine under several names is listed once,
// with all of its slots, and that the other runs of our user that hold slots are named.
func TestRunIsListedOnce(t *testing.T) {
	claim := func(user int, name string, held int) seenClaim {
		return seenClaim{
			SlotClaim: hosts.SlotClaim{User: user, Run: "group of " + name, Want: 3, Held: held},
			name:      name,
		}
	}
	me := os.Getuid()
	other := me + 54322
	got := usersOf([]seenClaim{claim(me, "a", 1), claim(me, "b", 2), claim(me, "a", 1), claim(me, "", 1),
		claim(me, "idle", 0), claim(other, "c", 1)}, nil, "group of b")
	want := []hosts.SharedUser{
		{Name: userName(me), Slots: 4, Want: 12, Runs: []string{"a", "b", "idle"}, OwnRuns: []string{"a"}},
		{Name: got[len(got)-1].Name, Slots: 1, Want: 3, Runs: []string{"c"}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// TestUserNamesAreThoseOfGetent checks that a user who is not in /etc/passwd has the name that
// getent knows, as users of LDAP do, and that a user without a name is called by the uid.
func TestUserNamesAreThoseOfGetent(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "getent"),
		[]byte("#!/bin/sh\n[ \"$2\" = 54321 ] && echo ada:x:54321:54321::/home/ada:/bin/sh\n"), 0o700))
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	for uid, want := range map[int]string{0: "root", 54321: "ada", 54322: "user 54322"} {
		if !polltest.Within(polltest.Patience, func() bool { return userName(uid) == want }) {
			t.Errorf("uid %d: got %q, want %q", uid, userName(uid), want)
		}
	}
}

// TestLookAtClaimsIsCheap checks how many system calls a look makes for each claim: files stay open from
// one look to the next, and what has changed is seen. It checks that a look does not measure the memory
// of the machine, which heartbeats do.
func TestLookAtClaimsIsCheap(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "share")
	dirfd, err := openShare(dir, true)
	must(t, err)
	defer closeFile(dirfd, dir)
	control, err := openControl(t.TempDir())
	must(t, err)
	const n, total = 20, 1 << 59
	all := make([]claim, n)
	for i := range all {
		run, c := strconv.Itoa(i), &all[i]
		must(t, c.write(dirfd, dir, claimText{
			run:    run,
			group:  claimGroup(run, "h"),
			name:   run,
			want:   1,
			weight: 1,
			slots:  2,
			memory: total / 2 / n,
		}))
		defer c.remove()
	}
	calls := map[string]int{}
	listings := 0
	fault = func(op, path string, done bool) error {
		switch {
		case done:
		case strings.HasPrefix(path, claimPrefix):
			calls[op]++
		case op == "seek":
			listings++
		}
		return nil
	}
	defer func() { fault = nil }()
	h := &helper{slots: 2, control: control, config: slotConfig{ShareDir: dir, Run: "ours", Host: "h"}}
	h.memoryTotal.Store(total)
	look := func(name string, memory int64, want map[string]int) {
		t.Helper()
		clear(calls)
		listings = 0
		h.updateShare(nil, 0)
		if !maps.Equal(calls, want) || listings != 1 {
			t.Errorf("%s: calls for %d claims: %v, want %v; %d listings, want 1", name, n, calls, want, listings)
		}
		if s := h.sharing.current.Load(); s == nil || s.Memory != memory {
			t.Errorf("%s: memory of others %+v, want %d", name, s, memory)
		}
	}
	const each = total / 2 / n // the sum is not that of this machine, but of the last heartbeat
	look("first look", n*each, map[string]int{"stat": 2 * n, "open": n, "lock": n, "read": n})
	look("second look", n*each, map[string]int{"stat": n, "lock": n, "read": n})
	text := all[0].text
	text.memory = 2 * each
	all[0].update(text)
	look("a claim was changed", (n+1)*each, map[string]int{"stat": n, "lock": n, "read": n})
	name := filepath.Base(all[0].path)
	must(t, os.Rename(all[1].path, all[0].path))
	look("a claim has replaced another one", (n-1)*each, map[string]int{"stat": n, "open": 1, "lock": n - 1,
		"read": n - 1, "close": 2})
	must(t, unlockRange(all[2].fd, all[2].path, 0, 0))
	look("a holder is gone", (n-2)*each, map[string]int{"stat": n - 1, "lock": n - 1, "read": n - 2, "unlink": 1})
	look("its file was removed", (n-2)*each, map[string]int{"stat": n - 2, "lock": n - 2, "read": n - 2, "close": 1})
	if f := h.sharing.files.files[name]; f == nil || f.text.run != "1" || len(h.sharing.files.files) != n-2 {
		t.Errorf("%d files are open, want %d; %+v", len(h.sharing.files.files), n-2, f)
	}
	must(t, os.Rename(dir, dir+".old"))
	h.updateShare(nil, 0)
	if len(h.sharing.files.files) > 0 {
		t.Error("files are open although the directory is gone")
	}
}

// TestKeptFilesAreBounded checks that files beyond maxKeptFiles are closed, and that a file that is kept
// under a name replaces the one before.
func TestKeptFilesAreBounded(t *testing.T) {
	null := func(name string) *sharedFile {
		fd, err := unix.Open(os.DevNull, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		must(t, err)
		return &sharedFile{name: name, fd: fd}
	}
	closed := 0
	fault = func(op, path string, done bool) error {
		if op == "close" && !done {
			closed++
		}
		return nil
	}
	defer func() { fault = nil }()
	var k keptFiles
	for i := range maxKeptFiles + 3 {
		k.keep(null(strconv.Itoa(i)))
	}
	k.keep(null("0"))
	if len(k.files) != maxKeptFiles || closed != 4 {
		t.Errorf("%d files are open, %d were closed; want %d, 4", len(k.files), closed, maxKeptFiles)
	}
	k.closeAll()
	if len(k.files) > 0 || closed != maxKeptFiles+4 {
		t.Errorf("%d files are open, %d were closed; want 0, %d", len(k.files), closed, maxKeptFiles+4)
	}
}

// TestCostlyLooksAreRarer checks the pauses between looks at the claims of others.
func TestCostlyLooksAreRarer(t *testing.T) {
	const heartbeat = 3 * time.Second
	for _, c := range []struct {
		cost     time.Duration
		isShared bool
		want     time.Duration
	}{
		{0, false, heartbeat},
		{0, true, time.Second},
		{time.Millisecond / 8, true, time.Second},
		{time.Millisecond / 4, true, 1500 * time.Millisecond},
		{time.Minute, true, heartbeat},
	} {
		if got := sharePause(heartbeat, c.cost, c.isShared); got != c.want {
			t.Errorf("cost %v, shared %v: %v, want %v", c.cost, c.isShared, got, c.want)
		}
	}
}
