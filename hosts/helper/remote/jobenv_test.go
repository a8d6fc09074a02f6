//go:build linux

package remote

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// D10, DESIGN 8: what a job finds in its environment, and setup before it in the
// same shell.
func TestEnvironment(t *testing.T) {
	w := newWorld(t)
	t.Setenv("FROM_LOGIN", "login")
	t.Setenv("DCS_STALE", "of an outer run")
	open := w.open()
	open.Env = []jobs.EnvVar{{Name: "RUN_WIDE", Value: "a b"}, {Name: "BOTH", Value: "run"}}
	open.Setup, open.Nice = "SETUP_SAYS=host", 7
	f := w.start(open)
	j := job("12.3", `echo "$FROM_LOGIN|$DCS_STALE|$RUN_WIDE|$BOTH|$SETUP_SAYS|$DCS_JOB_ID|$DCS_ATTEMPT|$DCS_RUN|$DCS_RUN_DIR|$DCS_HOST|$DCS_PARAM_lr|$DCS_PARAM_a_b|$OMP_NUM_THREADS|$CUDA_VISIBLE_DEVICES|$CUDA_DEVICE_ORDER|$DCS_GPUS"; pwd; test "$DCS_SLOT" -ge 1 && test -z "$(cat)"`)
	j.Env = []jobs.EnvVar{{Name: "BOTH", Value: "job"}}
	j.Params = []jobs.Param{{Name: "lr", Value: "0.1"}, {Name: "a b", Value: "x=y"}}
	j.Slots, j.GPUs = 2, []int{1, 3}
	k := job("13.1", `echo "$SETUP_SAYS|$OMP_NUM_THREADS|${CUDA_VISIBLE_DEVICES-unset}"; pwd; nice`)
	k.Setup, k.Cwd = "SETUP_SAYS=job", w.workDir
	k.Env = []jobs.EnvVar{{Name: "OMP_NUM_THREADS", Value: "7"}}
	f.launch(j, k)
	for id, want := range map[string]string{
		"12.3": "login||a b|job|host|12|12.3|test|" + w.runDir + "|melon1|0.1|x=y|2|1,3|PCI_BUS_ID|2\n" + w.runDir + "\n",
		"13.1": "job|7|unset\n" + w.workDir + "\n7\n",
	} {
		if o := f.exit(id); !o.OK() {
			t.Errorf("%s: %+v", id, o)
		}
		if got := w.content(id, jobs.FileOut); got != want {
			t.Errorf("%s: got  %q\nwant %q", id, got, want)
		}
	}
	f.bye()
}

// A later value wins, in place of the earlier one.
func TestEnvironmentHasNoDuplicates(t *testing.T) {
	e := newJobEnv([]string{"A=1", "B=2", "A=3", "DCS_COOKIE=outer"}, &slotConfig{Env: []jobs.EnvVar{{Name: "B", Value: "4"}}}, 1)
	got := e.of(&hosts.LaunchJob{Env: []jobs.EnvVar{{Name: "N", Value: "1"}, {Name: "N", Value: "2"}, {Name: "A", Value: "5"}}}, "mark", "/p")
	seen := map[string]int{}
	for _, kv := range got {
		name, _, _ := strings.Cut(kv, "=")
		seen[name]++
	}
	for name, n := range seen {
		if n != 1 {
			t.Errorf("%s is there %d times: %q", name, n, got)
		}
	}
	for _, want := range []string{"A=5", "B=4", "N=2", "DCS_COOKIE=mark", "OMP_NUM_THREADS=1"} {
		if !slices.Contains(got, want) {
			t.Errorf("%s is missing in %q", want, got)
		}
	}
}

// --shell: another shell, with options, found in PATH; one that is not there is
// the job's failure with 127, as sh would have it.
func TestShell(t *testing.T) {
	for _, c := range []struct {
		shell string
		exit  int
		text  string
	}{{"bash -e", 3, ""}, {"/nonexistent/sh", 127, "/nonexistent/sh"}} {
		w := newWorld(t)
		open := w.open()
		open.Shell = c.shell
		f := w.start(open)
		f.launch(job("1.1", "(exit 3); echo not reached"))
		o := f.exit("1.1")
		if o.Exit != c.exit || !strings.Contains(o.Error, c.text) {
			t.Errorf("%s: %+v", c.shell, o)
		}
		f.bye()
	}
}

// DCS_PROGRESS reaches the beats, at most 64 bytes of it.
func TestProgress(t *testing.T) {
	w := newWorld(t)
	gate := w.fifo("gate")
	f := w.start(w.open())
	f.launch(job("1.1", `printf '3/10 %0100d' 0 > "$DCS_PROGRESS"; read x < `+gate))
	b := await(f, func(b *hosts.Beat) bool { return len(b.Progress) > 0 })
	if p := b.Progress["1.1"]; !strings.HasPrefix(p, "3/10 0") || len(p) != maxProgress {
		t.Errorf("progress %q", p)
	}
	if b.Uptime == 0 || b.MemFree <= 0 || b.DiskFree <= 0 || b.Running != 1 || b.Seq != 1 {
		t.Errorf("beat %+v", b)
	}
	w.say(gate)
	f.exit("1.1")
	f.bye()
}

