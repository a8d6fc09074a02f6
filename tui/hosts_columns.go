package tui

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"dcs-tui/dispatch/view"
)

// hostColumn is a column of the list of hosts.
type hostColumn struct {
	head string
	w    int
	rank int // columns with a low one stay when there is little room
	cell func(m *model, h *view.Host, w int) string
}

// hostColumns are those for which w cells have room, in order; room that is left goes
// to the history, then to the last note.
func (m *model) hostColumns(w int) []hostColumn {
	fixed := func(f func(h *view.Host) string) func(*model, *view.Host, int) string {
		return func(_ *model, h *view.Host, _ int) string { return f(h) }
	}
	all := []hostColumn{
		{"USED", usedWidth, 1, fixed(slotsUsed)},
		{"SLOTS", 10, 2, (*model).slotsBar},
		{"LOAD", 5, 4, fixed(func(h *view.Host) string { return oneDigit(h.Load[0]) })},
		{"BUSY", 5, 7, fixed(func(h *view.Host) string { return oneDigit(h.Busy) })},
		{"OURS", 5, 8, fixed(func(h *view.Host) string { return oneDigit(h.Ours) })},
		{"CORES", 5, 12, fixed(func(h *view.Host) string { return known(h.Cores > 0, strconv.Itoa(h.Cores)) })},
		{"MEM", 9, 5, fixed(memory)},
		{"DISK", 5, 9, fixed(func(h *view.Host) string { return known(h.DiskFree >= 0, size(h.DiskFree)) })},
		{"LINK", 6, 6, fixed(func(h *view.Host) string { return delay(h.Delay) })},
		{"FILES", 6, 13, fixed(func(h *view.Host) string { return delay(h.FSDelay) })},
		{"DONE", 7, 10, fixed(func(h *view.Host) string { return short(h.Done) })},
		{"FAIL", 5, 11, fixed(func(h *view.Host) string { return short(h.Failed) })},
		{"5 MIN", 12, 3, (*model).history},
	}
	ranks := make([]int, 0, len(all))
	for rank := 1; rank <= len(all); rank++ {
		for _, c := range all {
			if c.rank == rank && c.w+1 <= w {
				ranks = append(ranks, rank)
				w -= c.w + 1
			}
		}
	}
	some := slices.DeleteFunc(all, func(c hostColumn) bool { return !slices.Contains(ranks, c.rank) })
	if n := len(some); n > 0 && some[n-1].rank == 3 && w > 0 {
		grow := min(w, 60-some[n-1].w)
		some[n-1].w += grow
		w -= grow
	}
	if w > 20 {
		some = append(some, hostColumn{"NOTE", w - 1, 99, func(m *model, h *view.Host, w int) string { return m.fit(m.clean(h.Note), w) }})
	}
	return some
}

const usedWidth = 7

// slotsUsed are the slots in use of all, and the jobs that wait on the host.
func slotsUsed(h *view.Host) string {
	s := fmt.Sprintf("%d/%d", h.Running, h.Slots)
	if more := fmt.Sprintf("+%d", h.Buffered); h.Buffered > 0 && len(s+more) <= usedWidth {
		return s + more
	}
	return s
}

// slotsBar shows slots in use, free ones, and those that others' work takes.
func (m *model) slotsBar(h *view.Host, w int) string {
	if h.Slots <= 0 {
		return ""
	}
	// What is in use or taken has a cell, however little it is; what is free has one too.
	cells := func(v float64) int {
		if v < 1 {
			return 0
		}
		return max(1, min(w, int(v/float64(h.Slots)*float64(w))))
	}
	used := cells(float64(h.Running))
	if h.Running >= h.Slots {
		used = w
	}
	others := min(w-used, cells(float64(h.Slots)-math.Max(h.Usable, float64(h.Running))))
	full := m.g.bar[len(m.g.bar)-1]
	return styleBusy.Render(strings.Repeat(full, used)) + strings.Repeat(m.g.bar[0], w-used-others) + styleWarn.Render(strings.Repeat(m.g.othersBar, others))
}

// history is the use of the slots over the last five minutes.
func (m *model) history(h *view.Host, w int) string {
	values := make([]float64, len(h.History))
	for i, v := range h.History {
		if values[i] = float64(v); v > 100 {
			values[i] = math.NaN()
		}
	}
	return styleBusy.Render(m.spark(pool(values, w), 100, w))
}

func memory(h *view.Host) string {
	return known(h.MemBytes > 0, size(max(0, h.MemBytes-h.MemFree))+"/"+size(h.MemBytes))
}

func oneDigit(v float64) string {
	if v >= 99.95 {
		return short(int(v + 0.5))
	}
	return strconv.FormatFloat(max(0, v), 'f', 1, 64)
}

func known(yes bool, s string) string {
	if yes {
		return s
	}
	return "-"
}
