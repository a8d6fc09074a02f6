package grid

import (
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"dcs-tui/jobs"
)

// part is a part of the values of a parameter, such as a range. at returns value k, from 0.
type part interface {
	count() int
	at(k int) string
}

// texts holds values as they were written.
type texts []string

func (t texts) count() int      { return len(t) }
func (t texts) at(k int) string { return t[k] }

// isRange reports whether a part is not a list of values.
func isRange(p part) bool {
	_, listed := p.(texts)
	return !listed
}

// steps is from, from + step, … in exact decimals.
type steps struct {
	from, step *big.Int // multiplied by 10 to the power e
	e, n       int
	width      int  // minimum number of digits, as in 01..10
	plain      bool // the ends were written without a power of ten
	// Every value fits into an int64 below 2^53 and is whole: the usual case, which needs no big.Int.
	small bool
}

func (s steps) count() int { return s.n }

func (s steps) at(k int) string {
	if s.small && s.width == 0 {
		return strconv.FormatInt(s.smallAt(k), 10)
	}
	n := new(big.Int).Mul(big.NewInt(int64(k)), s.step)
	n.Add(n, s.from)
	switch d := jobs.NewDecimal(n, s.e); {
	case s.width > 0: // a whole number of at least 0
		return fmt.Sprintf("%0*d", s.width, n)
	case s.plain:
		return d.Plain()
	default:
		return d.String()
	}
}

func (s steps) smallAt(k int) int64 { return s.from.Int64() + int64(k)*s.step.Int64() }

// series holds n values from a to b: at equal distances, or, if log is set, each the same multiple
// of the previous one. Then a and b have the same sign.
type series struct {
	a, b   jobs.Decimal
	n      int
	log    bool
	digits int // significant digits of values that are not exact
}

// maxSpreadDigits is the maximum number of digits of a value that is not whole. Others are rounded.
const maxSpreadDigits = 18

func (v series) count() int { return v.n }

func (v series) at(k int) string {
	switch {
	case k == 0:
		return v.a.String()
	case k == v.n-1:
		return v.b.String()
	case v.log:
		la, lb := math.Log10(math.Abs(v.a.Float())), math.Log10(math.Abs(v.b.Float()))
		x := la + (lb-la)*(float64(k)/float64(v.n-1))
		return rounded(math.Copysign(math.Pow(10, x), v.a.Float()), v.digits)
	}
	a := v.a.Rat()
	r := new(big.Rat).Sub(v.b.Rat(), a)
	r.Mul(r, big.NewRat(int64(k), int64(v.n-1)))
	r.Add(r, a)
	if places, exact := r.FloatPrec(); exact {
		if d, ok := jobs.ParseDecimal(r.FloatString(places)); ok && (places == 0 || d.Digits() <= maxSpreadDigits) {
			return d.String()
		}
	}
	f, _ := r.Float64()
	return rounded(f, v.digits)
}

// interval is a continuous range, for a search.
type interval struct {
	low, high float64
	log       bool
	first     string
}

func (v interval) count() int    { return 1 }
func (v interval) at(int) string { return v.first }

// newInterval parses a..b. kind is "", lin, or log.
func newInterval(kind, word string) (part, error) {
	a, b, err := parseEnds(word)
	if err != nil {
		return nil, err
	}
	v := interval{min(a.Float(), b.Float()), max(a.Float(), b.Float()), kind == "log", a.String()}
	switch {
	case math.IsInf(v.high-v.low, 0):
		return nil, fmt.Errorf("%s: the numbers are too large to search between", word)
	case v.low == v.high:
		return nil, fmt.Errorf("%s: both ends are the same", word)
	case v.log && v.low <= 0:
		return nil, fmt.Errorf("log %s: a logarithmic range that is searched must begin above 0", word)
	}
	return v, nil
}

// looksLikeRange reports whether a bare word was meant as a range, even if it is not a valid one.
func looksLikeRange(s string) bool {
	a, b, ok := strings.Cut(s, "..")
	return ok && (isNumber(a) || a == "" && isNumber(b))
}

func parseEnds(s string) (a, b jobs.Decimal, err error) {
	from, to, _ := strings.Cut(s, "..")
	switch {
	case to == "" || strings.EqualFold(strings.TrimLeft(to, "+-"), "inf"):
		return a, b, fmt.Errorf("the range %s never ends: write its last value too, for example %s..10", s, from)
	case from == "":
		return a, b, fmt.Errorf("the range %s has no beginning: write its first value too, for example 1%s", s, s)
	case to[0] == '.' && isNumber(strings.TrimLeft(to, ".")):
		return a, b, fmt.Errorf("%s is not a range: two dots stand between its ends, %s..%s", s, from,
			strings.TrimLeft(to, "."))
	case strings.Contains(to, ".."):
		step, _, _ := strings.Cut(to, "..")
		return a, b, fmt.Errorf("%s is not a range: write %s..%s, and step %s after it for a step", s, from, step,
			to[len(step)+2:])
	case !isNumber(to):
		return a, b, fmt.Errorf("%s is not a range: %s is not a number; put a text that looks like a range in quotes",
			s, to)
	}
	var ok1, ok2 bool
	a, ok1 = jobs.ParseDecimal(from)
	b, ok2 = jobs.ParseDecimal(to)
	if !ok1 || !ok2 {
		return a, b, fmt.Errorf("the numbers of the range %s have too many digits", s)
	}
	return a, b, nil
}

