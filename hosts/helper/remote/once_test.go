//go:build linux

package remote

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
	"dcs-tui/jobs/attempts"
)

// P2: a launch repeated at once, after the end, and through a second helper
// starts the job once.
func TestClaimPreventsSecondStart(t *testing.T) {
	w := newWorld(t)
	gate := w.fifo("gate")
	ready := w.fifo("ready")
	count := filepath.Join(w.runDir, "count")
	j := job("17.2", "echo x >> "+count+"; echo up > "+ready+"; read x < "+gate)
	f := w.start(w.open())
	f.launch(j, j)
	w.hear(ready)
	f.launch(j)
	if p := f.probed("17.2"); p.Answer != hosts.Buffered && p.Answer != hosts.IsRunning {
		t.Errorf("answer to a repeat: %v", p.Answer)
	}
	w.say(gate)
	f.exit("17.2")
	f.pending = nil
	f.launch(j) // after its end
	if o := f.exit("17.2"); !o.OK() {
		t.Errorf("the repeat was answered with %+v", o)
	}
	f.kill9()
	g := w.start(w.open())
	g.launch(j) // replayed to another helper
	if o := g.exit("17.2"); !o.OK() {
		t.Errorf("the replay was answered with %+v", o)
	}
	if b, _ := os.ReadFile(count); string(b) != "x\n" {
		t.Errorf("the job ran %d times", strings.Count(string(b), "x"))
	}
	g.bye()
}

// A launch that is repeated too late does not take back what came in time.
func TestExpiredRepeat(t *testing.T) {
	w := newWorld(t)
	gate, ready := w.fifo("gate"), w.fifo("ready")
	j := job("1.1", "echo up > "+ready+"; read x < "+gate)
	f := w.start(w.open())
	f.launch(j)
	w.hear(ready)
	f.send(&hosts.Launch{Epoch: 1, ExpireUptime: uptime() - 1, Jobs: []hosts.LaunchJob{j, job("2.1", "true")}})
	f.refused("2.1")
	if p := f.probed("1.1"); p.Answer != hosts.IsRunning && p.Answer != hosts.Buffered {
		t.Errorf("%+v", p)
	}
	w.say(gate)
	f.exit("1.1")
	for _, m := range f.pending {
		if r, ok := m.(*hosts.Refused); ok {
			t.Errorf("%+v", r)
		}
	}
	f.bye()
}

// Each attempt of a launch is refused for its own reason.
func TestEachRefusalHasItsReason(t *testing.T) {
	w := newWorld(t)
	f := w.start(w.open())
	bad := hosts.LaunchJob{Attempt: jobs.AttemptID{Job: 0, N: 1}, Command: "true"}
	worse := hosts.LaunchJob{Attempt: jobs.AttemptID{Job: 3, N: 0}, Command: "true"}
	f.launch(bad, job("2.1", "true"), worse)
	for _, j := range []hosts.LaunchJob{bad, worse} {
		if m := f.refused(j.Attempt.String()); !strings.Contains(m.Why, j.Attempt.String()+" is not an attempt") {
			t.Errorf("%s is refused: %s", j.Attempt, m.Why)
		}
	}
	if o := f.exit("2.1"); !o.OK() {
		t.Errorf("%+v", o)
	}
	f.bye()
}

// DESIGN 5: a launch that was held up on its way is refused.
func TestExpiredLaunchRefused(t *testing.T) {
	w := newWorld(t)
	f := w.start(w.open())
	f.send(&hosts.Launch{Epoch: 1, ExpireUptime: uptime() - 1, Jobs: []hosts.LaunchJob{job("1.1", "true")}})
	if m := f.refused("1.1"); m.FencedBy != 0 || !strings.Contains(m.Why, "too late") {
		t.Errorf("refused with %+v", m)
	}
	if p := f.probe("1.1"); p.Answer != hosts.NeverStarted {
		t.Errorf("answer %v, want never started", p.Answer)
	}
	f.bye()
}

