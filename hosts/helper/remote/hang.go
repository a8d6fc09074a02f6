//go:build linux

package remote

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A file system may hang, for ever or for a while. Whoever must not wait for one uses what
// is in this file.

// withTimeout runs f and waits for it, not longer than d. It reports whether f ended.
func withTimeout(d time.Duration, f func()) bool {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	late := time.NewTimer(d)
	defer late.Stop()
	select {
	case <-done:
		return true
	case <-late.C:
		return false
	}
}

// single keeps something that may hang from being done twice at a time.
type single struct{ busy atomic.Bool }

// do runs f like within. It does nothing and returns false while an earlier f runs.
func (s *single) do(d time.Duration, f func()) bool {
	return s.busy.CompareAndSwap(false, true) && withTimeout(d, func() {
		defer s.busy.Store(false)
		f()
	})
}

// worker runs tasks one after the other, for file systems that may hang. It
// refuses more than it can remember.
type worker struct{ tasks chan func() }

func newWorker() *worker {
	w := &worker{make(chan func(), 256)}
	go func() {
		for f := range w.tasks {
			f()
		}
	}()
	return w
}

func (w *worker) do(f func()) bool {
	select {
	case w.tasks <- f:
		return true
	default:
		return false
	}
}

// questions are answered one at a time, in order. A newer question of a key takes the place
// of an older one that waits.
type questions[M any] struct {
	mu    sync.Mutex
	asked []question[M]
	since time.Duration // boot clock: when the present answer was begun; 0: none is
}

type question[M any] struct {
	key string
	m   M
}

const maxQuestions = 256 // that wait

// add has a question answered. It returns false, and refuses the question, if too many wait
// or the present answer takes longer than patience (0: any time).
func (q *questions[M]) add(key string, m M, patience time.Duration, answer func(M)) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	same := slices.IndexFunc(q.asked, func(o question[M]) bool { return o.key == key })
	switch {
	case patience > 0 && q.since > 0 && uptime()-q.since > patience, same < 0 && len(q.asked) >= maxQuestions:
		return false
	case same >= 0:
		q.asked[same].m = m
	default:
		q.asked = append(q.asked, question[M]{key, m})
	}
	if q.since == 0 {
		q.since = uptime()
		go q.run(answer)
	}
	return true
}

// run answers until nothing is asked.
func (q *questions[M]) run(answer func(M)) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.asked) > 0 {
		m := q.asked[0].m
		q.asked, q.since = q.asked[1:], uptime()
		q.mu.Unlock()
		answer(m)
		q.mu.Lock()
	}
	q.since = 0
}
