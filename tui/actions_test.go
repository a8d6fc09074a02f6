package tui

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"dcs-tui/jobs"
	"dcs-tui/jobs/action"
	"dcs-tui/observe/runview"
)

// Jobs of the sample, by phase.
const (
	aRunning jobs.ID = 50117
	aRetry   jobs.ID = 50119
	aFailed  jobs.ID = 50120
	aQueued  jobs.ID = 50137
)

// screenOn returns a screen with the cursor on a job of the sample, and the clock of the screen,
// which the test can set.
func screenOn(t *testing.T, src *fakeSource, id jobs.ID, w, h int) (*model, *time.Time) {
	t.Helper()
	now := noon
	m := newScreen(t, src, w, h)
	m.now = func() time.Time { return now }
	m.jobs.moveToJob(id)
	refresh(t, m)
	if r, ok := m.currentJob(); !ok || r.ID != id {
		t.Fatalf("the cursor is on %d, %v", r.ID, ok)
	}
	return m, &now
}

// checkActions compares the recorded actions with the wanted ones.
func checkActions(t *testing.T, src *fakeSource, want ...action.Request) {
	t.Helper()
	got := src.actions()
	if len(got) != len(want) {
		t.Fatalf("done: %+v, not %+v", got, want)
	}
	for i, w := range want {
		g := got[i]
		if g.Do != w.Do || !slices.Equal(g.Jobs, w.Jobs) || g.Host != w.Host || g.Number != w.Number ||
			g.Relative != w.Relative {
			t.Errorf("done: %+v, not %+v", g, w)
		}
		if (g.Edit == nil) != (w.Edit == nil) || w.Edit != nil && *g.Edit.Command != *w.Edit.Command {
			t.Errorf("edited: %+v, not %+v", g.Edit, w.Edit)
		}
	}
}

