package tui

import (
	"fmt"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"dcs-tui/jobs"
	"dcs-tui/jobs/runview"
)

// lastRow returns the row of the hints.
func lastRow(m *model) string {
	rows := strings.Split(strings.TrimRight(plain(m), "\n"), "\n")
	return rows[len(rows)-1]
}

func hides(t *testing.T, m *model, texts ...string) {
	t.Helper()
	s := plain(m)
	for _, text := range texts {
		if strings.Contains(s, text) {
			t.Errorf("the screen says %q:\n%s", text, s)
		}
	}
}

// TestHintsAreThoseOfTheFocus checks that the hints are those of the focused pane, also beside
// another view, and that a message after esc names the pane that has the keys next (rule 12).
func TestHintsAreThoseOfTheFocus(t *testing.T) {
	m := newScreen(t, sample(), 160, 48)
	press(t, m, "2")
	for _, word := range []string{"d drain", "x stop now", "+ slots"} {
		if !strings.Contains(lastRow(m), word) {
			t.Errorf("no %s among the keys of the hosts: %s", word, lastRow(m))
		}
	}
	press(t, m, "esc")
	shows(t, m, "the keys are about Jobs now")
	if !strings.Contains(lastRow(m), "c cancel") {
		t.Errorf("after esc the keys are %s", lastRow(m))
	}
}

// TestKeysThatMeanNothingSaySo checks that a key without a meaning shows a message and does not
// hide an error.
func TestKeysThatMeanNothingSaySo(t *testing.T) {
	m := newScreen(t, sample(), 80, 24)
	press(t, m, "x")
	shows(t, m, "x does nothing here")
	press(t, m, "2", "c")
	shows(t, m, "c does nothing here")
	m.complain("the disk is full")
	press(t, m, "e")
	shows(t, m, "the disk is full")
}

// inTrouble is a run of three hosts, none of which can start a job.
func inTrouble(p *runview.Snapshot) {
	p.Hosts = p.Hosts[:3]
	for i := range p.Hosts {
		h := &p.Hosts[i]
		h.Name, h.Slots, h.Running, h.State, h.Reason = fmt.Sprintf("box%d", i+1), 2, 0, hostDisabled, "its key is not known"
	}
	p.Hosts[0].State, p.Hosts[0].Reason = hostDraining, "draining"
	p.Hosts[1].Reason = "box2: its host key has changed"
	p.SlotsBusy, p.Slots = 0, 6
	p.Phases[runview.Running] = 0
}

// TestNothingCanStartIsSaid checks that a host that cannot start jobs counts neither as up nor as
// free slots. If no host can start jobs, the screen shows the worst reason, with the host's name
// once.
func TestNothingCanStartIsSaid(t *testing.T) {
	m := newScreen(t, change(inTrouble), 160, 24)
	shows(t, m, "slots 0/0 on 0 of 3 hosts", "2 Hosts 0/3", "NOTHING CAN START", "box2 its host key has changed")
	hides(t, m, "box2 box2")
	m = newScreen(t, change(func(p *runview.Snapshot) { inTrouble(p); p.Stuck = "box2 is disabled" }), 80, 24)
	shows(t, m, "NOTHING CAN START  box2 is disabled")
	m = newScreen(t, change(func(p *runview.Snapshot) {
		inTrouble(p)
		p.Hosts[2].State, p.Hosts[2].Reason, p.Hosts[2].Running, p.SlotsBusy = hostUp, "", 2, 2
	}), 160, 24)
	shows(t, m, "slots 2/2 on 1 of 3 hosts", "2 Hosts 1/3")
	hides(t, m, "NOTHING CAN START")
}

// TestOnlyWhatRunsIsCountedSo checks that jobs sent to a host do not count as running, and that the
// number of running jobs is unknown if the run has no dispatcher.
func TestOnlyWhatRunsIsCountedSo(t *testing.T) {
	handed := func(p *runview.Snapshot) { p.Phases[runview.Running], p.Phases[runview.Handed] = 6, 5 }
	m := newScreen(t, change(handed), 120, 24)
	shows(t, m, "run 6 +5 handed")
	press(t, m, "q")
	shows(t, m, "6 running, 5 sent to hosts, 84,513 queued")
	m = newScreen(t, change(func(p *runview.Snapshot) { handed(p); p.Status = runview.StatusCrashed }), 120, 24)
	shows(t, m, "may run 11")
	m = newScreen(t, change(func(p *runview.Snapshot) { handed(p); p.Status = runview.StatusStopped }), 120, 24)
	shows(t, m, "○ stopped", "may run 11")
	hides(t, m, "○ ended")
}

