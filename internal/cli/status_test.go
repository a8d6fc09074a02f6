package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"dcs-tui/dispatch/run"
	"dcs-tui/dispatch/sched"
	"dcs-tui/hosts"
	"dcs-tui/jobs"
	"dcs-tui/jobs/live"
	"dcs-tui/jobs/rundir/disktest"
	"dcs-tui/observe/runview"
)

// TestWhatRunsWithoutADispatcherIsUnknown checks the status of a run without a dispatcher: what
// runs, and for how long, is unknown. No clock advances, and a job that was only sent to a host may
// have begun.
func TestWhatRunsWithoutADispatcherIsUnknown(t *testing.T) {
	spec := func(id jobs.ID, command string) *jobs.Spec { return &jobs.Spec{ID: id, Command: command} }
	table := &jobs.Table{Jobs: []jobs.Job{
		{Spec: spec(1, "one"), State: jobs.Running,
			Attempts: []*jobs.Attempt{{ID: jobs.AttemptID{Job: 1, N: 1}, Host: "a", State: jobs.AttemptRunning,
				Started: jobs.StampOf(time.Now().Add(-time.Hour))}}},
		{Spec: spec(2, "two"), State: jobs.Running,
			Attempts: []*jobs.Attempt{{ID: jobs.AttemptID{Job: 2, N: 1}, Host: "a", State: jobs.AttemptLaunching}}},
	}}
	table.Counts[jobs.Running] = 2
	copied := table.Jobs[0]
	copied.Attempts = append(slices.Clip(copied.Attempts), &jobs.Attempt{ID: jobs.AttemptID{Job: 1, N: 2}, Host: "b",
		State: jobs.AttemptLaunching})
	if got := strings.Join(openLines(&jobs.Table{Jobs: []jobs.Job{copied}}, nil, true), "\n"); !strings.Contains(got,
		"1.1     a  1h 00m, 1 copy  one") {
		t.Errorf("the copy is missing in\n%s", got)
	}
	live, left := strings.Join(openLines(table, nil, true), "\n"), strings.Join(openLines(table, nil, false), "\n")
	checkContains(t, live, "running\n", "1.1     a  1h 00m  one", "2.1     a  sent  two")
	began := table.Jobs[0].Attempts[0].Started.Time().Local().Format("2006-01-02 15:04:05")
	checkContains(t, left, "may run, without a dispatcher\n", "1.1     a  since "+began+"  one",
		"2.1     a  may have started  two")
	held := heldState()
	checkContains(t, strings.Join(openLines(table, held, true), "\n"), "1.1     a  1h 00m, suspended  one")
	checkContains(t, summaryLines(newConsole(os.Stdout), table, held, true)[0], ": 1 suspended, 1 sent")
	p := runview.ProgressOf(table, nil)
	same(t, "Counts", p.Counts(), "0 of 2 ok, 2 may run")
	p.Status = runview.StatusRunning
	same(t, "Counts", p.Counts(), "0 of 2 ok, 1 running, 1 sent")
}

// heldState returns what a dispatcher publishes whose host a suspends its job for a person.
func heldState() *live.State {
	return &live.State{Hosts: []live.Host{{Name: "a", Linked: true, HostStatus: jobs.HostStatus{State: jobs.HostUp,
		Hold: jobs.HeldByOwner, Reason: "starts nothing: alice uses the screen; jobs there are suspended",
		Suspended: 1}}}}
}

// TestSuspendedAttemptsOfAHostAreNamed checks that the line of a host tells suspended attempts from
// those that run.
func TestSuspendedAttemptsOfAHostAreNamed(t *testing.T) {
	h := hostStatus{Name: "a", HostCount: runview.HostCount{Running: 3, Sent: 1},
		HostStatus: heldState().Hosts[0].HostStatus}
	h.Suspended = 2
	checkContains(t, strings.Join(hostLines([]hostStatus{h}), "\n"),
		"a  2 suspended, 1 sent, 0 ended; starts nothing: alice uses the screen; jobs there are suspended")
}

