package grid

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
)

// points are the values of each job, joined, in order.
func points(t *testing.T, tmpl *Template) []string {
	t.Helper()
	var all []string
	for s, err := range tmpl.Jobs() {
		if err != nil {
			t.Fatal(err)
		}
		text := ""
		for _, p := range s.Params {
			text += " " + p.Value
		}
		all = append(all, text)
	}
	return all
}

// Issue 5: a sample has the points asked for, each once, of the filtered product.
func TestSampleHasNoRepeats(t *testing.T) {
	for _, n := range []int{1, 7, 50, 999, 1000, 2000} {
		text := fmt.Sprintf("a [x] [y] [z]\n[x] 1..10\n[y] 1..10\n[z] 1..10\n@sample %d seed 3\n", n)
		for filter, total := range map[string]int{"": 1000, "@where x < y\n": 450} {
			tmpl := parse(t, text+filter)
			got := points(t, tmpl)
			slices.Sort(got)
			if distinct := len(slices.Compact(slices.Clone(got))); len(got) != min(n, total) || distinct != len(got) {
				t.Errorf("@sample %d %s: %d points, %d of them distinct, want %d", n, filter, len(got), distinct, min(n, total))
			}
			for _, p := range got {
				var x, y, z int
				if fmt.Sscan(p, &x, &y, &z); filter != "" && x >= y {
					t.Fatalf("%s is filtered out", p)
				}
			}
		}
	}
}

// Issue 5: the same seed means the same jobs on every machine and in every version;
// another seed others; and a larger sample begins as a smaller one does.
func TestSampleIsRepeatable(t *testing.T) {
	sampleOf := func(how string) string {
		return strings.Join(points(t, parse(t, "a [x] [y]\n[x] 1..1000\n[y] 1..1000\n@sample "+how)), ",")
	}
	for how, want := range map[string]string{
		"3":              " 441 915, 200 725, 207 125",
		"3 seed 7":       " 338 317, 994 140, 365 410",
		"4 latin":        " 187 864, 493 199, 612 352, 862 652",
		"4 latin seed 7": " 646 104, 864 276, 476 740, 5 980",
	} {
		if got := sampleOf(how); got != want {
			t.Errorf("@sample %s: %s, want %s", how, got, want)
		}
	}
	if !strings.HasPrefix(sampleOf("20"), sampleOf("10")+",") {
		t.Error("a larger sample does not begin as the smaller one")
	}
}

// A shuffle is a permutation, and its first numbers are spread evenly.
func TestShuffle(t *testing.T) {
	for _, n := range []int{1, 2, 3, 4, 5, 16, 17, 100, 1000, 4096, 4097} {
		s := newShuffle(n, uint64(n))
		seen := make([]bool, n)
		for k := range n {
			x := s.at(k)
			if x < 0 || x >= n || seen[x] {
				t.Fatalf("n %d: %d for %d", n, x, k)
			}
			seen[x] = true
		}
	}
	const n, drawn = 1 << 50, 100_000
	s := newShuffle(n, 1)
	var bins [16]int
	for k := range drawn {
		bins[s.at(k)>>46]++
	}
	for i, b := range bins { // some six standard deviations
		if math.Abs(float64(b)-drawn/16) > 460 {
			t.Errorf("bin %d has %d", i, b)
		}
	}
}

// Issue 5: a Latin hypercube is really stratified: an axis with as many values as
// points or more has one point in each of n equal strata, one with fewer has each
// value n/m times, rounded up or down; and no point is there twice.
func TestLatinHypercubeIsStratified(t *testing.T) {
	for _, c := range []struct {
		axes []int
		n    int
	}{
		{[]int{10}, 10}, {[]int{100, 100}, 10}, {[]int{1000, 7, 3}, 21}, {[]int{1000, 7, 3}, 20}, {[]int{5, 5, 5}, 50},
		{[]int{3, 3}, 7}, {[]int{3, 3}, 9}, {[]int{4, 4}, 15}, {[]int{2, 2, 2, 2}, 15}, {[]int{1, 8}, 8}, {[]int{1 << 40, 3}, 500}, {[]int{17, 13}, 100},
	} {
		for seed := range uint64(20) {
			table, err := hypercube(c.axes, c.n, seed)
			if err != nil {
				t.Errorf("%v %d seed %d: %v", c.axes, c.n, seed, err)
				continue
			}
			seen := map[string]bool{}
			for i := range c.n {
				key := ""
				for a := range c.axes {
					key += fmt.Sprint(table[a][i], " ")
				}
				if seen[key] {
					t.Fatalf("%v %d seed %d: %s is there twice", c.axes, c.n, seed, key)
				}
				seen[key] = true
			}
			for a, m := range c.axes {
				column := slices.Sorted(slices.Values(table[a]))
				times := map[int]int{}
				for i, v := range column {
					if times[v]++; m >= c.n && (v < i*m/c.n || v > (i+1)*m/c.n) {
						t.Fatalf("%v %d seed %d: axis %d stratum %d has %d", c.axes, c.n, seed, a, i, v)
					}
				}
				for v := range min(m, c.n) {
					if k := times[v]; m < c.n && (k < c.n/m || k > (c.n+m-1)/m) {
						t.Fatalf("%v %d seed %d: axis %d has %d %d times", c.axes, c.n, seed, a, v, k)
					}
				}
			}
		}
	}
}

// The whole of a product is its only Latin hypercube of that size, and found.
func TestLatinHypercubeOfAllPoints(t *testing.T) {
	tmpl := parse(t, "a [x] [y]\n[x] 1..6\n[y] 1..5\n@sample 30 latin")
	got := points(t, tmpl)
	slices.Sort(got)
	if len(slices.Compact(got)) != 30 {
		t.Errorf("%d points", len(got))
	}
}

// A filter that leaves nothing to sample ends with an error, not never.
func TestSampleGivesUp(t *testing.T) {
	defer func(n int) { patience = n }(patience)
	patience = 1000
	tmpl := parse(t, "a [x] [y]\n[x] 1..100000\n[y] 1..100000\n@where x > y + 100000\n@sample 3")
	for s, err := range tmpl.Jobs() {
		if err == nil || !strings.Contains(err.Error(), "left out 1000 points in a row") {
			t.Fatal(s, err)
		}
	}
	if _, err := tmpl.Count(); err == nil {
		t.Error("counted")
	}
}
