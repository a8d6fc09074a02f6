package grid

import (
	"strings"
	"testing"
)

// holding returns the values of [x] (and [k]) that a filter keeps.
func holding(t *testing.T, values, filter string) string {
	t.Helper()
	tmpl := parse(t, "a [x]\n[x] "+values+"\n@where "+filter)
	var all []string
	for s := range tmpl.Jobs() {
		all = append(all, s.Params[0].Value)
	}
	return strings.Join(all, " ")
}

// TestWhere checks the language of filters.
func TestWhere(t *testing.T) {
	for _, c := range []struct{ values, filter, want string }{
		{"1..5", "x = 3", "3"},
		{"1..5", "x == 3", "3"},
		{"1..5", "x != 3", "1 2 4 5"},
		{"1..5", "x <> 3", "1 2 4 5"},
		{"1..5", "x < 3", "1 2"},
		{"1..5", "x <= 3", "1 2 3"},
		{"1..5", "x > 3", "4 5"},
		{"1..5", "x >= 3", "3 4 5"},
		{"1..5", "[x] >= 3", "3 4 5"},
		{"1..5", "2 <= x < 4", "2 3"},
		{"1..5", "x > 1 and x < 5 and not x = 3", "2 4"},
		{"1..5", "x > 1 && x < 5 && !(x = 3)", "2 4"},
		{"1..5", "x = 1 or x = 2 and x = 3", "1"},
		{"1..5", "(x = 1 or x = 2) and x = 2", "2"},
		{"1..5", "x = 1 || x = 5", "1 5"},
		{"1..5", "not x = 1 and not not x < 4", "2 3"},
		{"1..5", "NOT x = 1 AND x < 4", "2 3"},
		{"1..5", "x + 1 = 3", "2"},
		{"1..5", "2 * x + 1 = 5", "2"},
		{"1..5", "2 * (x + 1) = 6", "2"},
		{"1..5", "10 - x - 1 = 4", "5"},
		{"1..5", "x % 2 = 0", "2 4"},
		{"-3..3", "x % 2 = 1", "1 3"}, // the sign is that of the left operand, as in C
		{"-3..3", "x % 2 != 0", "-3 -1 1 3"},
		{"1..5", "x / 2 = 1.5", "3"},
		{"1..5", "-x = -3", "3"},
		{"1..5", "-x + 5=+2", "3"},
		{"1..5", "x = 3e0 or x=.5e1", "3 5"},
		{"9 10 1e1 010", "x = 10", "10 1e1 010"}, // numbers compare as numbers
		{"9 10 100", "x < 50", "9 10"},
		// As decimals, not as binary floating-point numbers.
		{"0..1 step 0.1", "x + 0.2 = 0.5", "0.3"},
		{"0..1 step 0.1", "1 - x = 0.1", "0.9"},
		{"0..1 step 0.1", "x * 3 <= 0.3", "0 0.1"},
		{"0..1 step 0.1", "x + 0.1 < 0.3", "0 0.1"},
		{"0..1 step 0.1", "x % 0.3 = 0", "0 0.3 0.6 0.9"},
		// Beyond 2^53.
		{"9007199254740992 9007199254740993", "x = 9007199254740992", "9007199254740992 9007199254740993"},
		{"1000000000000001 1000000000000002", "x = 1000000000000001", "1000000000000001"},
		{"rbf poly", "x = 'rbf'", "rbf"},
		{"rbf poly", `x = "rbf"`, "rbf"},
		{"rbf poly", `x < "q"`, "poly"},
		{"'a \"b' c", `x = "a \"b"`, `a "b`},
		{"auto 1 2", "x = 'auto' or x > 1", "auto 2"},
		{"auto 1 2", "x != 1", "auto 2"},
		{"1..3", "1 / (x - 2) > 0", "2 3"}, // 1/0 is infinite, as in IEEE 754
		{"1..3", "0 / (x - 2) = 0", "1 3"},
		{"1..3", "1 < 2", "1 2 3"},
		{"1..3", "1 > 2", ""},
	} {
		if got := holding(t, c.values, c.filter); got != c.want {
			t.Errorf("%s where %s: %q, want %q", c.values, c.filter, got, c.want)
		}
	}
}

// TestWhereFaults checks that an error in a filter is reported with its position.
func TestWhereFaults(t *testing.T) {
	for _, c := range []struct {
		filter string
		column int
		words  string
	}{
		{"", 7, "a comparison is expected"},
		{" x >", 11, "is expected, not the end"},
		{" (x > 1", 14, "a ) is expected, not the end"},
		{" y > 1", 8, `no parameter "y"`},
		{" kernl = 'a'", 8, `did you mean "kernel"?`},
		{" [y] > 1", 8, `no parameter "y"`},
		{" x < y", 12, `x is a number, and "y" is not`},
		{" x and x > 1", 10, `a comparison such as = or > is expected after "x"`},
		{" x*2 > 1", 8, "write spaces around + - * / % to calculate"},
		{" kernel * 2 > 1", 8, `its value "rbf" is not a number`},
		{" -kernel > 1", 9, "cannot be calculated with"},
		{" x < 'a'", 12, "have no order"},
		{" kernel > 1", 17, "have no order"},
		{" x > 1.2.3", 12, `x is a number, and "1.2.3" is not`},
		{" x > 1 " + strings.Repeat("not ", 200) + "x > 1", 417, "nested more than 100 deep"},
	} {
		_, err := Parse(strings.NewReader("a [x] [kernel] [k]\n[x] 1 2\n[kernel] rbf poly\n[k] rbf\n@where"+c.filter), "t.txt")
		if err == nil {
			t.Errorf("%.40s: no error", c.filter)
			continue
		}
		var f *Fault
		for _, one := range err.(interface{ Unwrap() []error }).Unwrap() {
			f = one.(*Fault)
			break
		}
		if f.Line != 5 || f.Column != c.column || !strings.Contains(f.Text, c.words) {
			t.Errorf("%.40s: %v; want column %d, %s", c.filter, err, c.column, c.words)
		}
	}
	if _, err := Parse(strings.NewReader("a\n@where 1 < 2"), "t.txt"); err == nil || !strings.Contains(err.Error(), "t.txt:2:1: there is no parameter to filter by") {
		t.Error(err)
	}
}
