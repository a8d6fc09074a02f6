//go:build linux

package remote

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"dcs-tui/hosts"
	"dcs-tui/internal/polltest"
	"dcs-tui/jobs"
	"dcs-tui/jobs/attempts"
)

// TestSecondClaimLoses checks that the second claim of an attempt loses, on a local and on a
// network file system (P2). On a network file system, a repeated claim of the same process wins if
// the reply to its first call was lost.
func TestSecondClaimLoses(t *testing.T) {
	for _, network := range []bool{false, true} {
		dir := t.TempDir()
		fd, err := openat(unix.AT_FDCWD, dir, unix.O_RDONLY|unix.O_DIRECTORY, 0)
		must(t, err)
		defer unix.Close(fd)
		temp := func() string {
			if !network {
				return ""
			}
			return tempNames{dir, "a", holder{1, 2, 3}}.path()
		}
		mine := attempts.Claim{Run: "r", Attempt: jobs.AttemptID{Job: 1, N: 1}, Host: "a", By: holder{1, 2, 3}.String(),
			Boot: "b", At: 4}
		other := mine
		other.Host = "c"
		claim := func(c *attempts.Claim) error {
			status, err := makeClaim(fd, temp(), c)
			if err == nil {
				b := make([]byte, attempts.StatusBytes+1)
				if n, err := preadAll(status, "status", b); err != nil || string(b[:n]) != string(c.Encode()) {
					t.Errorf("network %v: opened a file with %q, %v", network, b[:n], err)
				}
				unix.Close(status)
			}
			return err
		}
		if err := claim(&mine); err != nil {
			t.Fatalf("network %v: %v", network, err)
		}
		if err := claim(&other); !errors.Is(err, errClaimed) {
			t.Errorf("network %v: a second claim gave %v", network, err)
		}
		if err := claim(&mine); err != nil {
			t.Errorf("our own claim again: %v", err)
		}
		must(t, buryClaim(fd, mine))
		b, _ := os.ReadFile(filepath.Join(dir, "1.1.status"))
		if f := attempts.Decode(b, "r", mine.Attempt); f.State != attempts.NeverStarts || f.Host != "a" {
			t.Errorf("network %v: buried claim %q", network, b)
		}
		if names, _ := os.ReadDir(dir); len(names) != 1 {
			t.Errorf("network %v: %v is left", network, names)
		}
	}
}

// TestTakenIsNotStarted checks that an attempt whose supervisor has not made the claim yet, as on a full
// or hung disk, counts as waiting for its own helper and the next one: a start is never reported before
// the claim exists. Later it runs once.
func TestTakenIsNotStarted(t *testing.T) {
	gate := filepath.Join(t.TempDir(), "gate")
	w := newWorld(t, hangEnv+"=1.1.status:"+gate)
	f := w.start(w.open())
	f.launch(job("1.1", "exit 3"))
	polltest.Until(t, "the attempt is taken", func() bool {
		names, err := os.ReadDir(w.spool().path(dirTaken))
		return err == nil && len(names) == 1
	})
	f.crash()
	f = w.start(w.open())
	f.answers("1.1", hosts.Buffered)
	f.launch(job("1.1", "exit 4")) // a copy
	if p := f.probed("1.1"); p.Answer != hosts.Buffered {
		t.Errorf("the answer to a copy of the launch is %+v", p)
	}
	f.send(&hosts.Withdraw{Epoch: 1, Attempts: []jobs.AttemptID{attemptID(t, "1.1")}})
	if p := f.probed("1.1"); p.Answer != hosts.Buffered {
		t.Errorf("the answer to a withdrawal that came too late is %+v", p)
	}
	for _, m := range f.pending {
		if m, ok := m.(*hosts.Started); ok {
			t.Errorf("reported without a claim: %+v", m)
		}
	}
	write(t, gate, "")
	f.exits("1.1", 3)
}

