//go:build linux

package remote

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"dcs-tui/hosts"
	wire "dcs-tui/hosts/helper"
	"dcs-tui/internal/polltest"
	"dcs-tui/jobs"
	"dcs-tui/jobs/attempts"
)

// world is a host for tests: a directory for the program, a run directory, and a work_dir.
type world struct {
	t       testing.TB
	base    string
	runDir  string
	workDir string
	run     string
	env     []string // additional variables of its processes
}

var worlds atomic.Int32 // number of worlds of this process

func newWorld(t testing.TB, env ...string) *world {
	t.Helper()
	root := t.TempDir()
	w := &world{t: t, base: filepath.Join(root, "base"), runDir: filepath.Join(root, "run"),
		workDir: filepath.Join(root, "work"), env: env}
	// No other world has this uid, even if the clock is coarse. The cookies of jobs contain it.
	w.run = fmt.Sprintf("r%d%d%d", time.Now().UnixNano(), os.Getpid(), worlds.Add(1))
	for _, d := range []string{filepath.Join(w.base, "bin"), w.runDir} {
		must(t, os.MkdirAll(d, 0o700))
	}
	write(t, filepath.Join(w.runDir, "nonce"), "nonce-"+w.run+"\n")
	exe, err := os.Executable()
	must(t, err)
	place := filepath.Join(w.base, "bin", "dcs-tui-test")
	if os.Link(exe, place) != nil {
		b, err := os.ReadFile(exe)
		must(t, err)
		syscall.ForkLock.RLock() // a child of a parallel test must not hold it open: it could not be executed
		err = os.WriteFile(place, b, 0o700)
		syscall.ForkLock.RUnlock()
		must(t, err)
	}
	t.Cleanup(w.nothingLeft)
	return w
}

// nothingLeft reports an error if processes of the world are left, and ends them (promise 4). It also
// fails if a file is left that is not documented.
func (w *world) nothingLeft() {
	root := filepath.Dir(w.base)
	of := func(t table) (out []proc) {
		for pid, p := range t {
			mark := cookieOf(pid)
			if isEndable(p) && (strings.Contains(string(procFile(pid, "cmdline")), root) ||
				strings.HasPrefix(mark, w.run+"/")) {
				out = append(out, p)
			}
		}
		return out
	}
	if left := of(scan(nil)); len(left) > 0 && !w.t.Failed() {
		w.t.Errorf("processes are left behind: %s", listProcs(left))
	}
	endAll(of, 0)
	checkHostFiles(w.t, w.spool().dir)
	checkHostFiles(w.t, filepath.Join(w.workDir, w.run))
}

func (w *world) open() *hosts.Open {
	return &hosts.Open{Version: hosts.ProtocolVersion, Run: w.run, RunName: "test", Host: "melon1", Epoch: 1,
		RunDir: w.runDir, Nonce: "nonce-" + w.run, WorkDir: w.workDir,
		ShareDir: filepath.Join(filepath.Dir(w.base), "share"), ShareWeight: 1, Cwd: w.runDir, Slots: 2,
		GraceSeconds: 0.2}
}

func (w *world) file(id string, f jobs.File) string {
	w.t.Helper()
	return jobs.AttemptFile(w.runDir, attemptID(w.t, id), f)
}

// checkComplete checks that the status file of an attempt in dir is complete.
func (w *world) checkComplete(dir, id string, exit int) {
	w.t.Helper()
	b, err := os.ReadFile(jobs.AttemptFile(dir, attemptID(w.t, id), jobs.FileStatus))
	must(w.t, err)
	if f := attempts.Decode(b, w.run, attemptID(w.t, id)); f.State != attempts.Finished || f.Damaged ||
		f.Outcome.Exit != exit {
		w.t.Errorf("status of %s: %+v; want exit %d", id, f, exit)
	}
}

func (w *world) content(id string, f jobs.File) string {
	w.t.Helper()
	b, err := os.ReadFile(w.file(id, f))
	must(w.t, err)
	return string(b)
}