// TestTheSummaryMakesWay checks that the summary of a finished run takes at most a third of the
// screen, hides when a pane is opened on the whole screen, and closes on esc.
func TestTheSummaryMakesWay(t *testing.T) {
	m := newScreen(t, change(func(p *runview.Snapshot) {
		states["ended"](p)
		for i := range 5 {
			p.Groups = append(p.Groups, runview.Group{Cause: fmt.Sprintf("exit %d", i+2), Count: 1})
		}
	}), 80, 24)
	if n := len(m.summary()); n == 0 || n > 8 {
		t.Errorf("it has %d rows", n)
	}
	press(t, m, "enter", "z")
	hides(t, m, "Summary")
	press(t, m, "esc")
	shows(t, m, "Summary", "esc folds this away")
	press(t, m, "esc")
	hides(t, m, "Summary")
}

// TestTheSummarySaysWhichHostsWereOfNoUse checks that the summary lists the hosts that were useless
// to the run, as the printed summary does. It never exceeds a third of the screen, even with
// hostile texts.
func TestTheSummarySaysWhichHostsWereOfNoUse(t *testing.T) {
	trouble := []string{"processes that jobs left behind may still be alive on ws02: resume ends them", "ws09 ran nothing: \x1b[2Jno route to host"}
	m := newScreen(t, change(func(p *runview.Snapshot) {
		states["ended"](p)
		p.Trouble = trouble
	}), 100, 30)
	shows(t, m, "may still be alive on ws02: resume ends them", "ws09 ran nothing: ␛[2Jno route")
	hides(t, m, "2 has more")
	for i := range 20 {
		trouble = append(trouble, fmt.Sprintf("ws%d ran nothing: no route to host", 10+i))
	}
	m = newScreen(t, change(func(p *runview.Snapshot) {
		states["ended"](p)
		p.Trouble = trouble
	}), 80, 24)
	shows(t, m, "may still be alive on ws02", "2 has more")
	if n := len(m.summary()); n > 8 {
		t.Errorf("it has %d rows", n)
	}
}

// TestTheCountOfJobsIsThatOfTheirList checks that the number of jobs beside the view's name does
// not depend on the view.
func TestTheCountOfJobsIsThatOfTheirList(t *testing.T) {
	m := newScreen(t, change(func(p *runview.Snapshot) {
		if p.Jobs != nil && p.Jobs.Filter != "" {
			p.Jobs.Matched = 11
		}
	}), 80, 24)
	press(t, m, "4")
	shows(t, m, "1 Jobs 96,859")
}

// TestKeysBeforeTheLineAreNotLost checks that keys typed before the input line appears go into it,
// and that none takes effect unseen.
func TestKeysBeforeTheLineAreNotLost(t *testing.T) {
	m, _ := screenOn(t, sample(), aQueued, 80, 24)
	_, cmd := m.Update(keyMsg("e"))
	for _, k := range []string{"!", "c", "h"} {
		m.Update(keyMsg(k))
	}
	m.Update(tea.PasteMsg{Content: "o x"})
	m.Update(keyMsg("enter"))
	m.Update(keyMsg("y"))
	finish(t, m, cmd)
	line, ok := m.modal.(*input)
	if !ok || line.text.String() != "python train.py --C 0.1 --gamma 0.5!cho x" {
		t.Errorf("the line is %+v", m.modal)
	}
	if got := m.src.(*fakeSource).done(); len(got) > 0 {
		t.Errorf("it did %+v", got)
	}
}

// TestNoStaleMessageOfPausing checks that a message disappears when another screen makes it untrue.
func TestNoStaleMessageOfPausing(t *testing.T) {
	paused := false
	m := newScreen(t, change(func(p *runview.Snapshot) { p.Paused = paused }), 80, 24)
	m.src.(*fakeSource).answer = func(runview.Action) (*runview.Answer, error) {
		paused = true
		return &runview.Answer{Text: "launching is paused"}, nil
	}
	press(t, m, "p")
	shows(t, m, "launching is paused")
	paused = false
	refresh(t, m)
	hides(t, m, "launching is paused")
}

