package dispatch

import "sync"

// answers are the requests whose answers are durable. Safe for concurrent use.
type answers struct {
	mu    sync.Mutex
	names map[string]bool
	more  chan struct{} // closed and replaced when there are more
}

func newAnswers(before map[string]bool) *answers {
	a := &answers{names: make(map[string]bool, len(before)), more: make(chan struct{})}
	for name := range before {
		a.names[name] = true
	}
	return a
}

func (a *answers) put(names []string) {
	if len(names) == 0 {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, name := range names {
		a.names[name] = true
	}
	close(a.more)
	a.more = make(chan struct{})
}

// Answered reports whether the answer to a request is durable, even if an earlier
// dispatcher gave it. more is closed when further answers are.
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
		e.letGo(results)
	}
	e.d.answers.put(requests)
}
