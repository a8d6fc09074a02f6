package tui

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"

	"dcs-tui/jobs"
	"dcs-tui/jobs/live"
	"dcs-tui/observe/runview"
)

// TestNumbersAreFormatted checks how numbers are formatted at the edges of their ranges. A duration
// below a second of a finished job is not shown as 0:00.
func TestNumbersAreFormatted(t *testing.T) {
	for _, c := range [][2]string{
		{formatElapsed(0), "0:00"}, {formatElapsed(513 * time.Millisecond),
			"513 ms"}, {formatElapsed(999 * time.Millisecond), "999 ms"}, {formatElapsed(time.Second), "0:01"},
		{formatLatency(0), "-"}, {formatLatency(12 * time.Millisecond), "12 ms"},
		{formatPercent(0, 10), "0.0%"}, {formatPercent(1, 100_000), "<0.1%"}, {formatPercent(99_999, 100_000),
			"99.9%"}, {formatPercent(3, 3), "100.0%"}, {formatPercent(0, 0), "-"},
	} {
		equal(t, c[0], c[1], "a number")
	}
}

// TestBarsDistinguishNoneSomeAndAll checks that bars have the requested width, and that they
// distinguish none from some and some from all.
func TestBarsDistinguishNoneSomeAndAll(t *testing.T) {
	for _, g := range []*glyphs{&utf8Glyphs, &asciiGlyphs} {
		m := &model{glyphs: g}
		for w := range 60 {
			for _, v := range []float64{-1, 0, 0.001, 0.5, 0.78, 0.999, 1, 2, math.NaN(), math.Inf(1)} {
				equal(t, width(m.drawBar(v, w)), w, "width of bar(%v)", v)
			}
			for _, c := range [][3]int{{0, 0, 0}, {0, 0, 10}, {10, 0, 10}, {5, 5, 10}, {0, 10, 10}, {1, 1, 1_000_000},
				{999_998, 1, 1_000_000}, {9, 9, 10}} {
				s := ansi.Strip(m.drawShares(c[0], c[1], 0, c[2], w))
				if o := ansi.Strip(m.drawShares(c[0], c[1], 7, c[2]+7, w)); width(o) != w || w > 3 &&
					!strings.Contains(o, g.othersBar) {
					t.Errorf("shares(%v and 7 left out, %d) is %q", c, w, o)
				}
				equal(t, width(s), w, "width of shares(%v)", c)
				if w > 2 && c[1] > 0 != strings.Contains(s, g.badBar) {
					t.Errorf("shares(%v, %d) does not tell what failed: %q", c, w, s)
				}
				if full := !strings.Contains(s, g.bar[0]); w > 3 && full && c[0]+c[1] < c[2] {
					t.Errorf("shares(%v, %d) is full: %q", c, w, s)
				}
			}
		}
	}
}

// TestSparklinesKeepTheNewestValues checks that sparklines keep the newest values and have a gap
// where no value was measured.
func TestSparklinesKeepTheNewestValues(t *testing.T) {
	m := &model{glyphs: &utf8Glyphs}
	equal(t, m.sparkline([]float64{9, 0, 4, 8, math.NaN(), 8}, 0, 5), "▁▅█ █", "with a gap")
	equal(t, m.sparkline([]float64{1}, 8, 3), "  ▂", "one value")
	got := downsample([]float64{1, 3, math.NaN(), 5, math.NaN(), math.NaN()}, 3)
	if got[0] != 2 || got[1] != 5 || !math.IsNaN(got[2]) {
		t.Errorf("pooled %v", got)
	}
	h := &live.Host{History: []uint8{0, 100, 255, 50}}
	equal(t, ansi.Strip(m.slotsSparkline(h, 4)), "▁█ ▅", "history")
}

// TestSlotsOfAHost checks how a host's used slots, its free slots, and the slots taken by others
// are drawn (K6).
func TestSlotsOfAHost(t *testing.T) {
	m := &model{glyphs: &utf8Glyphs}
	for _, c := range []struct {
		used, slots int
		usable      float64
		want        string
	}{
		{0, 10, 10, "··········"}, {1, 10, 10, "█·········"}, {11, 12, 12, "█████████·"}, {12, 12, 12, "██████████"},
		{3, 10, 5, "███··░░░░░"}, {5, 10, 3, "█████░░░░░"}, {0, 10, 0, "░░░░░░░░░░"}, {1, 1000, 1000, "█·········"}, {0,
			0, 0, ""}, {20, 10, 10, "██████████"},
	} {
		t.Run(c.want, func(t *testing.T) {
			equal(t, ansi.Strip(m.slotsBar(&live.Host{Running: c.used, Slots: c.slots, Usable: c.usable}, 10)), c.want,
				"%d of %d, %v usable", c.used, c.slots, c.usable)
		})
	}
}

