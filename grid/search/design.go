package search

import "math/rand/v2"

// The methods of this file determine all trials in advance.
const (
	Random  = "random"
	Latin   = "lhs"
	Halton  = "halton"
	Halving = "halving" // random trials, of which those with poor values end early
)

// Design returns the n points of a method that determines all trials in advance, in the given
// number of dimensions.
func Design(method string, n, dims int, seed uint64) [][]float64 {
	r := rand.New(rand.NewPCG(seed, 0))
	points := make([][]float64, n)
	for i := range points {
		points[i] = make([]float64, dims)
	}
	for d := range dims {
		switch method {
		case Latin: // a point in each of n strata
			for i, stratum := range r.Perm(n) {
				points[i][d] = (float64(stratum) + r.Float64()) / float64(n)
			}
		case Halton:
			scrambled := newHalton(prime(d), r)
			for i := range points {
				points[i][d] = scrambled.at(i)
			}
		}
	}
	if method == Random || method == Halving {
		for i := range points { // point by point, so that a longer design begins with a shorter one
			for d := range dims {
				points[i][d] = r.Float64()
			}
		}
	}
	return points
}

// halton is a dimension of the Halton sequence, scrambled by a permutation for each digit:
// A. Owen, A randomized Halton algorithm in R, arXiv:1706.02808, 2017.
type halton struct {
	base   int
	digits [][]int
}

func newHalton(base int, r *rand.Rand) *halton {
	h := &halton{base: base}
	for scale := 1.0; scale > 1e-12; scale /= float64(base) {
		h.digits = append(h.digits, r.Perm(base))
	}
	return h
}

// at returns the coordinate of point i.
func (h *halton) at(i int) (u float64) {
	scale := 1.0
	for _, digit := range h.digits {
		scale /= float64(h.base)
		u += scale * float64(digit[i%h.base])
		i /= h.base
	}
	return u
}

// prime returns prime number d, from 0.
func prime(d int) int {
next:
	for n := 2; ; n++ {
		for k := 2; k*k <= n; k++ {
			if n%k == 0 {
				continue next
			}
		}
		if d == 0 {
			return n
		}
		d--
	}
}
