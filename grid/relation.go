package grid

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"
	"strconv"
)

// set holds small numbers.
type set []uint64

func newSet(n int) set         { return make(set, (n+63)/64) }
func (s set) has(i int) bool   { return s[i/64]>>(i%64)&1 == 1 }
func (s set) add(i int)        { s[i/64] |= 1 << (i % 64) }
func (s set) equal(o set) bool { return slices.Equal(s, o) }

// keep leaves in s what is in o too.
func (s set) keep(o set) {
	for i := range s {
		s[i] &= o[i]
	}
}

// beyond is a member that o does not have, -1 for none.
func (s set) beyond(o set) int {
	for i, word := range s {
		if word &^= o[i]; word != 0 {
			return i*64 + bits.TrailingZeros64(word)
		}
	}
	return -1
}

// relation says of things by number which are as hard or harder; it should be an
// order, in which different things may be equally hard.
type relation struct{ up []set }

// newRelation reads answers about all pairs: 0 and 1, 0 and 2, … 1 and 2, …
func newRelation(n int, answers []byte) *relation {
	r := &relation{up: make([]set, n)}
	for i := range r.up {
		r.up[i] = newSet(n)
		r.up[i].add(i)
	}
	a, b := 0, 1
	for _, answer := range answers {
		if answer == easier[0] || answer == alike[0] {
			r.up[a].add(b)
		}
		if answer == harder[0] || answer == alike[0] {
			r.up[b].add(a)
		}
		if b++; b == n {
			a++
			b = a + 1
		}
	}
	return r
}

func (r *relation) atMost(a, b int) bool { return r.up[a].has(b) }
func (r *relation) below(a, b int) bool  { return r.up[a].has(b) && !r.up[b].has(a) }

// answer is what was said of a and b.
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

// contradiction finds a, b, c of which each is no harder than the next, though a is
// not said to be no harder than c; without any the relation is an order.
func (r *relation) contradiction() (a, b, c int, ok bool) {
	for a := range r.up {
		for b := range r.up {
			if r.atMost(a, b) {
				if c := r.up[b].beyond(r.up[a]); c >= 0 {
					return a, b, c, false
				}
			}
		}
	}
	return 0, 0, 0, true
}

// maxChains bounds the components of the tuples.
const maxChains = 100

// tuples gives each of the things components that say the same as the relation: a is
// no harder than b just when none of its components is more, with texts comparing
// with themselves alone.
//
// The first component is how many things are easier, so that the easy ones go first.
// The second is a text that only things have which are connected. Each other one belongs
// to a chain, things of which each is harder than the one before, and is how many of the
// chain are no harder: at most as many for what is at most as hard. And if a is not at most
// b, let c be an easiest thing that is at most a but not b. All that is easier than c is
// at most b, so c tells something, stands in a chain, and counts there for a and not for b.
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
		if !r.tells(x, group) {
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
		return nil, fmt.Errorf("the order that the command makes is too tangled: it takes %d chains, more than %d; name fewer parameters, or answer %s less often", width, maxChains, incomparable)
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

// groups numbers the parts of the relation that have nothing to do with each other.
func (r *relation) groups() []int {
	parent := make([]int, len(r.up))
	for i := range parent {
		parent[i] = i
	}
	root := func(i int) int {
		for parent[i] != i {
			parent[i] = parent[parent[i]]
			i = parent[i]
		}
		return i
	}
	for a := range r.up {
		for b := range r.up {
			if r.atMost(a, b) {
				parent[root(a)] = root(b)
			}
		}
	}
	group, number := make([]int, len(r.up)), map[int]int{}
	for i := range group {
		if _, ok := number[root(i)]; !ok {
			number[root(i)] = len(number)
		}
		group[i] = number[root(i)]
	}
	return group
}

// tells reports whether x must stand in a chain: whether something of its group is at least
// as hard as all that is easier than x, and not as x. Of the equally hard the first speaks.
func (r *relation) tells(x int, group []int) bool {
	above := newSet(len(r.up))
	for i, g := range group {
		if g == group[x] {
			above.add(i)
		}
	}
	for c := range r.up {
		switch {
		case r.below(c, x):
			above.keep(r.up[c])
		case c < x && r.answer(c, x) == alike:
			return false
		}
	}
	return !above.equal(r.up[x])
}
