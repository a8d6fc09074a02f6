//go:build linux

package remote

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"dcs-tui/hosts"
	"dcs-tui/internal/polltest"
	"dcs-tui/jobs"
	"dcs-tui/jobs/attempts"
)

// TestEnvironmentOfAJob checks the environment of a job, and that setup runs before the job in the
// same shell (D10). Values of the run and of the job that are not UTF-8 reach jobs unchanged.
func TestEnvironmentOfAJob(t *testing.T) {
	w := newWorld(t)
	t.Setenv("FROM_LOGIN", "login")
	t.Setenv("DCS_STALE", "of an outer run")
	open := w.open()
	open.Env = []jobs.EnvVar{{Name: "RUN_WIDE", Value: "a \xffb"}, {Name: "BOTH", Value: "run"}}
	open.Setup, open.Nice = "SETUP_SAYS='host\xfe'", 7
	f := w.start(open)
	j := job("12.3", `echo "$FROM_LOGIN|$DCS_STALE|$RUN_WIDE|$BOTH|$SETUP_SAYS|`+
		`$DCS_JOB_ID|$DCS_ATTEMPT|$DCS_RUN|$DCS_RUN_DIR|$DCS_HOST|$DCS_PARAM_lr|$DCS_PARAM_a_b|`+
		`$OMP_NUM_THREADS|$CUDA_VISIBLE_DEVICES|$CUDA_DEVICE_ORDER|$DCS_GPUS"; `+
		`pwd; test "$DCS_SLOT" -ge 1 && test -z "$(cat)"`)
	j.Env = []jobs.EnvVar{{Name: "BOTH", Value: "job\xf0"}}
	j.Params = []jobs.Param{{Name: "lr", Value: "0.1"}, {Name: "a b", Value: "x=y"}}
	j.Slots, j.GPUs = 2, []int{1, 3}
	k := job("13.1", "printf '\xfd'; "+`echo "$SETUP_SAYS|$OMP_NUM_THREADS|${CUDA_VISIBLE_DEVICES-unset}"; pwd; nice`)
	k.Setup, k.Cwd = "SETUP_SAYS=job", w.workDir
	k.Env = []jobs.EnvVar{{Name: "OMP_NUM_THREADS", Value: "7"}}
	f.launch(j, k)
	for id, want := range map[string]string{
		"12.3": "login||a \xffb|job\xf0|host\xfe|12|12.3|test|" + w.runDir + "|melon1|0.1|x=y|2|1,3|PCI_BUS_ID|2\n" +
			w.runDir + "\n",
		"13.1": "\xfdjob|7|unset\n" + w.workDir + "\n7\n",
	} {
		f.succeeds(id)
		if got := w.content(id, jobs.FileOut); got != want {
			t.Errorf("%s: got  %q\nwant %q", id, got, want)
		}
	}
}

// TestSupervisorHasOneProcessor checks that the Go runtime of a supervisor reserves memory for one
// processor, however many the machine has, and that its jobs see what the user has set.
func TestSupervisorHasOneProcessor(t *testing.T) {
	for _, c := range []struct{ name, user, want string }{
		{"not set", "", "GOMAXPROCS=1\n\n"},
		{"set by the user", "5", "GOMAXPROCS=1\n5\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("GOMAXPROCS", c.user)
			if c.user == "" {
				os.Unsetenv("GOMAXPROCS")
			}
			f := newWorld(t).startWith(1)
			f.launch(job("1.1", `tr '\0' '\n' </proc/$PPID/environ | grep ^GOMAXPROCS; echo "$GOMAXPROCS"`))
			f.succeeds("1.1")
			if got := f.w.content("1.1", jobs.FileOut); got != c.want {
				t.Errorf("the supervisor and its job have %q, want %q", got, c.want)
			}
		})
	}
}

// stepEnv makes the wall clock of supervisors and helpers step at each look at it.
const stepEnv = "DCS_TEST_CLOCK_STEP"

func setClockAtEachLook(step time.Duration) {
	var looks atomic.Int64
	clock := wallClock
	wallClock = func() jobs.Stamp { return clock() + jobs.Stamp(step*time.Duration(looks.Add(1))) }
}