// TestCursorIsInsideTheWindow checks which row of a list is the first that is visible.
func TestCursorIsInsideTheWindow(t *testing.T) {
	for _, c := range [][5]int{{0, 0, 10, 5, 0}, {0, 4, 10, 5, 0}, {0, 5, 10, 5, 1}, {7, 3, 10, 5, 3}, {9, 9, 10, 5, 5},
		{3, 0, 2, 5, 0}, {0, 3, 10, 0, 3}} {
		equal(t, firstVisible(c[0], c[1], c[2], c[3]), c[4], "window%v", c[:4])
	}
}

// TestShortNamesDistinguishHosts checks that shortened names still distinguish hosts.
func TestShortNamesDistinguishHosts(t *testing.T) {
	for _, c := range [][2]string{
		{"ws01 ws02 ws03 ws12", "01 02 03 12"}, {"n101 n102 n201 n202", "101 102 201 202"}, {"ws01 gpu01 ws02 gpu02",
			"w01 g01 w02 g02"},
		{"melon pear fig apple", "melon pear fig apple"}, {"desk laptop", "desk  laptop "}, {"a1 b1 aa1 bb1",
			"a1 b1 aa1 bb1"},
	} {
		m := &model{glyphs: &utf8Glyphs, snap: &runview.Snapshot{}}
		for _, n := range strings.Fields(c[0]) {
			m.snap.Hosts = append(m.snap.Hosts, live.Host{Name: n})
		}
		equal(t, strings.Join(m.shortNames(), " "), c[1], "%s", c[0])
	}
}

// TestAgeOfTheDataIsShown checks that row 1 shows whether the data is live and how old it is (rule
// 5).
func TestAgeOfTheDataIsShown(t *testing.T) {
	now := noon
	src := sample()
	m := newScreen(t, src, 80, 24)
	m.now = func() time.Time { return now }
	row := func() string { return strings.SplitN(plainScreen(m), "\n", 2)[0] }
	for _, c := range []struct {
		age  time.Duration
		want string
	}{{0, "● live 0 s"}, {3 * time.Second, "● live 3 s"}, {5 * time.Second, "○ not live, 5 s old"}, {time.Hour,
		"○ not live, 60 min old"}} {
		now = noon.Add(c.age)
		checkContains(t, row(), c.want, "after %v", c.age)
	}
	now = noon
	m.Update(snapshotMsg{err: errors.New("the run directory does not answer")})
	if !strings.Contains(row(), "not live") || !strings.Contains(plainScreen(m), "does not answer") {
		t.Errorf("a run that cannot be read: %s", row())
	}
}

// TestETAIsARange checks that the ETA has a range, and that the screen mentions that more jobs may
// arrive.
func TestETAIsARange(t *testing.T) {
	for _, c := range []struct {
		eta, spread time.Duration
		more        bool
		want        string
	}{
		{34*time.Hour + 10*time.Minute, 2 * time.Hour, false, "ETA 34h 10m ± 2 h"}, {time.Minute, 0, false, "ETA 60 s"},
		{time.Minute, 0, true, "ETA 60 s, more may come"}, {0, 0, true, "more may come"}, {0, 0, false,
			"ETA not known yet"},
	} {
		t.Run(c.want, func(t *testing.T) {
			m := &model{glyphs: &utf8Glyphs, snap: &runview.Snapshot{RunProgress: runview.RunProgress{Total: 1,
				Phases: [runview.Phases]int{runview.Running: 1}, ETA: c.eta, Spread: c.spread, More: c.more}}}
			equal(t, m.etaText(), c.want, "the ETA")
		})
	}
}

// TestNextSlotIsInTheHeader checks that the header shows when the next slot is due for jobs that
// wait, if there is space beside the progress of the run, and that the time passes.
func TestNextSlotIsInTheHeader(t *testing.T) {
	for _, c := range []struct {
		name string
		next *jobs.NextSlot
		want string // "": nothing
	}{
		{"no job waits", nil, ""},
		{"unknown", &jobs.NextSlot{From: jobs.SlotUnknown}, ""},
		{
			"a job ends",
			&jobs.NextSlot{From: jobs.SlotOfJob, Host: "ws01", Job: 7, In: 3 * time.Minute},
			"next slot 3 min",
		},
		{"soon", &jobs.NextSlot{From: jobs.SlotOfJob, Host: "ws01", Job: 7, In: 3 * time.Second}, "next slot <10 s"},
		{"overdue", &jobs.NextSlot{From: jobs.SlotOfJob, Host: "ws01", Job: 7}, "next slot overdue"},
		{"others", &jobs.NextSlot{From: jobs.SlotOfOthers, Host: "ws01", In: 25 * time.Second}, "next slot 25 s"},
		{"others, now", &jobs.NextSlot{From: jobs.SlotOfOthers, Host: "ws01"}, "next slot <10 s"},
	} {
		t.Run(c.name, func(t *testing.T) {
			src := sampleWith(func(snap *runview.Snapshot) { snap.NextSlot = c.next })
			m := newScreen(t, src, 80, 24)
			if c.want == "" {
				hides(t, m, "next slot")
				return
			}
			shows(t, m, c.want+"  ETA 34h")
			hides(t, newScreen(t, src, 60, 15), "next slot") // the bar would be too short
		})
	}
	m := newScreen(t, sampleWith(func(snap *runview.Snapshot) {
		snap.NextSlot = &jobs.NextSlot{From: jobs.SlotOfJob, In: 25 * time.Second}
	}), 80, 24)
	m.now = func() time.Time { return noon.Add(2 * time.Second) }
	equal(t, m.nextSlotText(), "next slot 23 s", "the next slot two seconds later")
}

