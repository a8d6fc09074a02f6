//go:build linux

package remote

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
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

// sameHost returns the world of another run on the same machine, with its Open message.
func (w *world) sameHost(t testing.TB, env ...string) (*world, *hosts.Open) {
	other := newWorld(t, env...)
	o := other.open()
	o.ShareDir = w.open().ShareDir
	return other, o
}

// TestGPUIsGivenToOneRun checks that a GPU is never given to two runs. The second run is refused,
// is told which device is in use, and may use another one. The device is free when the job has
// ended, even if the job has left a process behind.
func TestGPUIsGivenToOneRun(t *testing.T) {
	w := newWorld(t)
	gate, ready := w.fifo("gate"), w.fifo("ready")
	f := w.start(w.open())
	f.launch(gpuJob("1.1", fmt.Sprintf("sleep 1000 & echo $CUDA_VISIBLE_DEVICES > %s; read x < %s", ready, gate), 0, 1))
	if got := w.receive(ready); got != "0,1" {
		t.Errorf("the job sees %q", got)
	}

	w2, o := w.sameHost(t)
	g := w2.start(o)
	if got := g.hello.LockedGPUs; !slices.Equal(got, []int{0, 1}) {
		t.Errorf("the hello of another run says that %v are in use", got)
	}
	g.launch(gpuJob("1.1", "echo ran", 1, 2))
	g.refusedFor("1.1", "GPU 1 is in use", 1)
	g.answers("1.1", hosts.NeverStarted)
	g.launch(gpuJob("2.1", "exit 3", 2))
	g.exits("2.1", 3)

	w.say(gate)
	if o := f.exit("1.1"); o.LeftChildren != 1 {
		t.Errorf("got outcome %+v, want one child left behind", o)
	}
	g.launch(gpuJob("3.1", "exit 4", 0, 1))
	g.exits("3.1", 4)
	g.heartbeat(func(b *hosts.Heartbeat) bool { return len(b.LockedGPUs) == 0 })
}

// TestLockFilesAreForAll checks that other users can open our files for reading with any umask of
// ours, and that only we can write them.
func TestLockFilesAreForAll(t *testing.T) {
	defer unix.Umask(unix.Umask(0o077))
	dir := filepath.Join(t.TempDir(), "share")
	locks, err := lockGPUs(dir, []int{3, 3}, jobs.WholeGPU)
	if err != nil || len(locks) != 1 {
		t.Fatalf("lockGPUs: got %v, %v; want one lock", locks, err)
	}
	defer unlockGPUs(locks)
	d, err1 := os.Stat(dir)
	f, err2 := os.Stat(locks[0].path)
	if err1 != nil || err2 != nil || d.Mode() != os.ModeDir|os.ModeSticky|0o777 || f.Mode() != 0o644 {
		t.Errorf("the directory: %v, %v; the lock: %v, %v; want 01777 and 0644", d, err1, f, err2)
	}
}

