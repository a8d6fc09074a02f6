package sim

import (
	"math/rand/v2"
	"time"
)

// Tape is where every choice of a world comes from: endless from a seed, or a
// slice of bytes. When that is used up each further choice is the first one, which is
// always the harmless one.
type Tape struct {
	rng   *rand.PCG // nil: bytes
	bytes []byte
}

// Seeded returns the endless tape of a seed.
func Seeded(seed uint64) *Tape { return &Tape{rng: rand.NewPCG(seed, 0x73696d)} }

// Bytes returns the tape that b spells.
func Bytes(b []byte) *Tape { return &Tape{bytes: b} }

// Over says that a tape of bytes has none left.
func (t *Tape) Over() bool { return t.rng == nil && len(t.bytes) == 0 }

// Draw returns one of n choices, 0 to n-1. n is at least 1.
func (t *Tape) Draw(n int) int {
	if n <= 1 {
		return 0
	}
	if t.rng != nil {
		return int(t.rng.Uint64() >> 1 % uint64(n))
	}
	v := t.byte()
	for most := 256; most < n; most *= 256 {
		v = v<<8 | t.byte()
	}
	return v % n
}

func (t *Tape) byte() int {
	if len(t.bytes) == 0 {
		return 0
	}
	b := t.bytes[0]
	t.bytes = t.bytes[1:]
	return int(b)
}

// OneIn says yes once in n times.
func (t *Tape) OneIn(n int) bool { return t.Draw(n) == n-1 && n > 1 }

// Between returns a time from lo to hi.
func (t *Tape) Between(lo, hi time.Duration) time.Duration {
	const parts = 1 << 16
	return lo + time.Duration(float64(hi-lo)*float64(t.Draw(parts))/(parts-1))
}