// TestStandbyOfADeadDispatcherIsNamed checks that the status of a run without a dispatcher names the
// standby that is about to take it over, but not that of a dispatcher that has ended by itself.
func TestStandbyOfADeadDispatcherIsNamed(t *testing.T) {
	watched := &live.State{Epoch: 2, Standby: "ws1"}
	for name, c := range map[string]struct {
		closed string // how the dispatcher ended
		last   *live.State
		want   string
	}{
		"died":           {"", watched, "; a standby on ws1 takes the run over when it has heard nothing for 30 s"},
		"ended":          {jobs.ClosedStopped, watched, ""},
		"no standby":     {"", &live.State{Epoch: 2}, ""},
		"of another one": {"", &live.State{Epoch: 1, Standby: "ws1"}, ""},
		"nothing known":  {"", nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			same(t, "text", takeoverText(&jobs.Table{Epoch: 2, Closed: jobs.Closing{How: c.closed}}, c.last), c.want)
		})
	}
}

// TestTimeOfARunExtendsToNow checks that the time of a run does not stand still while jobs run. If
// nobody dispatches the run, the time ends with the last known end.
func TestTimeOfARunExtendsToNow(t *testing.T) {
	began := jobs.StampOf(time.Now().Add(-time.Hour))
	table := &jobs.Table{Jobs: []jobs.Job{
		{Spec: &jobs.Spec{ID: 1, Options: jobs.NoOptions}, State: jobs.Succeeded,
			Attempts: []*jobs.Attempt{{State: jobs.AttemptExited,
				Outcome: &jobs.Outcome{Started: began, Ended: began + jobs.Stamp(2*time.Second)}}}},
		{Spec: &jobs.Spec{ID: 2, Options: jobs.NoOptions}, State: jobs.Running,
			Attempts: []*jobs.Attempt{{State: jobs.AttemptRunning, Started: began}}},
	}}
	table.Specs = []*jobs.Spec{table.Jobs[0].Spec, table.Jobs[1].Spec}
	table.Counts[jobs.Succeeded], table.Counts[jobs.Running] = 1, 1
	c := newConsole(os.Stderr)
	checkContains(t, summaryLines(c, table, nil, true)[0], "2 jobs in 1h 00m, first start to now:")
	checkContains(t, summaryLines(c, table, nil, false)[0], "2 jobs in 2.00 s, first start to last end:")
}

// TestStateOfEachQueueIsShown checks that the summary shows the state of each of several queues,
// with the share and the priority that its newest job set. For a single queue it shows nothing
// (K3).
func TestStateOfEachQueueIsShown(t *testing.T) {
	ran := func(d time.Duration) []*jobs.Attempt {
		return []*jobs.Attempt{{State: jobs.AttemptExited,
			Outcome: &jobs.Outcome{Started: 1, Ended: 1 + jobs.Stamp(d)}}}
	}
	job := func(st jobs.JobState, o jobs.Options, a []*jobs.Attempt) jobs.Job {
		return jobs.Job{Spec: &jobs.Spec{Options: &o}, State: st, Attempts: a}
	}
	table := &jobs.Table{Jobs: []jobs.Job{
		job(jobs.Succeeded, jobs.Options{Queue: "a", QueuePriority: new(-1), Slots: 2}, ran(30*time.Second)),
		job(jobs.TimedOut, jobs.Options{Queue: "a", Share: 2}, ran(time.Minute)),
	}}
	if lines := queueLines(table, true); lines != nil {
		t.Errorf("of a single queue: %q", lines)
	}
	table.Jobs = append(table.Jobs,
		job(jobs.Queued, jobs.Options{}, nil),
		job(jobs.Running, jobs.Options{Queue: "late\x1b[31m"}, nil),
		job(jobs.Queued, jobs.Options{Queue: "a", QueuePriority: new(0)}, nil))
	want := []string{
		"queues",
		"  a          3 jobs: 1 succeeded, 1 timed out, 1 queued; 2m 00s of run time; share 2",
		"  (no name)  1 job: 1 queued",
	}
	lines := queueLines(table, true)
	if got := strings.Join(lines[:3], "\n"); got != strings.Join(want, "\n") || strings.Contains(lines[3], "\x1b") ||
		!strings.HasSuffix(lines[3], "1 job: 1 running") {
		t.Errorf("got\n%s\n%q, want\n%s\nand a clean line of the running job", got, lines[3], strings.Join(want, "\n"))
	}
	if lines := queueLines(table, false); !strings.HasSuffix(lines[3], "1 job: 1 may run") {
		t.Errorf("the plain lines: got %q, want the last one to say that 1 job may run", lines)
	}
}