// status reads the status file of an attempt.
func (w *world) status(id string) attempts.Fate {
	w.t.Helper()
	return attempts.Decode([]byte(w.content(id, jobs.FileStatus)), w.run, attemptID(w.t, id))
}

// claim returns a claim of a process that no longer exists.
func (w *world) claim(id, host string) attempts.Claim {
	w.t.Helper()
	return attempts.Claim{Run: w.run, Attempt: attemptID(w.t, id), Host: host, By: holder{1, 1 << 22, 3}.String(),
		Boot: bootID(), At: 4}
}

func (w *world) spool() spool { return spool{filepath.Join(w.base, "runs", w.run, "melon1")} }

// control returns the control page of the spool.
func (w *world) control() *control {
	w.t.Helper()
	c, err := openControl(w.spool().dir)
	must(w.t, err)
	return c
}

// runThenCrash lets an attempt run and exit with code 3. Then the helper is killed.
func (w *world) runThenCrash(id string) {
	w.t.Helper()
	f := w.start(w.open())
	f.launch(job(id, "exit 3"))
	f.exits(id, 3)
	f.crash()
}

// fifo creates a pipe with which a job and its test wait for each other.
func (w *world) fifo(name string) string {
	w.t.Helper()
	p := filepath.Join(w.runDir, name)
	must(w.t, unix.Mkfifo(p, 0o600))
	return p
}

// receive waits until somebody writes a line into the pipe, and returns it.
func (w *world) receive(fifo string) string {
	w.t.Helper()
	return strings.TrimSuffix(w.receiveLines(fifo, 1), "\n")
}

// receiveLines waits until n lines have been written into the pipe, and returns them.
func (w *world) receiveLines(fifo string, n int) (lines string) {
	w.t.Helper()
	f, err := os.OpenFile(fifo, os.O_RDWR, 0)
	must(w.t, err)
	defer f.Close()
	f.SetReadDeadline(time.Now().Add(polltest.Patience))
	for strings.Count(lines, "\n") < n {
		b := make([]byte, 64)
		k, err := f.Read(b)
		if err != nil {
			w.t.Fatalf("%q was written to %s, want %d lines: %v", lines, filepath.Base(fifo), n, err)
		}
		lines += string(b[:k])
	}
	return lines
}

// say writes a line into the pipe, for a job that reads it.
func (w *world) say(fifo string) {
	w.t.Helper()
	f, err := os.OpenFile(fifo, os.O_RDWR, 0)
	must(w.t, err)
	fmt.Fprintln(f, "go")
	w.t.Cleanup(func() { f.Close() })
}

func job(id, command string) hosts.LaunchJob {
	a, err := jobs.ParseAttemptID(id)
	if err != nil {
		panic(err)
	}
	return hosts.LaunchJob{Attempt: a, Command: command}
}

var must = polltest.Must

func attemptID(t testing.TB, s string) jobs.AttemptID {
	t.Helper()
	id, err := jobs.ParseAttemptID(s)
	must(t, err)
	return id
}

func write(t testing.TB, path, text string) {
	t.Helper()
	must(t, os.WriteFile(path, []byte(text), 0o600))
}

func atoi(t testing.TB, s string) int {
	t.Helper()
	n, err := strconv.Atoi(strings.TrimSpace(s))
	must(t, err)
	return n
}

// helperProcess is a helper with the dispatcher's end of its channel.
type helperProcess struct {
	w       *world
	cmd     *exec.Cmd
	in      io.WriteCloser
	stdout  io.Closer
	out     *wire.Writer
	msgs    chan hosts.Message
	readErr error
	stderr  strings.Builder
	hello   *hosts.Hello
	pending []hosts.Message
	ended   bool
	mayDie  bool // supervisors are killed on purpose
}

// startProcess starts a helper process with additional variables in its environment.
func (w *world) startProcess(env ...string) *helperProcess { return w.startWithInput(nil, env...) }

