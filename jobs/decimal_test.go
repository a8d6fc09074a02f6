package jobs

import (
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"
)

// randomNumber returns a text of a number, and that number. Many of them are close to each other.
func randomNumber(t *testing.T, r *rand.Rand) (string, *big.Rat) {
	text := []string{"", "", "-", "+"}[r.IntN(4)]
	text += []string{"", "0", "00", "9007199254740992", "123456789012345678", "1"}[r.IntN(6)]
	for range 1 + r.IntN(4) {
		text += string(rune('0' + r.IntN(10)))
	}
	if r.IntN(2) == 0 {
		text += "."
		for range r.IntN(4) {
			text += string(rune('0' + r.IntN(10)*r.IntN(2)))
		}
	}
	if r.IntN(3) == 0 {
		text += []string{"e", "E"}[r.IntN(2)] + []string{"3", "+2", "-5", "-400", "400", "0"}[r.IntN(6)]
	}
	want, ok := new(big.Rat).SetString(text)
	if !ok {
		t.Fatalf("math/big does not read %q", text)
	}
	return text, want
}

// TestDecimalsAreExact compares Decimal with math/big.Rat on random numbers: order, equality,
// formats, and what it converts to.
func TestDecimalsAreExact(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 5))
	for range 30_000 {
		text1, rat1 := randomNumber(t, r)
		text2, rat2 := randomNumber(t, r)
		if r.IntN(4) == 0 { // the same number in another form
			text2, rat2 = strings.TrimPrefix(text1, "+")+"e0", rat1
			if strings.ContainsAny(text1, "eE") {
				text2 = text1
			}
		}
		a, ok1 := ParseDecimal(text1)
		b, ok2 := ParseDecimal(text2)
		if !ok1 || !ok2 {
			t.Fatalf("%q %q: not read", text1, text2)
		}
		if got, want := a.Compare(b), rat1.Cmp(rat2); got != want || b.Compare(a) != -want || (a == b) != (want == 0) {
			t.Fatalf("%s and %s: got %d and %v, want %d", text1, text2, got, a == b, want)
		}
		if a.Rat().Cmp(rat1) != 0 || a.Sign() != rat1.Sign() || a.Neg().Rat().Cmp(new(big.Rat).Neg(rat1)) != 0 {
			t.Fatalf("%s: as a fraction %s", text1, a.Rat())
		}
		if f, _ := rat1.Float64(); a.Float() != f {
			t.Fatalf("%s: as a float %v, want %v", text1, a.Float(), f)
		}
		if n := NewDecimal(a.Int(a.Exponent()-1), a.Exponent()-1); n != a {
			t.Fatalf("%s: as a whole number and back %s", text1, n)
		}
		for _, s := range []string{a.String(), a.Plain()} {
			if again, ok := ParseDecimal(s); !ok || again != a {
				t.Fatalf("%s: written %s, and read %v", text1, s, again)
			}
		}
	}
	for _, text := range []string{"", "-", ".", "e3", "1e", "1e1001", "0x10", "1_000", "nan", "inf", "1.2.3", "1,5",
		"−1", "٣", strings.Repeat("1", maxDigits+1)} {
		t.Run(text, func(t *testing.T) {
			if d, ok := ParseDecimal(text); ok {
				t.Errorf("%q is read as %s", text, d)
			}
		})
	}
}

// TestHardnessIsExact checks that components above 2^53 are told apart, that equal numbers are
// equal however they are written, and that infinities are the ends.
func TestHardnessIsExact(t *testing.T) {
	order := []string{"-inf", "-1e400", "0", "9007199254740992", "9007199254740993", "1e400", "Infinity"}
	for i, low := range order {
		for k, high := range order {
			if a, b := ParseHardness(low), ParseHardness(high); a.AtMost(b) != (i <= k) ||
				(a.Compare(b) < 0) != (i < k) {
				t.Errorf("%s is at most %s: %v", low, high, a.AtMost(b))
			}
		}
	}
	if a, b := ParseHardness("1.50"), ParseHardness("15e-1"); a != b {
		t.Errorf("1.50 and 15e-1: got %v and %v, want the same", a, b)
	}
}