// TestEventsKeepTheirPlace checks that the log follows the newest event. If the user has scrolled
// back, the log keeps its event in its row whatever arrives. G follows again, and the oldest event
// can be reached (E8).
func TestEventsKeepTheirPlace(t *testing.T) {
	n := 1000
	m := newScreen(t, &fakeSource{snapshot: func(ask runview.Query) (*runview.Snapshot, error) {
		snap := sampleSnapshot(ask)
		snap.Events = &runview.Events{Total: n}
		for i := max(0, n-ask.Events.Rows); i < n; i++ {
			snap.Events.Lines = append(snap.Events.Lines,
				runview.Event{Seq: uint64(10 + i), At: noon, Text: fmt.Sprintf("event %d", i), Bad: i == 70})
		}
		return snap, nil
	}}, 80, 24)
	cursor := func() string {
		for i, l := range strings.Split(plainScreen(m), "\n") {
			if rest, ok := strings.CutPrefix(l, ">"); ok {
				return fmt.Sprintf("%d:%s", i, rest[strings.Index(rest, "event"):])
			}
		}
		return "none"
	}
	press(t, m, "5")
	equal(t, cursor(), "21:event 999", "the cursor at first")
	n += 5
	refresh(t, m)
	equal(t, cursor(), "21:event 1004", "the cursor while it follows")
	press(t, m, "k k pgup")
	at := cursor()
	for _, more := range []int{1, 40, 90, 1, 400, 3000} {
		n += more
		refresh(t, m)
		equal(t, cursor(), at, "after %d more", more)
	}
	press(t, m, "j")
	if got := cursor(); got == at {
		t.Error("it does not move")
	}
	press(t, m, "g")
	equal(t, cursor(), "4:event 0", "the cursor after g")
	for range 300 {
		press(t, m, "j")
	}
	_, event, _ := strings.Cut(cursor(), ":")
	equal(t, event, "event 300", "the cursor 300 steps after the first")
	press(t, m, "G")
	n++
	refresh(t, m)
	equal(t, cursor(), fmt.Sprintf("21:event %d", n-1), "the cursor after G")
}

// TestEventsAreFiltered checks that the choice between important events and all events, and a
// filter, reach the source, and that esc removes the filter (E8).
func TestEventsAreFiltered(t *testing.T) {
	m := newScreen(t, sample(), 80, 24)
	want := func(what string, w runview.EventsWindow) {
		t.Helper()
		ask := m.buildQuery()
		if ask.Events == nil || ask.Events.Filter != w.Filter || ask.Events.All != w.All {
			t.Errorf("%s: asks for %+v", what, ask.Events)
		}
	}
	press(t, m, "5")
	want("at first", runview.EventsWindow{})
	press(t, m, "v")
	want("a", runview.EventsWindow{All: true})
	typeLine(t, m, "/", "host=ws05")
	want("/", runview.EventsWindow{All: true, Filter: "host=ws05"})
	press(t, m, "esc v")
	want("esc v", runview.EventsWindow{})
}

// TestTheHelpIsWhole checks that the help contains the keys of the view, the commands, and the
// filter language, and that it can be scrolled to its end at any size (rule 12).
func TestTheHelpIsWhole(t *testing.T) {
	m := newScreen(t, sample(), 60, 15)
	press(t, m, "2 ?")
	var text strings.Builder
	for range 40 {
		text.WriteString(strings.ReplaceAll(plainScreen(m), "\n                ", ""))
		press(t, m, "pgdown")
	}
	for _, word := range []string{"drain: what runs there finishes", "state=fail", "straggler", ":requeue",
		"one slot more", "ctrl+z", "ended because it ran longer"} {
		t.Run(word, func(t *testing.T) {
			checkContains(t, text.String(), word, "the help")
		})
	}
	press(t, m, "esc")
	if m.modal != nil {
		t.Error("esc does not close it")
	}
}

// TestDetailsShowEverythingAboutAHost checks that the details of a host show everything that is
// known about it, with its events.
func TestDetailsShowEverythingAboutAHost(t *testing.T) {
	src := sample()
	m := newScreen(t, src, 80, 24)
	press(t, m, "2 j j j j enter")
	checkGolden(t, m, "frame-host-80x24")
	ask := m.buildQuery()
	if ask.Events == nil || ask.Events.Filter != "host=ws05" || !ask.Events.All {
		t.Errorf("it asks for %+v", ask.Events)
	}
	if ask.Jobs != nil || ask.Groups {
		t.Error("it asks for what is not shown")
	}
}