// TestWhatFailedPointsToStderr checks that a failed job without output on stdout points to stderr,
// in the output pane and in why.
func TestWhatFailedPointsToStderr(t *testing.T) {
	src := change(func(p *runview.Snapshot) {
		if p.Detail != nil {
			p.Detail.Why = "Job 50120 is over (failed): exit 137."
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
	press(t, m, "o")
	shows(t, m, "50120.3 stdout", "It printed nothing on stdout.", "o stderr")
	press(t, m, "o")
	shows(t, m, "50120.3 stderr", "Killed")
	press(t, m, "esc", "w")
	shows(t, m, "The last line of its stderr: Killed")
}

// TestTheCursorSlides checks that a key does nothing to a job that has just moved under the cursor.
// The key shows a message, and the next key works. A message about one job names the job (rule 4).
func TestTheCursorSlides(t *testing.T) {
	gone := false
	src := change(func(p *runview.Snapshot) {
		if gone && p.Jobs != nil {
			for i := range p.Jobs.Rows {
				p.Jobs.Rows[i].ID++
			}
			p.Jobs.Cursor = -1
		}
	})
	src.answer = func(a runview.Action) (*runview.Answer, error) {
		return &runview.Answer{Done: 1, Text: "priority -1 for 1 job"}, nil
	}
	m, now := screenOn(t, src, aQueued, 80, 24)
	gone = true
	m.jobs.list.cursor = aQueued
	// The page arrives without the job twice, as from a dispatcher.
	page := &runview.Page{Matched: sampleTotal, First: 20, Cursor: -1}
	for i := range 20 {
		page.Rows = append(page.Rows, sampleRow(aQueued+1+jobs.ID(i)))
	}
	m.jobs.win.Cursor = aQueued
	m.jobs.watch(m, page)
	m.jobs.win.Cursor = aQueued
	m.jobs.watch(m, page)
	on, ok := m.jobs.current(m)
	if !ok || on.ID != aQueued+1 {
		t.Fatalf("the cursor is on %d, %v", on.ID, ok)
	}
	m.Update(keyMsg("c"))
	if want := "job 50137 has left the list; the cursor is on job 50138 now: press again"; m.message.text != want {
		t.Errorf("it says %q", m.message.text)
	}
	if m.modal != nil || len(src.done()) > 0 {
		t.Errorf("it did %+v", src.done())
	}
	_, cmd := m.Update(keyMsg("+"))
	if cmd == nil || len(m.targets()) != 1 {
		t.Error("the second key does nothing")
	}
	m.jobs.slip = slip{from: jobName(aQueued), gone: true, at: *now}
	*now = now.Add(slipTime)
	if m.slid() {
		t.Error("after a while it still counts as sudden")
	}
	for text, want := range map[string]string{"1 job canceled": "job 7 canceled", "priority -1 for 1 job": "priority -1 for job 7", "11 jobs": "11 jobs", "21 job": "21 job"} {
		if got := naming(text, jobs.One(7)); got != want {
			t.Errorf("%q becomes %q", text, got)
		}
	}
}

// TestAPaneSaysThatTheCursorIsElsewhere checks that a pane that stays with a job shows it when the
// cursor is on another job.
func TestAPaneSaysThatTheCursorIsElsewhere(t *testing.T) {
	m, _ := screenOn(t, sample(), aRunning, 80, 24)
	press(t, m, "enter")
	hides(t, m, "the cursor is on")
	m.jobs.follow(aQueued)
	refresh(t, m)
	shows(t, m, "the cursor is on job 50137")
}

// TestAwayJobsKeepTheirProgress checks that the last reported progress stays visible when no
// reports arrive any more, and that its time is marked.
func TestAwayJobsKeepTheirProgress(t *testing.T) {
	away := false
	m := newScreen(t, change(func(p *runview.Snapshot) {
		if away {
			p.Status = runview.StatusCrashed
			if p.Jobs != nil {
				for i := range p.Jobs.Rows {
					p.Jobs.Rows[i].Progress = -1
				}
			}
		}
	}), 160, 24)
	shows(t, m, "███████▊")
	away = true
	refresh(t, m)
	shows(t, m, "███████▊", "1:12:00?")
}

// TestLongMessagesAreReadable checks that a message or banner too long for one row takes up to
// three rows.
func TestLongMessagesAreReadable(t *testing.T) {
	m := newScreen(t, sample(), 80, 24)
	m.complain("cannot cancel: the run's dispatcher is gone and nobody dispatches it; :resume starts a dispatcher, r and e work")
	shows(t, m, "r and e work")
	checkSize(t, m, "a long message")
	m.lookErr = fmt.Errorf("dcs-tui of root on vm (pid 14962, since 2026-11-21 23:46:55) does not answer; it may hang: look there")
	shows(t, m, "look there")
	checkSize(t, m, "a long banner")
}

// TestLeavingOnASmallScreen checks that the question on leaving is understandable at 40x10.
func TestLeavingOnASmallScreen(t *testing.T) {
	m := newScreen(t, sample(), 40, 10)
	press(t, m, "q")
	shows(t, m, "the run continues", "126 running, 84,513 queued.", "runs finish, then it ends", "all is ended (asks again)")
}

// TestShortTimes checks that durations below a second of finished jobs are not shown as 0:00.
func TestShortTimes(t *testing.T) {
	for d, want := range map[time.Duration]string{0: "0:00", time.Millisecond: "<0.1s", 513 * time.Millisecond: "0.5s", 999 * time.Millisecond: "0.9s", time.Second: "0:01"} {
		if got := took(d); got != want {
			t.Errorf("%v is %q, not %q", d, got, want)
		}
	}
}

// TestCompletionShowsWhatIsChosen checks that the list of completions shows the one that tab has
// chosen.
func TestCompletionShowsWhatIsChosen(t *testing.T) {
	m := newScreen(t, sample(), 80, 24)
	press(t, m, ":")
	for range len(commandNames()) {
		press(t, m, "tab")
		line := m.modal.(*input)
		if word := line.offered[line.turn]; !strings.Contains(plainText(line.offers(m, 80)), word) || width(line.offers(m, 80)) > 80 {
			t.Fatalf("%s is not in %q", word, plainText(line.offers(m, 80)))
		}
	}
}

// TestHeadingsAndNamesAreTold checks that the heading of the sort column is not cut, and that names
// with a common beginning are cut in that beginning.
func TestHeadingsAndNamesAreTold(t *testing.T) {
	m := newScreen(t, change(func(p *runview.Snapshot) {
		if p.Jobs != nil {
			for i := range p.Jobs.Rows {
				p.Jobs.Rows[i].Title = fmt.Sprintf("n=12; for i in $(seq 1 $n); do sleep 1; echo $i; done; result %do", p.Jobs.Rows[i].ID)
			}
		}
	}), 80, 24)
	m.jobs.sort, m.jobs.reverse = runview.SortHost, false
	refresh(t, m)
	shows(t, m, "HOST▲", "50117o", "50125o")
}

// TestLeaveIsAlwaysInTheFooter checks that the footer always shows how to leave, at every width of
// at least 40 columns, even beside a message and an undo.
func TestLeaveIsAlwaysInTheFooter(t *testing.T) {
	for _, size := range [][2]int{{40, 10}, {40, 15}, {50, 24}, {60, 15}, {80, 24}, {120, 36}, {200, 50}} {
		for tab := range tabs {
			for _, key := range []string{"", "%", "l", "enter", "z"} {
				m := newScreen(t, sample(), size[0], size[1])
				press(t, m, string('1'+rune(tab)))
				if key != "" {
					press(t, m, key)
				}
				if m.modal != nil {
					continue // it has the keys and shows how to close it
				}
				rows := strings.Split(strings.TrimSuffix(plain(m), "\n"), "\n")
				if foot := strings.Join(rows[len(rows)-m.maxRows():], "\n"); !strings.Contains(foot, "q leave") {
					t.Errorf("%v, view %d after %q: the footer is %q", size, tab+1, key, foot)
				}
			}
		}
	}
}

// TestAListAlone checks that z gives the list of jobs the whole screen at full width, and undoes
// that.
func TestAListAlone(t *testing.T) {
	m := newScreen(t, sample(), 160, 48)
	shows(t, m, "Hosts 10/12 up", "50117 stdout")
	press(t, m, "z")
	hides(t, m, "Hosts 10/12 up", "50117 stdout")
	golden(t, m, "jobs-alone-160x48")
	press(t, m, "j", "l") // a pane that is opened appears beside the list as usual
	shows(t, m, "50118 stdout", "Hosts 10/12 up")
	press(t, m, "esc")
	hides(t, m, "Hosts 10/12 up")
	press(t, m, "esc")
	shows(t, m, "Hosts 10/12 up")
}

// TestHandedIsExplained checks that "handed" is explained where it appears: in the header if there
// is space, and in the footer for the job under the cursor.
func TestHandedIsExplained(t *testing.T) {
	handed := change(func(p *runview.Snapshot) {
		p.Phases[runview.Running], p.Phases[runview.Handed] = 6, 5
		if p.Jobs != nil && len(p.Jobs.Rows) > 0 {
			p.Jobs.Rows[0].Phase = runview.Handed
		}
	})
	shows(t, newScreen(t, handed, 200, 50), "run 6 +5 handed (sent to hosts, not started)")
	shows(t, newScreen(t, handed, 80, 24), "handed: sent to its host, which starts it when a slot is free there")
}

// TestOthersUseAllCores checks that the first lines of the screen report, at every size, that
// others use all cores of a host.
func TestOthersUseAllCores(t *testing.T) {
	src := change(func(p *runview.Snapshot) {
		for _, i := range []int{1, 3} {
			h := &p.Hosts[i]
			h.Busy, h.Ours, h.Usable, h.Running, h.Reason = 11.8, 0, 0.2, 0, "reduces its slots: others use 11.8 of its 12 cores"
		}
	})
	for _, size := range [][2]int{{40, 15}, {80, 24}, {200, 50}} {
		m := newScreen(t, src, size[0], size[1])
		if top := strings.Join(strings.Split(plain(m), "\n")[:6], " "); !strings.Contains(top, "OTHERS' LOAD") || !strings.Contains(top, "on ws02 (11.8 of") {
			t.Errorf("%v: the first lines are %s", size, top)
		}
	}
	shows(t, newScreen(t, src, 120, 24), "on ws02 (11.8 of 12 cores), ws04 (11.8 of 12 cores): jobs start there as these become free")
	hides(t, newScreen(t, sample(), 80, 24), "OTHERS")
}

// TestColumnsAreChosen checks that C chooses the columns of a list: hidden columns disappear, and
// chosen columns come before the others.
func TestColumnsAreChosen(t *testing.T) {
	m := newScreen(t, sample(), 80, 24)
	heads := func() string {
		for row := range strings.SplitSeq(plain(m), "\n") {
			if strings.Contains(row, " STATE ") && !strings.Contains(row, "[") {
				return strings.Join(strings.Fields(row), " ")
			}
		}
		return ""
	}
	if got := heads(); got != "ID STATE HOST TRY TIME PROGRESS NAME" {
		t.Fatalf("the columns are %s", got)
	}
	press(t, m, "C")
	golden(t, m, "columns-80x24")
	press(t, m, "j", "j", "space", "G", "space") // hide HOST, show MEM
	shows(t, m, "[ ] HOST", "[x] MEM")
	press(t, m, "esc")
	if got := heads(); got != "ID STATE TRY TIME PROGRESS NAME MEM" {
		t.Errorf("the columns are %s", got)
	}
	press(t, m, "C", "backspace", "esc")
	if got := heads(); got != "ID STATE HOST TRY TIME PROGRESS NAME" {
		t.Errorf("backspace leaves the columns %s", got)
	}
	press(t, m, "2", "C", "space", "G", "esc")
	if got := heads(); !strings.HasPrefix(got, "HOST STATE SLOTS") {
		t.Errorf("the columns of the hosts are %s", got)
	}
	for _, size := range [][2]int{{40, 10}, {200, 50}} {
		m := newScreen(t, sample(), size[0], size[1])
		press(t, m, "C")
		for range 12 { // choose all columns, which do not fit
			press(t, m, "space", "space", "j")
		}
		checkSize(t, m, "all columns")
	}
}

// TestHostsByCause checks that hosts that are unreachable for the same cause are grouped, in the
// header and under the list of hosts.
func TestHostsByCause(t *testing.T) {
	src := change(func(p *runview.Snapshot) {
		for i := range 9 {
			h := &p.Hosts[i]
			h.State, h.Reason, h.Running = "backing_off", h.Name+": 10.0.0."+itoa(i+1)+":22 refuses connections", 0
		}
		p.Hosts[4].State, p.Hosts[4].Reason = "lost", "no answer for 60 s"
	})
	m := newScreen(t, src, 160, 30)
	press(t, m, "2")
	golden(t, m, "hosts-by-cause-160x30")
	shows(t, m, "⚠ ws[01-04,06-09] (8 hosts): HOST:22 refuses connections")
}

// TestNoBarWithoutProgress checks that a job that reports no progress has no bar.
func TestNoBarWithoutProgress(t *testing.T) {
	m := newScreen(t, sample(), 120, 24)
	for row := range strings.SplitSeq(plain(m), "\n") {
		if (strings.Contains(row, " queue ") || strings.Contains(row, " handed ")) && strings.Contains(row, "··") && strings.Contains(row, "sweep C") {
			t.Errorf("it reports nothing and has a bar: %s", row)
		}
	}
	shows(t, m, "███████")
}
