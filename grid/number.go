package grid

import (
	"math/big"
	"strconv"
	"strings"
)

// decimal is an exact decimal number: m times 10 to the power e.
type decimal struct {
	m int64
	e int
}

// maxMantissa bounds m, so that the difference of two cannot overflow.
const maxMantissa = 1 << 61

// cutNumber splits a number of the form -12.5e-3 into its sign, digits, and power of ten.
func cutNumber(s string) (negative bool, digits string, e int, ok bool) {
	if s != "" && (s[0] == '-' || s[0] == '+') {
		negative, s = s[0] == '-', s[1:]
	}
	s, power, hasPower := cutAny(s, "eE")
	if hasPower {
		n, err := strconv.Atoi(power)
		if err != nil || n < -400 || n > 400 {
			return false, "", 0, false
		}
		e = n
	}
	whole, fraction, _ := strings.Cut(s, ".")
	digits = whole + fraction
	if digits == "" || strings.Trim(digits, "0123456789") != "" {
		return false, "", 0, false
	}
	return negative, digits, e - len(fraction), true
}

func cutAny(s, chars string) (before, after string, found bool) {
	if i := strings.IndexAny(s, chars); i >= 0 {
		return s[:i], s[i+1:], true
	}
	return s, "", false
}

// isNumber reports whether a text is a number: 3, -0.5, .5, 1e-3.
func isNumber(s string) bool {
	if s == "" || s[0] > '9' {
		return false // the usual case
	}
	_, _, _, ok := cutNumber(s)
	return ok
}

// parseDecimal parses a number of at most 18 digits.
func parseDecimal(s string) (decimal, bool) {
	negative, digits, e, ok := cutNumber(s)
	if !ok {
		return decimal{}, false
	}
	short := strings.TrimRight(digits, "0")
	e += len(digits) - len(short)
	if short = strings.TrimLeft(short, "0"); short == "" {
		return decimal{}, true
	}
	m, err := strconv.ParseInt(short, 10, 64)
	if err != nil || m >= maxMantissa {
		return decimal{}, false
	}
	if negative {
		m = -m
	}
	return decimal{m, e}, true
}

// scaled returns m for another, not greater, power of ten.
func (d decimal) scaled(e int) (int64, bool) {
	m := d.m
	for n := d.e - e; n > 0 && m != 0; n-- {
		if m *= 10; m >= maxMantissa || m <= -maxMantissa {
			return 0, false
		}
	}
	return m, true
}

// String formats the number without superfluous zeros. Below a millionth and above 21 digits
// it has a power of ten.
func (d decimal) String() string {
	if d.m == 0 {
		return "0"
	}
	for d.m%10 == 0 {
		d.m /= 10
		d.e++
	}
	sign, digits := "", strconv.FormatInt(d.m, 10)
	if digits[0] == '-' {
		sign, digits = "-", digits[1:]
	}
	point := len(digits) + d.e // digits before the decimal point
	switch {
	case point < -5 || point > 21:
		if len(digits) > 1 {
			digits = digits[:1] + "." + digits[1:]
		}
		return sign + digits + "e" + strconv.Itoa(point-1)
	case d.e >= 0:
		return sign + digits + strings.Repeat("0", d.e)
	case point > 0:
		return sign + digits[:point] + "." + digits[point:]
	}
	return sign + "0." + strings.Repeat("0", -point) + digits
}

// rational returns the number as a fraction.
func (d decimal) rational() *big.Rat {
	r, _ := new(big.Rat).SetString(strconv.FormatInt(d.m, 10) + "e" + strconv.Itoa(d.e))
	return r
}

// float returns the nearest floating-point number.
func (d decimal) float() float64 {
	if d.m > -1<<53 && d.m < 1<<53 && d.e <= 0 && d.e >= -22 {
		return float64(d.m) / powersOfTen[-d.e] // both are exact
	}
	f, _ := strconv.ParseFloat(strconv.FormatInt(d.m, 10)+"e"+strconv.Itoa(d.e), 64)
	return f
}

var powersOfTen = [23]float64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
	1e17, 1e18, 1e19, 1e20, 1e21, 1e22}

// rounded formats a number with the given number of significant digits.
func rounded(f float64, digits int) string {
	s := strconv.FormatFloat(f, 'e', digits-1, 64)
	if d, ok := parseDecimal(s); ok {
		return d.String()
	}
	return s
}