// TestRunTimeIsThatOfTheBootClock checks that steps of the wall clock, forward and back, do not
// change the run time of a job.
func TestRunTimeIsThatOfTheBootClock(t *testing.T) {
	for _, step := range []string{"5h", "-5h"} {
		w := newWorld(t, stepEnv+"="+step)
		f := w.start(w.open())
		began := uptime()
		f.launch(job("1.1", "read x </proc/uptime"))
		f.succeeds("1.1")
		o := w.status("1.1").Outcome
		if took, limit := o.Elapsed(), uptime()-began; took <= 0 || took > limit {
			t.Errorf("the clock steps by %s: the job ran for %s, want at most %s", step, took, limit)
		}
		if away := o.Started.Sub(wallClock()).Abs(); away < time.Hour {
			t.Errorf("the clock steps by %s: the start is only %s away", step, away)
		}
	}
}

// TestEnvironmentHasNoDuplicates checks that a later value of a variable replaces the earlier one.
// DCS_RUN is the uid of a run without a name.
func TestEnvironmentHasNoDuplicates(t *testing.T) {
	base := baseEnv([]string{"A=1", "B=2", "A=3", "DCS_COOKIE=outer"},
		&slotConfig{Run: "uid", Env: []jobs.EnvVar{{Name: "B", Value: "4"}}}, 1)
	got := jobEnv(base, &hosts.LaunchJob{Env: []jobs.EnvVar{{Name: "N", Value: "1"}, {Name: "N", Value: "2"},
		{Name: "A", Value: "5"}}}, 0, nil, "mark", "/p")
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
	for _, want := range []string{"A=5", "B=4", "N=2", "DCS_COOKIE=mark", "OMP_NUM_THREADS=1", "DCS_RUN=uid"} {
		if !slices.Contains(got, want) {
			t.Errorf("%s is missing in %q", want, got)
		}
	}
}

// TestAnotherShellIsUsed checks --shell: it takes another shell, with options, and finds it in
// PATH. If the shell does not exist, the job fails with exit code 127, as in sh.
func TestAnotherShellIsUsed(t *testing.T) {
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
		if o := f.exit("1.1"); o.Exit != c.exit || !strings.Contains(o.Error, c.text) {
			t.Errorf("%s: %+v", c.shell, o)
		}
	}
}

// TestWhatJobsInherit checks that jobs inherit no file descriptor of ours, and that they have the
// kernel's default timer slack, whatever their supervisor has.
func TestWhatJobsInherit(t *testing.T) {
	w := newWorld(t)
	f := w.start(w.open())
	f.launch(job("1.1", "ls /proc/self/fd | tr '\\n' ' '"), job("2.1", "cat /proc/self/timerslack_ns"))
	for id, want := range map[string]string{
		"1.1": "0 1 2 3", // ls itself opens 3
		"2.1": fmt.Sprint(jobSlack.Nanoseconds()),
	} {
		f.succeeds(id)
		if got := strings.TrimSpace(w.content(id, jobs.FileOut)); got != want {
			t.Errorf("%s: got %q, want %q", id, got, want)
		}
	}
}

// TestProgressReachesHeartbeats checks that at most 64 bytes of DCS_PROGRESS reach the heartbeats.
// A pipe that a job put in the place of its progress file does not block anybody.
func TestProgressReachesHeartbeats(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f := w.start(w.open())
	gate := w.fifo("gate")
	f.launch(job("2.1", "mkfifo $DCS_PROGRESS; read x < "+gate))
	f.started("2.1")
	f.launch(job("1.1", `printf '3/10 %0100d' 0 > "$DCS_PROGRESS"; read x < `+gate))
	b := await(f, func(b *hosts.Heartbeat) bool { return b.Progress["1.1"] != "" && b.Running == 2 && b.DiskFree > 0 })
	if p := b.Progress["1.1"]; !strings.HasPrefix(p, "3/10 0") || len(p) != maxProgress {
		t.Errorf("progress %q", p)
	}
	if b.Uptime == 0 || b.MemFree <= 0 || b.Seq != 1 {
		t.Errorf("heartbeat %+v", b)
	}
	w.say(gate)
	w.say(gate)
	f.exit("1.1")
	f.exit("2.1")
}

