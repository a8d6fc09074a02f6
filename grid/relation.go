package grid

import (
	"cmp"
	"fmt"
	"math/big"
	"slices"
	"strconv"
)

// set is a set of small numbers, the bits of a big.Int.
type set = big.Int

func add(s *set, i int) { s.SetBit(s, i, 1) }

// relation holds, for each of several settings, the set of those that are as hard or harder.
// It should be an order, in which different settings may be equally hard.
type relation struct{ up []set }

// newRelation returns the relation of n settings, given the answers about all pairs.
func newRelation(n int, answers []byte) *relation {
	r := &relation{up: make([]set, n)}
	for i := range r.up {
		add(&r.up[i], i)
	}
	for a, b := range pairs(n) {
		answer := answers[0]
		answers = answers[1:]
		if answer == easier[0] || answer == alike[0] {
			add(&r.up[a], b)
		}
		if answer == harder[0] || answer == alike[0] {
			add(&r.up[b], a)
		}
	}
	return r
}

func (r *relation) atMost(a, b int) bool { return r.up[a].Bit(b) == 1 }
func (r *relation) below(a, b int) bool  { return r.atMost(a, b) && !r.atMost(b, a) }

// answer returns the command's answer about a and b.
func (r *relation) answer(a, b int) string {
	switch {
	case r.atMost(a, b) && r.atMost(b, a):
		return alike
	case r.atMost(a, b):
		return easier
	case r.atMost(b, a):
		return harder
	}
	return incomparable
}

// contradiction finds a, b, and c, of which each is at most as hard as the next, while a is
// not at most as hard as c. If there are none, the relation is an order and ok is true.
func (r *relation) contradiction() (a, b, c int, ok bool) {
	var lacking set
	for a := range r.up {
		for b := range r.up {
			if r.atMost(a, b) && lacking.AndNot(&r.up[b], &r.up[a]).Sign() != 0 {
				return a, b, int(lacking.TrailingZeroBits()), false
			}
		}
	}
	return 0, 0, 0, true
}

// maxChains bounds the components of the tuples.
const maxChains = 100

// tuples returns a tuple for each setting that represents the relation: a is at most as hard
// as b if and only if no component of a is larger. Texts are comparable only if they are equal.
//
// The first component is the number of easier settings, so that easy ones go first. The second
// is a text that connected settings share. Each of the others belongs to a chain of settings,
// each harder than the one before, and is the number of settings in the chain that are at most
// as hard. It is monotone. Conversely, if a is not at most as hard as b, let c be a minimal
// setting that is at most as hard as a but not as b. Everything easier than c is at most as
// hard as b, so needsChain(c) holds, and c counts in its chain for a and not for b.
func (r *relation) tuples(name string) ([][]string, error) {
	n := len(r.up)
	easierThan := make([]int, n)
	for a := range n {
		for b := range n {
			if r.below(a, b) {
				easierThan[b]++
			}
		}
	}
	group := r.groups()
	chains, width := map[int][][]int{}, 0
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(easierThan[a], easierThan[b]) })
	for _, x := range order {
		if !r.needsChain(x, group) {
			continue
		}
		g := group[x]
		i := slices.IndexFunc(chains[g], func(chain []int) bool { return r.below(chain[len(chain)-1], x) })
		if i < 0 {
			i = len(chains[g])
			chains[g] = append(chains[g], nil)
			width = max(width, i+1)
		}
		chains[g][i] = append(chains[g][i], x)
	}
	if width > maxChains {
		return nil, fmt.Errorf("the order that the command makes is too complex: it has %d chains, more than %d; "+
			"name fewer parameters, or answer %s less often", width, maxChains, incomparable)
	}
	all := make([][]string, n)
	for x := range all {
		all[x] = make([]string, 2+width)
		all[x][0], all[x][1] = strconv.Itoa(easierThan[x]), name+"."+strconv.Itoa(group[x])
		for i := range width {
			k := 0
			if i < len(chains[group[x]]) {
				for _, c := range chains[group[x]][i] {
					if r.atMost(c, x) {
						k++
					}
				}
			}
			all[x][2+i] = strconv.Itoa(k)
		}
	}
	return all, nil
}

// groups returns the number of the connected component of each setting, from 0 in the order of
// their first settings.
func (r *relation) groups() []int {
	group, n := slices.Repeat([]int{-1}, len(r.up)), 0
	var visit func(a int)
	visit = func(a int) {
		group[a] = n
		for b := range r.up {
			if group[b] < 0 && (r.atMost(a, b) || r.atMost(b, a)) {
				visit(b)
			}
		}
	}
	for a := range group {
		if group[a] < 0 {
			visit(a)
			n++
		}
	}
	return group
}

// needsChain reports whether x must be in a chain: a setting of its group is at least as hard
// as everything that is easier than x, but not as x. Of equally hard settings, only the first
// needs one.
func (r *relation) needsChain(x int, group []int) bool {
	var above set
	for i, g := range group {
		if g == group[x] {
			add(&above, i)
		}
	}
	for c := range r.up {
		switch {
		case r.below(c, x):
			above.And(&above, &r.up[c])
		case c < x && r.answer(c, x) == alike:
			return false
		}
	}
	return above.Cmp(&r.up[x]) != 0
}