// TestEachKeyInEachPhaseOfAJob checks what each key for jobs does in each phase of a job, and which
// message it shows where it makes no sense (K9, X7).
func TestEachKeyInEachPhaseOfAJob(t *testing.T) {
	one := func(v action.Name, id jobs.ID) []action.Request { return []action.Request{{Do: v, Jobs: jobs.One(id)}} }
	prio := func(n int, id jobs.ID) []action.Request {
		return []action.Request{{Do: action.Priority, Jobs: jobs.One(id), Priority: n, Relative: true}}
	}
	running := runview.Cost{Running: 1, Lost: 72 * time.Minute}
	queued := runview.Cost{Queued: 1}
	for _, c := range []struct {
		name  string
		on    jobs.ID
		cost  runview.Cost
		keys  string
		want  []action.Request
		shows string
	}{
		{"cancel queued: at once", aQueued, queued, "c", one(action.Cancel, aQueued), "undo 10 s"},
		{"cancel queued by its row, running by now: asks", aQueued, running, "c", nil, "Cancel job 50137?"},
		{"cancel retrying", aRetry, queued, "c", one(action.Cancel, aRetry), ""},
		{"cancel running asks", aRunning, running, "c", nil, "1 running, 72 min of run time lost"},
		{"cancel running, y", aRunning, running, "c y", one(action.Cancel, aRunning), ""},
		{"cancel running, n", aRunning, running, "c n", nil, "nothing was done"},
		{"cancel running, enter", aRunning, running, "c enter", nil, "nothing was done"},
		{"cancel running, esc", aRunning, running, "c esc", nil, "nothing was done"},
		{"cancel running, Y is not y", aRunning, running, "c Y", nil, "nothing was done"},
		{"cancel running twice is no yes", aRunning, running, "c c", nil, "nothing was done"},
		{"cancel failed", aFailed, runview.Cost{Over: 1}, "c", nil, "nothing to cancel: job 50120 has failed"},
		{"cancel, over by now", aQueued, runview.Cost{Over: 1}, "c", nil,
			"nothing to cancel: job 50137 is over already"},
		{"requeue failed", aFailed, queued, "r", one(action.Requeue, aFailed), ""},
		{"requeue running", aRunning, queued, "r", nil, "nothing to requeue: job 50117 runs"},
		{"requeue queued", aQueued, queued, "r", nil, "nothing to requeue: job 50137 is queued"},
		{"more urgent", aQueued, queued, "+", prio(-1, aQueued), ""},
		{"more urgent without shift", aQueued, queued, "=", prio(-1, aQueued), ""},
		{"less urgent, twice", aQueued, queued, "- -", append(prio(1, aQueued), prio(1, aQueued)...), ""},
		{"priority of what is over", aFailed, queued, "+", nil, "its priority changes nothing: job 50120 has failed"},
		{"pause", aQueued, queued, "p", []action.Request{{Do: action.Pause}}, ""},
		{"why", aRunning, queued, "w", nil, "Job 50117 runs on ws02."},
		{"why, closed", aRunning, queued, "w enter", nil, "detail"},
		{"edit running", aRunning, queued, "e", nil, "cannot edit: job 50117 runs"},
		{"edit opens the command", aFailed, queued, "e", nil, "command of 50120: python train.py --C 0.1 --gamma 0.5"},
		{"edit, esc", aFailed, queued, "e x esc", nil, "nothing was changed"},
		{"edit, as it was", aFailed, queued, "e enter", nil, "the command is as it was"},
		{"edit, emptied", aFailed, queued, "e ctrl+u enter", nil, "the command is empty"},
		{"edit", aQueued, queued, "e x enter",
			[]action.Request{{Do: action.Edit, Jobs: jobs.One(aQueued),
				Edit: &jobs.Change{Command: new("python train.py --C 0.1 --gamma 0.5x")}}}, ""},
		{"undo of nothing", aQueued, queued, "u", nil, "there is nothing to undo"},
		{"undo", aQueued, queued, "c u", append(one(action.Cancel, aQueued),
			action.Request{Do: action.Requeue, Jobs: jobs.One(aQueued)}), ""},
		{"undo twice", aQueued, queued, "c u u", append(one(action.Cancel, aQueued),
			action.Request{Do: action.Requeue, Jobs: jobs.One(aQueued)}), "nothing to undo"},
		{"details", aFailed, queued, "enter", nil, "python train.py"},
		{"output", aFailed, queued, "l", nil, "stdout"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, size := range [][2]int{{40, 10}, {80, 24}, {160, 48}} {
				src := sample()
				src.cost = c.cost
				m, _ := screenOn(t, src, c.on, size[0], size[1])
				press(t, m, c.keys)
				checkActions(t, src, c.want...)
				checkSize(t, m, c.name)
				if size[0] >= 80 {
					shows(t, m, c.shows)
				}
			}
		})
	}
}

// TestSelectionIsChangedAfterAQuestion checks that a selection is canceled, and many jobs are
// requeued, only after a question that states what is lost, and that the user must type the number
// of jobs if it is more than a hundred (rule 9).
func TestSelectionIsChangedAfterAQuestion(t *testing.T) {
	which := jobs.Ranges{{First: 50117, Last: 50118}}
	many := jobs.Ranges{{First: 1, Last: 1234}}
	for _, c := range []struct {
		name  string
		which jobs.Ranges
		cost  runview.Cost
		keys  string
		did   bool
		shows []string
	}{
		{"loss", which, runview.Cost{Running: 3, Queued: 2, Over: 1, Lost: 14*time.Hour + 32*time.Minute}, "c", false,
			[]string{"Cancel 5 jobs?", "3 running, 14h 32m of run time lost", "2 queued", "1 over already"}},
		{"sent", which, runview.Cost{Sent: 2}, "c", false,
			[]string{"Cancel 2 jobs?", "running jobs are not affected; 2 sent, not known to have started"}},
		{"nothing running", which, runview.Cost{Queued: 2}, "c", false, []string{"running jobs are not affected"}},
		{"y", which, runview.Cost{Queued: 2}, "c y", true, nil},
		{"n", which, runview.Cost{Queued: 2}, "c n", false, nil},
		{"enter", which, runview.Cost{Queued: 2}, "c enter", false, nil},
		{"a hundred: y", which, runview.Cost{Queued: 100}, "c y", true, nil},
		{"many", many, runview.Cost{Queued: 1234}, "c", false, []string{"type 1,234"}},
		{"many: y is no answer", many, runview.Cost{Queued: 1234}, "c y", false, []string{"nothing was done"}},
		{"many: a wrong number", many, runview.Cost{Queued: 1234}, "c 1 2 3 enter", false,
			[]string{"nothing was done"}},
		{"many: the number", many, runview.Cost{Queued: 1234}, "c 1 2 3 5 backspace 4 enter", true, nil},
		{"many: the number as it is shown", many, runview.Cost{Queued: 1234}, "c 1 , 2 3 4 enter", true, nil},
		{"all over", which, runview.Cost{Over: 2}, "c", false, []string{"these 2 jobs are over already"}},
		{"requeue many", many, runview.Cost{Over: 120, Queued: 3}, "r", false,
			[]string{"Run 120 jobs again?", "3 that are queued or run"}},
		{"requeue many: y is no answer", many, runview.Cost{Over: 120, Queued: 3}, "r y", false,
			[]string{"nothing was done"}},
		{"requeue many: the number", many, runview.Cost{Over: 120, Queued: 3}, "r 1 2 0 enter", true, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			src := sample()
			src.cost = c.cost
			m, _ := screenOn(t, src, aRunning, 80, 24)
			m.jobs.sel.set(c.which)
			press(t, m, c.keys)
			if c.did {
				verb := map[byte]action.Name{'c': action.Cancel, 'r': action.Requeue}[c.keys[0]]
				checkActions(t, src, action.Request{Do: verb, Jobs: c.which})
				equal(t, m.jobs.sel.n, 0, "number of selected jobs afterwards")
			} else {
				checkActions(t, src)
			}
			shows(t, m, c.shows...)
		})
	}
}

