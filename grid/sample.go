package grid

import (
	"errors"
	"fmt"
	"iter"
	"math/bits"
	"slices"
	"strconv"
)

// sample is an @sample line: n points instead of the product of all parameters, or of those that it
// names. Each point is combined with all values of the other parameters.
type sample struct {
	n      int
	latin  bool
	seed   uint64
	of     []int   // sampled parameters; nil: all
	axes   int     // number of axes of the sampled parameters, which come first
	points int     // number of points in the product of these axes
	table  [][]int // of a Latin hypercube: the index of each point on each axis
}

// maxRejected is the number of consecutive points that the filter may reject before sampling fails.
// Tests change it.
var maxRejected = 100_000_000

// sampledPoints yields the points of the sample. A seed gives the same points on every machine and
// with every version of Go.
func (t *Template) sampledPoints() iter.Seq2[[]int, error] {
	s := t.sample
	// Number of points of the other parameters for each point of the sample.
	rest := t.points / s.points
	return func(yield func([]int, error) bool) {
		ix := make([]int, len(t.axes))
		draws, draw := s.drawing(func(k int) { t.place(k*rest, ix) }, ix)
		found, vain := 0, 0
		for k := 0; k < draws && found < s.n; k++ {
			draw(k)
			looked, some := 1, false
			if t.passesFilter(ix, s.axes) {
				looked = rest
				if !t.walk(ix, s.axes, func(ix []int, err error) bool { some = true; return yield(ix, err) }) {
					return
				}
			}
			vain += looked
			if some {
				found, vain = found+1, 0
			}
			if vain >= maxRejected {
				yield(nil, fmt.Errorf("%s: the filter left out %d points in a row: too few of the %d points fit it "+
					"for @sample; narrow the values",
					t.File, vain, t.points))
				return
			}
		}
	}
}

// drawing returns the number of points that can be drawn, and a function that stores drawn point k
// in ix. place stores point k of the product in ix.
func (s *sample) drawing(place func(k int), ix []int) (int, func(k int)) {
	if s.latin {
		return s.n, func(k int) {
			for a := range s.axes {
				ix[a] = s.table[a][k]
			}
		}
	}
	order := newShuffle(s.points, s.seed)
	return s.points, func(k int) { place(order.at(k)) }
}

// random is the generator splitmix64.
type random uint64

func (r *random) next() uint64 {
	*r += 0x9e3779b97f4a7c15
	return mix(uint64(*r))
}

func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// below returns a number from 0 to n-1.
func (r *random) below(n int) int {
	hi, _ := bits.Mul64(r.next(), uint64(n)) // off by n in 2^64 from even
	return int(hi)
}

// shuffle is a permutation of 0 … n-1 that needs no memory: a Feistel network over the next
// even power of two, applied until the result is below n.
type shuffle struct {
	n    uint64
	half uint
	keys [6]uint64
}

func newShuffle(n int, seed uint64) *shuffle {
	s := &shuffle{n: uint64(n), half: uint(bits.Len64(uint64(max(n-1, 1)))+1) / 2}
	r := random(seed)
	for i := range s.keys {
		s.keys[i] = r.next()
	}
	return s
}

func (s *shuffle) at(k int) int {
	mask := uint64(1)<<s.half - 1
	x := uint64(k)
	for {
		left, right := x>>s.half, x&mask
		for _, key := range s.keys {
			left, right = right, left^mix(right^key)&mask
		}
		x = left<<s.half | right
		if x < s.n {
			return int(x)
		}
	}
}

// sampleForm describes how an @sample line is written.
const sampleForm = "write @sample 50, optionally followed by latin or random, seed 7, and of C, gamma"

// parseSample parses `@sample 50 [random|latin] [seed 7] [of C, gamma]`.
func (p *parser) parseSample(l *line, from int) {
	if p.sampled != nil {
		p.wrong.at(l, 0, "there is an @sample in line %d already", p.sampled.no)
		return
	}
	p.sampled = l
	words, ok := p.words(l, l.text, from)
	if !ok {
		return
	}
	if len(words) == 0 {
		p.wrong.at(l, from, "the number of points is missing: %s", sampleForm)
		return
	}
	var err error
	s := &sample{seed: 1}
	if s.n, err = strconv.Atoi(words[0].text); err != nil || s.n < 1 {
		p.wrong.at(l, words[0].offset, "%q is not a number of points: %s", words[0].text, sampleForm)
		return
	}
	for i := 1; i < len(words); i++ {
		switch w := words[i]; w.text {
		case "random":
		case "latin":
			s.latin = true
		case "seed":
			i++
			if i == len(words) {
				p.wrong.at(l, w.offset, "a whole number must follow seed: @sample 50 seed 7")
				return
			}
			if s.seed, err = strconv.ParseUint(words[i].text, 10, 64); err != nil {
				p.wrong.at(l, words[i].offset, "%q is not a seed: write a whole number of at least 0", words[i].text)
				return
			}
		case "of":
			s.of = p.parseSampledParams(l, w, words[i+1:])
			if s.of == nil {
				return
			}
			i = len(words)
		default:
			p.wrong.at(l, w.offset, "%q is not expected here: %s", w.text, sampleForm)
			return
		}
	}
	p.t.sample = s
}

// parseSampledParams parses the parameters that follow the word `of`. It returns nil after an
// error.
func (p *parser) parseSampledParams(l *line, of word, words []word) (params []int) {
	if len(words) == 0 {
		p.wrong.at(l, of.offset, "parameters must follow of: @sample 50 of C, gamma draws values for them, "+
			"and each is taken with all values of the others")
	}
	for _, w := range words {
		i, ok := p.paramAt(l, w.text, w.offset)
		if !ok {
			return nil
		}
		params = append(params, i)
	}
	slices.Sort(params)
	return params
}

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