// TestJobThatEndsDuringTheScan checks that an attempt that is claimed or ends while the answer to a probe
// is sought does not count as waiting: the dispatcher would end what it left behind, which may be to be
// kept.
func TestJobThatEndsDuringTheScan(t *testing.T) {
	w := newWorld(t)
	h, c := w.helperWithoutProcess()
	for _, step := range []struct {
		content string
		want    hosts.Answer
	}{{"", hosts.Buffered}, {string(c.Encode()), hosts.IsRunning},
		{string(c.EncodeFinished(1, jobs.Outcome{Started: 1, Ended: 2})), hosts.HasExited}} {
		p, o := hosts.ProbedJob{Attempt: c.Attempt}, openFate{holds: true, held: true}
		remove(w.file("1.1", jobs.FileStatus))
		if !h.readAnswer(&p, &o) {
			t.Fatalf("the answer without a claim is %+v", p)
		}
		if step.content != "" {
			write(t, w.file("1.1", jobs.FileStatus), step.content)
		}
		if h.conclude(&p, &o, nil, pgroup{}, true); p.Answer != step.want {
			t.Errorf("the answer is %+v, want %v", p, step.want)
		}
	}
}

// TestProberJudgesByFiles checks that a prober judges by files alone and reports an attempt as dead
// only on proof.
func TestProberJudgesByFiles(t *testing.T) {
	w := newWorld(t)
	f := w.start(w.open())
	mine := w.claim("1.1", "melon1")
	rebooted, elsewhere := mine, mine
	rebooted.Boot = "another"
	elsewhere.Host = "melon2"
	good := mine.EncodeFinished(1, jobs.Outcome{Exit: 3, Started: 1, Ended: 2})
	bad := bytes.Clone(good)
	bad[attempts.SentinelAt+20] ^= 1
	for _, c := range []struct {
		name   string
		status []byte
		want   hosts.Answer
		why    string
	}{
		{"sentinel", good, hosts.HasExited, ""},
		{"no sentinel, supervisor gone", mine.Encode(), hosts.Dead, "supervisor died"},
		{"damaged sentinel", bad, hosts.Dead, "sentinel is damaged"},
		{"cut behind the claim", good[:attempts.SentinelAt], hosts.Dead, "sentinel is damaged"},
		{"torn while it was filled", append(bytes.Clone(good[:700]), make([]byte, attempts.StatusBytes-700)...),
			hosts.Dead, "sentinel is damaged"},
		{"rebooted", rebooted.Encode(), hosts.Dead, "rebooted"},
		{"another host's", elsewhere.Encode(), hosts.Unknown, "melon2"},
		{"empty", nil, hosts.Dead, "claim is damaged"},
		{"only zeros", make([]byte, attempts.StatusBytes), hosts.Dead, "claim is damaged"},
	} {
		w.put("1.1", jobs.FileStatus, c.status)
		if p := f.probe("1.1"); p.Answer != c.want || !strings.Contains(p.Why, c.why) {
			t.Errorf("%s: %v (%s), want %v (%s)", c.name, p.Answer, p.Why, c.want, c.why)
		}
	}
}

// TestWaitingJobDoesNotSurviveAReboot checks that a job that was waiting when the host rebooted
// never starts, because its lease belongs to the clock of another boot, as does the last search for
// processes.
func TestWaitingJobDoesNotSurviveAReboot(t *testing.T) {
	w := newWorld(t)
	f := w.startWith(1)
	f.hold("1.1", "exit 0", job("2.1", "echo two"))
	f.probe("2.1") // the whole launch is in the spool
	f.crash()
	write(t, w.spool().path(fileBoot), "another\n")
	w.control().word(ctlSearched).Store(1 << 50)
	g := w.startWith(1)
	g.withdrawn("2.1")
	if n := w.control().word(ctlSearched).Load(); n != 0 {
		t.Errorf("the last search is %d", n)
	}
	w.release("1.1")
	g.exit("1.1")
	g.answers("2.1", hosts.NeverStarted)
}

