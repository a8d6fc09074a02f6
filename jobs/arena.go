package jobs

import "strings"

// arena keeps many short texts in few allocations: a million commands cost
// their bytes and no header each. What it hands out is never changed again,
// because a strings.Builder only appends.
type arena struct{ b *strings.Builder }

const (
	arenaFirst = 1 << 10
	arenaMost  = 64 << 10
)

// add copies p and returns it as a string.
func (a *arena) add(p []byte) string {
	if len(p) == 0 {
		return ""
	}
	if a.b == nil || a.b.Cap()-a.b.Len() < len(p) {
		size := arenaFirst // a stream of three jobs must not hold 64 KiB
		if a.b != nil {
			size = min(2*a.b.Cap(), arenaMost)
		}
		if len(p) >= size/4 {
			return string(p) // a long text stands alone: it would waste the rest of a block
		}
		a.b = new(strings.Builder)
		a.b.Grow(size)
	}
	n := a.b.Len()
	a.b.Write(p)
	return a.b.String()[n:]
}

// specSlab hands out Specs from blocks, for the same reason.
type specSlab struct {
	free []Spec
	size int
}

func (s *specSlab) next() *Spec {
	if len(s.free) == 0 {
		s.size = min(max(2*s.size, 4), 512)
		s.free = make([]Spec, s.size)
	}
	p := &s.free[0]
	s.free = s.free[1:]
	return p
}