// TestEarlyKeysDoNotAnswerAQuestion checks that keys typed before a question is visible do not
// answer it, and that two quick keys open only one question.
func TestEarlyKeysDoNotAnswerAQuestion(t *testing.T) {
	src := sample()
	src.cost = runview.Cost{Running: 1}
	m, _ := screenOn(t, src, aRunning, 80, 24)
	_, costCmd := m.Update(keyMessage("c"))
	for _, k := range []string{"y", "c", "r", "enter"} {
		t.Run(k, func(t *testing.T) {
			if _, cmd := m.Update(keyMessage(k)); cmd != nil {
				t.Errorf("%s did something", k)
			}
		})
	}
	runCommands(t, m, costCmd)
	checkActions(t, src)
	shows(t, m, "Cancel job 50117?")

	press(t, m, "esc")
	_, costCmd = m.Update(keyMessage("c"))
	m.Update(keyMessage("esc")) // closes the question before the answer arrives
	m.Update(keyMessage("j"))
	runCommands(t, m, costCmd)
	if m.modal != nil {
		t.Error("the question came after it was left")
	}
	checkActions(t, src)
}

// TestUndoWorksForTenSeconds checks that `u` works for ten seconds and shows how many are left
// (rule 9).
func TestUndoWorksForTenSeconds(t *testing.T) {
	src := sample()
	src.cost = runview.Cost{Queued: 1}
	m, now := screenOn(t, src, aQueued, 80, 24)
	press(t, m, "c")
	for _, s := range []struct {
		after time.Duration
		shows string
	}{{0, "undo 10 s"}, {4 * time.Second, "undo 6 s"}, {9600 * time.Millisecond, "undo 0 s"}} {
		*now = noon.Add(s.after)
		m.Update(clockTick{})
		shows(t, m, s.shows)
	}
	*now = noon.Add(10*time.Second + time.Millisecond)
	press(t, m, "u")
	checkActions(t, src, action.Request{Do: action.Cancel, Jobs: jobs.One(aQueued)})
	m.Update(clockTick{})
	if m.undo != nil || strings.Contains(plainScreen(m), "undo ") {
		t.Error("the undo is still offered")
	}
}

