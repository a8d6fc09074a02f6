package tui

import (
	"math"
	"strings"
)

// spark draws the newest w values as a line of small bars, scaled to the highest of
// them, or to top when that is higher; NaN is a gap. It has w cells.
func (m *model) spark(values []float64, top float64, w int) string {
	if w <= 0 {
		return ""
	}
	if len(values) > w {
		values = values[len(values)-w:]
	}
	for _, v := range values {
		if !math.IsNaN(v) {
			top = max(top, v)
		}
	}
	var b strings.Builder
	b.WriteString(strings.Repeat(" ", w-len(values)))
	for _, v := range values {
		b.WriteString(m.level(v, top))
	}
	return b.String()
}

// level draws one value of at most top as a small bar.
func (m *model) level(v, top float64) string {
	if math.IsNaN(v) {
		return " "
	}
	n := 0
	if top > 0 {
		n = int(v / top * float64(len(m.g.spark)))
	}
	return m.g.spark[min(len(m.g.spark)-1, max(0, n))]
}

// pool makes n values out of many, each the mean of its share, so that a long history
// fits; NaN values count only where there is nothing else.
func pool(values []float64, n int) []float64 {
	if len(values) <= n || n <= 0 {
		return values
	}
	out := make([]float64, n)
	for i := range out {
		sum, count := 0.0, 0
		for _, v := range values[i*len(values)/n : (i+1)*len(values)/n] {
			if !math.IsNaN(v) {
				sum, count = sum+v, count+1
			}
		}
		if out[i] = math.NaN(); count > 0 {
			out[i] = sum / float64(count)
		}
	}
	return out
}
