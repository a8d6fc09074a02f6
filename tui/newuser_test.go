package tui

import (
	"fmt"
	"strings"
	"testing"

	"dcs-tui/jobs"
	"dcs-tui/jobs/action"
	"dcs-tui/observe/runview"
)

// troubledHosts is a run of three hosts, none of which can start a job.
func troubledHosts(snap *runview.Snapshot) {
	snap.Hosts = snap.Hosts[:3]
	for i := range snap.Hosts {
		h := &snap.Hosts[i]
		h.Name, h.Slots, h.Running, h.State, h.Reason = fmt.Sprintf("box%d",
			i+1), 2, 0, jobs.HostDisabled, "its key is not known"
	}
	snap.Hosts[0].State, snap.Hosts[0].Reason = jobs.HostDraining, ""
	snap.Hosts[1].Reason = "its host key has changed"
	snap.SlotsBusy, snap.Slots = 0, 6
	snap.Phases[runview.Running] = 0
}

// combine returns a change that makes several.
func combine(changes ...func(*runview.Snapshot)) func(*runview.Snapshot) {
	return func(snap *runview.Snapshot) {
		for _, change := range changes {
			change(snap)
		}
	}
}

// TestScreenAfterSomeKeys checks promises about what the screen shows of a run after some keys.
func TestScreenAfterSomeKeys(t *testing.T) {
	sent := func(snap *runview.Snapshot) {
		snap.Phases[runview.Running], snap.Phases[runview.Sent], snap.Sent = 6, 5, 5
		if snap.Jobs != nil {
			snap.Jobs.Rows[0].Phase = runview.Sent
		}
	}
	status := func(s runview.RunStatus) func(*runview.Snapshot) {
		return func(snap *runview.Snapshot) { snap.Status = s }
	}
	others := func(snap *runview.Snapshot) {
		for _, i := range []int{1, 3} {
			h := &snap.Hosts[i]
			h.Hold = jobs.HeldByOthersLoad
			h.Busy, h.Ours, h.Usable, h.Running, h.Reason = 11.8, 0, 0.2, 0,
				"reduces its slots: others use 11.8 of its 12 cores"
		}
	}
	for _, c := range []struct {
		promise string
		change  func(*runview.Snapshot)
		w, h    int // 0: all sizes
		keys    string
		shows   []string
		hides   []string
	}{
		{promise: "the hints are those of the focused pane, also beside another view (rule 12)", w: 160, h: 48,
			keys:  "2",
			shows: []string{"D drain", "x stop now", "+ slots"}, hides: []string{"c cancel"}},
		{promise: "a message names the pane that has the keys after esc", w: 160, h: 48, keys: "2 esc",
			shows: []string{"the keys are about Jobs now", "c cancel"}, hides: []string{"x stop now"}},
		{promise: "a key without a meaning says so", w: 80, h: 24, keys: "x", shows: []string{"x does nothing here"}},
		{promise: "a key of another view has no meaning", w: 80, h: 24, keys: "2 c",
			shows: []string{"this is not a list of jobs"}},
		{promise: "a key that works removes the last message about one that did not", w: 80, h: 24, keys: "x j",
			hides: []string{"x does nothing here"}},
		{promise: "a key that works removes the error of the one before", w: 80, h: 24, keys: "r j",
			hides: []string{"nothing to requeue"}},
		{promise: "a key that cannot work says why", w: 80, h: 24, keys: "4 m",
			shows: []string{"there are no parameters and no metrics in this run"}},
		{promise: "a key without a meaning hides no error", w: 80, h: 24, keys: "r x",
			shows: []string{"nothing to requeue: job 50117 runs"}},
		{promise: "a host that cannot start jobs has neither free slots nor is it up; its name is there once",
			change: troubledHosts, w: 160, h: 24,
			shows: []string{"slots 0/0 on 0 of 3 hosts", "2 Hosts 0/3", "NOTHING CAN START",
				"box2 its host key has changed"},
			hides: []string{"box2 box2"}},
		{promise: "the dispatcher's reason why nothing can start comes first", w: 80, h: 24,
			change: combine(troubledHosts, func(snap *runview.Snapshot) { snap.Stuck = "box2 is disabled" }),
			shows:  []string{"NOTHING CAN START  box2 is disabled"}},
		{promise: "one host is enough to start jobs", w: 160, h: 24,
			change: combine(troubledHosts, func(snap *runview.Snapshot) {
				snap.Hosts[2].State, snap.Hosts[2].Reason, snap.Hosts[2].Running, snap.SlotsBusy = jobs.HostUp, "", 2, 2
			}), shows: []string{"slots 2/2 on 1 of 3 hosts", "2 Hosts 1/3"}, hides: []string{"NOTHING CAN START"}},
		{promise: "slots in use on a silent host are on one of the hosts that are counted", w: 160, h: 24,
			change: combine(troubledHosts, func(snap *runview.Snapshot) {
				snap.Hosts[2].Running, snap.SlotsBusy = 2, 2
			}), shows: []string{"slots 2/2 on 1 of 3 hosts"}},
		{promise: "a long wait for the first host is explained, even without space for the list of hosts",
			change: func(snap *runview.Snapshot) {
				for i := range snap.Hosts {
					snap.Hosts[i].State = jobs.HostConnecting
				}
			}, shows: []string{"CONNECTING  to 12 hosts"}},
		{promise: "jobs sent to a host do not count as running", change: sent, w: 120, h: 24,
			shows: []string{"6 running, 5 sent "}},
		{promise: "nor when leaving", change: sent, w: 120, h: 24, keys: "q",
			shows: []string{"6 running, 5 sent, 84,513 queued"}},
		{promise: "sent is explained in the footer, for the job under the cursor", change: sent, w: 80, h: 24,
			shows: []string{"sent: sent to its host, which starts it when a slot is free there"}},
		{promise: "what runs is unknown without a dispatcher", change: combine(sent, status(runview.StatusCrashed)),
			w: 120, h: 24,
			shows: []string{"11 may run"}},
		{promise: "a standby that will continue the run is named", w: 160, h: 24,
			change: combine(status(runview.StatusCrashed), func(snap *runview.Snapshot) { snap.Run.Standby = "ws01" }),
			shows:  []string{"the standby on ws01 takes over if it is alive, or R resumes"}},
		{promise: "no host is in trouble when nobody dispatches the run", w: 120, h: 24, keys: "2",
			change: combine(status(runview.StatusFinished), func(snap *runview.Snapshot) {
				for i := range snap.Hosts {
					snap.Hosts[i].State, snap.Hosts[i].Reason = "unknown", "nobody dispatches the run"
				}
			}), shows: []string{"ws01 ○ not connected  1,000 succeeded there"}, hides: []string{"(12 hosts)"}},
		{promise: "a stopped run has not ended", change: combine(sent, status(runview.StatusStopped)), w: 120, h: 24,
			shows: []string{"○ stopped", "11 may run"}, hides: []string{"○ ended"}},
		{promise: "requests that wait for a dispatcher are shown", w: 120, h: 24,
			change: combine(status(runview.StatusStopped), func(snap *runview.Snapshot) { snap.Requests = 2 }),
			shows:  []string{"WAITING", "2 requests for a dispatcher: R resumes"}},
		{promise: "the number of jobs does not depend on the view", w: 80, h: 24, keys: "4",
			change: func(snap *runview.Snapshot) {
				if snap.Jobs != nil && snap.Jobs.Filter != "" {
					snap.Jobs.Matched = 11
				}
			}, shows: []string{"1 Jobs 96,859"}},
		{promise: "others' use of all cores is reported at every size", change: others,
			shows: []string{"OTHERS' LOAD", "on ws02 (11.8 of"}},
		{promise: "others' use of all cores is reported and explained", change: others, w: 120, h: 24,
			shows: []string{"OTHERS' LOAD",
				"on ws02 (11.8 of 12 cores), ws04 (11.8 of 12 cores): jobs start there as these become free"}},
		{promise: "nothing is said of others without their load", w: 80, h: 24, hides: []string{"OTHERS"}},
		{promise: "the heading of the sort column is not cut; names are cut in their common beginning", w: 80, h: 24,
			keys: ": s o r t space h o s t enter",
			change: func(snap *runview.Snapshot) {
				if snap.Jobs != nil {
					for i := range snap.Jobs.Rows {
						snap.Jobs.Rows[i].Title = fmt.Sprintf("n=12; for i in $(seq 1 $n); do sleep 1; "+
							"echo $i; done; result %do", snap.Jobs.Rows[i].ID)
					}
				}
			}, shows: []string{"HOST▲", "50117o", "50125o"}},
		{promise: "the newest bad event is in the footer", w: 80, h: 24,
			shows: []string{"⚠ 11:59:30 50120.3 has ended on ws03"}},
		{promise: "a message replaces the newest bad event", w: 80, h: 24, keys: "x", hides: []string{"50120.3"}},
		{promise: "the question how to leave names the command for coming back", w: 120, h: 36, keys: "q",
			shows: []string{"dcs-tui attach sweep-20260314",
				"what runs finishes, nothing more starts, then the run ends"}},
		{promise: "the question how to leave is understandable on the smallest screen", w: 40, h: 10, keys: "q",
			shows: []string{
				"detach", "drain", "cancel", "stay", "the run continues", "126 running, 84,513 queued",
				"runs finish, then it ends", "end all jobs (asks again)"}},
		{promise: "a new view replaces details that fill the body", w: 80, h: 15, keys: "enter 2",
			shows: []string{"ws03", "x stop now"}},
		{promise: "the help offers no whole width where every view has it", w: 80, h: 24, keys: "?",
			hides: []string{"whole width"}},
	} {
		t.Run(c.promise, func(t *testing.T) {
			at := sizes
			if c.w > 0 {
				at = [][2]int{{c.w, c.h}}
			}
			for _, size := range at {
				m := newScreen(t, sampleWith(c.change), size[0], size[1])
				press(t, m, c.keys, c.shows...)
				hides(t, m, c.hides...)
				checkSize(t, m, c.promise)
			}
		})
	}
}