// TestRefusedActionSaysWhy checks that the screen shows why the source refuses an action or cannot
// carry it out now.
func TestRefusedActionSaysWhy(t *testing.T) {
	src := sample()
	src.cost = runview.Cost{Queued: 1}
	for err, want := range map[error]string{
		&runview.Refused{Why: "job 50137 has just started"}: "job 50137 has just started",
		errors.New("connection reset"):                      "connection reset",
	} {
		src.answer = func(action.Request) (*runview.Answer, error) { return nil, err }
		m, _ := screenOn(t, src, aQueued, 80, 24)
		m.jobs.sel.toggle(aQueued)
		press(t, m, "c")
		if m.modal != nil {
			press(t, m, "y")
		}
		shows(t, m, want)
		if m.undo != nil || m.jobs.sel.n != 1 {
			t.Error("what was refused looks as if it had been done")
		}
	}
}

// TestWhichKeysWorkWithoutADispatcher checks a run without a dispatcher: what its declaration refuses
// shows the reason before any question, and everything else is requested as from the commands.
func TestWhichKeysWorkWithoutADispatcher(t *testing.T) {
	for _, life := range []runview.RunStatus{runview.StatusStopped, runview.StatusCrashed} {
		src := sampleWith(func(snap *runview.Snapshot) {
			snap.Status, snap.Over = life, "stopped"
		})
		src.cost = runview.Cost{Queued: 1}
		m, _ := screenOn(t, src, aQueued, 100, 40)
		checkContains(t, plainText(m.hintsRow()), "c cancel", "the footer")
		for _, keys := range []string{": d r a i n - r u n enter", ": s t o p - r u n enter"} {
			m.message = message{}
			press(t, m, keys)
			if m.message.text != "nobody dispatches the run" || !m.message.isError {
				t.Errorf("%s says %q", keys, m.message.text)
			}
		}
		checkActions(t, src)
		press(t, m, "p")
		press(t, m, "+")
		press(t, m, "c")
		m.jobs.moveToJob(aFailed)
		refresh(t, m)
		press(t, m, "r")
		press(t, m, "e x enter")
		typeText(t, m, ":resume")
		press(t, m, "enter")
		checkActions(t, src, action.Request{Do: action.Pause},
			action.Request{Do: action.Priority, Jobs: jobs.One(aQueued), Priority: -1, Relative: true},
			action.Request{Do: action.Cancel, Jobs: jobs.One(aQueued), Spare: action.SpareStarted},
			action.Request{Do: action.Requeue, Jobs: jobs.One(aFailed)},
			action.Request{Do: action.Edit, Jobs: jobs.One(aFailed),
				Edit: &jobs.Change{Command: new("python train.py --C 0.1 --gamma 0.5x")}},
			action.Request{Do: action.Resume})
	}
}

// TestTheEditOfAJobThatIsOverSaysWhatEnterDoes checks that the screen does not claim that a
// finished job is queued while the user edits it.
func TestTheEditOfAJobThatIsOverSaysWhatEnterDoes(t *testing.T) {
	src := sampleWith(func(snap *runview.Snapshot) {
		if snap.Detail != nil {
			snap.Detail.Row.Phase, snap.Detail.Spec = runview.Failed, &jobs.Spec{Command: "false"}
			if snap.Jobs != nil {
				snap.Jobs.Rows = []runview.Row{snap.Detail.Row}
			}
		}
	})
	m := newScreen(t, src, 80, 24)
	runCommands(t, m, m.openEdit(50120))
	text := plainScreen(m)
	if !strings.Contains(text, "enter queues it again") || strings.Contains(text, "it is queued again") {
		t.Errorf("the screen says:\n%s", text)
	}
}

// TestACancelEndsNoMoreThanWasSaid checks that a cancel cancels only waiting jobs if the question
// stated that no running job is lost. After a question that stated the loss, it cancels all jobs
// (rule 9).
func TestACancelEndsNoMoreThanWasSaid(t *testing.T) {
	for _, c := range []struct {
		cost runview.Cost
		keys string
		want bool
	}{
		{runview.Cost{Queued: 1}, "c", true},
		{runview.Cost{Running: 1}, "c y", false},
	} {
		t.Run(c.keys, func(t *testing.T) {
			src := sample()
			src.cost = c.cost
			m, _ := screenOn(t, src, aQueued, 80, 24)
			press(t, m, c.keys)
			if did := src.actions(); len(did) != 1 || did[0].Do != action.Cancel ||
				(did[0].Spare == action.SpareStarted) != c.want {
				t.Errorf("%+v: %+v", c.cost, did)
			}
		})
	}
}
