package search

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// Rungs decides which trials to end because of poor values: asynchronous successive halving, in the
// variant that stops trials instead of promoting them. L. Li et al., "A System for Massively
// Parallel Hyperparameter Tuning", MLSys 2020.
//
// A trial that reaches a rung continues if its value is among the best 1/Factor of the values that
// have been reported there so far.
type Rungs struct {
	First, Factor int // the rungs are at the steps First, First * Factor, First * Factor^2, …
	Maximize      bool

	values [][]float64 // values of each rung in ascending order; smaller is better
	passed map[int]int // number of rungs that each trial has passed
}

// Add handles a report of a trial. reached reports whether the trial has reached a rung with it,
// and poor whether to end the trial.
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
	if rung < r.passed[trial] { // no rung, or a value was reported there before
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

// ParseReports parses the lines `STEP VALUE` of a text. It ignores empty lines and a last line
// without a newline, and returns lines of another form in wrong.
func ParseReports(text string) (list []Report, wrong []string) {
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) == 0 || !strings.HasSuffix(line, "\n") {
			continue
		}
		r, ok := Report{}, len(words) == 2
		if ok {
			step, err1 := strconv.ParseFloat(words[0], 64)
			value, err2 := strconv.ParseFloat(words[1], 64)
			r, ok = Report{step, value}, err1 == nil && err2 == nil && step >= 0 && !math.IsInf(step, 0)
		}
		if ok {
			list = append(list, r)
		} else {
			wrong = append(wrong, strings.TrimSpace(line))
		}
	}
	return list, wrong
}