// TestSummaryTakesAtMostAThird checks that the summary of a finished run takes at most a third of
// the screen, hides when a pane is opened on the whole screen, and closes on esc. It lists the
// hosts that were useless to the run, as the printed summary does.
func TestSummaryTakesAtMostAThird(t *testing.T) {
	trouble := []string{"processes that jobs left behind may still be alive on ws02: resume ends them",
		"ws09 ran nothing: \x1b[2Jno route to host"}
	ended := sampleWith(combine(states["ended"], func(snap *runview.Snapshot) {
		snap.Trouble = trouble
		for i := range 5 {
			snap.Groups = append(snap.Groups, runview.Group{Cause: fmt.Sprintf("exit %d", i+2), Count: 1})
		}
	}))
	m := newScreen(t, ended, 100, 30)
	shows(t, m, "may still be alive on ws02: resume ends them", "ws09 ran nothing: ␛[2Jno route")
	hides(t, m, "2 has more")
	for i := range 20 {
		trouble = append(trouble, fmt.Sprintf("ws%d ran nothing: no route to host", 10+i))
	}
	m = newScreen(t, ended, 80, 24)
	shows(t, m, "may still be alive on ws02", "2 has more")
	if n := len(m.summaryRows()); n == 0 || n > 8 {
		t.Errorf("it has %d rows", n)
	}
	press(t, m, "enter z")
	hides(t, m, "Summary")
	press(t, m, "esc", "Summary", "esc hides this")
	press(t, m, "esc")
	hides(t, m, "Summary")
}

