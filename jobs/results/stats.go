package results

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"dcs-tui/internal/text"
	"dcs-tui/jobs/query"
)

// Measure is a statistic over the numbers of a group.
type Measure uint8

// The measures. SD is the sample standard deviation (n - 1), which a single number does not have.
// The median of an even count is the mean of the middle two.
const (
	Count Measure = iota
	Mean
	SD
	Min
	Max
	Median
	measures
)

var measureNames = [measures]string{"count", "mean", "sd", "min", "max", "median"}

// String returns the word in the heading and on the command line.
func (m Measure) String() string { return measureNames[m] }

func (m Measure) typeOf(c *Column) query.Type {
	if m == Count {
		return query.NumberType
	}
	return c.Type
}

// AllMeasures returns all measures in the order of display.
func AllMeasures() []Measure { return []Measure{Count, Mean, SD, Min, Max, Median} }

// ParseMeasure parses the name of a measure.
func ParseMeasure(word string) (Measure, error) {
	word = strings.ToLower(strings.TrimSpace(word))
	switch word {
	case "std", "stdev", "stddev":
		return SD, nil
	case "avg", "average":
		return Mean, nil
	}
	if i := slices.Index(measureNames[:], word); i >= 0 {
		return Measure(i), nil
	}
	return 0, fmt.Errorf("there is no measure %q; there are %s", text.Clean(word, 40),
		strings.Join(measureNames[:], ", "))
}

// Stats holds each Measure of some numbers. If one of the numbers is NaN, all measures but the
// count are NaN, because a diverged job must not make a mean look better. Infinities follow IEEE
// 754: infinities of both signs give a NaN mean, and any infinity gives a NaN standard deviation.
type Stats [measures]float64

// StatsOf computes the measures. It sorts numbers in place.
func StatsOf(numbers []float64) (s Stats) {
	n := len(numbers)
	if n == 0 {
		return s
	}
	nan, inf, most := false, false, 0.0
	for _, v := range numbers {
		nan = nan || math.IsNaN(v)
		inf = inf || math.IsInf(v, 0)
		most = max(most, math.Abs(v))
	}
	if nan {
		v := math.NaN()
		return Stats{Count: float64(n), Mean: v, SD: v, Min: v, Max: v, Median: v}
	}
	slices.Sort(numbers)
	s[Count], s[Min], s[Max] = float64(n), numbers[0], numbers[n-1]
	if inf {
		// The sum of the smallest and the largest number equals that of all: an infinity, or NaN if
		// there are both.
		s[Mean], s[SD] = s[Min]+s[Max], math.NaN()
		s[Median] = numbers[(n-1)/2]/2 + numbers[n/2]/2
		return s
	}
	// Scale the numbers to at most 1, so that no square overflows or underflows.
	_, exp := math.Frexp(most)
	scale := func(v float64) float64 { return math.Ldexp(v, -exp) }
	back := func(v float64) float64 { return math.Ldexp(v, exp) }
	s[Median] = back(scale(numbers[(n-1)/2])/2 + scale(numbers[n/2])/2)
	var sum compensatedSum
	for _, v := range numbers {
		sum.add(scale(v))
	}
	mean := sum.total() / s[Count]
	s[Mean] = back(mean)
	// The second pass sums the squares around the mean. rest corrects for the rounding error of the
	// mean.
	var squares, rest compensatedSum
	for _, v := range numbers {
		d := scale(v) - mean
		squares.add(d * d)
		rest.add(d)
	}
	if n > 1 {
		r := rest.total()
		s[SD] = back(math.Sqrt(max(0, squares.total()-r*r/s[Count]) / float64(n-1)))
	}
	return s
}

// Value returns a measure as a cell with its text, or nothing if the measure does not exist.
func (s *Stats) Value(m Measure) query.Value {
	if m != Count && (s[Count] == 0 || m == SD && s[Count] == 1) {
		return query.Value{}
	}
	v := query.NumberValue(s[m])
	v.Text = v.String()
	return v
}

// compensatedSum is a sum that compensates rounding errors (Neumaier).
type compensatedSum struct{ sum, lost float64 }

func (c *compensatedSum) add(v float64) {
	t := c.sum + v
	if math.Abs(c.sum) >= math.Abs(v) {
		c.lost += (c.sum - t) + v
	} else {
		c.lost += (v - t) + c.sum
	}
	c.sum = t
}

func (c *compensatedSum) total() float64 { return c.sum + c.lost }