// TestSupervisorsShareAHeartbeatFile checks that all supervisors of a host write one heartbeat
// file.
func TestSupervisorsShareAHeartbeatFile(t *testing.T) {
	dir := t.TempDir()
	must(t, os.Mkdir(filepath.Join(dir, "attempts"), 0o700))
	ctl, err := openControl(dir)
	must(t, err)
	w := &watch{slot: &slot{control: ctl, config: &slotConfig{Dir: dir, Host: "melon1", Boot: "b"}}}
	read := func() string {
		b, err := os.ReadFile(attempts.HeartbeatFile(dir, "melon1"))
		must(t, err)
		return string(b)
	}
	before := uptime()
	w.writeHeartbeatFile()
	first := read()
	if at := ctl.word(ctlHeartbeat).Load(); at < int64(before) || at > int64(uptime()) {
		t.Errorf("written at %d, and it was %d before", at, before)
	}
	// The interval is not over, however slow we are.
	ctl.word(ctlHeartbeat).Store(int64(uptime() + 360*heartbeatFileInterval))
	w.writeHeartbeatFile()
	if read() != first || !strings.HasSuffix(first, " b\n") {
		t.Errorf("touched twice within %v, or wrong: %q, %q", heartbeatFileInterval, first, read())
	}
	ctl.word(ctlHeartbeat).Store(int64(uptime() - heartbeatFileInterval))
	w.writeHeartbeatFile()
	if read() <= first {
		t.Errorf("%q does not follow %q", read(), first)
	}
}

// TestClaimPreventsSecondStart checks that a job starts once if its launch is repeated at once,
// after the end of the job, and through a second helper (P2).
func TestClaimPreventsSecondStart(t *testing.T) {
	w := newWorld(t)
	gate := w.fifo("gate")
	ready := w.fifo("ready")
	count := filepath.Join(w.runDir, "count")
	j := job("17.2", "echo x >> "+count+"; echo up > "+ready+"; read x < "+gate)
	f := w.start(w.open())
	f.launch(j, j)
	w.receive(ready)
	f.launch(j)
	if p := f.probed("17.2"); p.Answer != hosts.Buffered && p.Answer != hosts.IsRunning {
		t.Errorf("answer to a repeat: %v", p.Answer)
	}
	w.say(gate)
	f.exit("17.2")
	f.pending = nil
	f.launch(j) // after its end
	f.succeeds("17.2")
	f.crash()
	g := w.start(w.open())
	g.launch(j) // repeated through another helper
	g.succeeds("17.2")
	if b, _ := os.ReadFile(count); string(b) != "x\n" {
		t.Errorf("the job ran %d times", strings.Count(string(b), "x"))
	}
}

// TestLaunchGrantsItsLease checks that a launch grants the lease itself, and that one that arrives
// too late is refused. Such a repeat does not withdraw the launch that arrived in time.
func TestLaunchGrantsItsLease(t *testing.T) {
	w := newWorld(t)
	gate, ready := w.fifo("gate"), w.fifo("ready")
	j := job("1.1", "echo up > "+ready+"; read x < "+gate)
	f := w.start(w.open())
	f.probe("9.1") // the lease of the first ping is in effect
	w.control().word(ctlLease).Store(1)
	f.launch(j)
	w.receive(ready)
	f.send(&hosts.Launch{Epoch: 1, ExpireUptime: uptime() - 1, Jobs: []hosts.LaunchJob{j, job("2.1", "true")}})
	if m := f.refused("2.1"); m.FencedBy != 0 || len(m.Attempts) != 1 || !strings.Contains(m.Why, "too late") {
		t.Errorf("refused with %+v", m)
	}
	if p := f.probed("1.1"); p.Answer != hosts.IsRunning && p.Answer != hosts.Buffered {
		t.Errorf("Probe: got %+v, want it running or buffered", p)
	}
	f.answers("2.1", hosts.NeverStarted)
	w.say(gate)
	f.succeeds("1.1")
}

