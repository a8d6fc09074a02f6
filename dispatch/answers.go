package dispatch

import (
	"sync"

	"dcs-tui/jobs"
)

// answers holds the requests whose answers are durable. It is safe for concurrent use.
type answers struct {
	mu      sync.Mutex
	names   map[string]bool
	changed chan struct{} // closed and replaced when further answers are durable
}

func (a *answers) add(names []string) {
	if len(names) == 0 {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, name := range names {
		jobs.Insert(&a.names, name, true)
	}
	close(a.changed)
	a.changed = make(chan struct{})
}

// Answered reports whether the answer to a request is durable, including answers of earlier
// dispatchers. more is closed when further answers are durable.
func (d *Dispatcher) Answered(name string) (answered bool, more <-chan struct{}) {
	a := d.answers
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.names[name], a.changed
}

// publishDurable publishes results and answers whose records have just become durable.
func (e *engine) publishDurable(results []*Result, requests []string) {
	if len(results) > 0 {
		e.d.results.add(results)
		if e.cfg.OnResults != nil {
			e.cfg.OnResults(results)
		}
		e.releaseFiles(results)
	}
	e.d.answers.add(requests)
}
