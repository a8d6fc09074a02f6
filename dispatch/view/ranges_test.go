package view

import (
	"bytes"
	"encoding/gob"
	"math"
	"slices"
	"testing"

	"dcs-tui/jobs"
)

// Ranges travel as they are, the unsound too, which whoever gets them refuses; half a
// million single jobs take a megabyte.
func TestRangesTravel(t *testing.T) {
	var many Ranges
	for id := jobs.ID(1); id < 1_000_000; id += 2 {
		many.Add(id)
	}
	for _, r := range []Ranges{nil, {}, One(1), {{3, 9}, {11, 11}}, {{9, 3}, {-5, 2}}, {{1, math.MaxInt}, {math.MinInt, 0}}, many} {
		type message struct{ Which Ranges }
		var b bytes.Buffer
		if err := gob.NewEncoder(&b).Encode(message{r}); err != nil {
			t.Fatal(err)
		}
		if b.Len() > 1_100_000 {
			t.Errorf("%d ranges take %d bytes", len(r), b.Len())
		}
		var got message
		if err := gob.NewDecoder(&b).Decode(&got); err != nil || !slices.Equal(got.Which, r) {
			t.Errorf("%d ranges: %d, %v", len(r), len(got.Which), err)
		}
	}
	for _, bad := range [][]byte{{2}, {2, 2, 0x80}, bytes.Repeat([]byte{0xff}, 12)} {
		var r Ranges
		if r.GobDecode(bad) == nil {
			t.Errorf("%x: %v", bad, r)
		}
	}
}

func BenchmarkRangesTravel(b *testing.B) {
	var many Ranges
	for id := jobs.ID(1); id < 1_000_000; id += 2 {
		many.Add(id)
	}
	for b.Loop() {
		var m bytes.Buffer
		var got Ranges
		if err := gob.NewEncoder(&m).Encode(many); err != nil {
			b.Fatal(err)
		}
		if err := gob.NewDecoder(&m).Decode(&got); err != nil {
			b.Fatal(err)
		}
	}
}