// TestForgedLockFiles checks that files that others put into the shared directory neither block nor
// mislead us. We use none of them as our lock and change none of our files elsewhere.
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
			locks, err := lockGPUs(dir, []int{0}, jobs.WholeGPU)
			must(t, err)
			if got := lockedGPUs(dir).whole; !slices.Equal(got, []int{0}) {
				t.Errorf("in use: %v", got)
			}
			if fd, err := os.OpenFile(filepath.Join(dir, usual), os.O_RDONLY|unix.O_NONBLOCK, 0); err == nil {
				if _, n, _ := lockedRange(int(fd.Fd()), usual, 0, 0); n > 0 {
					t.Error("the forged file is locked")
				}
				fd.Close()
			}
			if _, err := lockGPUs(dir, []int{0, 1}, jobs.WholeGPU); !isTaken(err, 0) {
				t.Errorf("a second time: %v", err)
			}
			unlockGPUs(locks)
			if locks, err = lockGPUs(dir, []int{0}, jobs.WholeGPU); err != nil {
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

func isTaken(err error, devices ...int) bool {
	taken := (*takenError)(nil)
	return errors.As(err, &taken) && slices.Equal(taken.devices, devices)
}

// TestLocksOfOtherUsersCount checks that a write lock of another user counts, whatever the name of
// its file. A file of another user that is not locked does not count. A read lock does not count
// either, because anybody can take one on a readable file.
func TestLocksOfOtherUsersCount(t *testing.T) {
	dir := t.TempDir()
	theirs, err := os.OpenFile(filepath.Join(dir, "gpu0.4711"), os.O_RDWR|os.O_CREATE, 0o644)
	must(t, err)
	defer theirs.Close()
	free := func() {
		t.Helper()
		locks, err := lockGPUs(dir, []int{0}, jobs.WholeGPU)
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
	must(t, lockRange(int(theirs.Fd()), "", 0, 0))
	if _, err := lockGPUs(dir, []int{0, 5}, jobs.WholeGPU); !isTaken(err, 0) {
		t.Errorf("locked by another user: %v", err)
	}
	if got := lockedGPUs(dir).whole; !slices.Equal(got, []int{0}) {
		t.Errorf("after giving way these are in use: %v", got)
	}
	must(t, unlockRange(int(theirs.Fd()), "", 0, 0))
	free()
}

// TestLockedFileIsRemoved checks that a lock file that a cleaner has removed is created and locked
// again, because a lock on a removed file protects nothing.
func TestLockedFileIsRemoved(t *testing.T) {
	defer func() { fault = nil }()
	for n, how := range []func(path string) error{
		os.Remove,
		func(path string) error { return os.RemoveAll(filepath.Dir(path)) },
		func(path string) error { return os.Rename(path, path+".x") },
		func(path string) error { return errors.Join(os.Remove(path), os.WriteFile(path, nil, 0o644)) },
	} {
		dir := filepath.Join(t.TempDir(), "share")
		once := true
		fault = func(op, path string, done bool) error {
			if op == "lock" && done && once {
				once = false
				return how(path)
			}
			return nil
		}
		locks, err := lockGPUs(dir, []int{0}, jobs.WholeGPU)
		fault = nil
		if err != nil {
			t.Fatalf("%d: %v", n, err)
		}
		if _, err := lockGPUs(dir, []int{0}, jobs.WholeGPU); !isTaken(err, 0) {
			t.Errorf("%d: a second time: %v", n, err)
		}
		unlockGPUs(locks)
	}
}

// TestShareDirIsSticky checks that a directory in which others could remove our files is refused,
// with advice. The refusal names no device.
func TestShareDirIsSticky(t *testing.T) {
	w := newWorld(t)
	o := w.open()
	must(t, os.Mkdir(o.ShareDir, 0o700))
	must(t, os.Chmod(o.ShareDir, 0o777))
	f := w.start(o)
	f.launch(gpuJob("1.1", "exit 0", 0))
	if r := f.refused("1.1"); len(r.GPUs) != 0 || !strings.Contains(r.Why, "chmod +t") ||
		!strings.Contains(r.Why, "share_dir") {
		t.Errorf("got refusal %+v, want it to explain share_dir and the sticky bit", r)
	}
	must(t, os.Chmod(o.ShareDir, os.ModeSticky|0o777))
	f.launch(gpuJob("2.1", "exit 6", 0))
	f.exits("2.1", 6)
	f.endRun()
	if b, err := os.ReadFile(jobs.AttemptFile(w.runDir, attemptID(t, "2.1"), jobs.FileErr)); err != nil || len(b) > 0 {
		t.Errorf("the job said %q, %v", b, err)
	}
}

// TestGPULockExcludes checks that, with any number of processes that want a device at once, one
// process at a time gets it, and each gets it in the end.
func TestGPULockExcludes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "share")
	first, err := lockGPUs(dir, []int{0, 1}, jobs.WholeGPU) // creates the files
	must(t, err)
	unlockGPUs(first)
	var holders, most atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for got := 0; got < polltest.Scale(3, 10, 10); {
				locks, err := lockGPUs(dir, []int{1, 0}, jobs.WholeGPU)
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

// TestPartsOfAGPUAddUp checks that processes that want parts of a device never have more than all of
// it together, and that each gets its part in the end. The parts of those that have one are those
// that others see.
func TestPartsOfAGPUAddUp(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "share")
	var all sync.WaitGroup
	var used, most atomic.Int32
	for _, share := range []jobs.GPUs{250, 250, 500, 334, 1, jobs.WholeGPU, 999} {
		all.Go(func() {
			for got := 0; got < polltest.Scale(3, 10, 10); {
				locks, err := lockGPUs(dir, []int{1}, share)
				switch {
				case err == nil:
					most.Store(max(most.Load(), used.Add(int32(share))))
					got++
					runtime.Gosched()
					used.Add(-int32(share))
					unlockGPUs(locks)
				case !isTaken(err, 1):
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	if n := jobs.GPUs(most.Load()); n > jobs.WholeGPU {
		t.Errorf("%s of a device were in use at once", n)
	}
	var locks []heldFile
	for _, share := range []jobs.GPUs{250, 500, 125} {
		l, err := lockGPUs(dir, []int{1}, share)
		must(t, err)
		locks = append(locks, l...)
	}
	if use, want := lockedGPUs(dir), []hosts.GPUPart{{GPU: 1, Used: 875}}; !slices.Equal(use.parts, want) ||
		len(use.whole) > 0 {
		t.Errorf("in use: %+v, want %v", use, want)
	}
	for share, want := range map[jobs.GPUs]bool{250: false, 500: false, 126: false, 125: true} {
		l, err := lockGPUs(dir, []int{1}, share)
		if (err == nil) != want {
			t.Errorf("%s of the device: %v", share, err)
		}
		unlockGPUs(l)
	}
	unlockGPUs(locks)
}

// TestPartOfAGPUIsAllForOldVersions checks that a version that knows only halves takes a device of
// which a job has a quarter for one that is in use.
func TestPartOfAGPUIsAllForOldVersions(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "share")
	locks, err := lockGPUs(dir, []int{0}, jobs.WholeGPU/4)
	must(t, err)
	defer unlockGPUs(locks)
	fd, err := os.Open(locks[0].path)
	must(t, err)
	defer fd.Close()
	for i := range int64(2) {
		if _, n, err := lockedRange(int(fd.Fd()), "", i, 1); err != nil || n == 0 {
			t.Errorf("half %d: %d bytes are locked, %v; want it locked", i, n, err)
		}
	}
}

// nvidiaSMI returns a script that prints what the real program prints. The file named apps holds
// lines of the form "UUID, PID".
func nvidiaSMI(apps string) string {
	return `case "$*" in
"--query-gpu=index --format=csv,noheader") printf '0\n1\n';;
"--query-gpu=index,uuid --format=csv,noheader")
	echo '0, GPU-0aaaaaaa-1111-2222-3333-444444444444'
	echo '1, GPU-1bbbbbbb-1111-2222-3333-444444444444' ;;
"--query-compute-apps=gpu_uuid,pid --format=csv,noheader") echo >> ` + apps + `.asked; cat ` + apps + `;;
*) echo "Unknown option $1"; exit 2;;
esac`
}

const (
	uuid0 = "GPU-0aaaaaaa-1111-2222-3333-444444444444"
	uuid1 = "GPU-1bbbbbbb-1111-2222-3333-444444444444"
)

// TestDevicesAreThoseOfTheTool checks that the devices are those that nvidia-smi lists. If
// nvidia-smi is missing or fails, they are those of /dev, whose numbers need not begin at 0.
func TestDevicesAreThoseOfTheTool(t *testing.T) {
	dev := t.TempDir()
	for _, name := range []string{"nvidia3", "nvidia11", "nvidiactl", "nvidia-uvm", "nvidia-caps", "null"} {
		write(t, filepath.Join(dev, name), "")
	}
	defer func(was string) { devDir = was }(devDir)
	devDir = dev
	for name, c := range map[string]struct {
		script string
		want   []int
	}{
		"two": {nvidiaSMI("/dev/null"), []int{0, 1}},
		"no driver": {"echo \"NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. " +
			"Make sure that the latest NVIDIA driver is installed and running.\"; exit 9", []int{3, 11}},
		"no devices":  {"echo 'No devices were found'; exit 6", []int{3, 11}},
		"not a count": {"echo 99999999999999999999; echo -1", []int{3, 11}},
	} {
		t.Run(name, func(t *testing.T) {
			replacePrograms(t, map[string]string{"nvidia-smi": c.script})
			if got := findGPUs(); !slices.Equal(got, c.want) {
				t.Errorf("%v, want %v", got, c.want)
			}
		})
	}
}

// TestVendorToolCollectedByOthers checks that an unknown exit status of a tool is not a failure.
// The helper collects every child, so the status may be lost.
func TestVendorToolCollectedByOthers(t *testing.T) {
	replacePrograms(t, map[string]string{"nvidia-smi": "echo 7"})
	var stop atomic.Bool
	var collector sync.WaitGroup
	collector.Go(func() {
		for !stop.Load() {
			unix.Wait4(-1, nil, unix.WNOHANG, nil)
		}
	})
	for range 20 {
		if out, err := runTool("nvidia-smi"); out != "7\n" || err != nil {
			t.Errorf("got %q, %v; want 7 and no error", out, err)
		}
	}
	stop.Store(true)
	collector.Wait()
}

// TestGPUToolFormats checks that the output of the tools is parsed correctly, with any other text
// around it.
func TestGPUToolFormats(t *testing.T) {
	got := map[int][]int{}
	parseNVIDIA("0, "+uuid0+"\n1, "+uuid1+"\n", uuid1+", 4711\n"+uuid1+", 12\nGPU-gone, 5\n"+uuid0+
		", [N/A]\n[Not Supported], 1\n", got)
	if want := map[int][]int{1: {4711, 12}}; !maps.EqualFunc(got, want, slices.Equal) {
		t.Errorf("nvidia-smi: %v, want %v", got, want)
	}
	got = map[int][]int{}
	parseROCm(`

============================ ROCm System Management Interface ============================
================================== GPUs Indexed by PID ===================================
PID 3828095 is using 0 DRM device(s)
PID 4711 is using 2 DRM device(s):
0 
3 
PID 12 is using 1 DRM device(s):
3
==========================================================================================
================================== End of ROCm SMI Log ===================================
`, got)
	if want := map[int][]int{0: {4711}, 3: {4711, 12}}; !maps.EqualFunc(got, want, slices.Equal) {
		t.Errorf("rocm-smi: %v, want %v", got, want)
	}
}

// TestBusyGPUIsLeftAlone checks that no job is given a device that a process of no job uses, until
// the process is gone (T3). Processes of jobs do not count. Without jobs that want GPUs, the
// devices are not queried.
func TestBusyGPUIsLeftAlone(t *testing.T) {
	apps := filepath.Join(t.TempDir(), "apps")
	replacePrograms(t, map[string]string{"nvidia-smi": nvidiaSMI(apps)})
	stranger := exec.Command("sleep", "1000")
	must(t, stranger.Start())
	defer func() { stranger.Process.Kill(); stranger.Wait() }()
	write(t, apps, fmt.Sprintf("%s, %d\n", uuid1, stranger.Process.Pid))

	w := newWorld(t, freshEnv+"=100ms")
	ready, gate := w.fifo("ready"), w.fifo("gate")
	f := w.start(w.open())
	if !slices.Equal(f.hello.GPUIDs, []int{0, 1}) || f.hello.GPUs != 2 {
		t.Errorf("the hello says %v", f.hello.GPUIDs)
	}
	f.launch(job("1.1", "exit 0"))
	f.exit("1.1")
	if _, err := os.Stat(apps + ".asked"); err == nil {
		t.Error("asked though no job wants a GPU")
	}
	f.launch(gpuJob("2.1", "exit 0", 1))
	f.refusedFor("2.1", "processes of no job compute on GPU 1", 1)
	f.heartbeat(func(b *hosts.Heartbeat) bool { return slices.Equal(b.LockedGPUs, []int{1}) })

	first := halfJob("3.1", fmt.Sprintf("echo $$ > %s; read x < %s", ready, gate), 0)
	f.launch(first)
	write(t, apps, fmt.Sprintf("%s, %d\n%s, %s\n", uuid1, stranger.Process.Pid, uuid0, w.receive(ready)))
	f.launch(halfJob("4.1", "exit 4", 0))
	f.exits("4.1", 4)
	w.say(gate)
	f.exit("3.1")

	write(t, apps, "")
	f.heartbeat(func(b *hosts.Heartbeat) bool { return len(b.LockedGPUs) == 0 })
	// A query of the devices that began before the change may still refuse a job.
	for n := 5; ; n++ {
		id := fmt.Sprintf("%d.1", n)
		f.launch(gpuJob(id, "exit 5", 1))
		if f.settled(id).Answer == hosts.HasExited {
			f.exits(id, 5)
			break
		}
	}
}

// TestUnseenGPUProcess checks that a process that cannot be seen counts as part of the job that has
// locked the device. If no job has locked it, the process belongs to no job.
func TestUnseenGPUProcess(t *testing.T) {
	const nobody = 1<<22 - 1
	apps := filepath.Join(t.TempDir(), "apps")
	replacePrograms(t, map[string]string{"nvidia-smi": nvidiaSMI(apps)})
	write(t, apps, fmt.Sprintf("%s, %d\n%s, %d\n", uuid0, nobody, uuid1, nobody))
	share := filepath.Join(t.TempDir(), "share")
	locks, err := lockGPUs(share, []int{0}, jobs.WholeGPU/2)
	must(t, err)
	defer unlockGPUs(locks)
	s := spool{t.TempDir()}
	if got := queryBusyGPUs(s, share); !slices.Equal(got, []int{1}) {
		t.Errorf("busy: %v", got)
	}
	if got, until := cachedGPUs(s); !slices.Equal(got, []int{1}) || until < uptime() {
		t.Errorf("kept: %v until %v", got, until)
	}
}

func halfJob(id, command string, device int) hosts.LaunchJob {
	j := gpuJob(id, command, device)
	j.GPUShare = jobs.WholeGPU / 2
	return j
}

// TestTwoJobsShareAGPU checks that two jobs, of two runs, can share a device, and that a third
// cannot (T3). A job that wants a whole device waits for both. A half stays with its job when the
// supervisor is killed.
func TestTwoJobsShareAGPU(t *testing.T) {
	half3 := []hosts.GPUPart{{GPU: 3, Used: jobs.WholeGPU / 2}}
	dev := t.TempDir()
	write(t, filepath.Join(dev, "nvidia3"), "")
	w := newWorld(t, devEnv+"="+dev)
	gate, ready := w.fifo("gate"), w.fifo("ready")
	f := w.start(w.open())
	f.launch(halfJob("1.1", fmt.Sprintf("echo $CUDA_VISIBLE_DEVICES $DCS_GPUS > %s; read x < %s", ready, gate), 3))
	if got := w.receive(ready); got != "0 0.5" { // CUDA counts the devices that it can open
		t.Errorf("the job sees %q", got)
	}
	f.crash()
	taken, err := w.spool().takenAttempts()
	must(t, err)
	by := taken[attemptID(t, "1.1")]
	unix.Kill(by.PID, unix.SIGKILL)
	polltest.Until(t, "the supervisor is dead", func() bool { return !by.isAlive() })

	w2, o := w.sameHost(t)
	w2.env = w.env
	o.Slots = 2
	g := w2.start(o)
	if !slices.Equal(g.hello.PartGPUs, half3) || len(g.hello.LockedGPUs) != 0 ||
		!slices.Equal(g.hello.GPUIDs, []int{3}) {
		t.Errorf("the hello says %v, %v of %v", g.hello.LockedGPUs, g.hello.PartGPUs, g.hello.GPUIDs)
	}
	g.launch(gpuJob("1.1", "exit 0", 3))
	g.refusedFor("1.1", "GPU 3 is in use", 3)
	gate2, ready2 := w2.fifo("gate"), w2.fifo("ready")
	g.launch(halfJob("2.1", fmt.Sprintf("echo up > %s; read x < %s", ready2, gate2), 3))
	w2.receive(ready2)
	g.launch(halfJob("3.1", "exit 0", 3))
	g.refusedFor("3.1", "GPU 3 is in use", 3)
	w.say(gate)
	polltest.Until(t, "the first half is free",
		func() bool { return slices.Equal(lockedGPUs(o.ShareDir).parts, half3) })
	g.heartbeat(func(b *hosts.Heartbeat) bool { return slices.Equal(b.PartGPUs, half3) })
	w2.say(gate2)
	g.exit("2.1")
	g.launch(gpuJob("4.1", "exit 4", 3))
	g.exits("4.1", 4)
	g.endRun()
	f = w.start(w.open())
	f.mayDie = true
}
