package grid

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
)

// TestSampleHasNoRepeats checks that a sample has the requested number of points of the filtered
// product, each once.
func TestSampleHasNoRepeats(t *testing.T) {
	for _, n := range []int{1, 7, 50, 999, 1000, 2000} {
		text := fmt.Sprintf("a [x] [y] [z]\n[x] 1..5\n[y] 1..10\n[z] 1..20\n@sample %d seed 3\n", n)
		for filter, total := range map[string]int{"": 1000, "@where x < y\n": 700} {
			tmpl := parse(t, text+filter)
			got := points(t, tmpl)
			slices.Sort(got)
			if distinct := len(slices.Compact(slices.Clone(got))); len(got) != min(n, total) || distinct != len(got) {
				t.Errorf("@sample %d %s: %d points, %d of them distinct, want %d", n, filter, len(got), distinct,
					min(n, total))
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

// TestSampleIsRepeatable checks that the same seed yields the same jobs on every machine and in
// every version, and that another seed yields others. A larger sample begins with the smaller one.
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
		t.Run(how, func(t *testing.T) {
			same(t, how, sampleOf(how), want)
		})
	}
	if !strings.HasPrefix(sampleOf("20"), sampleOf("10")+",") {
		t.Error("a larger sample does not begin as the smaller one")
	}
}

// TestShuffleIsAUniformPermutation checks that a shuffle is a permutation whose first numbers are
// evenly distributed.
func TestShuffleIsAUniformPermutation(t *testing.T) {
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
	for i, b := range bins { // about six standard deviations
		if math.Abs(float64(b)-drawn/16) > 460 {
			t.Errorf("bin %d has %d", i, b)
		}
	}
}

// TestLatinHypercubeIsStratified checks that a Latin hypercube is stratified. An axis with at least
// n values has one point in each of n equal strata. An axis with m < n values has each value n/m
// times, rounded up or down. No point occurs twice.
func TestLatinHypercubeIsStratified(t *testing.T) {
	for _, c := range []struct {
		axes []int
		n    int
	}{
		{[]int{10}, 10}, {[]int{100, 100}, 10}, {[]int{1000, 7, 3}, 21}, {[]int{1000, 7, 3}, 20}, {[]int{5, 5, 5}, 50},
		{[]int{3, 3}, 7}, {[]int{3, 3}, 9}, {[]int{6, 5}, 30}, {[]int{4, 4}, 15}, {[]int{2, 2, 2, 2}, 15}, {[]int{1, 8},
			8}, {[]int{1 << 40, 3}, 500}, {[]int{17, 13}, 100},
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
					t.Fatalf("%v %d seed %d: %s is given twice", c.axes, c.n, seed, key)
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

// TestSampleOfSomeParametersHasAllOthers checks a sample of some parameters, random or Latin. Each
// of its points occurs with all values of the other parameters that the filter keeps, one after the
// other. The points are those of a sample of these parameters alone.
func TestSampleOfSomeParametersHasAllOthers(t *testing.T) {
	const values = "[seed] 1..3\n[x] 1..100\n[m] a b\n[y] 1..100\n[z] 1..100\n@zip y, z\n"
	all := []string{"1 a", "1 b", "2 a", "2 b", "3 a", "3 b"}
	for _, c := range []struct {
		how, filter string
		points      int
		rest        []string // seed and m of each point, in order
	}{
		{"20 of x, y", "", 20, all},
		{"20 seed 5 of z x y", "", 20, all},
		{"20 latin of [x], z", "", 20, all},
		{"20 of x, y", "@where x > y", 20, all},
		{"50 latin of x, y", "@where m = 'a' and seed > 1", 50, []string{"2 a", "3 a"}},
		{"20 of x, y", "@where seed = 9", 0, nil},
		{"5 latin of x", "@where seed = 9", 0, nil},
		{"5 latin of x", "@where 1 = 2", 0, nil},
	} {
		t.Run(c.how, func(t *testing.T) {
			tmpl := parse(t, "a [x] [m]\n"+values+"@sample "+c.how+"\n"+c.filter)
			var got, heads []string
			for _, s := range specsOf(t, tmpl) {
				p := s.Params()
				head := " " + p[1].Value + " " + p[3].Value
				if len(heads) == 0 || heads[len(heads)-1] != head {
					heads = append(heads, head)
				}
				if p[3].Value != p[4].Value {
					t.Fatalf("not zipped: %v", p)
				}
				got = append(got, head+": "+p[0].Value+" "+p[2].Value)
			}
			var want []string
			for _, head := range heads {
				for _, rest := range c.rest {
					want = append(want, head+": "+rest)
				}
			}
			if !slices.Equal(got, want) || len(heads) != c.points {
				t.Errorf("@sample %s %s: %d points, %q", c.how, c.filter, len(heads), got)
			}
			if n, err := tmpl.Count(); n != len(got) || err != nil || c.filter == "" && tmpl.MaxJobs() != n {
				t.Errorf("@sample %s: %d jobs, counted %d, at most %d, %v", c.how, len(got), n, tmpl.MaxJobs(), err)
			}
			alone, _, _ := strings.Cut(c.how, " of")
			if want := points(t, parse(t, "a [x] [y]\n[x] 1..100\n[y] 1..100\n@sample "+alone)); c.points == 20 &&
				c.filter == "" && !slices.Equal(heads, want) {
				t.Errorf("@sample %s: %q, alone %q", c.how, heads, want)
			}
		})
	}
}

// TestSampleOfSomeIsBounded checks that the limit applies to the jobs that a sample makes with the
// other parameters, unless there is a filter.
func TestSampleOfSomeIsBounded(t *testing.T) {
	const text = "a [x] [y]\n[x] 1..1000\n[y] 1..100000\n@sample 20 of x\n"
	refused(t, Config{}, text, "t.txt:4:1", "the sample gives 2,000,000 jobs")
	if tmpl := parse(t, text+"@where y <= 2"); tmpl.MaxJobs() != 2_000_000 || len(points(t, tmpl)) != 40 {
		t.Error(tmpl.MaxJobs())
	}
}

// TestSampleOfNothingIsAnError checks that a filter that leaves nothing to sample ends with an
// error instead of an endless loop.
func TestSampleOfNothingIsAnError(t *testing.T) {
	defer func(n int) { maxRejected = n }(maxRejected)
	maxRejected = 1000
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