// K12: what a job appends to DCS_REPORT reaches a beat once: the end of it, in whole lines.
func TestReports(t *testing.T) {
	w := newWorld(t)
	gate, other, more := w.fifo("gate"), w.fifo("other"), w.fifo("more")
	f := w.start(w.open())
	f.launch(job("1.1", `seq -f '%g 0.5' 200 > "$DCS_REPORT"; read x < `+more+`; echo '201 0.25' >> "$DCS_REPORT"; read x < `+gate),
		job("2.1", `mkfifo "$DCS_REPORT"; read x < `+other))
	b := await(f, func(b *hosts.Beat) bool { return len(b.Reports) > 0 })
	if p := b.Reports["1.1"]; len(b.Reports) != 1 || !strings.HasSuffix(p, "\n200 0.5\n") || len(p) > maxReportFile || strings.Count(p, "\n")*len("200 0.5\n") != len(p) {
		t.Errorf("reports %q", b.Reports)
	}
	w.say(more)
	b = await(f, func(b *hosts.Beat) bool { return len(b.Reports) > 0 })
	if p := b.Reports["1.1"]; !strings.HasSuffix(p, "\n200 0.5\n201 0.25\n") {
		t.Errorf("reports %q", b.Reports)
	}
	w.say(gate)
	f.exit("1.1")
	w.say(other)
	f.exit("2.1")
	f.bye()
}

// Jobs find no descriptor of ours.
func TestDescriptors(t *testing.T) {
	w := newWorld(t)
	f := w.start(w.open())
	f.launch(job("1.1", "ls /proc/self/fd | tr '\\n' ' '"))
	f.exit("1.1")
	if got := w.content("1.1", jobs.FileOut); got != "0 1 2 3 " { // 3 is ls's own
		t.Errorf("descriptors %q", got)
	}
	f.bye()
}

// What is bad about a host is one clear line, and costs nothing.
func TestHelloErrors(t *testing.T) {
	w := newWorld(t)
	file := filepath.Join(w.runDir, "file")
	write(t, file, "")
	for _, c := range []struct {
		name   string
		change func(o *hosts.Open)
		want   string
	}{
		{"work_dir below a file", func(o *hosts.Open) { o.WorkDir = file + "/sub" }, "work_dir"},
		{"work_dir read-only", func(o *hosts.Open) { o.WorkDir = "/proc/1" }, "work_dir"},
		{"work_dir relative", func(o *hosts.Open) { o.WorkDir = "here" }, "absolute"},
		{"host name", func(o *hosts.Open) { o.Host = "../x" }, "host's name"},
		{"run uid", func(o *hosts.Open) { o.Run = strings.Repeat("x", 100) }, "uid"},
		{"version", func(o *hosts.Open) { o.Version = 99 }, "version"},
	} {
		o := w.open()
		c.change(o)
		if h := w.start(o).hello; !strings.Contains(h.Error, c.want) {
			t.Errorf("%s: error %q, want one about %q", c.name, h.Error, c.want)
		}
	}
}

// DESIGN 6: without the nonce attempts live below work_dir; a cwd that is not
// there is said.
func TestNotShared(t *testing.T) {
	w := newWorld(t)
	o := w.open()
	o.Nonce, o.Cwd = "another", "/not/here"
	f := w.start(o)
	if f.hello.Shared || f.hello.Dir != filepath.Join(w.workDir, w.run) || !strings.Contains(f.hello.CwdError, "/not/here") {
		t.Errorf("hello %+v", f.hello)
	}
	j := job("1.1", "echo 0123456789")
	j.Cwd = "/"
	f.launch(j)
	f.exit("1.1")
	for _, c := range []struct {
		off   int64
		limit int
		want  string
		size  int64
	}{{0, 4, "0123", 11}, {-4, 100, "789\n", 11}, {20, 5, "", 11}} {
		f.send(&hosts.Read{ID: 1, Attempt: j.Attempt, File: jobs.FileOut, Offset: c.off, Limit: c.limit})
		m := await(f, func(m *hosts.Chunk) bool { return true })
		if string(m.Bulk) != c.want || m.Size != c.size {
			t.Errorf("read %+v: %q, %+v", c, m.Bulk, m)
		}
	}
	f.send(&hosts.Read{ID: 2, Attempt: attemptID(t, "9.9"), File: jobs.FileOut, Limit: 5})
	if m := await(f, func(m *hosts.Chunk) bool { return true }); m.Size != -1 || m.Why == "" {
		t.Errorf("a missing file: %+v", m)
	}
	f.bye()
}
