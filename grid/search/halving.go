package search

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// Rungs ends trials that do badly: asynchronous successive halving, of which this is the
// variant that stops trials instead of promoting them. L. Li et al., A System for Massively
// Parallel Hyperparameter Tuning, MLSys 2020.
//
// A trial that reaches a rung continues if its value is among the best share, 1/Factor, of
// those that have been reported there so far.
type Rungs struct {
	First, Factor int // the rungs are at the steps First, First * Factor, First * Factor^2, …
	Maximize      bool

	values [][]float64 // of each rung, ascending; the smaller the better
	passed map[int]int // by trial, the rungs that it has passed
}

// Add handles what a trial has reported. reached reports whether it has reached a rung by
// that, and poor whether to end it.
func (r *Rungs) Add(trial int, line Report) (reached, poor bool) {
	step, value := line.Step, line.Value
	if r.Maximize {
		value = -value
	}
	if math.IsNaN(value) {
		value = math.Inf(1)
	}
	rung, at := -1, float64(r.First)
	for ; step >= at && rung < 62; at *= float64(r.Factor) {
		rung++
	}
	if rung < r.passed[trial] { // none, or a value was reported there before
		return false, false
	}
	if r.passed == nil {
		r.passed = map[int]int{}
	}
	r.passed[trial] = rung + 1
	for len(r.values) <= rung {
		r.values = append(r.values, nil)
	}
	i, _ := slices.BinarySearch(r.values[rung], value)
	r.values[rung] = slices.Insert(r.values[rung], i, value)
	return true, i >= (len(r.values[rung])+r.Factor-1)/r.Factor
}

// Report is a line of a report file.
type Report struct{ Step, Value float64 }

// ParseReports reads the lines `STEP VALUE` of a text. Lines of another form are left out, as
// is a last line that has no end yet.
func ParseReports(text string) (list []Report) {
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) != 2 || !strings.HasSuffix(line, "\n") {
			continue
		}
		step, err1 := strconv.ParseFloat(words[0], 64)
		value, err2 := strconv.ParseFloat(words[1], 64)
		if err1 == nil && err2 == nil && step >= 0 && !math.IsInf(step, 0) {
			list = append(list, Report{step, value})
		}
	}
	return list
}