// TestEachRefusalHasItsReason checks that each attempt of a launch is refused with its own reason.
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
	f.succeeds("2.1")
}

// TestLeaseRunsOut checks that a job whose lease expires while it waits never starts, even if the
// slot is free.
func TestLeaseRunsOut(t *testing.T) {
	w := newWorld(t)
	f := w.startWith(1)
	f.hold("1.1", "exit 0", job("2.1", "echo ran > "+filepath.Join(w.runDir, "ran")))
	f.probe("2.1") // the whole launch is in the spool
	f.crash()
	w.control().word(ctlLease).Store(1) // only the helper sets it
	w.release("1.1")
	g := w.start(w.open())
	if p := g.settled("1.1"); p.Answer != hosts.HasExited || !p.Outcome.OK() {
		t.Errorf("the running job: %+v", p)
	}
	// Either the new helper withdraws the job, or the supervisor has already found its lease
	// expired.
	g.answers("2.1", hosts.NeverStarted)
	if _, err := os.Stat(filepath.Join(w.runDir, "ran")); err == nil {
		t.Error("a job started after its lease")
	}
}

// TestWithdrawnNeverStarts checks that a withdrawn job never starts (B3).
func TestWithdrawnNeverStarts(t *testing.T) {
	w := newWorld(t)
	f := w.startWith(1)
	f.hold("1.1", "exit 0", job("2.1", "echo two"), job("3.1", "echo three"))
	f.send(&hosts.Withdraw{Epoch: 1, Attempts: []jobs.AttemptID{attemptID(t, "2.1")}})
	f.withdrawn("2.1")
	f.kill("3.1")
	f.withdrawn("3.1")
	w.release("1.1")
	f.exit("1.1")
	for _, id := range []string{"2.1", "3.1"} {
		if _, err := os.Stat(w.file(id, jobs.FileOut)); !os.IsNotExist(err) {
			t.Errorf("%s left output: %v", id, err)
		}
		f.answers(id, hosts.NeverStarted)
	}
}

// TestTombstonePreventsALateStart checks that the answer "never started" leaves a tombstone that
// keeps a late launch from starting.
func TestTombstonePreventsALateStart(t *testing.T) {
	w := newWorld(t)
	f := w.start(w.open())
	f.answers("5.1", hosts.NeverStarted)
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
}

// TestHigherEpochFences checks that a higher epoch fences an older dispatcher, at the hello and
// after it (E7).
func TestHigherEpochFences(t *testing.T) {
	w := newWorld(t)
	f := w.start(w.open())
	newer := w.open()
	newer.Epoch = 2
	g := w.start(newer)
	if g.hello.FencedBy != 0 {
		t.Fatalf("the newer one is fenced by %d", g.hello.FencedBy)
	}
	if m := await(f, func(m *hosts.Refused) bool { return true }); m.FencedBy != 2 || len(m.Attempts) > 0 {
		t.Errorf("the older one received %+v, want fenced by 2 and no attempt", m)
	}
	f.wait()
	h := w.start(w.open())
	if h.hello.FencedBy != 2 {
		t.Errorf("hello %+v, want fenced by 2", h.hello)
	}
}