// startWithInput starts a helper process whose input has the messages from the beginning.
func (w *world) startWithInput(msgs []hosts.Message, env ...string) *helperProcess {
	w.t.Helper()
	f := &helperProcess{w: w, msgs: make(chan hosts.Message, 4096)}
	f.cmd = exec.Command(filepath.Join(w.base, "bin", "dcs-tui-test"), wordHost)
	f.cmd.Env = slices.Concat(os.Environ(), w.env, env)
	f.cmd.Stderr = &f.stderr
	in, err1 := f.cmd.StdinPipe()
	out, err2 := f.cmd.StdoutPipe()
	must(w.t, errors.Join(err1, err2))
	f.in, f.stdout, f.out = in, out, wire.NewWriter(in)
	must(w.t, errors.Join(f.out.Write(msgs...), f.cmd.Start()))
	go func() {
		defer close(f.msgs)
		r := wire.NewReader(out)
		for {
			m, err := r.Read()
			if err != nil {
				f.readErr = err
				return
			}
			f.msgs <- m
		}
	}()
	w.t.Cleanup(func() {
		if !f.ended {
			f.crash()
		}
	})
	return f
}

// start starts a helper. If the test does not end it, the run is ended at the end of the test.
func (w *world) start(open *hosts.Open) *helperProcess {
	w.t.Helper()
	f := w.startProcess()
	f.send(open)
	f.hello = await(f, func(h *hosts.Hello) bool { return true })
	if f.hello.Error == "" && f.hello.FencedBy == 0 {
		f.ping(time.Hour)
		w.t.Cleanup(func() {
			if !f.ended && !w.t.Failed() {
				f.endRun()
			}
		})
	}
	return f
}

// mustNotStart starts a helper and checks that it reports an error with all of the words.
func (w *world) mustNotStart(open *hosts.Open, words ...string) {
	w.t.Helper()
	text := w.start(open).hello.Error
	for _, word := range words {
		if !strings.Contains(text, word) {
			w.t.Errorf("error %q, want one about %q", text, word)
		}
	}
}

// startWith starts a helper with a number of slots.
func (w *world) startWith(slots int) *helperProcess {
	w.t.Helper()
	o := w.open()
	o.Slots = slots
	return w.start(o)
}

func (f *helperProcess) send(msgs ...hosts.Message) {
	f.w.t.Helper()
	if err := f.out.Write(msgs...); err != nil {
		f.w.t.Fatalf("to the helper: %v; it said %q", err, f.stderr.String())
	}
}

func (f *helperProcess) ping(lease time.Duration) {
	f.send(&hosts.Ping{Seq: 1, LeaseUptime: uptime() + lease})
}

func (f *helperProcess) launch(list ...hosts.LaunchJob) {
	f.w.t.Helper()
	f.send(&hosts.Launch{Epoch: 1, ExpireUptime: uptime() + time.Hour, Jobs: list})
}

// await returns the first message of type T that ok accepts. It keeps the other messages for later
// calls.
func await[T any, P interface {
	*T
	hosts.Message
}](f *helperProcess, ok func(P) bool) P {
	f.w.t.Helper()
	for i, m := range f.pending {
		if p, is := m.(P); is && ok(p) {
			f.pending = append(f.pending[:i:i], f.pending[i+1:]...)
			return p
		}
	}
	late := time.After(polltest.Patience)
	for {
		select {
		case m, open := <-f.msgs:
			if !open {
				f.w.t.Fatalf("the helper ended (%v) before it sent %T; it said %q; pending %s", f.readErr, *new(T),
					f.stderr.String(), show(f.pending))
			}
			if p, is := m.(P); is && ok(p) {
				return p
			}
			f.pending = append(f.pending, m)
		case <-late:
			f.w.t.Fatalf("no %T came; the helper said %q; pending %s", *new(T), f.stderr.String(), show(f.pending))
		}
	}
}

