//go:build linux

package remote

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"dcs-tui/hosts"
	"dcs-tui/internal/polltest"
)

// nvidiaSMI is a stand-in that prints what the real program prints. The file holds lines
// "UUID, PID".
func nvidiaSMI(apps string) string {
	return `case "$*" in
"--query-gpu=index --format=csv,noheader") printf '0\n1\n';;
"--query-gpu=index,uuid --format=csv,noheader") printf '0, GPU-0aaaaaaa-1111-2222-3333-444444444444\n1, GPU-1bbbbbbb-1111-2222-3333-444444444444\n';;
"--query-compute-apps=gpu_uuid,pid --format=csv,noheader") echo >> ` + apps + `.asked; cat ` + apps + `;;
*) echo "Unknown option $1"; exit 2;;
esac`
}

const (
	uuid0 = "GPU-0aaaaaaa-1111-2222-3333-444444444444"
	uuid1 = "GPU-1bbbbbbb-1111-2222-3333-444444444444"
)

// Devices are those that nvidia-smi lists. Without it, or when it fails, they are those
// of /dev, whose numbers need not begin at 0.
func TestFindGPUs(t *testing.T) {
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
		"two":         {nvidiaSMI("/dev/null"), []int{0, 1}},
		"no driver":   {"echo \"NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest NVIDIA driver is installed and running.\"; exit 9", []int{3, 11}},
		"no devices":  {"echo 'No devices were found'; exit 6", []int{3, 11}},
		"not a count": {"echo 99999999999999999999; echo -1", []int{3, 11}},
	} {
		t.Run(name, func(t *testing.T) {
			standIns(t, map[string]string{"nvidia-smi": c.script})
			if got := findGPUs(); !slices.Equal(got, c.want) {
				t.Errorf("%v, want %v", got, c.want)
			}
		})
	}
}