// TestProgressBeforeTheStartIsReported checks that the progress files of a job whose start has not
// been reported yet are kept, and that those of a job that has ended are removed.
func TestProgressBeforeTheStartIsReported(t *testing.T) {
	s, err := makeSpool(t.TempDir(), "r1", "melon1")
	must(t, err)
	runs, over := attemptID(t, "1.1"), attemptID(t, "2.1")
	write(t, s.path(dirTaken, takenName(runs, holder{1, os.Getpid(), 5})), "")
	for _, n := range []string{runs.String(), runs.String() + reportSuffix, over.String(), over.String() + reportSuffix,
		"odd"} {
		write(t, s.path(dirProgress, n), "1/2")
	}
	h := &helper{spool: s}
	h.readProgress()
	names, err := s.list(dirProgress)
	must(t, err)
	slices.Sort(names)
	if want := []string{"1.1", "1.1" + reportSuffix}; !slices.Equal(names, want) {
		t.Errorf("files that are left: %q, want %q", names, want)
	}
}

// TestReportOfAnAttemptThatIsOver checks that a report that a finished job has left reaches a
// heartbeat before it is removed (K12).
func TestReportOfAnAttemptThatIsOver(t *testing.T) {
	s, err := makeSpool(t.TempDir(), "r1", "melon1")
	must(t, err)
	file := s.path(dirProgress, "1.1"+reportSuffix)
	write(t, file, "1 0.5\n2 0.25\n3")
	h := &helper{spool: s}
	h.readProgress()
	h.readProgress()
	if p := h.reports.Load(); p == nil || (*p)["1.1"] != "1 0.5\n2 0.25\n" {
		t.Errorf("reports %q", p)
	}
	if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the report is left: %v", err)
	}
}

// TestReportedLinesReachAHeartbeatOnce checks that what a job appends to DCS_REPORT reaches a
// heartbeat once, in complete lines (K12). If there is too much, the last lines are sent.
func TestReportedLinesReachAHeartbeatOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	gate, other, more := w.fifo("gate"), w.fifo("other"), w.fifo("more")
	f := w.start(w.open())
	f.launch(job("1.1", `seq -f '%g 0.5' 1000 2000 > lines; mv lines "$DCS_REPORT"; read x < `+more+
		`; echo '2001 0.25' >> "$DCS_REPORT"; read x < `+gate),
		job("2.1", `mkfifo "$DCS_REPORT"; read x < `+other))
	b := await(f, func(b *hosts.Heartbeat) bool { return len(b.Reports) > 0 })
	if p := b.Reports["1.1"]; len(b.Reports) != 1 || !strings.HasSuffix(p, "\n2000 0.5\n") || len(p) > maxReportFile ||
		strings.Count(p, "\n")*len("2000 0.5\n") != len(p) {
		t.Errorf("reports %q", b.Reports)
	}
	w.say(more)
	b = await(f, func(b *hosts.Heartbeat) bool { return len(b.Reports) > 0 })
	if p := b.Reports["1.1"]; p != "2001 0.25\n" {
		t.Errorf("reports %q", b.Reports)
	}
	w.say(gate)
	f.exit("1.1")
	w.say(other)
	f.exit("2.1")
}

// TestFaultsOfAHostAreOneLine checks that each fault of a host is reported as one clear line and
// costs no attempt.
func TestFaultsOfAHostAreOneLine(t *testing.T) {
	w := newWorld(t)
	file := filepath.Join(w.runDir, "file")
	write(t, file, "")
	for want, change := range map[string]func(o *hosts.Open){
		"not a directory":                   func(o *hosts.Open) { o.WorkDir = file + "/sub" },
		"mkdir /proc/1/":                    func(o *hosts.Open) { o.WorkDir = "/proc/1" },
		`"here" is not an absolute path`:    func(o *hosts.Open) { o.WorkDir = "here" },
		`the host's name "../x"`:            func(o *hosts.Open) { o.Host = "../x" },
		`the run's uid "xxxxx`:              func(o *hosts.Open) { o.Run = strings.Repeat("x", 100) },
		"the dispatcher speaks version 99,": func(o *hosts.Open) { o.Version = 99 },
	} {
		o := w.open()
		change(o)
		w.mustNotStart(o, want)
	}
}

