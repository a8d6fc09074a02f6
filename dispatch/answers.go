package dispatch

import (
	"maps"
	"sync"
)

// answers holds the requests whose answers are durable. It is safe for concurrent use.
type answers struct {
	mu    sync.Mutex
	names map[string]bool
	more  chan struct{} // closed and replaced when further answers are durable
}

func newAnswers(earlier map[string]bool) *answers {
	return &answers{names: maps.Clone(earlier), more: make(chan struct{})}
}

func (a *answers) put(names []string) {
	if len(names) == 0 {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.names == nil {
		a.names = map[string]bool{}
	}
	for _, name := range names {
		a.names[name] = true
	}
	close(a.more)
	a.more = make(chan struct{})
}

// Answered reports whether the answer to a request is durable, including answers of earlier
// dispatchers. more is closed when further answers are durable.
func (d *Dispatcher) Answered(name string) (answered bool, more <-chan struct{}) {
	a := d.answers
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.names[name], a.more
}

// durable publishes results and answers whose records have just become durable.
func (e *engine) durable(results []*Result, requests []string) {
	if len(results) > 0 {
		e.d.results.put(results)
		if e.cfg.Ended != nil {
			e.cfg.Ended(results)
		}
		e.releaseFiles(results)
	}
	e.d.answers.put(requests)
}
