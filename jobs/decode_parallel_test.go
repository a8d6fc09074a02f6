package jobs

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// TestLinesAreDecodedOnceInOrder checks that each line of a block is decoded once and taken in its
// order, also if lines are empty or longer than a part, if not all lines of the block before were
// taken, and if a block follows that is too small.
func TestLinesAreDecodedOnceInOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var a ParallelDecoder[string]
	decode := func(_ int, line []byte, v *string) { *v += string(line) }
	for n := range 300 {
		var block []byte
		for range r.IntN(1000) {
			length := r.IntN(80)
			if r.IntN(100) == 0 {
				length = r.IntN(3 * partSize)
			}
			block = fmt.Appendln(block, strings.Repeat(string(rune('a'+r.IntN(26))), length))
		}
		var want, got []string
		if len(block) >= minAhead {
			for line := range bytes.Lines(block) {
				want = append(want, strings.TrimSuffix(string(line), "\n"))
			}
		}
		a.Decode(block, decode)
		if n%3 == 0 {
			want = want[:len(want)/2]
		}
		for v := a.Take(); v != nil && (n%3 > 0 || len(got) < len(want)); v = a.Take() {
			got = append(got, *v)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("block %d of %d bytes: got %d lines, want %d:\n%.200q\n%.200q", n, len(block), len(got), len(want),
				got, want)
		}
	}
}