func show(msgs []hosts.Message) string {
	var b strings.Builder
	for _, m := range msgs {
		fmt.Fprintf(&b, "\n\t%s %+v", m.Kind(), m)
	}
	return b.String()
}

// hold launches a job that waits for release before it runs a command, and waits until the job
// runs and the helper has reported that.
func (f *helperProcess) hold(id, command string, more ...hosts.LaunchJob) {
	f.w.t.Helper()
	ready, gate := f.w.fifo("ready-"+id), f.w.fifo("gate-"+id)
	first := job(id, fmt.Sprintf("echo up > %s; read x < %s; %s", ready, gate, command))
	f.launch(append([]hosts.LaunchJob{first}, more...)...)
	f.w.receive(ready)
	f.started(id)
}

// release lets a job of hold continue.
func (w *world) release(id string) {
	w.t.Helper()
	w.say(filepath.Join(w.runDir, "gate-"+id))
}

// exit waits for the outcome of one attempt. Later calls can return it again.
func (f *helperProcess) exit(id string) jobs.Outcome {
	f.w.t.Helper()
	var o jobs.Outcome
	await(f, func(m *hosts.Exits) bool {
		for _, j := range m.Jobs {
			if j.Attempt.String() == id {
				o = j.Outcome
				f.pending = append(f.pending, m)
				return true
			}
		}
		return false
	})
	return o
}

// exits waits for the outcome of one attempt and checks its exit code.
func (f *helperProcess) exits(id string, want int) {
	f.w.t.Helper()
	if o := f.exit(id); o.Exit != want {
		f.w.t.Errorf("%s: %+v, want exit %d", id, o, want)
	}
}

// succeeds waits for the outcome of one attempt and checks that it is a success.
func (f *helperProcess) succeeds(id string) {
	f.w.t.Helper()
	if o := f.exit(id); !o.OK() {
		f.w.t.Errorf("%s: %+v, want success", id, o)
	}
}

// take waits for a message of type T that names attempt id, and removes that entry from the list of
// the message. The helper combines as many attempts as possible in one message, so take keeps the
// rest of the message for later calls.
func take[T, E any, P interface {
	*T
	hosts.Message
}](f *helperProcess, id string, list func(P) *[]E, of func(E) jobs.AttemptID) (whole T, e E) {
	f.w.t.Helper()
	m := await(f, func(m P) bool {
		l := list(m)
		i := slices.IndexFunc(*l, func(e E) bool { return of(e).String() == id })
		if i < 0 {
			return false
		}
		whole, e = *m, (*l)[i]
		*l = slices.Concat((*l)[:i], (*l)[i+1:])
		return true
	})
	if len(*list(m)) > 0 {
		f.pending = append(f.pending, m)
	}
	return whole, e
}

// identity returns the id of an attempt, for take.
func identity(id jobs.AttemptID) jobs.AttemptID { return id }

// started waits until the start of each attempt has been reported.
func (f *helperProcess) started(ids ...string) {
	f.w.t.Helper()
	for _, id := range ids {
		take(f, id, func(m *hosts.Started) *[]hosts.StartedJob { return &m.Jobs },
			func(j hosts.StartedJob) jobs.AttemptID { return j.Attempt })
	}
}

func (f *helperProcess) probed(id string) hosts.ProbedJob {
	f.w.t.Helper()
	_, p := take(f, id, func(m *hosts.Probed) *[]hosts.ProbedJob { return &m.Jobs },
		func(j hosts.ProbedJob) jobs.AttemptID { return j.Attempt })
	return p
}

func (f *helperProcess) probe(id string) hosts.ProbedJob {
	f.w.t.Helper()
	f.send(&hosts.Probe{Epoch: 1 << 20, Attempts: []jobs.AttemptID{attemptID(f.w.t, id)}})
	return f.probed(id)
}

// answers probes one attempt and checks the answer.
func (f *helperProcess) answers(id string, want hosts.Answer) {
	f.w.t.Helper()
	if p := f.probe(id); p.Answer != want {
		f.w.t.Errorf("%s is %+v, want %v", id, p, want)
	}
}