// DESIGN 5: what waits beyond its lease never starts, though the slot is free.
func TestLeaseRunsOut(t *testing.T) {
	w := newWorld(t)
	gate, ready := w.fifo("gate"), w.fifo("ready")
	open := w.open()
	open.Slots = 1
	f := w.start(open)
	f.launch(job("1.1", "echo up > "+ready+"; read x < "+gate), job("2.1", "echo ran > "+filepath.Join(w.runDir, "ran")))
	w.hear(ready)
	f.probe("2.1") // the whole launch is in the spool
	f.kill9()
	// The lease is in the shared page; nobody but the helper sets it.
	ctl, err := openControl(w.spool().dir)
	if err != nil {
		t.Fatal(err)
	}
	ctl.at(ctlLease).Store(1)
	w.say(gate)
	g := w.start(w.open())
	for { // its report may have been lost with the last that had the pipe open: ask
		p := g.probe("1.1")
		if p.Answer == hosts.HasExited && p.Outcome.OK() {
			break
		}
		if p.Answer != hosts.IsRunning {
			t.Fatalf("the running job: %+v", p)
		}
		g.exit("1.1")
	}
	// Withdrawn by the new helper, or found lapsed by the supervisor before that.
	if p := g.probe("2.1"); p.Answer != hosts.NeverStarted {
		t.Errorf("answer %v, want never started", p.Answer)
	}
	if _, err := os.Stat(filepath.Join(w.runDir, "ran")); err == nil {
		t.Error("a job started after its lease")
	}
	g.bye()
}

// B3: what is withdrawn never starts.
func TestWithdrawnNeverStarts(t *testing.T) {
	w := newWorld(t)
	gate, ready := w.fifo("gate"), w.fifo("ready")
	open := w.open()
	open.Slots = 1
	f := w.start(open)
	f.launch(job("1.1", "echo up > "+ready+"; read x < "+gate), job("2.1", "echo two"), job("3.1", "echo three"))
	w.hear(ready)
	f.send(&hosts.Withdraw{Epoch: 1, Attempts: []jobs.AttemptID{attemptID(t, "2.1")}})
	f.withdrawn("2.1")
	f.send(&hosts.Kill{Epoch: 1, Attempts: []jobs.AttemptID{attemptID(t, "3.1")}, Why: "asked"})
	f.withdrawn("3.1")
	w.say(gate)
	f.exit("1.1")
	for _, id := range []string{"2.1", "3.1"} {
		if _, err := os.Stat(w.file(id, jobs.FileOut)); !os.IsNotExist(err) {
			t.Errorf("%s left output: %v", id, err)
		}
		if p := f.probe(id); p.Answer != hosts.NeverStarted {
			t.Errorf("%s: %v, want never started", id, p.Answer)
		}
	}
	f.bye()
}

// DESIGN 5: "never started" comes with a tombstone that keeps a late launch out.
func TestTombstone(t *testing.T) {
	w := newWorld(t)
	f := w.start(w.open())
	if p := f.probe("5.1"); p.Answer != hosts.NeverStarted {
		t.Fatalf("answer %v, want never started", p.Answer)
	}
	if f := w.status("5.1"); f.State != attempts.NeverStarts {
		t.Errorf("status %+v: want a tombstone", f)
	}
	f.launch(job("5.1", "echo ran"))
	if p := f.probed("5.1"); p.Answer != hosts.NeverStarted {
		t.Errorf("after a late launch: %v, want never started", p.Answer)
	}
	if _, err := os.Stat(w.file("5.1", jobs.FileOut)); !os.IsNotExist(err) {
		t.Error("it ran")
	}
	f.bye()
}

// E7: a higher epoch shuts an older dispatcher out, at the hello and after it.
func TestEpochFence(t *testing.T) {
	w := newWorld(t)
	f := w.start(w.open())
	newer := w.open()
	newer.Epoch = 2
	g := w.start(newer)
	if g.hello.FencedBy != 0 {
		t.Fatalf("the newer one is fenced by %d", g.hello.FencedBy)
	}
	if m := await(f, func(m *hosts.Refused) bool { return true }); m.FencedBy != 2 || len(m.Attempts) > 0 {
		t.Errorf("the older one heard %+v, want fenced by 2 and no attempt", m)
	}
	f.wait()
	h := w.start(w.open())
	if h.hello.FencedBy != 2 {
		t.Errorf("hello %+v, want fenced by 2", h.hello)
	}
	g.bye()
}

