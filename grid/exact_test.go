package grid

import (
	"context"
	"fmt"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"
)

// valuesOf returns the values of the line of a parameter, at most limit.
func valuesOf(line string, limit int) (list []string, n int, err error) {
	words, _, err := splitWords(line, 0)
	if err != nil {
		return nil, 0, err
	}
	v, _, err := readValues(words, false, nil, nil)
	if err != nil {
		return nil, 0, err
	}
	for k := range min(v.count(), limit) {
		list = append(list, v.at(k))
	}
	return list, v.count(), nil
}

// TestRangesOfLargeNumbers checks that ranges count beyond 2^63, and write numbers as their ends are
// written.
func TestRangesOfLargeNumbers(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{"1e18..4e18 step 1e18", "1000000000000000000 2000000000000000000 3000000000000000000 4000000000000000000"},
		{"20260101120000000000..20260101120000000010 step 5",
			"20260101120000000000 20260101120000000005 20260101120000000010"},
		{"10000000000000000000000000..10000000000000000000000001",
			"10000000000000000000000000 10000000000000000000000001"},
		{"9223372036854775806..9223372036854775809",
			"9223372036854775806 9223372036854775807 9223372036854775808 9223372036854775809"},
		{"-2..-9223372036854775810 step -9223372036854775807", "-2 -9223372036854775809"},
		{"007..000000000000000000000009", "000000000000000000000007 000000000000000000000008 000000000000000000000009"},
		{"1e30..3e30 step 1e30", "1e30 2e30 3e30"},
		{"9007199254740993..9007199254740995", "9007199254740993 9007199254740994 9007199254740995"},
		{"lin 1e18..20e18 x20", ""},
	} {
		t.Run(c.line, func(t *testing.T) {
			got, n, err := valuesOf(c.line, 20)
			if err != nil || c.want != "" && strings.Join(got, " ") != c.want || n == 1 {
				t.Errorf("%s: %d values %q, %v; want %s", c.line, n, got, err, c.want)
			}
		})
	}
	if got, n, err := valuesOf("lin 1e18..20e18 x20", 20); n != 20 || got[18] != "19000000000000000000" {
		t.Errorf("got %q, %v", got, err)
	}
}

// TestRangesAgainstFractions compares random ranges with math/big.Rat: the number of values, and
// each of the first ones.
func TestRangesAgainstFractions(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 13))
	some := []string{"0", "1", "-3", "0.1", "0.025", "1e18", "20e18", "9007199254740993", "1e-7",
		"123456789012345678901234567890", "-1e19", "7.5", "1e25"}
	compared := 0
	for range 5000 {
		texts := []string{some[r.IntN(len(some))], some[r.IntN(len(some))], some[r.IntN(len(some))]}
		var x [3]*big.Rat
		for i, text := range texts {
			x[i], _ = new(big.Rat).SetString(text)
		}
		from, to, step := x[0], x[1], x[2]
		line := fmt.Sprintf("%s..%s step %s", texts[0], texts[1], texts[2])
		got, n, err := valuesOf(line, 5)
		if step.Sign() == 0 || to.Cmp(from) == -step.Sign() {
			if err == nil {
				t.Fatalf("%s: got %d values, want an error", line, n)
			}
			continue
		}
		q := new(big.Rat).Quo(new(big.Rat).Sub(to, from), step)
		want := new(big.Int).Quo(q.Num(), q.Denom())
		if want.Add(want, big.NewInt(1)); want.Cmp(big.NewInt(maxValues)) > 0 {
			if err == nil {
				t.Fatalf("%s: got %d values, want an error", line, n)
			}
			continue
		}
		if err != nil || want.Cmp(big.NewInt(int64(n))) != 0 {
			t.Fatalf("%s: got %d values, %v; want %s", line, n, err, want)
		}
		for k, text := range got {
			v := new(big.Rat).Mul(step, new(big.Rat).SetInt64(int64(k)))
			if is, ok := new(big.Rat).SetString(text); !ok || is.Cmp(v.Add(v, from)) != 0 {
				t.Fatalf("%s: value %d is %s, want %s", line, k, text, v)
			}
			compared++
		}
	}
	if compared < 1000 {
		t.Errorf("only %d values were compared", compared)
	}
}

// TestFilterOfALargeRange checks that a filter tells the values of a range apart that is too long to
// be cached.
func TestFilterOfALargeRange(t *testing.T) {
	text := "echo [s]\n[s] 9007199254740000..9007199254840000\n@where s=9007199254740993\n"
	template, err := Config{}.Parse(context.Background(), strings.NewReader(text), "t.txt")
	if err != nil {
		t.Fatal(err)
	}
	if n, err := template.Count(); n != 1 || err != nil {
		t.Errorf("got %d jobs, %v; want one", n, err)
	}
}