// newSteps parses a..b with a step, which is "" if there is none.
func newSteps(word, stepText string) (part, error) {
	a, b, err := parseEnds(word)
	if err != nil {
		return nil, err
	}
	if stepText == "" {
		if a.Exponent() < 0 || b.Exponent() < 0 {
			return nil, fmt.Errorf("the range %s needs a step: write for example %s step 0.1", word, word)
		}
		stepText = "1"
		if b.Compare(a) < 0 {
			stepText = "-1"
		}
	}
	step, ok := jobs.ParseDecimal(stepText)
	switch direction := b.Compare(a); {
	case !ok:
		return nil, fmt.Errorf("the step %q is not a number", stepText)
	case step.Sign() == 0:
		return nil, fmt.Errorf("the range %s never ends: its step is 0", word)
	case direction == -step.Sign():
		return nil, fmt.Errorf("the range %s never ends: step %s leads away from %s; write step %s", word, stepText, b,
			step.Neg())
	}
	e := min(a.Exponent(), b.Exponent(), step.Exponent(), 0)
	from, to := a.Int(e), b.Int(e)
	s := steps{from: from, step: step.Int(e), e: e, plain: !strings.ContainsAny(word+stepText, "eE")}
	n := new(big.Int).Sub(to, from)
	n.Quo(n, s.step)
	if n.CmpAbs(big.NewInt(maxValues)) >= 0 {
		return nil, fmt.Errorf("the range %s has more than %d values", word, int64(maxValues))
	}
	s.n = int(n.Int64()) + 1
	isSmall := func(n *big.Int) bool { return n.CmpAbs(big.NewInt(1<<53)) < 0 }
	s.small = e == 0 && isSmall(from) && isSmall(to)
	if first, last, _ := strings.Cut(word, ".."); e == 0 && hasLeadingZeros(first, last) {
		s.width = max(len(first), len(last))
	}
	return s, nil
}

// hasLeadingZeros reports whether an end of a range of whole numbers has leading zeros, as in
// 01..10.
func hasLeadingZeros(words ...string) bool {
	return allDigits(strings.Join(words, "")) &&
		slices.ContainsFunc(words, func(w string) bool { return len(w) > 1 && w[0] == '0' })
}

// newSpread parses the text after the word lin or log: a..b and xN.
func newSpread(kind, word, times string) (part, error) {
	a, b, err := parseEnds(word)
	if err != nil {
		return nil, err
	}
	n, err := strconv.Atoi(strings.TrimPrefix(times, "x"))
	if times == "" || times[0] != 'x' || err != nil {
		return nil, fmt.Errorf("%s %s needs a number of values: write for example %s %s x6, or put a text in quotes",
			kind, word, kind, word)
	}
	if n < 2 || n > 1<<40 {
		return nil, fmt.Errorf("%s %s x%d: the number of values must be at least 2, for the two ends", kind, word, n)
	}
	fa, fb := a.Float(), b.Float()
	if math.IsInf(fa, 0) || math.IsInf(fb, 0) || fa == 0 && a.Sign() != 0 || fb == 0 && b.Sign() != 0 {
		return nil, fmt.Errorf("%s %s: the numbers are too large or too small to count with", kind, word)
	}
	if a == b {
		return nil, fmt.Errorf("%s %s: both ends are the same", kind, word)
	}
	v := series{a: a, b: b, n: n, log: kind == "log"}
	apart := math.Abs(fb-fa) / float64(n-1) / max(math.Abs(fa), math.Abs(fb))
	if v.log {
		if fa == 0 || fb == 0 || (fa < 0) != (fb < 0) {
			return nil, fmt.Errorf("log %s: a logarithmic range cannot reach or cross 0", word)
		}
		apart = math.Abs(math.Log(fb/fa)) / float64(n-1)
		if math.IsInf(apart, 0) {
			apart = 1
		}
	}
	// Six digits are readable. More are used if neighbors would otherwise be equal.
	v.digits = max(6, 3+int(math.Ceil(-math.Log10(apart))))
	if v.digits > 15 {
		return nil, fmt.Errorf("%s %s x%d: the values are too close to tell them apart", kind, word, n)
	}
	return v, nil
}

// cutAny slices s around the first of the characters. Without one, before is s.
func cutAny(s, chars string) (before, after string) {
	if i := strings.IndexAny(s, chars); i >= 0 {
		return s[:i], s[i+1:]
	}
	return s, ""
}

// isNumber reports whether a text is a number: 3, -0.5, .5, 1e-3.
func isNumber(s string) bool {
	_, ok := jobs.ParseDecimal(s)
	return ok
}

// rounded formats a number with the given number of significant digits.
func rounded(f float64, digits int) string {
	s := strconv.FormatFloat(f, 'e', digits-1, 64)
	if d, ok := jobs.ParseDecimal(s); ok {
		return d.String()
	}
	return s
}