// X1: the second helper adopts what runs, whatever became of the first, and what
// was buffered runs by its lease meanwhile.
func TestAdoption(t *testing.T) {
	w := newWorld(t)
	gate, ready := w.fifo("gate"), w.fifo("ready")
	open := w.open()
	open.Slots = 1
	f := w.start(open)
	f.launch(job("1.1", "echo up > "+ready+"; read x < "+gate+"; exit 3"),
		job("2.1", "echo second > "+ready+"; read x < "+gate+"; exit 4"), job("3.1", "exit 5"))
	if got := w.hear(ready); got != "up" {
		t.Fatalf("heard %q", got)
	}
	if p := f.probe("3.1"); p.Answer != hosts.Buffered { // the whole launch is in the spool
		t.Fatalf("3.1: %v", p.Answer)
	}
	f.kill9()
	write(t, w.spool().path(dirIn, specName(1, attemptID(t, "4.1"))), "DCS1 torn")
	w.say(gate)
	if got := w.hear(ready); got != "second" { // no helper is there
		t.Fatalf("heard %q", got)
	}
	g := w.start(open)
	await(g, func(m *hosts.Started) bool { return len(m.Jobs) == 1 && m.Jobs[0].Attempt.Job == 2 })
	g.withdrawn("4.1")
	if o := g.exit("1.1"); o.Exit != 3 { // reported while nobody listened
		t.Errorf("1.1: %+v, want exit 3", o)
	}
	if p := g.probe("2.1"); p.Answer != hosts.IsRunning || p.Slot != 1 {
		t.Errorf("2.1: %+v, want running in slot 1", p)
	}
	if p := g.probe("3.1"); p.Answer != hosts.Buffered {
		t.Errorf("3.1: %v, want buffered behind the old supervisor's job", p.Answer)
	}
	w.say(gate)
	if o := g.exit("2.1"); o.Exit != 4 {
		t.Errorf("2.1: %+v, want exit 4", o)
	}
	if o := g.exit("3.1"); o.Exit != 5 {
		t.Errorf("3.1: %+v, want exit 5", o)
	}
	g.bye()
}

// D7: a lower limit lets what runs finish and starts no more than it allows.
func TestLimit(t *testing.T) {
	w := newWorld(t)
	gate, ready := w.fifo("gate"), w.fifo("ready")
	f := w.start(w.open())
	f.launch(job("1.1", "echo up > "+ready+"; read x < "+gate), job("2.1", "echo up > "+ready+"; read x < "+gate))
	w.hearTimes(ready, 2)
	f.send(&hosts.Limit{Slots: 0})
	f.launch(job("3.1", "exit 1"))
	w.say(gate)
	w.say(gate)
	f.exit("1.1")
	f.exit("2.1")
	if p := f.probe("3.1"); p.Answer != hosts.Buffered {
		t.Errorf("3.1 is %v under a limit of 0, want buffered", p.Answer)
	}
	f.send(&hosts.Limit{Slots: 1})
	if o := f.exit("3.1"); o.Exit != 1 {
		t.Errorf("3.1: %+v", o)
	}
	f.bye()
}

// A lease that was never given lets nothing start, and Launch itself gives one
// until its own expiry.
func TestLaunchGivesLease(t *testing.T) {
	w := newWorld(t)
	f := w.start(w.open())
	f.send(&hosts.Launch{Epoch: 1, ExpireUptime: uptime() + time.Minute, Jobs: []hosts.LaunchJob{job("1.1", "exit 2")}})
	if o := f.exit("1.1"); o.Exit != 2 {
		t.Errorf("%+v", o)
	}
	f.bye()
}
