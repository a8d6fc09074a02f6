package results

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// exactly computes the mean and the standard deviation in the naive way with 3,000 bits. It first
// computes the mean, then the squared distances from it.
func exactly(numbers []float64) (mean, sd float64) {
	bits := func() *big.Float { return new(big.Float).SetPrec(3000) }
	n := bits().SetInt64(int64(len(numbers)))
	m := bits()
	for _, v := range numbers {
		m.Add(m, bits().SetFloat64(v))
	}
	m.Quo(m, n)
	squares := bits()
	for _, v := range numbers {
		d := bits().Sub(bits().SetFloat64(v), m)
		squares.Add(squares, d.Mul(d, d))
	}
	mean, _ = m.Float64()
	if len(numbers) > 1 {
		squares.Quo(squares, bits().SetInt64(int64(len(numbers)-1)))
		sd, _ = squares.Sqrt(squares).Float64()
	}
	return mean, sd
}

// middle returns the median. For an even count it is the exact mean of the middle two.
func middle(numbers []float64) float64 {
	s := slices.Clone(numbers)
	slices.Sort(s)
	if n := len(s); n%2 == 0 {
		m, _ := exactly(s[n/2-1 : n/2+1])
		return m
	}
	return s[len(s)/2]
}

// near reports whether a equals b up to rounding, relative to b or to the largest number.
func near(a, b, most float64) bool {
	if a == b {
		return true
	}
	d := math.Abs(a - b)
	return d <= 1e-14*math.Abs(b) || d <= 1e-15*most
}

func compare(t *testing.T, what string, numbers []float64) {
	t.Helper()
	mean, sd := exactly(numbers)
	med, lo, hi := middle(numbers), slices.Min(numbers), slices.Max(numbers)
	most := max(math.Abs(lo), math.Abs(hi))
	s := StatsOf(slices.Clone(numbers))
	if int(s[Count]) != len(numbers) || s[Min] != lo || s[Max] != hi || !near(s[Mean], mean, most) ||
		!near(s[SD], sd, most) || !near(s[Median], med, most) {
		t.Errorf("%s, %d numbers up to %g: %+v; exactly mean %v, sd %v, median %v", what, len(numbers), most, s, mean,
			sd, med)
	}
}

// TestStatsAgainstExactNumbers checks the numbers against an independent computation.
func TestStatsAgainstExactNumbers(t *testing.T) {
	compare(t, "two", []float64{1, 2})
	compare(t, "one", []float64{-3.25})
	compare(t, "equal", []float64{0.1, 0.1, 0.1})
	compare(t, "far from 0", []float64{1e9 + 4, 1e9 + 7, 1e9 + 13, 1e9 + 16})
	compare(t, "further", []float64{1e15 + 0.125, 1e15 + 0.25, 1e15 + 0.375})
	compare(t, "canceling", []float64{1e16, 1, -1e16, 3})
	compare(t, "largest", []float64{math.MaxFloat64, math.MaxFloat64, -math.MaxFloat64 / 2})
	compare(t, "smallest", []float64{5e-324, 1e-323, 2e-323})
	compare(t, "small squares", []float64{1e-200, 3e-200, 5e-200})
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 7))
		numbers := make([]float64, 1+r.IntN(200))
		offset, scale := math.Ldexp(r.NormFloat64(), r.IntN(60)-30), math.Ldexp(1, r.IntN(60)-30)
		for i := range numbers {
			numbers[i] = offset + scale*r.NormFloat64()
		}
		compare(t, fmt.Sprint("seed ", seed), numbers)
	}
}

// TestStatsOfWhatIsNotFinite checks NaN and the infinities: a job that diverged does not improve a
// mean.
func TestStatsOfWhatIsNotFinite(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for _, c := range []struct {
		numbers []float64
		want    string
	}{
		{nil, "0 - - - - -"},
		{[]float64{4}, "1 4 - 4 4 4"},
		{[]float64{1, nan, 3}, "3 nan nan nan nan nan"},
		{[]float64{nan}, "1 nan - nan nan nan"},
		{[]float64{1, inf, 3}, "3 inf nan 1 inf 3"},
		{[]float64{-inf, 1}, "2 -inf nan -inf 1 -inf"},
		{[]float64{-inf, 2, inf}, "3 nan nan -inf inf 2"},
		{[]float64{inf, -inf}, "2 nan nan -inf inf nan"},
		{[]float64{inf}, "1 inf - inf inf inf"},
	} {
		t.Run(c.want, func(t *testing.T) {
			s := StatsOf(slices.Clone(c.numbers))
			var got []string
			for _, m := range AllMeasures() {
				text := s.Value(m).Text
				if text == "" {
					text = "-"
				}
				got = append(got, text)
			}
			same(t, c.numbers, strings.Join(got, " "), c.want)
		})
	}
}

// TestParseMeasure checks that each measure is known by its name, and that the error of an unknown
// one lists them.
func TestParseMeasure(t *testing.T) {
	for _, m := range AllMeasures() {
		if got, err := ParseMeasure(" " + strings.ToUpper(m.String())); err != nil || got != m {
			t.Errorf("%s: %v %v", m, got, err)
		}
	}
	if m, err := ParseMeasure("std"); m != SD || err != nil {
		t.Error(m, err)
	}
	if _, err := ParseMeasure("variance\x1b"); err == nil ||
		!strings.Contains(err.Error(), "count, mean, sd, min, max, median") || strings.Contains(err.Error(), "\x1b") {
		t.Error(err)
	}
}