// TestKeysBeforeTheLineAreNotLost checks that keys typed before the input line appears go into it,
// and that none takes effect unseen.
func TestKeysBeforeTheLineAreNotLost(t *testing.T) {
	m, _ := screenOn(t, sample(), aQueued, 80, 24)
	_, cmd := m.Update(keyMessage("e"))
	for _, k := range []string{"!", "c", "h"} {
		m.Update(keyMessage(k))
	}
	m.Update(pasteMessage("o x"))
	m.Update(keyMessage("enter"))
	m.Update(keyMessage("y"))
	runCommands(t, m, cmd)
	line, ok := m.modal.(*inputLine)
	if !ok || line.text.String() != "python train.py --C 0.1 --gamma 0.5!cho x" {
		t.Errorf("the line is %+v", m.modal)
	}
	checkActions(t, m.src.(*fakeSource))
}

// TestNoStaleMessageOfPausing checks that a message disappears when another screen makes it untrue.
func TestNoStaleMessageOfPausing(t *testing.T) {
	paused := false
	m := newScreen(t, sampleWith(func(snap *runview.Snapshot) { snap.Paused = paused }), 80, 24)
	m.src.(*fakeSource).answer = func(action.Request) (*runview.Answer, error) {
		paused = true
		return &runview.Answer{Text: "launching is paused"}, nil
	}
	press(t, m, "p", "launching is paused")
	paused = false
	refresh(t, m)
	hides(t, m, "launching is paused")
}