// TestAttemptsOfAHostThatSharesNothing checks that attempts are below work_dir if the host does not
// see the nonce, and that a missing working directory is reported.
func TestAttemptsOfAHostThatSharesNothing(t *testing.T) {
	w := newWorld(t)
	o := w.open()
	o.Nonce, o.Cwd = "another", "/not/here"
	f := w.start(o)
	if f.hello.Shared || f.hello.Dir != filepath.Join(w.workDir, w.run) ||
		!strings.Contains(f.hello.CwdError, "/not/here") {
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
}

// TestSetupComesFirst checks that a job never runs without its setup. If setup fails, the job fails
// with the exit code and the messages of setup. Changes that setup makes apply to the job in the
// same shell.
func TestSetupComesFirst(t *testing.T) {
	w := newWorld(t)
	f := w.start(w.open())
	missing := job("1.1", "echo ran")
	missing.Setup = "no-such-setup"
	fails := job("2.1", "echo ran")
	fails.Setup = "(exit 9)"
	lasts := job("3.1", `echo "$V $(pwd)"; false; exit 4`)
	lasts.Setup = "# a comment\nV=1\ncd / # and another"
	f.launch(missing, fails, lasts)
	for id, want := range map[string]int{"1.1": 127, "2.1": 9, "3.1": 4} {
		o := f.exit(id)
		if o.Exit != want {
			t.Errorf("%s: %+v, want exit %d", id, o, want)
		}
		if id == "1.1" && !strings.Contains(o.LastLine, "no-such-setup") {
			t.Errorf("%s: the last line is %q", id, o.LastLine)
		}
		if out := w.content(id, jobs.FileOut); id != "3.1" && out != "" || id == "3.1" && out != "1 /\n" {
			t.Errorf("%s printed %q", id, out)
		}
	}
}

// TestExactExitCodesAndSignals checks the exact exit code or signal of every job, and that a
// complete sentinel records it (X4, D8).
func TestExactExitCodesAndSignals(t *testing.T) {
	w := newWorld(t)
	f := w.start(w.open())
	missing := job("6.1", "true")
	missing.Cwd = "/nonexistent/place"
	cases := []struct {
		job  hosts.LaunchJob
		want jobs.Outcome
		text string // part of Error or LastLine
	}{
		{job("1.1", "echo out; echo err >&2"), jobs.Outcome{}, ""},
		{job("2.1", "echo first >&2; echo second >&2; exit 7"), jobs.Outcome{Exit: 7}, "second"},
		{job("3.1", "kill -9 $$"), jobs.Outcome{Signal: "SIGKILL"}, ""},
		{job("9.1", "kill -40 $$"), jobs.Outcome{Signal: "SIG40"}, ""}, // a real-time signal has no name of its own
		{job("4.1", "no-such-command-anywhere"), jobs.Outcome{Exit: 127}, "no-such-command-anywhere"},
		{job("5.1", "/etc/passwd"), jobs.Outcome{Exit: 126}, "denied"},
		{missing, jobs.Outcome{Exit: 127}, "/nonexistent/place"},
		{job("7.1", "exec 0<&- 1>&- 2>&-; exit 3"), jobs.Outcome{Exit: 3}, ""},
		{job("1000.1", "exit 0"), jobs.Outcome{}, ""},
		{job("8.1", "echo a\x00b"), jobs.Outcome{Exit: 126}, "NUL"},
	}
	var list []hosts.LaunchJob
	for _, c := range cases {
		list = append(list, c.job)
	}
	f.launch(list...)
	for _, c := range cases {
		id := c.job.Attempt.String()
		o := f.exit(id)
		if o.Exit != c.want.Exit || o.Signal != c.want.Signal || o.TimedOut || o.Stopped {
			t.Errorf("%s (%q): %+v, want exit %d signal %q", id, c.job.Command, o, c.want.Exit, c.want.Signal)
		}
		if !strings.Contains(o.Error+o.LastLine, c.text) {
			t.Errorf("%s (%q): neither %q nor %q mention %q", id, c.job.Command, o.Error, o.LastLine, c.text)
		}
		f := w.status(id)
		if f.State != attempts.Finished || f.Host != "melon1" || f.Slot < 1 || f.Slot > 2 || f.Claim.Host != "melon1" {
			t.Errorf("%s: status %+v, want that of host melon1", id, f)
		}
		o.LastLine = ""
		if f.Outcome != o {
			t.Errorf("%s: the status file says %+v, the report %+v", id, f.Outcome, o)
		}
	}
	if got := w.content("1.1", jobs.FileOut) + w.content("1.1", jobs.FileErr); got != "out\nerr\n" {
		t.Errorf("output %q", got)
	}
}

// TestPendingReportIsNotHeldUp checks that the report of a finished job waits for the start of the
// next job in its slot only while that start does not hang, also if the run is ended in the
// meantime (promise 1).
func TestPendingReportIsNotHeldUp(t *testing.T) {
	for _, bye := range []bool{false, true} {
		gate := filepath.Join(t.TempDir(), "gate")
		w := newWorld(t, hangEnv+"=2.1.out:"+gate)
		f := w.startWith(1)
		f.hold("1.1", "exit 3", job("2.1", "exit 4"))
		f.answers("2.1", hosts.Buffered) // its token is ready when the first job ends
		w.release("1.1")
		if bye {
			polltest.Until(t, "the first job has ended", func() bool {
				return w.status("1.1").State == attempts.Finished
			})
			f.send(&hosts.Bye{End: true})
		}
		f.exits("1.1", 3)
		must(t, os.WriteFile(gate, nil, 0o600))
		if bye {
			must(t, f.wait())
		} else {
			f.exits("2.1", 4)
			f.endRun()
		}
		if _, err := os.Stat(w.spool().dir); !os.IsNotExist(err) {
			t.Errorf("bye %t: the spool is still there: %v", bye, err)
		}
	}
}

// TestDeathWithAPendingReport checks that the job of a supervisor that died before it sent its
// pending report is found by its taken spec, and that the outcome is that of the sentinel (promise
// 1).
func TestDeathWithAPendingReport(t *testing.T) {
	w := newWorld(t)
	w.runThenCrash("1.1")
	write(t, w.spool().path(dirTaken, takenName(attemptID(t, "1.1"), holder{1, 1 << 22, 3})), "")
	g := w.start(w.open())
	g.exits("1.1", 3)
}

// TestEndedJobIsFoundThoughItIsHeld checks that a job that has ended is found to have ended, even
// if its supervisor lives, still holds it, and runs another job (promise 1).
func TestEndedJobIsFoundThoughItIsHeld(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	gate, ready := w.fifo("gate"), w.fifo("ready")
	f := w.startWith(1)
	f.launch(job("1.1", "echo $PPID; exit 3"))
	f.exit("1.1")
	f.pending = nil
	p, _ := readProc(atoi(t, w.content("1.1", jobs.FileOut)))
	held := w.spool().path(dirTaken, takenName(attemptID(t, "1.1"), holder{1, p.pid, p.start}))
	write(t, held, "")
	f.launch(job("2.1", "echo $PPID > "+ready+"; read x < "+gate))
	if pid := w.receive(ready); pid != strconv.Itoa(p.pid) {
		t.Fatalf("2.1 runs under %s, not under %d", pid, p.pid)
	}
	// A repeated report of the end of 1.1 shows nothing: the helper may have sent it before.
	polltest.Until(t, "1.1 is no longer held", func() bool {
		_, err := os.Stat(held)
		return os.IsNotExist(err)
	})
	f.exits("1.1", 3)
	f.started("2.1")
	f.answers("2.1", hosts.IsRunning)
	w.say(gate)
	f.exit("2.1")
}

// bareSlot returns a supervisor within the test, without a loop, that has a pending report of 1.1.
// wakePipe is the pipe of its tokens, and told is the pipe of its reports.
func (w *world) bareSlot() (s *slot, pending *pendingReport, wakePipe int, told *os.File) {
	t := w.t
	t.Helper()
	sp, err := makeSpool(w.base, w.run, "melon1")
	must(t, err)
	var pipe, reports [2]int
	must(t, unix.Pipe2(pipe[:], unix.O_CLOEXEC))
	must(t, unix.Pipe2(reports[:], unix.O_CLOEXEC|unix.O_NONBLOCK))
	told = os.NewFile(uintptr(reports[0]), "reports")
	told.SetReadDeadline(time.Now().Add(polltest.Patience))
	s = &slot{spool: sp, reportFD: reports[1], tokens: openTokens(pipe[0]), holder: holder{1, 2, 3}}
	t.Cleanup(func() {
		told.Close()
		for _, fd := range []int{pipe[0], pipe[1], reports[1], s.tokens.nonBlocking, s.in, s.taken, s.free} {
			unix.Close(fd)
		}
	})
	s.spoolDirs, err = sp.openDirs()
	must(t, err)
	id := attemptID(t, "1.1")
	pending = &pendingReport{&attempt{id: id, taken: takenName(id, s.holder)}, &report{Kind: repExited, Attempt: id}}
	write(t, sp.path(dirTaken, pending.a.taken), "")
	s.pending.report.Store(pending)
	return s, pending, pipe[1], told
}

// TestPendingReportIsSentByTheTimer checks that a pending report is sent even if the loop does not
// reach it anymore.
func TestPendingReportIsSentByTheTimer(t *testing.T) {
	w := newWorld(t)
	s, pending, _, told := w.bareSlot()
	if got := s.pending.await(s); got != pending {
		t.Errorf("owed is %v", got)
	}
	s.isPaid(t, told)
}

// isPaid checks that the pending report comes, and that the spec is released before.
func (s *slot) isPaid(t *testing.T, told *os.File) {
	t.Helper()
	buf := make([]byte, 4096)
	n, err := told.Read(buf)
	want := report{Kind: repExited, Attempt: attemptID(t, "1.1"), By: s.holder}
	if r, _ := parseReport(bytes.TrimSuffix(buf[:n], []byte("\n"))); err != nil || !reflect.DeepEqual(r, want) ||
		s.pending.report.Load() != nil {
		t.Errorf("reported %q, %v, want %+v; owed is %v", buf[:n], err, want, s.pending.report.Load())
	}
	if _, err := os.Stat(s.spool.path(dirFree, "1.1")); err != nil {
		t.Errorf("the spec was not let go: %v", err)
	}
}

// TestPendingReportIsSentBeforeAWait checks that pending reports are sent before the loop waits for
// a token, but after a token that is ready.
func TestPendingReportIsSentBeforeAWait(t *testing.T) {
	w := newWorld(t)
	s, pending, wakePipe, told := w.bareSlot()
	next := attemptID(t, "2.1")
	unix.Write(wakePipe, appendToken(nil, 1, next))
	if _, got, ok := s.nextToken(); !ok || got != next || s.pending.report.Load() != pending {
		t.Errorf("token %v %v; owed is %v", got, ok, s.pending.report.Load())
	}
	done := make(chan jobs.AttemptID)
	go func() {
		_, got, _ := s.nextToken()
		done <- got
	}()
	s.isPaid(t, told) // while the supervisor waits
	unix.Write(wakePipe, appendToken(nil, 1, next))
	if got := <-done; got != next {
		t.Errorf("token %v, want %v", got, next)
	}
}

// TestLimitMayExceedTheSlots checks that a host can be given more slots than it was opened with, at
// once, and fewer (D7). Running jobs beyond the limit finish, and their supervisors exit and take
// no more jobs.
func TestLimitMayExceedTheSlots(t *testing.T) {
	w := newWorld(t)
	ready := w.fifo("ready")
	gate := func(id string) string { return filepath.Join(w.runDir, "gate"+id) }
	gated := func(id string) hosts.LaunchJob {
		return job(id, "echo "+id+" > "+ready+"; read x < "+w.fifo("gate"+id))
	}
	f := w.start(w.open()) // two slots
	f.launch(gated("1.1"), gated("2.1"), gated("3.1"), gated("4.1"))
	w.receiveLines(ready, 2)
	f.send(&hosts.Limit{Slots: 4})
	w.receiveLines(ready, 2)
	f.send(&hosts.Limit{Slots: 1})
	// The jobs themselves observe whether another one runs: answers of the helper come later.
	alone := filepath.Join(w.runDir, "alone")
	for _, id := range []string{"5.1", "6.1"} {
		j := gated(id)
		j.Command = "mkdir " + alone + " || exit 9; " + j.Command + "; rmdir " + alone
		f.launch(j)
	}
	first := ""
	f.started("1.1", "2.1", "3.1", "4.1") // the helper knows their slots
	for _, id := range []string{"1.1", "2.1", "3.1", "4.1"} {
		if f.probe(id).Slot == 1 {
			first = id
			continue
		}
		w.say(gate(id))
		f.exit(id)
	}
	for _, id := range []string{"5.1", "6.1"} {
		f.answers(id, hosts.Buffered)
	}
	w.say(gate(first))
	f.exit(first)
	for range 2 { // one after another
		id := w.receive(ready)
		w.say(gate(id))
		f.exits(id, 0)
	}
}

// TestLimitOutlivesHelper checks that a new helper begins with the limit that the dispatcher set
// last. Jobs that wait in the spool must not start in slots that were taken away.
func TestLimitOutlivesHelper(t *testing.T) {
	w := newWorld(t)
	f := w.start(w.open())
	f.send(&hosts.Limit{Slots: 0})
	f.launch(job("1.1", "exit 3"))
	f.answers("1.1", hosts.Buffered)
	f.crash()
	g := w.start(w.open())
	g.answers("1.1", hosts.Buffered)
	g.send(&hosts.Limit{Slots: 3})
	g.exits("1.1", 3)
}

func fullConfig() *slotConfig {
	return &slotConfig{Run: "r", RunName: "name", Host: "h", Dir: "/d\xff", Boot: "b", Network: true, Cwd: "/c\xfe",
		Shell: []string{"/bin/sh", "-e"},
		Setup: "A=\xc3\x28", Env: []jobs.EnvVar{{Name: "X", Value: "a\xffb\n"}, {Name: "E"}}, GPUs: []int{3,
			7}, Nice: -3, Grace: time.Second}
}

// TestDamagedConfigurationIsRefused checks that the configuration of supervisors arrives byte for
// byte, or not at all.
func TestDamagedConfigurationIsRefused(t *testing.T) {
	testDamage(t, appendSealed(nil, configMagic, *fullConfig()), fullConfig(), func(b []byte) (*slotConfig, error) {
		c := &slotConfig{}
		return c, unseal(b, configMagic, c)
	})
	j := &hosts.LaunchJob{Attempt: jobs.AttemptID{Job: 17, N: 2}, Command: "echo x", Cwd: "/x"}
	testDamage(t, appendSpec(nil, j), j, parseSpec)
	if err := unseal(appendSpec(nil, j), configMagic, &slotConfig{}); err == nil {
		t.Error("a job was taken for a configuration")
	}
}

func testDamage[T any](t *testing.T, b []byte, want *T, parse func([]byte) (*T, error)) {
	t.Helper()
	if got, err := parse(append(slices.Clip(b), "what was there before"...)); err != nil ||
		!reflect.DeepEqual(got, want) {
		t.Fatalf("got %+v, %v; want %+v", got, err, want)
	}
	for i := range b {
		c := slices.Clone(b)
		c[i] ^= 0x10
		if got, err := parse(c); err == nil {
			t.Errorf("byte %d changed: got %+v", i, got)
		}
		if _, err := parse(b[:i]); err == nil {
			t.Errorf("cut to %d bytes and accepted", i)
		}
	}
}
