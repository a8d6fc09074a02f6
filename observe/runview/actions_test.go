package runview

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"dcs-tui/jobs"
	"dcs-tui/jobs/action"
	"dcs-tui/jobs/jobstest"
)

// TestActionsAreCarriedOutWhenDoReturns checks that actions are carried out when Do returns, and
// that an undo knows what to restore.
func TestActionsAreCarriedOutWhenDoReturns(t *testing.T) {
	withLab(t, "a", func(t *testing.T, l *lab) {
		specs := sleepJobs(6)
		specs[5].SetAfter(jobstest.After(5))
		l.submit(specs...)
		time.Sleep(5 * time.Second)
		ans := l.do(action.Request{Do: action.Cancel, Jobs: jobs.Ranges{{First: 4, Last: 5}, {First: 9, Last: 9}}})
		if ans.Done != 2 || ans.Left != 1 || len(ans.Changed) != 1 ||
			ans.Changed[0] != (jobs.Range{First: 4, Last: 6}) {
			t.Errorf("%+v: job 6, which comes after 5, is skipped with it", ans)
		}
		if got := phasesOf(l.look(Query{Jobs: &JobsWindow{Rows: 9,
			Sort: SortID}})); got != "run run queue cancel cancel skip" {
			t.Errorf("got phases %q", got)
		}
		if ans = l.do(action.Request{Do: action.Requeue, Jobs: ans.Changed}); ans.Done != 3 {
			t.Errorf("Requeue: got %+v, want 3 jobs", ans)
		}
		if ans = l.do(action.Request{Do: action.Priority, Jobs: jobs.One(5), Priority: -2,
			Relative: true}); ans.Done != 1 {
			t.Errorf("Priority: got %+v, want 1 job", ans)
		}
		p := l.look(Query{Jobs: windowOf(9)})
		if r := p.Jobs.Rows[2]; r.ID != 5 || r.Priority != -2 || r.Place != 0 {
			t.Errorf("%+v: it is the next to start", r)
		}
	})
}

// TestRefusalsAreErrors checks that an action that makes no sense is a Refused error, whether the
// screen or the dispatcher refuses it.
func TestRefusalsAreErrors(t *testing.T) {
	withLab(t, "a", func(t *testing.T, l *lab) {
		l.submit(sleepJobs(6)...)
		time.Sleep(5 * time.Second)
		for _, a := range []action.Request{{Do: action.Resume}, {Do: "dance"}, {Do: action.Cancel},
			{Do: action.Cancel, Jobs: jobs.One(77)},
			{Do: action.DrainHost, Host: "b"}, {Do: action.Edit, Jobs: jobs.One(1)},
			{Do: action.Edit, Jobs: jobs.One(1), Edit: &jobs.Change{Command: new(" ")}}} {
			_, err := l.v.Do(t.Context(), a)
			if r := (*Refused)(nil); !errors.As(err, &r) {
				t.Errorf("%+v: %v", a, err)
			}
		}
	})
}

// TestNotableEventsAreSeparate checks that events are in the log, notable events separately from
// all events, and older records first (E8).
func TestNotableEventsAreSeparate(t *testing.T) {
	withLab(t, "a", func(t *testing.T, l *lab) {
		l.runs = func(id jobs.AttemptID) (time.Duration, jobs.Outcome) {
			return time.Second, jobs.Outcome{Exit: int(id.Job) - 1}
		}
		l.submit(sleepJobs(2)...)
		time.Sleep(20 * time.Second)
		all := l.look(Query{Events: &EventsWindow{All: true, Rows: 100}}).Events
		some := l.look(Query{Events: &EventsWindow{Rows: 100}}).Events
		if !strings.HasSuffix(all.Lines[0].Text, "dispatches the run (epoch 1)") ||
			some.Lines[0].Text != all.Lines[0].Text || len(all.Lines) <= len(some.Lines) ||
			all.Total != len(all.Lines) {
			t.Errorf("%d of %d", len(some.Lines), len(all.Lines))
		}
		texts := ""
		for i, e := range some.Lines {
			texts += e.Text + "\n"
			if i > 0 && e.Seq <= some.Lines[i-1].Seq {
				t.Error("the numbers do not grow")
			}
		}
		if !strings.Contains(texts, "2.1 has ended") || !strings.Contains(texts, "2.2 has ended") ||
			strings.Contains(texts, "1.1 has started") {
			t.Errorf("events: got\n%s\nwant the ends of both attempts of job 2 and no start of job 1", texts)
		}
		last := l.look(Query{Events: &EventsWindow{All: true, Rows: 2}}).Events
		if n := all.Total; len(last.Lines) != 2 || last.Total != n || last.Lines[1].Seq != all.Lines[n-1].Seq {
			t.Errorf("the last two events: got %+v", last)
		}
		one := l.look(Query{Events: &EventsWindow{All: true, Rows: 50, Filter: "job=2 host=a not started"}}).Events
		for _, e := range one.Lines {
			if e.Job != 2 || e.Host != "a" || strings.Contains(e.Text, "started") {
				t.Errorf("filtered events: got %+v, want only those of job 2 on host a that do not start it", e)
			}
		}
		if e := l.look(Query{Events: &EventsWindow{Filter: "job:x", Rows: 5}}).Events; len(one.Lines) == 0 ||
			e.Wrong == "" {
			t.Errorf("%d lines; %+v", len(one.Lines), e)
		}
	})
}

