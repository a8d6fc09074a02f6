//go:build linux

package remote

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"dcs-tui/hosts"
	"dcs-tui/internal/polltest"
	"dcs-tui/jobs"
)

func gpuJob(id, command string, devices ...int) hosts.LaunchJob {
	j := job(id, command)
	j.GPUs = devices
	return j
}

// sameHost returns the world of another run on the same machine.
func (w *world) sameHost(t testing.TB) (*world, *hosts.Open) {
	other := newWorld(t)
	o := other.open()
	o.ShareDir = w.open().ShareDir
	return other, o
}

// A GPU is never given to two runs. The second run is refused, is told which device is
// in use, and may use another one. The device is free when the job has ended, even if
// the job has left a process behind.
func TestGPUIsGivenToOneRun(t *testing.T) {
	t.Setenv(beatEnv, "50ms")
	w := newWorld(t)
	gate, ready := w.fifo("gate"), w.fifo("ready")
	f := w.start(w.open())
	f.launch(gpuJob("1.1", fmt.Sprintf("sleep 1000 & echo $CUDA_VISIBLE_DEVICES > %s; read x < %s", ready, gate), 0, 1))
	if got := w.hear(ready); got != "0,1" {
		t.Errorf("the job sees %q", got)
	}

	w2, o := w.sameHost(t)
	g := w2.start(o)
	if got := g.hello.LockedGPUs; !slices.Equal(got, []int{0, 1}) {
		t.Errorf("the hello of another run says that %v are in use", got)
	}
	g.launch(gpuJob("1.1", "echo ran", 1, 2))
	if r := g.refused("1.1"); !slices.Equal(r.GPUs, []int{1}) || !strings.Contains(r.Why, "GPU 1 is in use") {
		t.Errorf("refused with %v: %s", r.GPUs, r.Why)
	}
	if p := g.probe("1.1"); p.Answer != hosts.NeverStarted {
		t.Errorf("a refused attempt: %+v", p)
	}
	g.launch(gpuJob("2.1", "exit 3", 2))
	if o := g.exit("2.1"); o.Exit != 3 {
		t.Errorf("with a free device: %+v", o)
	}

	w.say(gate)
	if o := f.exit("1.1"); o.LeftChildren != 1 {
		t.Errorf("%+v", o)
	}
	g.launch(gpuJob("3.1", "exit 4", 0, 1))
	if o := g.exit("3.1"); o.Exit != 4 {
		t.Errorf("when the device is free: %+v", o)
	}
	await(g, func(b *hosts.Beat) bool { return len(b.LockedGPUs) == 0 })
	g.bye()
	f.bye()
}

// A job keeps its devices when its helper and its supervisor are killed.
func TestJobKeepsItsGPU(t *testing.T) {
	w := newWorld(t)
	gate, ready := w.fifo("gate"), w.fifo("ready")
	f := w.start(w.open())
	f.launch(gpuJob("1.1", fmt.Sprintf("echo up > %s; read x < %s", ready, gate), 0))
	w.hear(ready)
	f.kill9()
	taken, err := w.spool().taken()
	by := taken[attemptID(t, "1.1")]
	if err != nil || !by.alive() {
		t.Fatalf("%+v, %v", taken, err)
	}
	unix.Kill(by.pid, unix.SIGKILL)
	polltest.Until(t, bound, "the supervisor is dead", func() bool { return !by.alive() })

	w2, o := w.sameHost(t)
	g := w2.start(o)
	g.launch(gpuJob("1.1", "exit 0", 0))
	if r := g.refused("1.1"); !slices.Equal(r.GPUs, []int{0}) {
		t.Errorf("refused with %v: %s", r.GPUs, r.Why)
	}
	w.say(gate)
	polltest.Until(t, bound, "the device is free", func() bool { return len(lockedGPUs(o.ShareDir).whole) == 0 })
	g.launch(gpuJob("2.1", "exit 5", 0))
	if o := g.exit("2.1"); o.Exit != 5 {
		t.Errorf("%+v", o)
	}
	g.bye()
	f = w.start(w.open())
	f.mayDie = true
	f.bye()
}

