package runview

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"dcs-tui/jobs"
	"dcs-tui/jobs/action"
	"dcs-tui/jobs/jobstest"
	"dcs-tui/jobs/live"
	"dcs-tui/jobs/rundir"
	requests "dcs-tui/observe/ask"
)

// requestsTable returns a run of five queued jobs in epoch 7. Job 4 depends on job 3.
func requestsTable(t *testing.T) *jobs.Table {
	t.Helper()
	specs := jobstest.Specs(5)
	specs[1].Options = &jobs.Options{Priority: 4}
	specs[3].SetAfter(jobstest.After(3))
	table := &jobs.Table{Specs: specs, Epoch: 7}
	must(t, jobs.Fold(table, &jobs.Record{Kind: jobs.KindAccepted, Job: 1, Count: 5}))
	return table
}

// TestActionsBecomeValidRequests checks that every action becomes a request that a dispatcher
// accepts. Relative values stay relative, and invalid actions are refused.
func TestActionsBecomeValidRequests(t *testing.T) {
	table := requestsTable(t)
	state := &live.State{Hosts: []live.Host{{Name: "alpha", Slots: 4}, {Name: "beta"}}}
	three := jobs.Ranges{{First: 1, Last: 3}}
	for _, c := range []struct {
		a    action.Request
		want string // text of the request, or the error
	}{
		{action.Request{Do: action.Cancel, Jobs: three, Why: "a slip"}, "cancel jobs 1-3 (a slip) spare= epoch=0"},
		{
			action.Request{Do: action.Cancel, Jobs: three, Spare: action.SpareStarted},
			"cancel jobs 1-3 spare=started epoch=0",
		},
		{action.Request{Do: action.Cancel, Jobs: jobs.Ranges{{First: 5, Last: 9}}}, "cancel job 5 spare= epoch=0"},
		{action.Request{Do: action.Cancel, Jobs: jobs.One(9)}, "the run has no such job"},
		{action.Request{Do: action.Priority, Jobs: three, Priority: -1}, "priority -1 for jobs 1-3 spare= epoch=0"},
		{action.Request{Do: action.Priority, Jobs: three, Priority: -1, Relative: true},
			"add -1 to the priority of jobs 1-3 spare= epoch=0"},
		{action.Request{Do: action.Edit, Jobs: three}, "nothing is to be changed"},
		{action.Request{Do: action.Edit, Jobs: three, Edit: &jobs.Change{Command: new("true")}}, "edit jobs 1-3: "},
		{action.Request{Do: action.Pause}, "pause launching spare= epoch=0"},
		{action.Request{Do: action.Continue}, "continue launching spare= epoch=0"},
		{action.Request{Do: action.DrainHost, Host: "alpha"}, "drain host alpha spare= epoch=0"},
		{action.Request{Do: action.StopHost, Host: "alhpa"}, "there is no host alhpa; did you mean alpha?"},
		{
			action.Request{Do: action.Slots, Host: "alpha", Number: -1, Relative: true},
			"give host alpha 1 slot fewer spare= epoch=0",
		},
		{
			action.Request{Do: action.Slots, Host: "beta", Number: 2, Relative: true},
			"give host beta 2 slots more spare= epoch=0",
		},
		{
			action.Request{Do: action.Slots, Host: "alpha", Number: -4},
			"alpha needs at least 1 slot; drain it to start nothing there",
		},
		{
			action.Request{Do: action.Slots, Host: "beta"},
			"give host beta the slots of the inventory again spare= epoch=0",
		},
		{action.Request{Do: action.DrainRun}, "drain the run spare= epoch=7"},
		{action.Request{Do: action.StopRun}, "stop the dispatcher spare= epoch=7"},
		{action.Request{Do: action.Cancel, All: true}, "cancel all jobs spare= epoch=0"},
		{action.Request{Do: action.Resume}, `it asks for "resume", which is unknown`},
	} {
		t.Run(c.want, func(t *testing.T) {
			q, err := ResolveRequest(c.a, table, state)
			got := ""
			if err != nil {
				if got = err.Error(); !errors.As(err, new(*Refused)) {
					t.Errorf("%+v: %v is no refusal", c.a, err)
				}
			} else if _, err := q.Encode(); err != nil {
				t.Errorf("%+v: %v", c.a, err)
			} else {
				got = fmt.Sprintf("%s spare=%s epoch=%d", q.Text(), q.Spare, q.Epoch)
			}
			if got != c.want && (c.a.Do != action.Edit || !strings.HasPrefix(got, c.want)) {
				t.Errorf("%s: %q, want %q", c.a.Do, got, c.want)
			}
		})
	}
}

