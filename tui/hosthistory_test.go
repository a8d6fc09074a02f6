package tui

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"dcs-tui/jobs"
	"dcs-tui/jobs/live"
	"dcs-tui/observe/runview"
)

// TestHistoryOfAHostIsShown compares the last hour of a host, and the timeline of its slots, at
// several sizes.
func TestHistoryOfAHostIsShown(t *testing.T) {
	for _, size := range [][2]int{{40, 10}, {80, 24}, {120, 40}} {
		for _, ascii := range []bool{false, true} {
			name := fmt.Sprintf("frame-host-history-%dx%d", size[0], size[1])
			if ascii {
				if size[0] != 80 {
					continue
				}
				name += "-ascii"
			}
			t.Run(name, func(t *testing.T) {
				m := newScreenOf(t, Options{Source: sample(), ASCII: ascii}, size[0], size[1])
				press(t, m, "2 enter")
				checkGolden(t, m, name)
				press(t, m, "G")
				checkGolden(t, m, name+"-end")
			})
		}
	}
}

// TestTimeline checks which attempt a part of the time of a slot shows, and how long the slot was in
// use.
func TestTimeline(t *testing.T) {
	run := func(from, to int, p runview.Phase) runview.SlotRun {
		return runview.SlotRun{Phase: p, Began: noon.Add(time.Duration(from) * time.Minute),
			Ended: noon.Add(time.Duration(to) * time.Minute)}
	}
	m := newScreen(t, sample(), 80, 24)
	for _, c := range []struct {
		name string
		runs []runview.SlotRun // an hour in ten cells
		want string
		busy time.Duration
	}{
		{"none", nil, "··········", 0},
		{"one after another", []runview.SlotRun{run(0, 17, runview.Succeeded), run(18, 35, runview.Succeeded),
			run(36, 60, runview.Running)}, "✓━━✓━━●━━━", 58 * time.Minute},
		{"began before", []runview.SlotRun{run(-300, 7, runview.Succeeded)}, "✓━········", 7 * time.Minute},
		{"the worst of a cell", []runview.SlotRun{run(0, 1, runview.Succeeded), run(1, 2, runview.Failed),
			run(2, 3, runview.Succeeded),
			run(6, 9, runview.Canceled), run(9, 10, runview.Succeeded), run(12, 13, runview.Retry),
			run(13, 60, runview.Running)},
			"✗–↻●━━━━━━", 55 * time.Minute},
		{"no time", []runview.SlotRun{run(30, 30, runview.Retry)}, "·····↻····", 0},
		{"other hours", []runview.SlotRun{run(-300, -200, runview.Failed), run(61, 62, runview.Running)}, "··········",
			0},
		{"two at a time", []runview.SlotRun{run(0, 30, runview.Succeeded), run(10, 20, runview.Succeeded),
			run(20, 40, runview.Failed)}, "✓✓━✗━━━···", 40 * time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			end := noon.Add(time.Hour)
			equal(t, plainText(m.drawTimeline(timeline(c.runs, noon, end, 10))), c.want, "%s", c.name)
			equal(t, busyTime(c.runs, noon, end), c.busy, "%s: time in use", c.name)
		})
	}
	equal(t, len(timeline([]runview.SlotRun{run(0, 1, runview.Running)}, noon, noon, 3)), 3, "cells of no time")
}

// TestHistoryOfAnotherHostIsNotShown checks that the history of the host that was open before is not
// shown, and that a host without samples has its present values.
func TestHistoryOfAnotherHostIsNotShown(t *testing.T) {
	m := newScreen(t, sample(), 80, 24)
	m.snap.Host = sampleHistory("ws02")
	text := strings.Join(m.hostLines("ws01", 78), "\n")
	if strings.Contains(text, "jobs/min") || strings.Contains(text, "slot 1 ") {
		t.Errorf("the history of ws02 in\n%s", text)
	}
	checkContains(t, text, "over 1, 5 and 15 minutes", "a host without samples")
	text = strings.Join(m.hostLines("ws02", 78), "\n")
	checkContains(t, text, "jobs/min", "the host")
}

// TestUnknownMemoryIsNotShownAsUsed checks that the memory in use is the last one in the history if
// the host does not report it now, and that a quantity that the host does not have is left out.
func TestUnknownMemoryIsNotShownAsUsed(t *testing.T) {
	m := newScreen(t, sample(), 80, 24)
	d := &runview.HostDetail{Begin: noon, Until: noon.Add(time.Hour), Samples: []live.Sample{
		{At: noon.Add(59 * time.Minute), Slots: 4, Mem: 3 << 30, MemAll: 8 << 30}}}
	h := &live.Host{HostStatus: jobs.HostStatus{State: jobs.HostUp}, Slots: 4, MemBytes: 8 << 30, MemFree: -1}
	lines := plainText(strings.Join(m.hostCharts(h, d, 80), "\n"))
	checkContains(t, lines, " 3G of 8G (3G to 3G)", "the memory")
	for _, name := range []string{"GPUs in use", "others' load"} {
		if strings.Contains(lines, name) {
			t.Errorf("%s of a host without any in\n%s", name, lines)
		}
	}
}