// hasExited probes one attempt and checks that it has ended with this exit code.
func (f *helperProcess) hasExited(id string, want int) {
	f.w.t.Helper()
	if p := f.probe(id); p.Answer != hosts.HasExited || p.Outcome.Exit != want {
		f.w.t.Errorf("%s is %+v, want exit %d", id, p, want)
	}
}

// kill sends a command that ends one attempt.
func (f *helperProcess) kill(id string) {
	f.w.t.Helper()
	f.send(&hosts.Kill{Epoch: 1, Attempts: []jobs.AttemptID{attemptID(f.w.t, id)}, Why: "asked"})
}

func (f *helperProcess) withdrawn(id string) {
	f.w.t.Helper()
	take(f, id, func(m *hosts.Withdrawn) *[]jobs.AttemptID { return &m.Attempts }, identity)
}

// refused returns the whole message that refuses an attempt.
func (f *helperProcess) refused(id string) hosts.Refused {
	f.w.t.Helper()
	m, _ := take(f, id, func(m *hosts.Refused) *[]jobs.AttemptID { return &m.Attempts }, identity)
	return m
}

// refusedFor checks the reason for which an attempt is refused, and which devices it lacks.
func (f *helperProcess) refusedFor(id, why string, gpus ...int) {
	f.w.t.Helper()
	if m := f.refused(id); !strings.Contains(m.Why, why) || !slices.Equal(m.GPUs, gpus) {
		f.w.t.Errorf("%s is refused with %+v, want %q and the GPUs %v", id, m, why, gpus)
	}
}

// settled probes one attempt until it is certain what became of it.
func (f *helperProcess) settled(id string) (p hosts.ProbedJob) {
	f.w.t.Helper()
	polltest.Until(f.w.t, id+" is settled", func() bool {
		p = f.probe(id)
		return p.Answer >= hosts.HasExited
	})
	return p
}

// heartbeat waits for a heartbeat that was made after the call and that ok accepts. An older
// heartbeat could satisfy ok with an outdated state.
func (f *helperProcess) heartbeat(ok func(*hosts.Heartbeat) bool) *hosts.Heartbeat {
	f.w.t.Helper()
	from := uptime()
	return await(f, func(b *hosts.Heartbeat) bool { return b.Uptime >= from && ok(b) })
}

// crash ends the helper with SIGKILL.
func (f *helperProcess) crash() {
	f.w.t.Helper()
	f.cmd.Process.Kill()
	f.cmd.Wait()
	f.ended = true
}

// wait waits until the helper has exited by itself, and returns the result of Wait.
func (f *helperProcess) wait() error {
	f.w.t.Helper()
	late := time.AfterFunc(polltest.Patience, func() { f.cmd.Process.Kill() })
	for m := range f.msgs {
		f.pending = append(f.pending, m)
	}
	f.ended = true
	err := f.cmd.Wait()
	if !late.Stop() {
		f.w.t.Fatalf("the helper did not end; pending %s", show(f.pending))
	}
	return err
}

// endRun ends the run on the host and waits until the helper has ended.
func (f *helperProcess) endRun() {
	f.w.t.Helper()
	f.send(&hosts.Bye{End: true})
	for m := range f.msgs {
		f.pending = append(f.pending, m)
	}
	if err := f.cmd.Wait(); err != nil {
		f.w.t.Errorf("the helper ended with %v: %q", err, f.stderr.String())
	}
	f.ended = true
	for _, m := range f.pending {
		if m, ok := m.(*hosts.Trouble); ok && strings.Contains(m.Text, "died") && !f.mayDie {
			f.w.t.Errorf("trouble: %s", m.Text)
		}
	}
	if _, err := os.Stat(f.w.spool().dir); !os.IsNotExist(err) {
		f.w.t.Errorf("the spool is still there after Bye: %v", err)
	}
}