// TestSecondHelperAdoptsJobs checks that the second helper adopts the running jobs of the first,
// however the first ended, and that buffered jobs run within their lease in the meantime (X1).
func TestSecondHelperAdoptsJobs(t *testing.T) {
	w := newWorld(t)
	gate, ready := w.fifo("gate"), w.fifo("ready")
	f := w.startWith(1)
	f.launch(job("1.1", "echo up > "+ready+"; read x < "+gate+"; exit 3"),
		job("2.1", "echo second > "+ready+"; read x < "+gate+"; exit 4"), job("3.1", "exit 5"))
	if got := w.receive(ready); got != "up" {
		t.Fatalf("received %q", got)
	}
	if p := f.probe("3.1"); p.Answer != hosts.Buffered { // the whole launch is in the spool
		t.Fatalf("3.1: %v", p.Answer)
	}
	f.crash()
	write(t, w.spool().path(dirIn, specName(1, attemptID(t, "4.1"))), "DCS1 torn")
	w.say(gate)
	if got := w.receive(ready); got != "second" { // there is no helper now
		t.Fatalf("received %q", got)
	}
	g := w.startWith(1)
	g.started("2.1")
	g.withdrawn("4.1")
	g.exits("1.1", 3)
	if p := g.probe("2.1"); p.Answer != hosts.IsRunning || p.Slot != 1 {
		t.Errorf("2.1: %+v, want running in slot 1", p)
	}
	g.answers("3.1", hosts.Buffered)
	w.say(gate)
	g.exits("2.1", 4)
	g.exits("3.1", 5)
}

// TestFenceRejectsAllOlderEpochs checks that a fence rejects all older epochs, although only the
// newest mark is kept (E7).
func TestFenceRejectsAllOlderEpochs(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		epoch, by int
		marks     []int
	}{
		{1, 0, []int{1}}, {1, 0, []int{1}}, {2, 0, []int{2}}, {3, 0, []int{3}}, {1, 3, []int{3}}, {2, 3, []int{3}}, {7,
			0, []int{7}}, {3, 7, []int{7}},
	} {
		by, err := passFence(dir, &hosts.Open{Run: "r", Host: "h", Epoch: c.epoch})
		if err != nil || by != c.by {
			t.Errorf("epoch %d: fenced by %d, %v; want %d", c.epoch, by, err, c.by)
		}
		marks, err := listEpochs(dir)
		slices.Sort(marks)
		if err != nil || !slices.Equal(marks, c.marks) {
			t.Errorf("after epoch %d: %v, %v; want %v", c.epoch, marks, err, c.marks)
		}
	}
}

// TestMachineKeepsItsID checks that a machine keeps its id for a host of a run, even if its
// directory of the run is removed while it runs attempts. The machine can still report these
// attempts. Two machines that share work_dir have two ids, and a check has no id.
func TestMachineKeepsItsID(t *testing.T) {
	w := newWorld(t)
	f := w.start(w.open())
	id := f.hello.Machine
	if random, system, ok := strings.Cut(id, "-"); !ok || len(random) != 16 || len(system) != 8 {
		t.Fatalf("id %q", id)
	}
	ready, gate := w.fifo("ready"), w.fifo("gate")
	f.launch(job("1.1", "echo >"+ready+"; read x <"+gate))
	w.receive(ready)
	f.crash()
	must(t, os.RemoveAll(filepath.Join(w.workDir, w.run)))
	g := w.start(w.open())
	if g.hello.Machine != id {
		t.Errorf("id %q after its directory of the run was removed, want %q", g.hello.Machine, id)
	}
	g.answers("1.1", hosts.IsRunning)
	w.say(gate)
	g.exit("1.1")
	g.crash()

	// A host with another name that shares work_dir has another id.
	open := w.open()
	open.Host = "melon2"
	h := w.start(open)
	if h.hello.Machine == id || h.hello.Machine == "" {
		t.Errorf("id %q of another host that shares work_dir, want another one than %q", h.hello.Machine, id)
	}
	h.crash()
	open = w.open()
	open.Check = true
	h = w.start(open)
	if h.hello.Machine != "" {
		t.Errorf("a check has the id %q", h.hello.Machine)
	}
	h.crash()

	// Another machine with the same name has neither the note nor the spool.
	other := newWorld(t)
	other.run = w.run
	write(t, filepath.Join(other.runDir, "nonce"), "nonce-"+w.run+"\n")
	h = other.start(other.open())
	if h.hello.Machine == id {
		t.Errorf("another machine has the same id %q", id)
	}
	h.endRun()
	w.start(w.open()).endRun()
}