// TestMissedDeadlinesAreCounted checks that missed deadlines are counted, and that those that
// cannot be met are shown (B6).
func TestMissedDeadlinesAreCounted(t *testing.T) {
	now := time.Date(2026, 3, 14, 15, 0, 0, 0, time.UTC)
	at := func(d time.Duration) jobs.Stamp { return jobs.StampOf(now.Add(d)) }
	job := func(state jobs.JobState, deadline, est time.Duration, ended jobs.Stamp) jobs.Job {
		j := jobs.Job{State: state, Spec: &jobs.Spec{Options: &jobs.Options{Estimate: est}}}
		if deadline != 0 {
			j.Spec.Deadline = now.Add(deadline)
		}
		if ended != 0 {
			j.Attempts = []*jobs.Attempt{{State: jobs.AttemptExited,
				Outcome: &jobs.Outcome{Started: ended - 1, Ended: ended}}}
		}
		return j
	}
	since := func(d time.Duration, j jobs.Job) jobs.Job {
		j.Attempts = []*jobs.Attempt{{State: jobs.AttemptRunning, Launched: at(-d)}}
		return j
	}
	h := time.Hour
	for _, c := range []struct {
		want string
		jobs []jobs.Job
	}{
		{"", []jobs.Job{job(jobs.Succeeded, 0, 0, at(-h)), job(jobs.Queued, 0, h, 0)}},
		{"deadlines: 1 met", []jobs.Job{job(jobs.Succeeded, -h, 0, at(-2*h))}},
		{"deadlines: 1 missed", []jobs.Job{job(jobs.Succeeded, -h, 0, at(-h/2))}},
		{"deadlines: 3 missed", []jobs.Job{job(jobs.Failed, h, 0, at(-h)), job(jobs.Queued, -h, 0, 0),
			job(jobs.Running, -1, 0, 0)}},
		{"deadlines: 1 met, 2 cannot be met, 2 to come",
			[]jobs.Job{job(jobs.Queued, h, 2*h, 0), since(h/2, job(jobs.Running, h, 2*h, 0)),
				since(3*h/2, job(jobs.Running, h, 2*h, 0)), job(jobs.Queued, h, 0, 0), job(jobs.Succeeded, h, 0,
					at(-h))}},
	} {
		table := &jobs.Table{Jobs: c.jobs}
		for _, j := range c.jobs {
			table.Specs = append(table.Specs, j.Spec)
		}
		t.Run(c.want, func(t *testing.T) { same(t, "deadlinesText", deadlinesText(table, now), c.want) })
	}
}

// TestUselessHostsAreListed checks that a run that ended well lists the hosts that were useless to
// it, because nobody would look for them otherwise.
func TestUselessHostsAreListed(t *testing.T) {
	table := new(jobs.Table)
	ended := func(host string, good, bad int) {
		for i := range good + bad {
			o := &jobs.Outcome{}
			if i >= good {
				o.Exit = 2
			}
			table.Jobs = append(table.Jobs,
				jobs.Job{Attempts: []*jobs.Attempt{{Host: host, State: jobs.AttemptExited, Outcome: o}}})
		}
	}
	ended("ws01", 60, 1)
	ended("ws02", 0, 22)
	ended("ws04", 0, 2) // too few to draw a conclusion
	ended("ws05", 9, 3)
	words := map[string]runview.HostEvent{
		"ws01": {Text: "ws01: it is slow"}, // it has run jobs
		"ws03": {Text: "ws03: cannot be reached: connection refused\x1b[2J"},
		// There were no jobs left for it.
		"ws06": runview.HostEvent{}.After(1, "ws06 is up", jobs.ReasonHostUp).After(2,
			"ws06: its clock is 5 s off", ""),
		"ws07": runview.HostEvent{}.After(1, "", ""),
	}
	want := []string{
		"hosts: ws02 failed 22 of 22 attempts, the others 6 of 75: check that it has what the jobs need",
		"       ws03 ran nothing: cannot be reached: connection refused␛[2J",
	}
	if got := uselessHostLines(table, words); !slices.Equal(got, want) {
		t.Errorf("got lines %q, want %q", got, want)
	}
	for i := range table.Jobs {
		if j := &table.Jobs[i]; j.Attempts[0].Host == "ws02" {
			j.State, j.Counted = jobs.Failed, 1
		}
	}
	checkContains(t, uselessHostLines(table, nil)[0],
		"has what the jobs need; 22 jobs ran only once, there: requeue them")
	table = new(jobs.Table)
	ended("ws01", 1, 9)
	ended("ws02", 1, 9) // the jobs are the cause
	if got := uselessHostLines(table, nil); got != nil {
		t.Errorf("got lines %q, want none: the jobs are the cause", got)
	}
	for i, name := range []string{"a", "b", "c", "d", "e", "f", "g"} { // each with its own reason
		words[name] = runview.HostEvent{Text: name + ": gone" + strings.Repeat("!", i)}
	}
	if got := uselessHostLines(table, words); len(got) != 6 {
		t.Errorf("got lines %q, want 6", got)
	}
}

