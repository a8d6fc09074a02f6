package grid

import "errors"

// errCrowded says that a Latin hypercube could not be made without repeats.
var errCrowded = errors.New("no Latin hypercube of so many points without repeats was found: take fewer points, or leave out latin")

// hypercube makes the table of a Latin hypercube: for each axis the places of n
// points. An axis is cut into n equal strata, and each has exactly one of the points;
// so each of m values occurs n/m times, rounded up or down. There are at least n
// points in the product.
func hypercube(axes []int, n int, seed uint64) ([][]int, error) {
	r := random(seed)
	table := make([][]int, len(axes))
	for a, m := range axes {
		column := make([]int, n)
		u := r.share()
		for i := range column {
			if m > n {
				u = r.share() // anywhere in the stratum
			}
			column[i] = min(m-1, int((float64(i)+u)*float64(m)/float64(n)))
		}
		for i := n - 1; i > 0; i-- {
			j := r.below(i + 1)
			column[i], column[j] = column[j], column[i]
		}
		table[a] = column
	}
	return table, spread(table, axes, &r)
}

// share is a number from 0 to 1, without 1.
func (r *random) share() float64 { return float64(r.next()>>11) / (1 << 53) }

// The search for a table without repeats makes so many exchanges a point in a row,
// and altogether.
const (
	spreadTries = 20
	spreadMost  = 1_000_000
	spreadEach  = 100 // more for each point
)

// spread parts points that fall together by exchanging, on one axis, the places of
// two points, which leaves the strata as they are.
func spread(table [][]int, axes []int, r *random) error {
	if len(axes) == 0 {
		return nil
	}
	n := len(table[0])
	stride := make([]int, len(axes))
	for a, s := len(axes)-1, 1; a >= 0; a-- {
		stride[a] = s
		s *= axes[a]
	}
	key, times := make([]int, n), make(map[int]int, n)
	for i := range n {
		for a := range axes {
			key[i] += table[a][i] * stride[a]
		}
		times[key[i]]++
	}
	try := func(i int) {
		j, a := r.below(n), r.below(len(axes))
		by := (table[a][j] - table[a][i]) * stride[a]
		if by == 0 {
			return
		}
		was := extra(times, key[i]) + extra(times, key[j])
		times[key[i]]--
		times[key[j]]--
		times[key[i]+by]++
		times[key[j]-by]++
		if extra(times, key[i]+by)+extra(times, key[j]-by) > was {
			times[key[i]+by]--
			times[key[j]-by]--
			times[key[i]]++
			times[key[j]]++
			return
		}
		key[i], key[j] = key[i]+by, key[j]-by
		table[a][i], table[a][j] = table[a][j], table[a][i]
	}
	for left := spreadMost + spreadEach*n; left > 0; {
		whole := true
		for i := range n {
			for range spreadTries {
				if times[key[i]] == 1 {
					break
				}
				whole = false
				left--
				try(i)
			}
		}
		if whole {
			return nil
		}
	}
	return errCrowded
}

// extra says whether a point is there more than once.
func extra(times map[int]int, key int) int { return min(max(times[key]-1, 0), 1) }