// TestWhatFailedPointsToStderr checks that a failed job without output on stdout points to stderr,
// in the output pane and in why.
func TestWhatFailedPointsToStderr(t *testing.T) {
	src := sampleWith(func(snap *runview.Snapshot) {
		if snap.Detail != nil {
			snap.Detail.Why = "Job 50120 has failed: exit 137 on ws07."
		}
	})
	src.read = func(r runview.Read) (*runview.Piece, error) {
		if r.File == jobs.FileOut {
			return &runview.Piece{Over: true}, nil
		}
		return &runview.Piece{Data: []byte("Killed\n"), Size: 7, Over: true}, nil
	}
	m, _ := screenOn(t, src, aFailed, 80, 24)
	press(t, m, "l") // stdout is empty, so stderr is shown first
	shows(t, m, "50120.3 stderr", "Killed", "o stdout")
	press(t, m, "o", "50120.3 stdout", "It printed nothing on stdout.", "o stderr")
	press(t, m, "o", "50120.3 stderr", "Killed")
	press(t, m, "esc w", "The last line of its stderr: Killed")
}

// TestAPaneSaysThatTheCursorIsElsewhere checks that a pane that stays with a job shows it when the
// cursor is on another job.
func TestAPaneSaysThatTheCursorIsElsewhere(t *testing.T) {
	m, _ := screenOn(t, sample(), aRunning, 80, 24)
	press(t, m, "enter")
	hides(t, m, "the cursor is on")
	m.jobs.moveToJob(aQueued)
	refresh(t, m)
	shows(t, m, "the cursor is on job 50137")
}

// TestLongMessagesAreReadable checks that a message or banner too long for one row takes up to
// three rows.
func TestLongMessagesAreReadable(t *testing.T) {
	m := newScreen(t, sample(), 80, 24)
	m.showError("cannot cancel: the run's dispatcher is gone and nobody dispatches it; " +
		":resume starts a dispatcher, r and e work")
	shows(t, m, "r and e work")
	checkSize(t, m, "a long message")
	m.snapshotErr = fmt.Errorf("dcs-tui of root on vm (pid 14962, since 2026-11-21 23:46:55) does not answer; " +
		"it may hang: look there")
	shows(t, m, "look there")
	checkSize(t, m, "a long banner")
}

// TestCompletionShowsWhatIsChosen checks that the list of completions shows the one that tab has
// chosen.
func TestCompletionShowsWhatIsChosen(t *testing.T) {
	m := newScreen(t, sample(), 80, 24)
	press(t, m, ":")
	for range len(commandNames()) {
		press(t, m, "tab")
		line := m.modal.(*inputLine)
		if word := line.completions[line.completionIndex]; !strings.Contains(plainText(line.hintLine(m, 80)), word) ||
			width(line.hintLine(m, 80)) > 80 {
			t.Fatalf("%s is not in %q", word, plainText(line.hintLine(m, 80)))
		}
	}
}

