package tui

import (
	"math"
	"slices"
	"strings"
	"time"

	"dcs-tui/internal/text"
	"dcs-tui/jobs/live"
	"dcs-tui/observe/runview"
)

const (
	factNameWidth  = 13  // cells for the name of a fact about a host
	minChartWidth  = 8   // cells of a sparkline
	maxChartWidth  = 120 // more would not show more, because a sample is taken every 30 s
	chartTextWidth = 27  // cells to the right of a sparkline
)

// chartWidth returns the width of sparklines and timelines in lines of w cells.
func chartWidth(w int) int {
	return max(minChartWidth, min(maxChartWidth, w-factNameWidth-1-chartTextWidth))
}

// measurement is a quantity of a host over the last hour.
type measurement struct {
	name    string
	value   func(*live.Sample) float64
	now     float64 // present value; NaN: the last one of the sparkline
	top     float64 // value that fills a sparkline; 0: the highest one
	of      string  // what now is a part of; "": nothing
	format  func(float64) string
	missing bool // the host does not have it, or it is not known
}

// hostCharts returns a sparkline, the present value, and the range of each measurement of a host
// over its last hour. It returns none if there are no samples.
func (m *model) hostCharts(h *live.Host, d *runview.HostDetail, w int) (out []string) {
	if d == nil || len(d.Samples) == 0 {
		return nil
	}
	last, n := &d.Samples[len(d.Samples)-1], chartWidth(w)
	size := func(v float64) string { return text.ShortSize(int64(v)) }
	memNow := math.NaN()
	if h.MemBytes > 0 && h.MemFree >= 0 {
		memNow = float64(h.MemBytes - h.MemFree)
	}
	hasOthers := slices.ContainsFunc(d.Samples, func(s live.Sample) bool {
		return s.Others > 0 && !s.At.Before(d.Begin)
	})
	for _, x := range []measurement{
		{"load", func(s *live.Sample) float64 { return s.Load }, h.Load[0], float64(h.Cores), "", oneDigit, false},
		{"slots in use", func(s *live.Sample) float64 { return float64(s.Own) }, float64(h.Running),
			float64(last.Slots), itoa(last.Slots), wholeOrOneDigit, last.Slots == 0},
		{"others' load", func(s *live.Sample) float64 { return s.Others }, math.NaN(), float64(last.Slots), "",
			oneDigit, !hasOthers},
		{"memory", func(s *live.Sample) float64 { return float64(s.Mem) }, memNow, float64(last.MemAll),
			text.ShortSize(last.MemAll), size, last.MemAll == 0},
		{"GPUs in use", func(s *live.Sample) float64 { return s.GPUs }, h.GPUsUsed, float64(last.GPUAll),
			itoa(last.GPUAll), wholeOrOneDigit, last.GPUAll == 0},
		{"jobs/min", func(s *live.Sample) float64 { return s.Rate }, math.NaN(), 0, "", oneDigit, false},
	} {
		values := live.Means(d.Samples, d.Begin, d.Until, n, x.value)
		low, high := math.Inf(1), math.Inf(-1)
		for _, v := range values {
			if !math.IsNaN(v) {
				low, high = min(low, v), max(high, v)
			}
		}
		if x.missing || math.IsInf(low, 1) {
			continue
		}
		if math.IsNaN(x.now) {
			x.now = values[len(values)-1]
		}
		now := "-"
		if !math.IsNaN(x.now) && canRunJobs(h) {
			now = x.format(x.now) + text.If(x.of != "", " of "+x.of)
			low, high = min(low, x.now), max(high, x.now) // the samples are means of 30 s
		}
		out = append(out, styleFaint.Render(m.fit(x.name, factNameWidth))+
			styleBusy.Render(m.sparkline(values, x.top, n))+" "+m.cut(now+" ("+x.format(low)+" to "+x.format(high)+")",
			max(1, w-factNameWidth-1-n)))
	}
	return out
}

// wholeOrOneDigit formats a number that is mostly a whole one.
func wholeOrOneDigit(v float64) string { return strings.TrimSuffix(oneDigit(v), ".0") }

// timelineCell is a part of the time of a slot: the phase of the most important attempt in it.
type timelineCell struct {
	isBusy bool
	begins bool // it begins in this part
	phase  runview.Phase
}

// timelinePriority is the order in which attempts that share a cell are shown.
var timelinePriority = [runview.Phases]int{runview.Succeeded: 1, runview.Canceled: 2, runview.Running: 3,
	runview.Ending: 3, runview.Suspended: 4, runview.Away: 4, runview.Retry: 5, runview.Failed: 6, runview.TimedOut: 6}

