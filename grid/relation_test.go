package grid

import (
	"math/rand/v2"
	"strconv"
	"testing"
)

// answersOf returns the answers of a command for each pair that it is asked about.
func answersOf(n int, atMost func(a, b int) bool) []byte {
	var answers []byte
	for a := range n {
		for b := a + 1; b < n; b++ {
			answer := incomparable
			switch {
			case atMost(a, b) && atMost(b, a):
				answer = alike
			case atMost(a, b):
				answer = easier
			case atMost(b, a):
				answer = harder
			}
			answers = append(answers, answer[0])
		}
	}
	return answers
}

// comparedAs compares tuples (docs/search.md): numbers as numbers, and texts only with
// themselves. first reports whether a precedes b lexicographically.
func comparedAs(t *testing.T, a, b []string) (atMost, first bool) {
	t.Helper()
	if len(a) != len(b) {
		t.Fatalf("%q and %q cannot be compared", a, b)
	}
	atMost, decided := true, false
	for i := range a {
		x, err := strconv.Atoi(a[i])
		y, err2 := strconv.Atoi(b[i])
		switch {
		case err != nil && err2 != nil:
			atMost = atMost && a[i] == b[i]
			decided = decided || a[i] != b[i]
		case err != nil || err2 != nil:
			t.Fatalf("%q and %q: a number and a text", a, b)
		default:
			atMost = atMost && x <= y
			first, decided = first || !decided && x < y, decided || x != y
		}
	}
	return atMost, first
}

// checkTuples checks that the tuples of a relation represent it: a is at most as hard as b if and
// only if no component of a is larger. Nothing precedes what is easier.
func checkTuples(t *testing.T, rel *relation) {
	t.Helper()
	tuples, err := rel.tuples("o")
	if err != nil {
		t.Fatal(err)
	}
	for a := range tuples {
		for b := range tuples {
			got, first := comparedAs(t, tuples[a], tuples[b])
			if got != rel.atMost(a, b) || first && rel.atMost(b, a) {
				t.Fatalf("%d %s %d, and the tuples are %q and %q", a, rel.answer(a, b), b, tuples[a], tuples[b])
			}
		}
	}
}

// TestTuplesSayTheOrder checks that the tuples represent the answers of the command for all pairs,
// and that nothing precedes what is easier (E2).
func TestTuplesSayTheOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for round := range 300 {
		n := 1 + r.IntN(25)
		var atMost func(a, b int) bool
		switch round % 3 {
		case 0: // by some numbers, of which some are equal
			d := 1 + r.IntN(4)
			at := make([][]int, n)
			for i := range at {
				for range d {
					at[i] = append(at[i], r.IntN(4))
				}
			}
			atMost = func(a, b int) bool {
				for k := range d {
					if at[a][k] > at[b][k] {
						return false
					}
				}
				return true
			}
		default: // any order: that of random pairs, dense or in many parts
			up := make([][]bool, n)
			for i := range up {
				up[i] = make([]bool, n)
				for j := range up {
					up[i][j] = i == j || r.IntN(2*n) == 0 || round%3 == 2 && i < j && r.IntN(3) == 0
				}
			}
			for k := range n {
				for i := range n {
					for j := range n {
						up[i][j] = up[i][j] || up[i][k] && up[k][j]
					}
				}
			}
			atMost = func(a, b int) bool { return up[a][b] }
		}
		rel := newRelation(n, answersOf(n, atMost))
		if a, b, c, ok := rel.contradiction(); !ok {
			t.Fatalf("round %d: contradiction of %d %d %d", round, a, b, c)
		}
		for a := range n {
			for b := range n {
				if rel.atMost(a, b) != atMost(a, b) {
					t.Fatalf("round %d: %d %s %d, but the answer was %v", round, a, rel.answer(a, b), b, atMost(a, b))
				}
			}
		}
		checkTuples(t, rel)
	}
}

// TestContradictionsAreReal checks that for any answers, either a reported contradiction is real,
// or there is none and the tuples represent the answers (E2).
func TestContradictionsAreReal(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	orders := 0
	for range 3000 {
		n := 2 + r.IntN(4)
		answers := make([]byte, n*(n-1)/2)
		for i := range answers {
			answers[i] = "<>=?"[r.IntN(4)]
		}
		rel := newRelation(n, answers)
		if a, b, c, ok := rel.contradiction(); !ok {
			if !rel.atMost(a, b) || !rel.atMost(b, c) || rel.atMost(a, c) {
				t.Fatalf("%s: %d %d %d are no contradiction", answers, a, b, c)
			}
			continue
		}
		orders++
		checkTuples(t, rel)
	}
	if orders < 500 {
		t.Errorf("%d orders of 3000", orders)
	}
}

// TestTuplesAreShort checks that typical orders need few components. An order by d numbers needs d
// of them, and many unrelated parts need no more than one. An order that needs too many is refused.
func TestTuplesAreShort(t *testing.T) {
	for _, c := range []struct {
		n, width int
		atMost   func(a, b int) bool
	}{
		{343, 3, func(a, b int) bool { return a%7 <= b%7 && a/7%7 <= b/7%7 && a/49 <= b/49 }},
		{300, 1, func(a, b int) bool { return a%100 == b%100 && a <= b }},
		{300, 0, func(a, b int) bool { return true }},
		{300, -1, func(a, b int) bool { return a == b || b == 299 }}, // one is harder than all others
	} {
		tuples, err := newRelation(c.n, answersOf(c.n, c.atMost)).tuples("o")
		switch {
		case c.width < 0:
			if err == nil {
				t.Errorf("%d components", len(tuples[0]))
			}
		case err != nil || len(tuples[0]) != 2+c.width:
			t.Errorf("%d components, %v; want %d", len(tuples[0]), err, 2+c.width)
		}
	}
}