// TestLeaveIsAlwaysInTheFooter checks that the footer always shows how to leave, at every width of
// at least 40 columns, even beside a message and an undo, and that no size breaks the layout.
func TestLeaveIsAlwaysInTheFooter(t *testing.T) {
	for _, size := range [][2]int{{40, 10}, {40, 15}, {50, 24}, {59, 14}, {60, 15}, {80, 24}, {119, 35}, {120, 36},
		{200, 50}, {300, 100}} {
		for tab := range numTabs {
			for _, key := range []string{"", "%", "l", "enter", "z"} {
				m := newScreen(t, sample(), size[0], size[1])
				press(t, m, fmt.Sprintf("%d %s", tab+1, key))
				checkSize(t, m, fmt.Sprintf("%v, view %d after %q", size, tab+1, key))
				if m.modal != nil {
					continue // it has the keys and shows how to close it
				}
				rows := strings.Split(strings.TrimSuffix(plainScreen(m), "\n"), "\n")
				checkContains(t, strings.Join(rows[len(rows)-m.maxMessageRows():], "\n"), "q leave",
					"%v, view %d after %q: the footer", size, tab+1, key)
			}
		}
	}
}

// TestListTakesTheWholeScreen checks that z gives the list of jobs the whole screen at full width,
// and undoes that.
func TestListTakesTheWholeScreen(t *testing.T) {
	m := newScreen(t, sample(), 160, 48)
	shows(t, m, "Hosts 10/12 up", "50117 stdout")
	press(t, m, "z")
	hides(t, m, "Hosts 10/12 up", "50117 stdout")
	checkGolden(t, m, "jobs-alone-160x48")
	press(t, m, "j l") // a pane that is opened appears beside the list as usual
	shows(t, m, "50118 stdout", "Hosts 10/12 up")
	press(t, m, "esc")
	hides(t, m, "Hosts 10/12 up")
	press(t, m, "esc", "Hosts 10/12 up")
}

// TestColumnsAreChosen checks that C chooses the columns of a list: hidden columns disappear, and
// chosen columns come before the others.
func TestColumnsAreChosen(t *testing.T) {
	m := newScreen(t, sample(), 80, 24)
	heads := func() string {
		for row := range strings.SplitSeq(plainScreen(m), "\n") {
			if strings.Contains(row, " STATE ") && !strings.Contains(row, "[") {
				return strings.Join(strings.Fields(row), " ")
			}
		}
		return ""
	}
	equal(t, heads(), "ID STATE HOST TRY TIME PROGRESS NAME", "the columns at first")
	press(t, m, "C")
	checkGolden(t, m, "columns-80x24")
	press(t, m, "j j space G space") // hide HOST, show MEM
	shows(t, m, "[ ] HOST", "[x] MEM")
	press(t, m, "esc")
	equal(t, heads(), "ID STATE TRY TIME PROGRESS NAME MEM", "the columns")
	press(t, m, "C backspace esc")
	equal(t, heads(), "ID STATE HOST TRY TIME PROGRESS NAME", "the columns after backspace")
	press(t, m, "2 C space G esc")
	equal(t, strings.HasPrefix(heads(), "HOST STATE SLOTS"), true, "the columns of the hosts without USED: %s", heads())
	for _, size := range [][2]int{{40, 10}, {200, 50}} {
		m := newScreen(t, sample(), size[0], size[1])
		press(t, m, "C")
		for range 12 { // choose all columns, which do not fit
			press(t, m, "space space j")
		}
		checkSize(t, m, "all columns")
	}
}

// TestHostsAreGroupedByCause checks that hosts that are unreachable for the same cause are grouped,
// in the header and under the list of hosts.
func TestHostsAreGroupedByCause(t *testing.T) {
	src := sampleWith(func(snap *runview.Snapshot) {
		for i := range 9 {
			h := &snap.Hosts[i]
			h.State, h.Reason, h.Running = "backing_off", "10.0.0."+itoa(i+1)+":22 refuses connections", 0
		}
		snap.Hosts[4].State, snap.Hosts[4].Reason = "lost", "no answer for 60 s"
	})
	m := newScreen(t, src, 160, 30)
	press(t, m, "2")
	checkGolden(t, m, "hosts-by-cause-160x30")
	shows(t, m, "⚠ ws[01-04,06-09] (8 hosts): <host>:22 refuses connections")
}