// What the tools print is understood, whatever surrounds it.
func TestGPUToolFormats(t *testing.T) {
	got := map[int][]int{}
	parseNVIDIA("0, "+uuid0+"\n1, "+uuid1+"\n", uuid1+", 4711\n"+uuid1+", 12\nGPU-gone, 5\n"+uuid0+", [N/A]\n[Not Supported], 1\n", got)
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

// T3: a device on which a process computes that belongs to no job is left alone until the
// process is gone. Processes of jobs do not count. Without jobs that want GPUs nobody asks.
func TestBusyGPUIsLeftAlone(t *testing.T) {
	t.Setenv(beatEnv, "50ms")
	t.Setenv(freshEnv, "100ms")
	apps := filepath.Join(t.TempDir(), "apps")
	standIns(t, map[string]string{"nvidia-smi": nvidiaSMI(apps)})
	stranger := exec.Command("sleep", "1000")
	must(t, stranger.Start())
	defer func() { stranger.Process.Kill(); stranger.Wait() }()
	write(t, apps, fmt.Sprintf("%s, %d\n", uuid1, stranger.Process.Pid))

	w := newWorld(t)
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
	if r := f.refused("2.1"); !slices.Equal(r.GPUs, []int{1}) || !strings.Contains(r.Why, "processes of no job compute on GPU 1") {
		t.Errorf("refused with %v: %s", r.GPUs, r.Why)
	}
	await(f, func(b *hosts.Beat) bool { return slices.Equal(b.LockedGPUs, []int{1}) })

	first := halfJob("3.1", fmt.Sprintf("echo $$ > %s; read x < %s", ready, gate), 0)
	f.launch(first)
	write(t, apps, fmt.Sprintf("%s, %d\n%s, %s\n", uuid1, stranger.Process.Pid, uuid0, w.hear(ready)))
	f.launch(halfJob("4.1", "exit 4", 0))
	if o := f.exit("4.1"); o.Exit != 4 {
		t.Errorf("beside a process of a job: %+v", o)
	}
	w.say(gate)
	f.exit("3.1")

	write(t, apps, "")
	await(f, func(b *hosts.Beat) bool { return len(b.LockedGPUs) == 0 })
	f.launch(gpuJob("5.1", "exit 5", 1))
	if o := f.exit("5.1"); o.Exit != 5 {
		t.Errorf("when the process is gone: %+v", o)
	}
	f.bye()
}

// A process that cannot be seen belongs to the job that has locked the device, and to
// nobody where none has.
func TestUnseenGPUProcess(t *testing.T) {
	const nobody = 1<<22 - 1
	apps := filepath.Join(t.TempDir(), "apps")
	standIns(t, map[string]string{"nvidia-smi": nvidiaSMI(apps)})
	write(t, apps, fmt.Sprintf("%s, %d\n%s, %d\n", uuid0, nobody, uuid1, nobody))
	share := filepath.Join(t.TempDir(), "share")
	locks, err := lockGPUs(share, []int{0}, true)
	must(t, err)
	defer unlockGPUs(locks)
	s := spool{t.TempDir()}
	if got := askGPUs(s, share); !slices.Equal(got, []int{1}) {
		t.Errorf("busy: %v", got)
	}
	if got, until := keptGPUs(s); !slices.Equal(got, []int{1}) || until < uptime() {
		t.Errorf("kept: %v until %v", got, until)
	}
}

func halfJob(id, command string, device int) hosts.LaunchJob {
	j := gpuJob(id, command, device)
	j.HalfGPU = true
	return j
}

// T3: two jobs, of two runs, share a device, and no third; a job that wants a whole one
// waits for both. A half stays with its job when the supervisor is killed.
func TestTwoJobsShareAGPU(t *testing.T) {
	t.Setenv(beatEnv, "50ms")
	t.Setenv(devEnv, t.TempDir())
	write(t, filepath.Join(os.Getenv(devEnv), "nvidia3"), "")
	w := newWorld(t)
	gate, ready := w.fifo("gate"), w.fifo("ready")
	f := w.start(w.open())
	f.launch(halfJob("1.1", fmt.Sprintf("echo $CUDA_VISIBLE_DEVICES $DCS_GPUS > %s; read x < %s", ready, gate), 3))
	if got := w.hear(ready); got != "0 0.5" { // CUDA counts what it can open
		t.Errorf("the job sees %q", got)
	}
	f.kill9()
	taken, err := w.spool().taken()
	must(t, err)
	by := taken[attemptID(t, "1.1")]
	unix.Kill(by.pid, unix.SIGKILL)
	polltest.Until(t, bound, "the supervisor is dead", func() bool { return !by.alive() })

	w2, o := w.sameHost(t)
	o.Slots = 2
	g := w2.start(o)
	if !slices.Equal(g.hello.HalfGPUs, []int{3}) || len(g.hello.LockedGPUs) != 0 || !slices.Equal(g.hello.GPUIDs, []int{3}) {
		t.Errorf("the hello says %v, %v of %v", g.hello.LockedGPUs, g.hello.HalfGPUs, g.hello.GPUIDs)
	}
	g.launch(gpuJob("1.1", "exit 0", 3))
	if r := g.refused("1.1"); !slices.Equal(r.GPUs, []int{3}) {
		t.Errorf("a whole device: refused with %v: %s", r.GPUs, r.Why)
	}
	gate2, ready2 := w2.fifo("gate"), w2.fifo("ready")
	g.launch(halfJob("2.1", fmt.Sprintf("echo up > %s; read x < %s", ready2, gate2), 3))
	w2.hear(ready2)
	g.launch(halfJob("3.1", "exit 0", 3))
	if r := g.refused("3.1"); !slices.Equal(r.GPUs, []int{3}) {
		t.Errorf("a third: refused with %v: %s", r.GPUs, r.Why)
	}
	w.say(gate)
	await(g, func(b *hosts.Beat) bool { return slices.Equal(b.HalfGPUs, []int{3}) })
	w2.say(gate2)
	g.exit("2.1")
	g.launch(gpuJob("4.1", "exit 4", 3))
	if o := g.exit("4.1"); o.Exit != 4 {
		t.Errorf("when both have ended: %+v", o)
	}
	g.bye()
	f = w.start(w.open())
	f.mayDie = true
	f.bye()
}