// TestCanceledAttemptsAreNoFailures checks that an attempt that a user canceled does not count as a
// failure of its host, nor does one that asked to be run again later.
func TestCanceledAttemptsAreNoFailures(t *testing.T) {
	stopped := &jobs.Outcome{Signal: "SIGTERM", Stopped: true}
	table := &jobs.Table{Jobs: []jobs.Job{{Attempts: []*jobs.Attempt{
		{Host: "a", State: jobs.AttemptExited, Outcome: &jobs.Outcome{Exit: 75}},
		{Host: "a", State: jobs.AttemptCanceled, Outcome: stopped}, {Host: "a", State: jobs.AttemptExited,
			Outcome: &jobs.Outcome{Exit: 1}}}}}}
	if h := runview.CountHosts(table)["a"]; h.Ended != 3 || h.Failed != 1 {
		t.Errorf("CountHosts: got %+v, want 3 ended attempts, of which 1 failed", h)
	}
}

// TestMessageOfAHostLastsUntilATakeover checks that a record's text about a host is the host's
// message until another dispatcher begins.
func TestMessageOfAHostLastsUntilATakeover(t *testing.T) {
	words := map[string]runview.HostEvent{}
	for _, r := range []jobs.Record{
		{Kind: jobs.KindEpoch},
		{Kind: jobs.KindHost, Host: "ws01", Reason: "ws01: no route to host"},
		{Kind: jobs.KindEpoch},
		{Kind: jobs.KindHost, Host: "ws02", Reason: "ws02: connection refused"},
		{Kind: jobs.KindLaunching, Host: "ws03", Job: 1},
		// A user's request about a host is not a message of the host.
		{Kind: jobs.KindHost, Host: "ws02", Count: 1},
	} {
		runview.AddHostEvent(words, &r)
	}
	if got := runview.UselessHosts(new(jobs.Table), words); !slices.Equal(got,
		[]string{"ws02 ran nothing: connection refused"}) {
		t.Errorf("UselessHosts: got %q, want ws02", got)
	}
}

// TestLastLineNamesHostsAndReasons checks that the last line names hosts and short reasons. The
// complete messages are above it.
func TestLastLineNamesHostsAndReasons(t *testing.T) {
	long := "ws01: the host key of ws01 is not known: ssh-ed25519 SHA256:abc (connect once by hand; " +
		"or use --accept-new)"
	hs := []sched.HostView{{Name: "ws01", HostStatus: jobs.HostStatus{Reason: long}},
		{
			Name:       "ws02",
			HostStatus: jobs.HostStatus{Reason: "ws02: 10.0.0.2:22 refuses connections: connection refused"},
		},
		{Name: "ws03", HostStatus: jobs.HostStatus{Reason: strings.ReplaceAll(long, "ws01", "ws03")}}, {Name: "ws04",
			HostStatus: jobs.HostStatus{Reason: strings.ReplaceAll(long, "ws01", "ws04")}},
		{Name: "ws05", HostStatus: jobs.HostStatus{Reason: strings.ReplaceAll(long, "ws01", "ws05")}}}
	want := "no host could be used: ws[01,03-05] (the host key of <host> is not known), ws02 (10.0.0.2:22 refuses " +
		"connections); see above"
	same(t, "noHostsText", noHostsText(hs), want)
	same(t, "noHostsText", noHostsText(nil), "there is no host")
}