// TestEachActionIsOneEvent checks that each action of a user is one notable event with a
// description. The outcomes of its requests are only among all records (E8).
func TestEachActionIsOneEvent(t *testing.T) {
	withLab(t, "a", func(t *testing.T, l *lab) {
		l.submit(sleepJobs(6)...)
		time.Sleep(5 * time.Second)
		lines := func(all bool) (texts []string) {
			for _, e := range l.look(Query{Events: &EventsWindow{All: all, Rows: 100}}).Events.Lines {
				texts = append(texts, e.Text)
			}
			return texts
		}
		for _, c := range []struct {
			a    action.Request
			want string
		}{
			{action.Request{Do: action.Cancel, Jobs: jobs.Ranges{{First: 1, Last: 3}}}, "user asked: cancel jobs 1-3"},
			{action.Request{Do: action.Priority, Jobs: jobs.One(5), Priority: -1, Relative: true},
				"user asked: add -1 to the priority of job 5"},
			{action.Request{Do: action.Slots, Host: "a", Number: 1, Relative: true},
				"user asked: give host a 1 slot more"},
			{action.Request{Do: action.Pause}, "user asked: pause launching"},
			{action.Request{Do: action.StopHost, Host: "a"}, "user asked: stop host a"},
		} {
			some, all := lines(false), lines(true)
			l.do(c.a)
			if got := lines(false)[len(some):]; len(got) == 0 || got[0] != c.want {
				t.Errorf("%s: %q, want %q", c.a.Do, got, c.want)
			}
			if len(lines(true)) <= len(all) {
				t.Errorf("%s left no record", c.a.Do)
			}
		}
	})
}

// TestProgressAndOutputAreShown checks the progress that a job reports, and its output while it
// runs and afterwards.
func TestProgressAndOutputAreShown(t *testing.T) {
	withLab(t, "a", func(t *testing.T, l *lab) {
		l.say = map[string]string{"1.1": "21/50\n", "2.1": "warming up"}
		l.submit(sleepJobs(3)...)
		path := jobs.AttemptFile(l.dir, jobs.AttemptID{Job: 1, N: 1}, jobs.FileOut)
		os.MkdirAll(filepath.Dir(path), 0o700)
		must(t, os.WriteFile(path, []byte("one\ntwo\n"), 0o600))
		time.Sleep(10 * time.Second)
		p := l.look(Query{Jobs: &JobsWindow{Rows: 5, Sort: SortProgress}})
		if r := p.Jobs.Rows[0]; r.ID != 1 || r.Progress != 0.42 || p.Jobs.Rows[1].Said != "warming up" {
			t.Errorf("rows by progress: got %+v, want job 1 with 0.42 and then a text", p.Jobs.Rows)
		}
		x, err := l.v.Read(t.Context(), Read{Attempt: jobs.AttemptID{Job: 1, N: 1}, File: jobs.FileOut, Offset: -4,
			Limit: 100})
		if err != nil || string(x.Data) != "two\n" || x.Offset != 4 || x.Size != 8 || x.Over {
			t.Errorf("Read of the end: got %+v, %v; want \"two\\n\" at 4 of 8", x, err)
		}
		for _, r := range []Read{{Attempt: jobs.AttemptID{Job: 9, N: 1}, File: jobs.FileOut},
			{Attempt: jobs.AttemptID{Job: 1, N: 1}, File: jobs.FileStatus}} {
			if _, err := l.v.Read(t.Context(), r); err == nil {
				t.Errorf("%+v was read", r)
			}
		}
		if x, err := l.v.Read(t.Context(),
			Read{Attempt: jobs.AttemptID{Job: 2, N: 1}, File: jobs.FileErr}); err != nil || len(x.Data) > 0 || x.Over {
			t.Errorf("Read of standard error: got %+v, %v; want nothing", x, err)
		}
		time.Sleep(time.Minute)
		x, err = l.v.Read(t.Context(), Read{Attempt: jobs.AttemptID{Job: 1, N: 1}, File: jobs.FileOut, Limit: 3})
		if err != nil || string(x.Data) != "one" || !x.Over {
			t.Errorf("Read of the start: got %+v, %v; want \"one\" and no more", x, err)
		}
	})
}
