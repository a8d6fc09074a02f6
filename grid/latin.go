package grid

import "errors"

// errNoHypercube is the error if no Latin hypercube without repeated points was found.
var errNoHypercube = errors.New("no Latin hypercube of so many points without repeats was found: " +
	"take fewer points, or leave out latin")

// hypercube returns a Latin hypercube of n points. The result holds the indexes of the points on
// each axis. An axis is cut into n equal strata, each of which has exactly one point. Each of m
// values thus occurs n/m times, rounded up or down. The product must have at least n points.
func hypercube(axes []int, n int, seed uint64) ([][]int, error) {
	r := random(seed)
	table := make([][]int, len(axes))
	for a, m := range axes {
		column := make([]int, n)
		u := r.float()
		for i := range column {
			if m > n {
				u = r.float() // anywhere in the stratum
			}
			column[i] = min(m-1, int((float64(i)+u)*float64(m)/float64(n)))
		}
		for i := n - 1; i > 0; i-- {
			j := r.below(i + 1)
			column[i], column[j] = column[j], column[i]
		}
		table[a] = column
	}
	return table, separatePoints(table, axes, &r)
}

// float returns a number in [0, 1).
func (r *random) float() float64 { return float64(r.next()>>11) / (1 << 53) }

// The limits of the search for a table without repeated points.
const (
	triesPerPoint     = 20
	maxExchanges      = 1_000_000
	exchangesPerPoint = 100 // additional exchanges per point
)

// separatePoints separates equal points by exchanging the indexes of two points on one axis, which
// preserves the strata.
func separatePoints(table [][]int, axes []int, r *random) error {
	if len(axes) == 0 {
		return nil
	}
	n, times := len(table[0]), map[int]int{}
	key := func(i int) (k int) {
		for a, m := range axes {
			k = k*m + table[a][i]
		}
		return k
	}
	for i := range n {
		times[key(i)]++
	}
	repeats := func(i, j int) int { return min(times[key(i)], 2) + min(times[key(j)], 2) }
	exchange := func(a, i, j int) {
		times[key(i)]--
		times[key(j)]--
		table[a][i], table[a][j] = table[a][j], table[a][i]
		times[key(i)]++
		times[key(j)]++
	}
	for left := maxExchanges + exchangesPerPoint*n; left > 0; {
		whole := true
		for i := range n {
			for try := 0; try < triesPerPoint && times[key(i)] > 1; try++ {
				j, a := r.below(n), r.below(len(axes))
				before := repeats(i, j)
				exchange(a, i, j)
				if repeats(i, j) > before {
					exchange(a, i, j)
				}
				whole = false
				left--
			}
		}
		if whole {
			return nil
		}
	}
	return errNoHypercube
}