// Others can open our files for reading whatever our umask is, and only we can write
// them.
func TestLockFilesAreForAll(t *testing.T) {
	defer unix.Umask(unix.Umask(0o077))
	dir := filepath.Join(t.TempDir(), "share")
	locks, err := lockGPUs(dir, []int{3, 3}, false)
	if err != nil || len(locks) != 1 {
		t.Fatalf("%v, %v", locks, err)
	}
	defer unlockGPUs(locks)
	d, err1 := os.Stat(dir)
	f, err2 := os.Stat(filepath.Join(dir, fmt.Sprintf("gpu3.%d", os.Getuid())))
	if err1 != nil || err2 != nil || d.Mode() != os.ModeDir|os.ModeSticky|0o777 || f.Mode() != 0o644 {
		t.Errorf("%v %v, %v %v", d, err1, f, err2)
	}
}

// Files that others put into the shared directory neither block nor mislead us: none of
// them is used as our lock, and no file of ours elsewhere is changed.
func TestForgedLockFiles(t *testing.T) {
	usual := fmt.Sprintf("gpu0.%d", os.Getuid())
	for name, forge := range map[string]func(t *testing.T, path string){
		"a pipe":      func(t *testing.T, path string) { must(t, unix.Mkfifo(path, 0o666)) },
		"a directory": func(t *testing.T, path string) { must(t, os.Mkdir(path, 0o777)) },
		"a link":      func(t *testing.T, path string) { must(t, os.Symlink("/dev/zero", path)) },
		"a broken link": func(t *testing.T, path string) {
			must(t, os.Symlink(filepath.Join(filepath.Dir(path), "made"), path))
		},
		"another name of a file of ours": func(t *testing.T, path string) {
			own := filepath.Join(filepath.Dir(path), "..", "own")
			write(t, own, "secret")
			must(t, os.Link(own, path))
		},
		"a file that all may write": func(t *testing.T, path string) {
			write(t, path, "")
			must(t, os.Chmod(path, 0o666))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "share")
			must(t, os.Mkdir(dir, 0o700))
			forge(t, filepath.Join(dir, usual))
			forge(t, filepath.Join(dir, "gpu0.4711"))
			locks, err := lockGPUs(dir, []int{0}, false)
			if err != nil {
				t.Fatal(err)
			}
			if got := lockedGPUs(dir).whole; !slices.Equal(got, []int{0}) {
				t.Errorf("in use: %v", got)
			}
			if fd, err := os.OpenFile(filepath.Join(dir, usual), os.O_RDONLY|unix.O_NONBLOCK, 0); err == nil {
				if locked, _ := writeLocked(int(fd.Fd()), usual); locked {
					t.Error("the forged file is locked")
				}
				fd.Close()
			}
			if _, err := lockGPUs(dir, []int{0, 1}, false); !isTaken(err, 0) {
				t.Errorf("a second time: %v", err)
			}
			unlockGPUs(locks)
			if locks, err = lockGPUs(dir, []int{0}, false); err != nil {
				t.Error(err)
			}
			unlockGPUs(locks)
			if st, err := os.Stat(filepath.Join(dir, "..", "own")); err == nil && st.Mode() != 0o600 {
				t.Errorf("a file of ours has mode %v", st.Mode())
			}
			if _, err := os.Stat(filepath.Join(dir, "made")); err == nil {
				t.Error("a file was made where a link leads to")
			}
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func isTaken(err error, devices ...int) bool {
	taken := (*takenError)(nil)
	return errors.As(err, &taken) && slices.Equal(taken.devices, devices)
}

// A write lock of another user counts, whatever his file is called. A file of his that
// is not locked does not count, nor does a read lock, which anybody can take on a file
// that he can only read.
func TestLocksOfOtherUsers(t *testing.T) {
	dir := t.TempDir()
	theirs, err := os.OpenFile(filepath.Join(dir, "gpu0.4711"), os.O_RDWR|os.O_CREATE, 0o644)
	must(t, err)
	defer theirs.Close()
	free := func() {
		t.Helper()
		locks, err := lockGPUs(dir, []int{0}, false)
		if err != nil {
			t.Error(err)
		}
		unlockGPUs(locks)
	}
	if os.Chown(theirs.Name(), 4711, -1) != nil {
		t.Skip("only root can make files of other users")
	}
	free()
	must(t, unix.FcntlFlock(theirs.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_RDLCK}))
	free()
	must(t, lockFile(int(theirs.Fd()), ""))
	if _, err := lockGPUs(dir, []int{0, 5}, false); !isTaken(err, 0) {
		t.Errorf("locked by another user: %v", err)
	}
	if got := lockedGPUs(dir).whole; !slices.Equal(got, []int{0}) {
		t.Errorf("after giving way these are in use: %v", got)
	}
	must(t, unlockFile(int(theirs.Fd()), ""))
	free()
}

// A lock on a file that a cleaner has removed protects nothing, so the file is created
// and locked again.
func TestLockedFileIsRemoved(t *testing.T) {
	defer func() { fault = nil }()
	for n, how := range []func(path string) error{
		os.Remove,
		func(path string) error { return os.RemoveAll(filepath.Dir(path)) },
		func(path string) error { return os.Rename(path, path+".x") },
		func(path string) error { return errors.Join(os.Remove(path), os.WriteFile(path, nil, 0o644)) },
	} {
		dir := filepath.Join(t.TempDir(), "share")
		path := filepath.Join(dir, fmt.Sprintf("gpu0.%d", os.Getuid()))
		once := true
		fault = func(op, p string, done bool) error {
			if op == "lock" && done && once {
				once = false
				return how(path)
			}
			return nil
		}
		locks, err := lockGPUs(dir, []int{0}, false)
		fault = nil
		if err != nil {
			t.Fatalf("%d: %v", n, err)
		}
		if _, err := lockGPUs(dir, []int{0}, false); !isTaken(err, 0) {
			t.Errorf("%d: a second time: %v", n, err)
		}
		unlockGPUs(locks)
	}
}

// A directory in which others could remove our files is refused, with advice. The
// refusal names no device.
func TestShareDirIsSticky(t *testing.T) {
	w := newWorld(t)
	o := w.open()
	must(t, os.Mkdir(o.ShareDir, 0o700))
	must(t, os.Chmod(o.ShareDir, 0o777))
	f := w.start(o)
	f.launch(gpuJob("1.1", "exit 0", 0))
	if r := f.refused("1.1"); len(r.GPUs) != 0 || !strings.Contains(r.Why, "chmod +t") || !strings.Contains(r.Why, "share_dir") {
		t.Errorf("%+v", r)
	}
	must(t, os.Chmod(o.ShareDir, os.ModeSticky|0o777))
	f.launch(gpuJob("2.1", "exit 6", 0))
	if o := f.exit("2.1"); o.Exit != 6 {
		t.Errorf("%+v", o)
	}
	f.bye()
	if b, err := os.ReadFile(jobs.AttemptFile(w.runDir, attemptID(t, "2.1"), jobs.FileErr)); err != nil || len(b) > 0 {
		t.Errorf("the job said %q, %v", b, err)
	}
}

// However many processes want a device at once, one at a time gets it, and each gets it
// in the end.
func TestGPULockExcludes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "share")
	first, err := lockGPUs(dir, []int{0, 1}, false) // makes the files
	must(t, err)
	unlockGPUs(first)
	var holders, most atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for got := 0; got < 20; {
				locks, err := lockGPUs(dir, []int{1, 0}, false)
				switch {
				case err == nil:
					most.Store(max(most.Load(), holders.Add(1)))
					got++
					runtime.Gosched()
					holders.Add(-1)
					unlockGPUs(locks)
				case !isTaken(err, 0) && !isTaken(err, 1) && !isTaken(err, 0, 1):
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	if n := most.Load(); n != 1 {
		t.Errorf("%d had the devices at once", n)
	}
}