// testLimits returns the default limits, unless a test has set others for the processes that it
// starts. The silence limit is long because tests send only one ping and may wait on a busy
// machine. Heartbeats are frequent because tests wait for them.
func testLimits() limits {
	limits := defaultLimits
	limits.silence = 2 * polltest.Patience
	limits.heartbeat = 100 * time.Millisecond
	for name, d := range map[string]*time.Duration{silenceEnv: &limits.silence, nowhereEnv: &limits.storeTimeout,
		heartbeatEnv: &limits.heartbeat, lastSlotEnv: &limits.lastSlot} {
		if v, err := time.ParseDuration(os.Getenv(name)); err == nil {
			*d = v
		}
	}
	// Owners are looked for on a simulated machine. See world.machine.
	if exe, err := os.Executable(); err == nil {
		limits.site = site{filepath.Join(filepath.Dir(exe), "../../machine"), os.Getuid(), -1}
	}
	return limits
}

const (
	silenceEnv   = "TEST_SILENCE"
	nowhereEnv   = "TEST_NOWHERE"
	heartbeatEnv = "TEST_HEARTBEAT"
	devEnv       = "TEST_DEV"
	freshEnv     = "TEST_GPU_FRESH"
	vmstatEnv    = "TEST_VMSTAT"
	lastSlotEnv  = "TEST_LAST_SLOT"
	timeoutEnv   = "TEST_TIMEOUT" // no timeout of a job passes before this file exists
	patientEnv   = "TEST_PATIENT" // directories and supervisors get all the time that they need
	hangEnv      = "TEST_HANG"    // NAME:FILE: the creation of NAME hangs until FILE exists
)

// hangCreation makes the creation of a file hang, as on a file system that does not respond, until
// another file exists.
func hangCreation(name, file string) {
	fault = func(op, path string, done bool) error {
		if op == "create" && path == name && !done {
			polltest.Within(24*time.Hour, func() bool { _, err := os.Stat(file); return err == nil })
		}
		return nil
	}
}

// holdTimeouts holds the timeouts of jobs until a file exists.
func holdTimeouts(file string) {
	jobTimer = func(d time.Duration, f func()) *time.Timer {
		return time.AfterFunc(d, func() {
			polltest.Within(24*time.Hour, func() bool { _, err := os.Stat(file); return err == nil })
			f()
		})
	}
}

// TestMain runs the test binary as the program on the host if its first argument begins with "__".
func TestMain(m *testing.M) {
	// Tools, processes, and files answer in tests, though late on a busy machine. A test of another package
	// may make a process hang for a while.
	gpuTimeout, procTimeout, firstOwnerTimeout = polltest.Patience, polltest.Patience, polltest.Patience
	if len(os.Args) > 1 && strings.HasPrefix(os.Args[1], "__") {
		plantFault(os.Args[1])
		devDir = cmp.Or(os.Getenv(devEnv), devDir)
		if d, err := time.ParseDuration(os.Getenv(freshEnv)); err == nil {
			gpuFresh = d
		}
		vmstatFile = cmp.Or(os.Getenv(vmstatEnv), vmstatFile)
		if os.Getenv(patientEnv) != "" {
			stopTimeout, fullTimeout, leaveTimeout = polltest.Patience, polltest.Patience, polltest.Patience
		}
		if file := os.Getenv(timeoutEnv); file != "" {
			holdTimeouts(file)
		}
		if name, file, ok := strings.Cut(os.Getenv(hangEnv), ":"); ok {
			hangCreation(name, file)
		}
		if step, err := time.ParseDuration(os.Getenv(stepEnv)); err == nil {
			setClockAtEachLook(step)
		}
		os.Exit(runWord(os.Args[1:], testLimits()))
	}
	// With -race, each of our processes would otherwise sleep for a second when it exits.
	os.Setenv("GORACE", "atexit_sleep_ms=0 "+os.Getenv("GORACE"))
	flag.Parse()
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue { // the tests mostly wait
		f.Value.Set("8")
	}
	os.Exit(m.Run())
}