// TestAttemptsOnAbsentHostsAreNamed checks that resume names the attempts whose hosts cannot be
// asked, and how long they hold their jobs.
func TestAttemptsOnAbsentHostsAreNamed(t *testing.T) {
	table := &jobs.Table{}
	attempt := func(id jobs.ID, host string, st jobs.AttemptState) {
		a := &jobs.Attempt{ID: jobs.AttemptID{Job: id, N: 1}, Host: host, State: st}
		table.Jobs = append(table.Jobs, jobs.Job{State: jobs.Running, Attempts: []*jobs.Attempt{a}})
	}
	attempt(1, "here", jobs.AttemptRunning)
	attempt(2, "gone", jobs.AttemptRunning)
	attempt(3, "gone", jobs.AttemptRunning)
	attempt(4, "away", jobs.AttemptLaunching)
	got := absentHosts(table, []*hosts.Host{{Name: "here"}}, time.Hour)
	if len(got) != 2 || !strings.HasPrefix(got[0],
		"away is not in the inventory, and attempt 4.1 may still run there: "+
			"unless the run directory shows that the host is alive or how they end, "+
			"their jobs run elsewhere in 1h 00m;") ||
		!strings.HasPrefix(got[1], "gone is not in the inventory, and attempts 2.1, 3.1 may still run there: "+
			"unless the run directory shows that the host is alive or how they end, "+
			"their jobs run elsewhere in 1m 00s;") {
		t.Errorf("got lines %q, want one each for the hosts away and gone", got)
	}
}

// TestEfficiencyOfAResume checks that the efficiency says that it covers only this dispatcher.
func TestEfficiencyOfAResume(t *testing.T) {
	began := time.Now().Add(-time.Minute)
	start := jobs.StampOf(began)
	table := &jobs.Table{Epoch: 2, Jobs: []jobs.Job{{Spec: &jobs.Spec{ID: 1, Options: jobs.NoOptions},
		Attempts: []*jobs.Attempt{{
			Outcome: &jobs.Outcome{Started: start, Ended: start + jobs.Stamp(30*time.Second)}}}}}}
	s := &summary{Outcome: &run.Outcome{Table: table, Began: began, SlotTime: time.Minute, PeakSlots: 1}}
	same(t, "efficiency", s.efficiency(),
		"efficiency 50% since this resume: 30.0 s of run time in 1m 00s of slot time, on at most 1 slot")
	table.Epoch = 1
	same(t, "efficiency", s.efficiency(),
		"efficiency 50%: 30.0 s of run time in 1m 00s of slot time, on at most 1 slot")
}

// TestHistoryOfHosts checks that the last hour of a host that an earlier dispatcher sampled is in
// status --json.
func TestHistoryOfHosts(t *testing.T) {
	r := disktest.NewRun(t)
	until := time.Unix(1_800_000_000, 0)
	log := live.NewSampleLog(r)
	for i := range 78 { // the last one is valid until 20 minutes ago
		log.Record(&live.State{At: until.Add(-time.Hour + time.Duration(i)*30*time.Second),
			Hosts: []live.Host{{Name: "a",
				HostStatus: jobs.HostStatus{State: "up"}, Load: [3]float64{2}, Slots: 4, Running: 3, Usable: 3.5,
				Done:     2 * i,
				MemBytes: 8 << 30, MemFree: 6 << 30, GPUs: 2, GPUsUsed: 1}}})
	}
	table := &jobs.Table{Jobs: []jobs.Job{{Spec: &jobs.Spec{ID: 1, Options: jobs.NoOptions}, State: jobs.Running,
		Attempts: []*jobs.Attempt{{Host: "a", State: jobs.AttemptRunning}, {Host: "b", State: jobs.AttemptRunning}}}}}
	state := newRunState(r)
	state.Table = table
	s := state.json(until)
	if len(s.Hosts) != 2 || s.Hosts[1].History != nil {
		t.Fatalf("got the hosts %+v, want a and b, and b without a history", s.Hosts)
	}
	b, err := json.Marshal(s.Hosts[0].History)
	must(t, err)
	fields := map[string]any{}
	must(t, json.Unmarshal(b, &fields))
	for name, want := range map[string]string{"load": "2", "own_slots": "3", "other_slots": "0.5",
		"ended_per_minute": "4", "memory_used_bytes": "2.147483648e+09", "gpus_used": "1"} {
		same(t, name, fmt.Sprint(fields[name]), "["+strings.Repeat(want+" ", 8)+"<nil> <nil> <nil> <nil>]")
	}
	if history := state.json(until.Add(2 * time.Hour)).Hosts[0].History; history != nil {
		t.Errorf("two hours later: got %+v, want none", history)
	}
}
