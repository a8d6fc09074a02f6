package query

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"
)

// reference calculates with math/big.Rat what a random query means.
type reference struct {
	r      *rand.Rand
	fields map[string]string
}

// number returns a random operand, its exact value, and whether it is defined.
func (x *reference) number(depth int) (string, *big.Rat) {
	if depth == 0 || x.r.IntN(3) == 0 {
		name := string(rune('a' + x.r.IntN(len(x.fields))))
		text := x.fields[name]
		if x.r.IntN(2) == 0 {
			name = text
		}
		v, _ := new(big.Rat).SetString(text)
		return name, v
	}
	left, a := x.number(depth - 1)
	right, b := x.number(depth - 1)
	op, v := string("+-*/%"[x.r.IntN(5)]), new(big.Rat)
	switch {
	case a == nil || b == nil || b.Sign() == 0 && (op == "/" || op == "%"):
		return fmt.Sprintf("(%s %s %s)", left, op, right), nil
	case op == "+":
		v.Add(a, b)
	case op == "-":
		v.Sub(a, b)
	case op == "*":
		v.Mul(a, b)
	case op == "/":
		v.Quo(a, b)
	case op == "%":
		v.Quo(a, b)
		v.Sub(a, v.Mul(b, new(big.Rat).SetInt(new(big.Int).Quo(v.Num(), v.Denom()))))
	}
	return fmt.Sprintf("(%s %s %s)", left, op, right), v
}

// TestQueriesAreExact compares random comparisons and calculations with math/big.Rat.
func TestQueriesAreExact(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 9))
	some := strings.Fields("0 0.0 1 -1 2 3 7 10 0.1 0.2 0.3 0.30000000000000004 1e-3 0.001 9007199254740992 " +
		"9007199254740993 9007199254740992.5 " +
		"1234567890123456789 1234567890123456780 1.0000000000000000001 1e22 1e23 -0.5 1e-320 1e300 1e-300 " +
		"5e-324 12345.678 100")
	compared, equal := 0, 0
	for range 20_000 {
		x := &reference{r, map[string]string{}}
		for _, name := range []string{"a", "b", "c"} {
			x.fields[name] = some[r.IntN(len(some))]
		}
		left, v := x.number(2)
		right, w := x.number(2)
		if v == nil || w == nil {
			continue // infinities follow floats
		}
		op := []string{"=", "!=", "<", "<=", ">", ">="}[r.IntN(6)]
		text := left + " " + op + " " + right
		q, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		match, err := Compile(q, Fields[row](func(name string) (*Field[row], error) {
			return &Field[row]{Name: name, Type: NumberType, Value: func(r row) Value { return ValueOf(r[name]) }}, nil
		}), nil)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := match(x.fields), ordered(op, v.Cmp(w)); got != want {
			t.Fatalf("%s of %v: got %v, want %v", text, x.fields, got, want)
		}
		compared++
		if v.Cmp(w) == 0 {
			equal++
		}
	}
	if compared < 10_000 || equal < 500 {
		t.Errorf("%d comparisons, %d of equal numbers: too few to mean something", compared, equal)
	}
}

// TestOrderIsExact checks that Compare, by which tables are sorted, orders values as math/big does.
func TestOrderIsExact(t *testing.T) {
	some := strings.Fields("9007199254740992 9007199254740993 9007199254740993.0 1e16 10000000000000000 0.1 0.10 " +
		"0.1000000000000000055 0 -0 1e-350 91% 91.0")
	for _, a := range some {
		for _, b := range some {
			v, _ := new(big.Rat).SetString(strings.TrimSuffix(a, "%"))
			w, _ := new(big.Rat).SetString(strings.TrimSuffix(b, "%"))
			if got := Compare(ValueOf(a), ValueOf(b), false); got != v.Cmp(w) {
				t.Errorf("%s and %s: got %d, want %d", a, b, got, v.Cmp(w))
			}
		}
	}
	if v := NumberValue(1.1); Compare(v, ValueOf("1.1"), false) != 0 {
		t.Error("a float without a text is not the number that is shown for it")
	}
}
