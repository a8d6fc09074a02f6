package report

import (
	"io"
	"testing"
)

func BenchmarkWrite(b *testing.B) {
	in := sample(b, 100_000, 3, "plain")
	for b.Loop() {
		if err := Write(io.Discard, in); err != nil {
			b.Fatal(err)
		}
	}
}
