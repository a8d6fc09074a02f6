//go:build linux

package remote

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"dcs-tui/jobs"

	"dcs-tui/hosts"
	"dcs-tui/hosts/hosttest"
)

// evil and victim are users without files of their own.
const (
	evil   = 4242
	victim = 4243
)

// asUser calls f in a thread that has only the rights of another user.
func asUser(t testing.TB, uid uintptr, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // for ever, so that the thread ends with the goroutine
		if unix.Gettid() == unix.Getpid() {
			// The main thread would not end, and would keep the uid. It is kept busy while another one is used.
			defer runtime.UnlockOSThread()
			asUser(t, uid, f)
			return
		}
		if _, _, err := unix.RawSyscall(unix.SYS_SETRESGID, uid, uid, uid); err != 0 {
			t.Errorf("setresgid: %v", err)
		}
		if _, _, err := unix.RawSyscall(unix.SYS_SETRESUID, uid, uid, uid); err != 0 {
			t.Errorf("setresuid: %v", err)
		}
		f()
	}()
	<-done
}

// sharedTestDir returns a shared directory that every user can reach.
func sharedTestDir(t testing.TB) (dir string, dirfd int) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("acts as other users, which needs root")
	}
	base := t.TempDir()
	must(t, errors.Join(os.Chmod(filepath.Dir(base), 0o755), os.Chmod(base, 0o755))) // whatever our umask is
	var err error
	asUser(t, evil, func() { _, err = os.ReadDir(base) })
	if err != nil {
		hosttest.LeaveOut(t,
			"TMPDIR cannot be reached by other users (%v): what they can do in a shared directory", err)
	}
	dir = filepath.Join(base, "share")
	dirfd, err = openShare(dir, true)
	must(t, err)
	t.Cleanup(func() { unix.Close(dirfd) })
	return dir, dirfd
}

// lockReader is another user who takes every read lock that he can get.
type lockReader struct {
	t      testing.TB
	dir    string
	files  map[string]*os.File
	opened int // files that he could open
}

// grab opens the files that are new and tries to lock all bytes and single bytes of each.
func (r *lockReader) grab() {
	asUser(r.t, evil, func() {
		entries, err := os.ReadDir(r.dir)
		if err != nil {
			r.t.Errorf("the other user cannot list the directory: %v", err)
		}
		for _, e := range entries {
			f := r.files[e.Name()]
			if f == nil {
				if f, err = os.Open(filepath.Join(r.dir, e.Name())); err != nil {
					continue
				}
				r.files[e.Name()] = f
				r.opened++
			}
			for _, l := range []byteRange{{0, 0}, {0, 1}, {1, 1}, {2, 0}} {
				unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_RDLCK, Start: l.from, Len: l.n})
			}
			unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		}
	})
}

// TestReadLocksChangeNothing checks that a user who can only open files for reading, and who takes
// every lock that he can get between any two system calls of ours, changes neither who has a GPU nor
// how many slots a claim holds.
func TestReadLocksChangeNothing(t *testing.T) {
	dir, dirfd := sharedTestDir(t)
	reader := &lockReader{t: t, dir: dir, files: map[string]*os.File{}}
	fault = func(string, string, bool) error { reader.grab(); return nil }
	defer func() {
		fault = nil
		for _, f := range reader.files {
			f.Close()
		}
	}()
	const half, quarter = jobs.WholeGPU / 2, jobs.WholeGPU / 4
	lock := func(share jobs.GPUs, want bool) []heldFile {
		t.Helper()
		locks, err := lockGPUs(dir, []int{0}, share)
		if want && err != nil || !want && !isTaken(err, 0) {
			t.Errorf("locking a device: %v, want it to be free: %v", err, want)
		}
		return locks
	}
	for range 2 { // his locks stay on the files of the first round
		whole := lock(jobs.WholeGPU, true)
		lock(jobs.WholeGPU, false)
		lock(half, false)
		unlockGPUs(whole)
		first, second := lock(half, true), lock(half, true)
		lock(half, false)
		lock(quarter, false)
		unlockGPUs(first)
		lock(jobs.WholeGPU, false)
		third := lock(quarter, true)
		lock(half, false)
		unlockGPUs(second)
		unlockGPUs(third)
	}

	held := func(want int) {
		t.Helper()
		claims, invalid, err := readClaims(dirfd, dir, "group", "run", nil)
		got := 0
		for _, c := range claims {
			got += c.Held
		}
		if err != nil || len(invalid) > 0 || got != want {
			t.Errorf("%d slots are held in %+v, %v, %v; want %d", got, claims, invalid, err, want)
		}
	}
	var c claim
	text := claimText{run: "run", group: "group", name: "n", held: 1}
	must(t, c.write(dirfd, dir, text))
	held(1)
	text.held = 5
	must(t, c.write(dirfd, dir, text))
	held(5)
	text.held = 2
	c.update(text)
	held(2)
	c.remove()
	held(0)
	if reader.opened == 0 {
		t.Error("the other user could open no file, so nothing was tested")
	}
}

