package sim

import "time"

// happening is something that is going to happen.
type happening struct {
	at time.Duration
	n  int // of happenings ever: those of one instant come in the order in which they were planned
	do func()
}

// agenda is a heap of happenings, the next one first.
type agenda struct {
	heap []happening
	n    int
}

func (a *agenda) less(i, j int) bool {
	x, y := &a.heap[i], &a.heap[j]
	return x.at < y.at || x.at == y.at && x.n < y.n
}

func (a *agenda) add(at time.Duration, do func()) {
	a.n++
	a.heap = append(a.heap, happening{at, a.n, do})
	for i := len(a.heap) - 1; i > 0; {
		up := (i - 1) / 2
		if !a.less(i, up) {
			break
		}
		a.heap[i], a.heap[up] = a.heap[up], a.heap[i]
		i = up
	}
}

func (a *agenda) next() (happening, bool) {
	n := len(a.heap) - 1
	if n < 0 {
		return happening{}, false
	}
	h := a.heap[0]
	a.heap[0], a.heap[n] = a.heap[n], happening{}
	a.heap = a.heap[:n]
	for i := 0; ; {
		least := i
		for c := 2*i + 1; c <= 2*i+2 && c < n; c++ {
			if a.less(c, least) {
				least = c
			}
		}
		if least == i {
			return h, true
		}
		a.heap[i], a.heap[least] = a.heap[least], a.heap[i]
		i = least
	}
}
