//go:build linux

package remote

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A file system may hang, for a while or forever. The functions of this file isolate goroutines
// that must not block from such a file system.

// withTimeout runs f, waits at most d for it, and reports whether f returned.
func withTimeout(d time.Duration, f func()) bool {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
		return true
	case <-time.After(d):
		return false
	}
}

// single prevents two concurrent runs of something that may hang.
type single struct{ busy atomic.Bool }

// tryRun runs f like withTimeout, unless an earlier f still runs.
func (s *single) tryRun(d time.Duration, f func()) {
	if s.busy.CompareAndSwap(false, true) {
		withTimeout(d, func() {
			defer s.busy.Store(false)
			f()
		})
	}
}

// worker runs tasks one after the other, on its own goroutine.
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

// questionQueue is a queue of questions that are answered one at a time, in order. A newer
// question replaces an older waiting question of the same key.
type questionQueue struct {
	mu    sync.Mutex
	asked []question
	since time.Duration // boot clock: start of the current answer; 0: none is in progress
}

type question struct {
	key    string
	answer func()
}

const maxQuestions = 256 // maximum number of waiting questions

// add queues a question. It refuses the question and returns false if too many wait, or if the
// current answer takes longer than patience (0: no limit).
func (q *questionQueue) add(key string, patience time.Duration, answer func()) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	same := slices.IndexFunc(q.asked, func(o question) bool { return o.key == key })
	switch {
	case patience > 0 && q.since > 0 && uptime()-q.since > patience, same < 0 && len(q.asked) >= maxQuestions:
		return false
	case same >= 0:
		q.asked[same].answer = answer
	default:
		q.asked = append(q.asked, question{key, answer})
	}
	if q.since == 0 {
		q.since = uptime()
		go q.run()
	}
	return true
}

// run answers questions until none is left.
func (q *questionQueue) run() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.asked) > 0 {
		answer := q.asked[0].answer
		q.asked, q.since = q.asked[1:], uptime()
		q.mu.Unlock()
		answer()
		q.mu.Lock()
	}
	q.since = 0
}