// TestReaderCannotStopJobs checks the same with the real helper and supervisors: all slots and GPUs
// of a user are used while another user holds all read locks that he can get.
func TestReaderCannotStopJobs(t *testing.T) {
	w := newWorld(t)
	o := w.open()
	dir, _ := sharedTestDir(t)
	o.ShareDir = dir
	reader := &lockReader{t: t, dir: dir, files: map[string]*os.File{}}
	defer func() {
		for _, f := range reader.files {
			f.Close()
		}
	}()
	f := w.start(o)
	f.send(&hosts.Share{Slots: 2, Want: 2}, &hosts.Limit{Slots: 2})
	for n := 1; n <= 6; n += 2 {
		f.hold(fmt.Sprintf("%d.1", n), "")
		reader.grab()
		f.launch(gpuJob(fmt.Sprintf("%d.1", n+1), "exit 3", 0))
		f.exits(fmt.Sprintf("%d.1", n+1), 3)
		reader.grab()
		w.release(fmt.Sprintf("%d.1", n))
		f.exit(fmt.Sprintf("%d.1", n))
	}
	if reader.opened == 0 {
		t.Error("the other user could open no file, so nothing was tested")
	}
}

// made creates a locked file of a user in the shared directory.
func made(t testing.TB, dir, name string, uid int, text []byte, ranges ...byteRange) *os.File {
	t.Helper()
	path := filepath.Join(dir, name)
	f, err := os.Create(path)
	must(t, err)
	t.Cleanup(func() { f.Close() })
	_, err = f.Write(text)
	must(t, err)
	must(t, f.Chown(uid, uid))
	must(t, f.Chmod(0o644))
	for _, r := range ranges {
		must(t, lockRange(int(f.Fd()), path, r.from, r.n))
	}
	return f
}

// TestFilesOfOneUserHideNoOthers checks that any number of files of one user hides neither claims nor
// GPUs of another user, and that no more than filesOfUser of them are opened. The user is named once.
func TestFilesOfOneUserHideNoOthers(t *testing.T) {
	dir, dirfd := sharedTestDir(t)
	const many = 4 * filesOfUser
	for i := range many {
		for _, prefix := range []string{claimPrefix, "gpu0."} {
			path := fmt.Sprintf("%s/%s%d", dir, prefix, i)
			must(t, os.WriteFile(path, []byte("x"), 0o644))
			must(t, os.Lchown(path, evil, evil))
		}
	}
	theirs := claimText{run: "theirs", group: "theirs", name: "theirs", held: 4}
	made(t, dir, claimPrefix+"z", victim, theirs.bytes(), byteRange{})
	made(t, dir, "gpu0.z", victim, nil, byteRange{})
	opened := 0
	fault = func(op, path string, done bool) error {
		if op == "open" && done {
			opened++
		}
		return nil
	}
	defer func() { fault = nil }()
	claims, invalid, err := readClaims(dirfd, dir, "own", "run", nil)
	if err != nil || len(claims) != 1 || claims[0].User != victim || claims[0].Held != 4 {
		t.Errorf("claims %+v, %v; want the 4 slots of another user", claims, err)
	}
	if len(invalid) != 1 || !strings.Contains(fmt.Sprint(invalid),
		fmt.Sprintf("user %d has more than %d", evil, filesOfUser)) {
		t.Errorf("%v is reported, want the user once", invalid)
	}
	if opened != filesOfUser+1 {
		t.Errorf("%d files were opened, want %d", opened, filesOfUser+1)
	}
	fault = nil
	if _, err := lockGPUs(dir, []int{0}, jobs.WholeGPU); !isTaken(err, 0) {
		t.Errorf("a GPU of another user: %v", err)
	}
}