// TestAnswerCountsChanges checks that the response to an action counts what its requests changed,
// and names the jobs of an undo.
func TestAnswerCountsChanges(t *testing.T) {
	table := requestsTable(t)
	three := jobs.Ranges{{First: 1, Last: 3}}
	for _, c := range []struct {
		a     action.Request
		trace requests.Trace
		want  string
	}{
		{action.Request{Do: action.Cancel, Jobs: three}, requests.Trace{Done: 2, Left: 1, Affected: []jobs.ID{1, 3}},
			"2 jobs canceled, 1 had already finished, 2 1 1,3-4"},
		{action.Request{Do: action.Cancel, Jobs: three},
			requests.Trace{Done: 3, IsEarly: true, Ending: map[jobs.ID]bool{3: true}, Affected: []jobs.ID{1, 2, 3}},
			"2 jobs canceled, 1 being ended, 3 0 1-4"},
		{
			action.Request{Do: action.Priority, Jobs: jobs.One(3)},
			requests.Trace{Done: 1},
			"the priority of job 3 is changed, 1 0 ",
		},
		{action.Request{Do: action.Priority, Jobs: three}, requests.Trace{Done: 1, Left: 2},
			"the priority of 1 job is changed, 2 had already finished, 1 2 "},
		{action.Request{Do: action.Requeue, Jobs: three}, requests.Trace{Left: 3},
			"nothing to requeue, 3 had not finished, 0 3 "},
		{
			action.Request{Do: action.Priority, Jobs: three},
			requests.Trace{Done: 3},
			"the priority of 3 jobs is changed, 3 0 ",
		},
		{action.Request{Do: action.Priority, Jobs: three, Priority: -1, Relative: true},
			requests.Trace{Done: 3, Priorities: map[int]bool{4: true, 5: true}},
			"the priority of 3 jobs is changed by -1, 3 0 "},
		{action.Request{Do: action.Priority, Jobs: jobs.One(3), Priority: -1, Relative: true},
			requests.Trace{Done: 1, Priorities: map[int]bool{4: true}}, "the priority of job 3 is changed to 4, 1 0 "},
		{action.Request{Do: action.Pause}, requests.Trace{Done: 1}, "launching is paused, 1 0 "},
		{
			action.Request{Do: action.Pause},
			requests.Trace{Why: "launching is paused already"},
			"launching is paused already",
		},
		{
			action.Request{Do: action.AddHost, Host: "a"},
			requests.Trace{Done: 1},
			"a is added to the hosts of the run, 1 0 ",
		},
		{
			action.Request{Do: action.RemoveHost, Host: "a"},
			requests.Trace{Why: "there is no host a"},
			"there is no host a",
		},
		{action.Request{Do: action.ReloadHosts}, requests.Trace{}, "the inventory file was read again, 0 0 "},
		{action.Request{Do: action.UseHost, Host: "a"}, requests.Trace{Done: 1}, "a is used again, 1 0 "},
	} {
		t.Run(c.want, func(t *testing.T) {
			ans, err := AnswerTo(&c.a, &c.trace, table, nil)
			got := fmt.Sprint(err)
			if err == nil {
				got = fmt.Sprintf("%s, %d %d %s", ans.Text, ans.Done, ans.Left, ans.Changed)
			}
			if got != c.want {
				t.Errorf("%s: %q, want %q", c.a.Do, got, c.want)
			}
		})
	}
}

// TestAnswersFitTheHost checks that the answer to stopping or removing a host says what is known of
// it: nothing ends or finishes on a host where nothing runs, or that cannot be reached.
func TestAnswersFitTheHost(t *testing.T) {
	for _, tt := range []struct {
		name string
		do   action.Name
		host live.Host
		want string
	}{
		{"stop, busy", action.StopHost, live.Host{Linked: true, Running: 1},
			"a is stopped: what ran there is ended and queued again"},
		{"stop, idle", action.StopHost, live.Host{Linked: true}, "a is stopped; nothing ran there"},
		{"stop, silent", action.StopHost, live.Host{Running: 1},
			"a is stopped, but cannot be reached: what ran there may still run; " +
				"dcs-tui status says when its jobs are queued again"},
		{"remove, busy", action.RemoveHost, live.Host{Linked: true, Buffered: 1},
			"a is removed: what runs there finishes, then it leaves the run"},
		{"remove, dead and idle", action.RemoveHost, live.Host{}, "a is removed from the run"},
		{"remove, silent", action.RemoveHost, live.Host{Running: 1},
			"a is removed, but cannot be reached: what ran there may still run; " +
				"dcs-tui status says when its jobs are queued again"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.host.Name = "a"
			got, err := AnswerTo(&action.Request{Do: tt.do, Host: "a"}, &requests.Trace{}, nil,
				&live.State{Hosts: []live.Host{tt.host}})
			if err != nil || got.Text != tt.want {
				t.Errorf("got %v, %v, want %q", got, err, tt.want)
			}
		})
	}
}

// TestWhyNamesRequestsForAJob checks that why names what waits for the next dispatcher, also if another request
// replaces one, and that each request is read once.
func TestWhyNamesRequestsForAJob(t *testing.T) {
	withLab(t, "a", func(t *testing.T, l *lab) {
		l.submit(sleepJobs(6)...)
		time.Sleep(10 * time.Second)
		l.stop()
		file := func(do action.Name, priority int) string {
			q := &action.Request{Do: do, Jobs: jobs.One(6), Priority: priority, At: time.Now()}
			name, err := l.run.FileRequest(q)
			must(t, err)
			return name
		}
		check := func(what, end string) {
			t.Helper()
			time.Sleep(3 * time.Second)
			if why := l.look(Query{Focus: 6}).Detail.Why; !strings.HasSuffix(why, end) {
				t.Errorf("%s: got %q, want an end like %q", what, why, end)
			}
		}
		check("none", "dcs-tui resume continues it.")
		first := file(action.Priority, 1)
		file(action.Priority, 1)
		const waits = "What was requested for it waits for the next dcs-tui resume: "
		check("two", waits+"priority.")
		must(t, os.Truncate(l.run.Path(rundir.RequestsDir, first+".json"), 0))
		check("one cannot be read again", waits+"priority.")
		must(t, l.run.RemoveRequest(first))
		file(action.Requeue, 0)
		check("another", waits+"priority, requeue.")
		l.start("a")
	})
}
