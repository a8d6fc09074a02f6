package query

import (
	"cmp"
	"math"
	"math/big"
)

// Arithmetic is exact: 0.1 + 0.2 = 0.3. Usually floats with a bound of their rounding error decide a
// comparison. If they are closer than that, both sides are calculated again with fractions.

// estimate is a float and a bound of its distance from the exact number; the bound may be infinite.
type estimate struct{ v, off float64 }

// epsilon is twice the rounding error of one operation, relative to its result.
const epsilon = 0x1p-52

// estimateOf returns the estimate of a number as it is written. Whole numbers with few digits are
// exact.
func estimateOf(v *Value) estimate {
	if v.Number == math.Trunc(v.Number) && math.Abs(v.Number) < 1<<53 && v.isShort() {
		return estimate{v.Number, 0}
	}
	return estimate{v.Number, math.Abs(v.Number)*epsilon + math.SmallestNonzeroFloat64}
}

func calculateEstimate(op string, a, b estimate) estimate {
	var r estimate
	switch op {
	case "+":
		r = estimate{a.v + b.v, a.off + b.off}
	case "-":
		r = estimate{a.v - b.v, a.off + b.off}
	case "*":
		r = estimate{a.v * b.v, math.Abs(a.v)*b.off + math.Abs(b.v)*a.off + a.off*b.off}
	case "/":
		r.v, r.off = a.v/b.v, math.Inf(1)
		if least := math.Abs(b.v) - b.off; least > 0 {
			r.off = (a.off + math.Abs(r.v)*b.off) / least
		}
	case "%":
		if a.off == 0 && b.off == 0 && b.v != 0 {
			return estimate{float64(int64(a.v) % int64(b.v)), 0}
		}
		// Where the quotient passes a whole number, the remainder jumps.
		q := calculateEstimate("/", a, b)
		r.v, r.off = math.Mod(a.v, b.v), math.Inf(1)
		if math.Abs(q.v-math.Round(q.v)) > q.off {
			r.off = a.off + math.Abs(q.v)*b.off
		}
	}
	isExact := a.off == 0 && b.off == 0 && r.v == math.Trunc(r.v) && math.Abs(r.v) < 1<<53 &&
		(op != "/" || math.Mod(a.v, b.v) == 0)
	if !isExact {
		r.off += math.Abs(r.v)*epsilon + r.off*epsilon + 4*math.SmallestNonzeroFloat64
	}
	if math.IsNaN(r.off) || math.IsInf(r.v, 0) || math.IsNaN(r.v) {
		r.off = math.Inf(1)
	}
	return r
}

// exact is a number: a fraction, or, if that is nil, NaN or an infinity.
type exact struct {
	rat *big.Rat
	inf float64
}

func exactOf(v *Value) exact {
	if math.IsNaN(v.Number) || math.IsInf(v.Number, 0) {
		return exact{inf: v.Number}
	}
	return exact{rat: v.decimal().Rat()}
}

// calculateExact returns the exact result of a calculation. With an infinity, and if b is 0, it is
// that of floats.
func calculateExact(op string, a, b exact) exact {
	if a.rat == nil || b.rat == nil || b.rat.Sign() == 0 && (op == "/" || op == "%") {
		r := calculateEstimate(op, estimate{v: a.float()}, estimate{v: b.float()}).v
		if math.IsNaN(r) || math.IsInf(r, 0) {
			return exact{inf: r}
		}
		return exact{rat: new(big.Rat).SetFloat64(r)}
	}
	r := new(big.Rat)
	switch op {
	case "+":
		r.Add(a.rat, b.rat)
	case "-":
		r.Sub(a.rat, b.rat)
	case "*":
		r.Mul(a.rat, b.rat)
	case "/":
		r.Quo(a.rat, b.rat)
	case "%": // with the sign of a
		r.Quo(a.rat, b.rat)
		whole := new(big.Int).Quo(r.Num(), r.Denom())
		r.Mul(b.rat, new(big.Rat).SetInt(whole))
		r.Sub(a.rat, r)
	}
	return exact{rat: r}
}

func (e exact) float() float64 {
	if e.rat == nil {
		return e.inf
	}
	f, _ := e.rat.Float64()
	return f
}

// unordered is what comparisons return if one of the numbers is NaN.
const unordered = 2

// compare returns -1, 0, 1, or unordered. Two NaN are equal.
func (e exact) compare(o exact) int {
	if e.rat != nil && o.rat != nil {
		return e.rat.Cmp(o.rat)
	}
	return compareFloats(e.float(), o.float())
}

func compareFloats(v, w float64) int {
	switch {
	case math.IsNaN(v) && math.IsNaN(w):
		return 0
	case math.IsNaN(v) || math.IsNaN(w):
		return unordered
	}
	return cmp.Compare(v, w)
}

// isDecided reports whether two estimates show the order of their numbers.
func isDecided(a, b estimate) bool {
	return math.Abs(a.v-b.v) > a.off+b.off || a.off == 0 && b.off == 0 && !math.IsInf(a.v, 0) && !math.IsInf(b.v, 0)
}