// TestOwnClaimsAreNotLimited checks that the claims of any number of runs of one's own user count and
// are not reported, because nobody else can have made them.
func TestOwnClaimsAreNotLimited(t *testing.T) {
	dir, dirfd := sharedTestDir(t)
	const runs = 200
	for i := range runs {
		text := claimText{run: fmt.Sprint("run", i), group: fmt.Sprint("group", i), name: "n", want: 1, weight: 1}
		var c claim
		must(t, c.write(dirfd, dir, text))
		defer c.remove()
	}
	claims, invalid, err := readClaims(dirfd, dir, "group7", "run7", nil)
	if err != nil || len(claims) != runs || len(invalid) > 0 || indexOfOwn(claims, "group7") < 0 {
		t.Errorf("%d claims, %v, %v; want %d", len(claims), invalid, err, runs)
	}
}

// TestLocksOfOneUserCostLittle checks that the number of system calls for a file does not depend on
// how many locks somebody holds on it.
func TestLocksOfOneUserCostLittle(t *testing.T) {
	dir, dirfd := sharedTestDir(t)
	var ranges []byteRange
	for i := range int64(500) {
		ranges = append(ranges, byteRange{2 * i, 1})
	}
	text := claimText{run: "r", group: "g", name: "n", held: 3}
	made(t, dir, claimPrefix+"a", evil, text.bytes(), ranges...)
	queries := 0
	fault = func(op, path string, done bool) error {
		if op == "lock" && done {
			queries++
		}
		return nil
	}
	defer func() { fault = nil }()
	claims, _, err := readClaims(dirfd, dir, "own", "run", nil)
	if err != nil || len(claims) != 1 || claims[0].Held != 3 || queries != 1 {
		t.Errorf("%+v, %v with %d queries, want 3 slots with one query", claims, err, queries)
	}
}

// TestFileCountsOnce checks that a second name of a claim, which others can make where the kernel
// does not protect hard links, does not double it, and that a file that others can write, and could
// therefore lock, is no claim.
func TestFileCountsOnce(t *testing.T) {
	dir, dirfd := sharedTestDir(t)
	text := claimText{run: "r", group: "g", name: "n", held: 3}
	made(t, dir, claimPrefix+"m", victim, text.bytes(), byteRange{})
	must(t, os.Link(dir+"/"+claimPrefix+"m", dir+"/"+claimPrefix+"a"))
	must(t, os.Link(dir+"/"+claimPrefix+"m", dir+"/"+claimPrefix+"z"))
	text.group = "writable"
	made(t, dir, claimPrefix+"w", victim, text.bytes(), byteRange{})
	must(t, os.Chmod(dir+"/"+claimPrefix+"w", 0o666))
	claims, invalid, err := readClaims(dirfd, dir, "own", "run", nil)
	if err != nil || len(claims) != 1 || claims[0].Held != 3 ||
		!strings.Contains(invalid[claimPrefix+"w"], "others can write it") {
		t.Errorf("%+v, %v, %v; want 3 slots, and one file that others can write", claims, invalid, err)
	}
}

