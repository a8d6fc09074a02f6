package tui

import (
	"slices"
	"testing"

	"dcs-tui/jobs"
	"dcs-tui/jobs/action"
	"dcs-tui/jobs/live"
	"dcs-tui/observe/runview"
)

// sinkingJobs returns a source with a list of ten queued jobs. A canceled job moves to the end of
// the list, but while the source lags, only the next snapshots show that.
func sinkingJobs() (src *fakeSource, lags *bool) {
	lags = new(bool)
	order := []jobs.ID{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
	var canceled []jobs.ID
	shown := map[jobs.ID]bool{}
	src = &fakeSource{cost: runview.Cost{Queued: 1}}
	src.snapshot = func(ask runview.Query) (*runview.Snapshot, error) {
		snap := sampleSnapshot(ask)
		if w := ask.Jobs; w != nil {
			if !*lags {
				for _, id := range canceled {
					if !shown[id] {
						order = append(slices.DeleteFunc(order, func(x jobs.ID) bool { return x == id }), id)
						shown[id] = true
					}
				}
			}
			p := &runview.Page{Filter: w.Filter, Sort: w.Sort, Reverse: w.Reverse, Matched: len(order),
				Cursor: w.Cursor}
			for _, id := range order {
				r := runview.Row{ID: id, Phase: runview.Queued, Place: -1, Progress: -1}
				if shown[id] {
					r.Phase = runview.Canceled
				}
				p.Rows = append(p.Rows, r)
			}
			snap.Jobs = p
		}
		return snap, nil
	}
	src.answer = func(a action.Request) (*runview.Answer, error) {
		canceled = append(canceled, a.Jobs[0].First)
		return &runview.Answer{Done: 1, Text: "canceled", Changed: a.Jobs}, nil
	}
	return src, lags
}

// TestKeysActOnOneJobAfterAnother checks that c j c j cancels successive jobs, whether or not the
// screen shows the first cancel before the next key (rule 4).
func TestKeysActOnOneJobAfterAnother(t *testing.T) {
	for _, c := range []struct {
		what string
		lags bool
		keys string
		want []jobs.ID
	}{
		{"the jobs move at once", false, "c j c j c", []jobs.ID{1, 2, 3}},
		{"the jobs move later", true, "c j c j c", []jobs.ID{1, 2, 3}},
		{"a second j moves on", false, "c j j c", []jobs.ID{1, 3}},
		{"upward", false, "j j c k c", []jobs.ID{3, 2}},
		{"a second c names the next job first", false, "c c", []jobs.ID{1}},
		{"and then cancels it", false, "c c c", []jobs.ID{1, 2}},
		{"with other keys between", false, "j c y j c", []jobs.ID{2, 3}},
		{"a move to the top names the job", false, "j c g c", []jobs.ID{2, 1}},
	} {
		t.Run(c.what, func(t *testing.T) {
			src, lags := sinkingJobs()
			m := newScreen(t, src, 80, 24)
			*lags = c.lags
			press(t, m, c.keys)
			var got []jobs.ID
			for _, a := range src.actions() {
				got = append(got, a.Jobs[0].First)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("%s cancels %v, not %v", c.keys, got, c.want)
			}
			*lags = false
			refresh(t, m)
			if r, ok := m.currentJob(); !ok || slices.Contains(got, r.ID) {
				t.Errorf("the cursor is on %d, %v", r.ID, ok)
			}
		})
	}
	src, _ := sinkingJobs()
	m, now := screenOn(t, src, 1, 80, 24)
	press(t, m, "c")
	*now = now.Add(slipTime) // the user has seen which job is under the cursor
	press(t, m, "j")
	r, _ := m.currentJob()
	equal(t, r.ID, 3, "after a while, j moves down from job 2")
}

// TestKeysTypedDuringACancelCount checks that keys that are typed while the screen still asks what
// a cancel costs are carried out afterwards, and do not answer a question.
func TestKeysTypedDuringACancelCount(t *testing.T) {
	src, _ := sinkingJobs()
	m := newScreen(t, src, 80, 24)
	_, cmd := m.Update(keyMessage("c"))
	for _, key := range []string{"j", "c", "j"} {
		m.Update(keyMessage(key))
	}
	runCommands(t, m, cmd)
	checkActions(t, src, action.Request{Do: action.Cancel, Jobs: jobs.One(1)},
		action.Request{Do: action.Cancel, Jobs: jobs.One(2)})
	equal(t, m.jobs.cursor, 3, "the job under the cursor")
	src.cost = runview.Cost{Running: 1}
	_, cmd = m.Update(keyMessage("c"))
	m.Update(keyMessage("y"))
	runCommands(t, m, cmd)
	shows(t, m, "Cancel job 3?")
	equal(t, len(src.actions()), 2, "number of actions")
}

// TestAPopupPassesOnOnlyKeysThatChangeNothing checks in each view that a key that closes a text also
// does what it means there, unless that is more than a move, a view, or a filter.
func TestAPopupPassesOnOnlyKeysThatChangeNothing(t *testing.T) {
	m, _ := screenOn(t, sample(), aRunning, 80, 24)
	press(t, m, "w", "Why 50117?")
	press(t, m, "l", "50117 stdout")
	press(t, m, "esc w")
	hides(t, m, "50117 stdout")
	press(t, m, "w")
	equal(t, m.modal, nil, "the key that opened a text closes it")
	press(t, m, "w 2", "[2 Hosts")
	press(t, m, "enter", "Host ws01")
	press(t, m, "q")
	equal(t, m.modal, nil, "q closes a text, and does not ask how to leave")

	for view := range numTabs {
		src := sample()
		m := newView(t, Options{Source: src}, view, 160, 48)
		for _, b := range m.bindings() {
			for _, key := range b.keys {
				m.modal = nil
				m.openNote("a note", "a text")
				before := m.jobs.sel.n
				press(t, m, key)
				equal(t, len(src.actions()), 0, "number of actions after %s in view %d", key, view+1)
				equal(t, m.jobs.sel.n, before, "number of selected jobs after %s", key)
				if _, asks := m.modal.(*confirmation); asks {
					t.Errorf("%s in view %d asks a question", key, view+1)
				}
			}
		}
	}
}

// TestEscGoesBackOneLevel checks that esc leaves the jobs of a cell, of a group, or of a host for
// what was shown before, with its cursor and its filter.
func TestEscGoesBackOneLevel(t *testing.T) {
	m := newView(t, Options{Source: sweepSource(t)}, tabResults, 100, 30)
	mustRunLine(t, m, "filter C>0.001")
	mustRunLine(t, m, "pivot C gamma acc")
	press(t, m, "G right right")
	at := m.results.heat.cursorValues
	press(t, m, "enter")
	equal(t, m.results.showsRows(), true, "the jobs of a cell are shown")
	press(t, m, "esc")
	equal(t, m.results.heat.isShown, true, "the heat map is shown again")
	equal(t, m.results.heat.cursorValues, at, "its cursor")
	equal(t, m.results.filter, "C>0.001", "its filter")
	press(t, m, "h m j enter esc")
	equal(t, m.results.groups.isShown, true, "the groups are shown again")
	press(t, m, "esc")
	equal(t, m.results.showsRows(), true, "the rows are shown")
	equal(t, m.results.filter, "C>0.001", "the filter of the rows")
	press(t, m, "esc")
	equal(t, m.results.filter, "", "the filter at last")

	m = newScreen(t, sample(), 80, 24)
	press(t, m, "2 j f")
	equal(t, m.jobs.filter, "host=ws02", "the filter")
	press(t, m, "esc", "[2 Hosts")
	equal(t, m.jobs.filter, "", "the filter after esc")
	press(t, m, "f 1 esc", "[1 Jobs")
}

// TestAWarningGoesAwayWithTheNextKey checks that the newest bad event leaves the footer with the first
// key that works after the user could read it, and that a newer one appears.
func TestAWarningGoesAwayWithTheNextKey(t *testing.T) {
	newer := false
	src := sampleWith(func(snap *runview.Snapshot) {
		if newer && snap.Events != nil {
			snap.Events.Lines = append(snap.Events.Lines, runview.Event{Seq: 4, At: noon, Text: "ws09 is lost",
				Bad: true})
		}
	})
	m, now := screenOn(t, src, aRunning, 80, 24)
	press(t, m, "j", "50120.3 has ended on ws03")
	*now = now.Add(readTime)
	press(t, m, "x", "x does nothing here")
	press(t, m, "j")
	hides(t, m, "x does nothing here", "50120.3 has ended on ws03")
	newer = true
	refresh(t, m)
	shows(t, m, "ws09 is lost")
}

// TestHostsOfAFinishedRun checks that hosts that nobody is connected to take no space beside the jobs,
// and that their view shows what ended there.
func TestHostsOfAFinishedRun(t *testing.T) {
	src := sampleWith(func(snap *runview.Snapshot) {
		states["ended"](snap)
		for i := range snap.Hosts {
			snap.Hosts[i] = live.Host{Name: snap.Hosts[i].Name, HostStatus: jobs.HostStatus{State: jobs.HostUnknown,
				Reason: "nobody dispatches the run"}, Done: 1000, Failed: 2, DiskFree: -1}
		}
	})
	m := newScreen(t, src, 120, 40)
	shows(t, m, "Jobs 96,859", "Events")
	hides(t, m, "─Hosts", "not connected")
	press(t, m, "2", "ws01 ○ not connected", "1,000 succeeded there, 2 failed")
	hides(t, m, "unknown")
	press(t, m, "enter", "Host ws01", "attempts     1,000 succeeded there")
	hides(t, m, "usable now", "delay")
	press(t, m, "esc", "[2 Hosts")
	press(t, m, "1 2 1", "[1 Jobs")
	press(t, m, "4 4", "[4 Results")
	press(t, m, "1", "[1 Jobs")
	checkSize(t, m, "a finished run")
}
