package tui

import (
	"strings"
	"testing"

	"dcs-tui/jobs/runview"
)

// The footer always says how to leave, at every width from 40 columns on, also beside a
// message and an undo.
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
					continue // it has the keys, and says how it is closed
				}
				rows := strings.Split(strings.TrimSuffix(plain(m), "\n"), "\n")
				if foot := strings.Join(rows[len(rows)-m.mostRows():], "\n"); !strings.Contains(foot, "q leave") {
					t.Errorf("%v, view %d after %q: the footer is %q", size, tab+1, key, foot)
				}
			}
		}
	}
}

// z gives the list of jobs the whole screen and its whole width, and takes it back.
func TestAListAlone(t *testing.T) {
	m := newScreen(t, sample(), 160, 48)
	shows(t, m, "Hosts 10/12 up", "50117 stdout")
	press(t, m, "z")
	hides(t, m, "Hosts 10/12 up", "50117 stdout")
	golden(t, m, "jobs-alone-160x48")
	press(t, m, "j", "l") // what is opened stands beside it as always
	shows(t, m, "50118 stdout", "Hosts 10/12 up")
	press(t, m, "esc")
	hides(t, m, "Hosts 10/12 up")
	press(t, m, "esc")
	shows(t, m, "Hosts 10/12 up")
}

// "handed" is explained where it appears: in the header where there is room, and in the
// footer for the job under the cursor.
func TestHandedIsExplained(t *testing.T) {
	handed := change(func(p *runview.Picture) {
		p.Phases[runview.Running], p.Phases[runview.Handed] = 6, 5
		if p.Jobs != nil && len(p.Jobs.Rows) > 0 {
			p.Jobs.Rows[0].Phase = runview.Handed
		}
	})
	shows(t, newScreen(t, handed, 200, 50), "run 6 +5 handed (sent to hosts, not started)")
	shows(t, newScreen(t, handed, 80, 24), "handed: sent to its host, which starts it when a slot is free there")
}

// When others use all cores of a host, the first lines of the screen say so, at every size.
func TestOthersUseAllCores(t *testing.T) {
	src := change(func(p *runview.Picture) {
		for _, i := range []int{1, 3} {
			h := &p.Hosts[i]
			h.Busy, h.Ours, h.Usable, h.Running, h.Reason = 11.8, 0, 0.2, 0, "yields: others use 11.8 of its 12 cores"
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

// C chooses the columns of a list: what is hidden goes, what is chosen comes before others.
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
	press(t, m, "j", "j", "space", "G", "space") // HOST goes, MEM comes
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
		for range 12 { // all are chosen, and there is no room for them
			press(t, m, "space", "space", "j")
		}
		checkSize(t, m, "all columns")
	}
}

// Hosts that cannot be reached for the same cause are told together, in the header and under
// the list of hosts.
func TestHostsByCause(t *testing.T) {
	src := change(func(p *runview.Picture) {
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

// A job that reports no progress has no bar.
func TestNoBarWithoutProgress(t *testing.T) {
	m := newScreen(t, sample(), 120, 24)
	for row := range strings.SplitSeq(plain(m), "\n") {
		if (strings.Contains(row, " queue ") || strings.Contains(row, " handed ")) && strings.Contains(row, "··") && strings.Contains(row, "sweep C") {
			t.Errorf("it reports nothing and has a bar: %s", row)
		}
	}
	shows(t, m, "███████")
}
