// Package search chooses the parameters of jobs. It has designs that fill a space, methods that
// learn from results (a Proposer), and the decision to end trials with poor values early (Rungs).
//
// A proposal is a point of the unit cube, with one coordinate for each Param. Apart from the user's
// optimizer, a method has no state: a proposal depends only on the seed, its number, and the
// earlier trials. A dispatcher that continues a run therefore needs only the stored jobs and their
// results.
package search

import (
	"context"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Param is a parameter of a search.
type Param struct {
	Name      string
	Low, High float64  // ends of a range, Low < High
	Log       bool     // the values are uniform on a logarithmic scale; Low > 0
	Values    []string // the possible values; nil: a range
	Ordered   bool     // Values are in numerical order
}

// State is the state of a trial.
type State uint8

// The states.
const (
	Open   State = iota // waits or runs
	Done                // has a value
	Failed              // ended without one
)

// Trial is a proposal and its result.
type Trial struct {
	At    []float64
	State State
	Value float64 // finite value of a trial in state Done; smaller is better
}

// Proposer proposes trials.
type Proposer interface {
	// Propose returns the trial that follows past, which are all earlier ones in order. io.EOF
	// means that the search is complete.
	Propose(ctx context.Context, past []Trial) ([]float64, error)
	// Close ends the search. past are all trials.
	Close(past []Trial)
}

// shownDigits is the number of digits of a value within its range.
const shownDigits = 6

// Text returns the value at a coordinate, with six digits within its range.
func (p *Param) Text(u float64) string {
	if n := len(p.Values); n > 0 {
		return p.Values[valueAt(u, n)]
	}
	f, text := p.Low+(p.High-p.Low)*u, ""
	if p.Log {
		f = math.Exp(math.Log(p.Low) + (math.Log(p.High)-math.Log(p.Low))*u)
		text = strconv.FormatFloat(f, 'e', shownDigits-1, 64)
	} else {
		places := max(0, shownDigits-int(math.Ceil(math.Log10(p.High-p.Low))))
		text = strconv.FormatFloat(f, 'f', places, 64)
	}
	f, _ = strconv.ParseFloat(text, 64)
	f = min(max(f, p.Low), p.High) + 0 // + 0 turns -0 into 0
	return strconv.FormatFloat(f, 'g', -1, 64)
}

// Coordinate returns the coordinate of a value. ok is false if the parameter does not have the
// value.
func (p *Param) Coordinate(text string) (u float64, ok bool) {
	if n := len(p.Values); n > 0 {
		i := slices.Index(p.Values, text)
		return (float64(i) + 0.5) / float64(n), i >= 0
	}
	f, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	switch slack := 1e-9 * (p.High - p.Low); {
	case err != nil || math.IsNaN(f) || f < p.Low-slack || f > p.High+slack:
		return 0, false
	case p.Log:
		u = (math.Log(f) - math.Log(p.Low)) / (math.Log(p.High) - math.Log(p.Low))
	default:
		u = (f - p.Low) / (p.High - p.Low)
	}
	return min(max(u, 0), 1), true
}