// timeline divides the time from begin to end into n cells.
func timeline(runs []runview.SlotRun, begin, end time.Time, n int) []timelineCell {
	cells := make([]timelineCell, n)
	cell := func(at time.Time) int {
		return min(n-1, int(at.Sub(begin)*time.Duration(n)/max(1, end.Sub(begin))))
	}
	for i := range runs {
		r := &runs[i]
		if r.Ended.Before(begin) || r.Began.After(end) {
			continue
		}
		first, last := 0, cell(r.Ended)
		if r.Began.After(begin) {
			first = cell(r.Began)
		}
		for k := first; k <= max(first, last); k++ {
			c := &cells[k]
			if c.isBusy && timelinePriority[r.Phase] < timelinePriority[c.phase] {
				continue
			}
			*c = timelineCell{isBusy: true, begins: k == first || c.begins && r.Phase == c.phase, phase: r.Phase}
		}
	}
	return cells
}

// busyTime returns how long a slot was in use between two times.
func busyTime(runs []runview.SlotRun, begin, end time.Time) (d time.Duration) {
	for i := range runs { // sorted by their begin
		if r := &runs[i]; r.Began.After(begin) {
			begin = r.Began
		}
		if until := runs[i].Ended; until.After(begin) {
			d += max(0, min(until.Sub(begin), end.Sub(begin)))
			begin = until
		}
	}
	return d
}

// slotTimeline returns a row for each slot of a host, with the attempts of the last hour: the sign of
// the state where an attempt begins, and a line in its color. It returns nothing if none is known.
func (m *model) slotTimeline(h *live.Host, d *runview.HostDetail, w int) (out []string) {
	if d == nil || len(d.Runs) == 0 {
		return nil
	}
	const maxRows = 1000
	begin, end, n := d.Begin, d.Until, chartWidth(w)
	slots := make([][]runview.SlotRun, min(h.Slots, maxRows)+1)
	for _, r := range d.Runs {
		slot := max(0, r.Slot)
		for slot >= len(slots) && slot <= maxRows {
			slots = append(slots, nil)
		}
		if slot < len(slots) {
			slots[slot] = append(slots[slot], r)
		}
	}
	var seen [runview.Phases]bool
	row := func(name string, runs []runview.SlotRun) {
		cells := timeline(runs, begin, end, n)
		for _, c := range cells {
			seen[c.phase] = seen[c.phase] || c.isBusy
		}
		share := text.If(end.After(begin), formatWholePercent(busyTime(runs, begin, end), end.Sub(begin))+" in use")
		out = append(out, styleFaint.Render(m.fit(name, factNameWidth))+m.drawTimeline(cells)+" "+
			m.cut(share, max(1, w-factNameWidth-1-n)))
	}
	for slot, runs := range slots {
		if slot > 0 {
			row("slot "+itoa(slot), runs)
		}
	}
	if len(slots[0]) > 0 {
		row("slot ?", slots[0])
	}
	out = append(out, strings.Repeat(" ", factNameWidth)+styleFaint.Render(m.timeAxis(begin, end, n)))
	var legend []string
	for p, is := range seen {
		if is {
			info := phaseInfoOf(runview.Phase(p))
			legend = append(legend, info.style.Render(m.sign(runview.Phase(p))+" "+runview.Phase(p).String()))
		}
	}
	return append(out, strings.Repeat(" ", factNameWidth)+m.cut(strings.Join(legend, "  "), max(1, w-factNameWidth)))
}

func formatWholePercent(part, whole time.Duration) string {
	return itoa(int(math.Round(100*float64(part)/float64(whole)))) + "%"
}

func (m *model) drawTimeline(cells []timelineCell) string {
	var b, part strings.Builder
	var style *textStyle
	flush := func(next *textStyle) {
		if style != nil && style != next {
			b.WriteString(style.Render(part.String()))
			part.Reset()
		}
		style = next
	}
	for i, c := range cells {
		if !c.isBusy {
			flush(&styleFaint)
			part.WriteString(m.glyphs.bar[0])
			continue
		}
		flush(&phaseInfoOf(c.phase).style)
		if c.begins || i == 0 || cells[i-1].phase != c.phase {
			part.WriteString(m.sign(c.phase))
		} else {
			part.WriteString(m.glyphs.heavy)
		}
	}
	flush(nil)
	return b.String()
}

// timeAxis labels n cells with the times at their start, middle, and end, as far as they fit.
func (m *model) timeAxis(begin, end time.Time, n int) string {
	const layout = "15:04"
	left, right := begin.Format(layout), end.Local().Format(layout)
	if n < 3*len(layout)+4 {
		return m.justify(left, right, n)
	}
	middle := begin.Add(end.Sub(begin) / 2).Format(layout)
	return m.justify(m.fit(left, n/2-2)+middle, right, n)
}