// TestFilesOfTheDeadAreRemoved checks that our files without a holder are removed, that those that
// are being created, and those of others, stay, and that claims of a version before DSH3 are neither
// read nor removed.
func TestFilesOfTheDeadAreRemoved(t *testing.T) {
	dir, dirfd := sharedTestDir(t)
	dead := claimText{run: "r", group: "g", name: "n", held: 3}
	made(t, dir, claimPrefix+"dead", os.Getuid(), dead.bytes())
	made(t, dir, claimPrefix+"theirs", victim, dead.bytes())
	made(t, dir, claimPrefix+"new", os.Getuid(), nil)
	must(t, os.Chmod(dir+"/"+claimPrefix+"new", 0o600))
	made(t, dir, "run-0123456789abcdef.0", os.Getuid(), []byte("DSH1"), byteRange{})
	made(t, dir, "gpu0.0", os.Getuid(), nil)
	made(t, dir, "gpu0.0.DEAD", os.Getuid(), nil)
	if claims, invalid, err := readClaims(dirfd, dir, "own", "run", nil); err != nil || len(claims)+len(invalid) > 0 {
		t.Errorf("%+v, %v, %v; want no claim", claims, invalid, err)
	}
	if use := lockedGPUs(dir); len(use.whole)+len(use.parts) > 0 {
		t.Errorf("%+v is in use, want nothing", use)
	}
	names, err := listNames(dir)
	must(t, err)
	slices.Sort(names)
	want := []string{claimPrefix + "new", claimPrefix + "theirs", "gpu0.0", "run-0123456789abcdef.0"}
	if !slices.Equal(names, want) {
		t.Errorf("%v is left, want %v", names, want)
	}
}

// TestOldVersionExcludesGPUs checks that a version before DSH2, which locks its file gpu<N>.<UID>
// again and again, and this one see each other's GPUs.
func TestOldVersionExcludesGPUs(t *testing.T) {
	dir, _ := sharedTestDir(t)
	made(t, dir, "gpu0.4243", victim, nil, byteRange{1, 1})
	if _, err := lockGPUs(dir, []int{0}, jobs.WholeGPU); !isTaken(err, 0) {
		t.Errorf("beside half a device of an older version: %v", err)
	}
	half, err := lockGPUs(dir, []int{0}, jobs.WholeGPU/2)
	must(t, err)
	defer unlockGPUs(half)
	// The older version asks for each file whether its half of it is locked.
	fd, err := os.Open(half[0].path)
	must(t, err)
	defer fd.Close()
	for i, want := range []int64{1, 0} {
		if _, n, err := lockedRange(int(fd.Fd()), "", int64(i), 1); err != nil || n != want {
			t.Errorf("half %d: %d bytes are locked, %v; want %d", i, n, err, want)
		}
	}
	if _, n, err := lockedRange(int(fd.Fd()), "", 0, 0); err != nil || n == 0 {
		t.Errorf("the device: %d, %v; want it locked", n, err)
	}
}

// TestSupervisorsHaveOurUser checks that a process of another user is no supervisor of a spool, whatever its
// command line: it could not be ended, and the end of each run would wait for it.
func TestSupervisorsHaveOurUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("acts as another user, which needs root")
	}
	s := spool{t.TempDir()}
	for uid, want := range map[int]bool{os.Getuid(): true, evil: false} {
		pid, end := startAs(t, uid, wordSlot, s.dir, "1", "1")
		p, ok := readProc(pid)
		if got := s.isSupervisor(p); !ok || got != want {
			t.Errorf("a process of user %d is a supervisor: %v, want %v", uid, got, want)
		}
		end()
	}
}

// startAs starts a process of a user with these arguments, which leads a session, and waits until it runs: before,
// /proc may show it without arguments.
func startAs(t *testing.T, uid int, args ...string) (pid int, end func()) {
	t.Helper()
	cmd := exec.Command("/bin/sh", append([]string{"-c", "echo; read x; exit 0", "sh"}, args...)...)
	cmd.Dir, cmd.SysProcAttr = "/", &syscall.SysProcAttr{Setsid: true,
		Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}}
	in, errIn := cmd.StdinPipe()
	out, errOut := cmd.StdoutPipe()
	must(t, errors.Join(errIn, errOut, cmd.Start()))
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Errorf("a process of user %d does not run: %v", uid, err)
	}
	return cmd.Process.Pid, func() {
		in.Close()
		cmd.Wait()
	}
}
