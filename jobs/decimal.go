package jobs

import (
	"cmp"
	"math"
	"math/big"
	"strconv"
	"strings"
)

// Decimal is a decimal number of a user. It is exact: a float64 holds 9007199254740993 as …992, and
// 0.1 not at all. The zero Decimal is 0. Equal numbers are equal with ==, however they were written.
//
// Calculations use math/big, which has exact rationals; those of a decimal library would be rounded
// to a precision. Comparisons, which are frequent, need no calculation.
type Decimal struct {
	approx float64 // the nearest float64; infinite beyond its range
	// The value is 0.digits times ten to the power point. The digits neither begin nor end with 0; 0
	// has none.
	digits   string
	point    int
	negative bool
}

// The bounds of a Decimal, which bound the cost of calculations.
const (
	maxDigits   = 1000
	maxExponent = 1000
)

// maxInt64Digits is the number of digits that an int64 always holds.
const maxInt64Digits = 18

// infinitePoint is the point of an infinity.
const infinitePoint = math.MaxInt

// ParseDecimal parses a number such as 3, -0.5, .5, or 1e-3.
func ParseDecimal(s string) (d Decimal, ok bool) {
	text := s
	if s != "" && (s[0] == '-' || s[0] == '+') {
		d.negative, s = s[0] == '-', s[1:]
	}
	if s == "" || s[0] > '9' || len(s) > maxDigits {
		return Decimal{}, false // the usual case of a text
	}
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		n, err := strconv.Atoi(s[i+1:])
		if err != nil || n < -maxExponent || n > maxExponent {
			return Decimal{}, false
		}
		s, d.point = s[:i], n
	}
	digits, fraction, _ := strings.Cut(s, ".")
	d.point += len(digits)
	digits += fraction
	if digits == "" {
		return Decimal{}, false
	}
	for i := range len(digits) {
		if digits[i] < '0' || digits[i] > '9' {
			return Decimal{}, false
		}
	}
	significant := strings.TrimLeft(digits, "0")
	d.point -= len(digits) - len(significant)
	d.digits = strings.TrimRight(significant, "0")
	if d.digits == "" {
		return Decimal{}, true
	}
	d.approx, _ = strconv.ParseFloat(text, 64) // infinite beyond the range
	return d, true
}

// infinity returns an infinity, which is above or below all numbers.
func infinity(negative bool) Decimal {
	d := Decimal{math.Inf(1), "1", infinitePoint, negative}
	if negative {
		d.approx = math.Inf(-1)
	}
	return d
}

// NewDecimal returns n times ten to the power e.
func NewDecimal(n *big.Int, e int) Decimal {
	d, _ := ParseDecimal(n.String())
	if d.digits == "" {
		return d
	}
	d.point += e
	d.approx, _ = strconv.ParseFloat(d.String(), 64)
	return d
}

// Float returns the nearest float64; an infinity beyond its range.
func (d Decimal) Float() float64 { return d.approx }

// Sign returns -1, 0, or 1.
func (d Decimal) Sign() int {
	switch {
	case d.digits == "":
		return 0
	case d.negative:
		return -1
	}
	return 1
}

// Neg returns the number with the other sign.
func (d Decimal) Neg() Decimal {
	if d.digits != "" {
		d.negative, d.approx = !d.negative, -d.approx
	}
	return d
}

// Compare returns -1, 0, or 1: the order of two numbers.
func (d Decimal) Compare(o Decimal) int {
	// The nearest floats of two numbers are never in the wrong order.
	if d.approx != o.approx {
		return cmp.Compare(d.approx, o.approx)
	}
	if c := cmp.Compare(d.Sign(), o.Sign()); c != 0 || d.digits == "" {
		return c
	}
	return cmp.Or(cmp.Compare(d.point, o.point), strings.Compare(d.digits, o.digits)) * d.Sign()
}

// Exponent returns the power of ten of the last digit, or 0 for 0: that of 1200 is 2, that of 0.25
// is -2.
func (d Decimal) Exponent() int {
	if d.digits == "" {
		return 0
	}
	return d.point - len(d.digits)
}

// Digits returns the number of significant digits.
func (d Decimal) Digits() int { return len(d.digits) }

// Int returns the number divided by ten to the power e, which is at most Exponent, so that it is
// whole.
func (d Decimal) Int(e int) *big.Int {
	n := new(big.Int)
	if d.digits == "" {
		return n
	}
	n.SetString(d.digits, 10)
	n.Mul(n, new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(d.Exponent()-e)), nil))
	if d.negative {
		n.Neg(n)
	}
	return n
}

// Rat returns the number as a fraction.
func (d Decimal) Rat() *big.Rat {
	// for speed
	if n, e := len(d.digits), d.Exponent(); n <= maxInt64Digits && e >= -maxInt64Digits && n+e <= maxInt64Digits {
		m, _ := strconv.ParseInt(d.digits, 10, 64) // 0 if there is no digit
		if d.negative {
			m = -m
		}
		denominator := int64(1)
		for ; e > 0; e-- {
			m *= 10
		}
		for ; e < 0; e++ {
			denominator *= 10
		}
		return big.NewRat(m, denominator)
	}
	if e := d.Exponent(); e < 0 {
		return new(big.Rat).SetFrac(d.Int(e), new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(-e)), nil))
	}
	return new(big.Rat).SetInt(d.Int(0))
}

// String formats the number without superfluous zeros. Below a millionth and above 21 digits it has
// a power of ten.
func (d Decimal) String() string {
	if d.digits != "" && (d.point < -5 || d.point > 21) {
		text := d.digits[:1]
		if len(d.digits) > 1 {
			text += "." + d.digits[1:]
		}
		return d.sign() + text + "e" + strconv.Itoa(d.point-1)
	}
	return d.Plain()
}

// Plain formats the number without superfluous zeros and without a power of ten.
func (d Decimal) Plain() string {
	switch n := len(d.digits); {
	case n == 0:
		return "0"
	case d.point >= n:
		return d.sign() + d.digits + strings.Repeat("0", d.point-n)
	case d.point > 0:
		return d.sign() + d.digits[:d.point] + "." + d.digits[d.point:]
	}
	return d.sign() + "0." + strings.Repeat("0", -d.point) + d.digits
}

func (d Decimal) sign() string {
	if d.negative {
		return "-"
	}
	return ""
}
