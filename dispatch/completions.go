package dispatch

import (
	"context"
	"io"
	"sync"

	"dcs-tui/jobs"
)

// completions is the unbounded queue of results that wait for the consumer. It is safe for
// concurrent use.
type completions struct {
	mu       sync.Mutex
	queue    []*Result
	hasEnded bool
	wake     chan struct{} // closed and replaced after each change
}

func newCompletions() *completions { return &completions{wake: make(chan struct{})} }

// add adds results. It may also be called after end.
func (c *completions) add(rs []*Result) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.queue = append(c.queue, rs...)
	c.wakeConsumers()
}

// end records that the run is over. Consumers get the remaining results, and then io.EOF.
func (c *completions) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hasEnded = true
	c.wakeConsumers()
}

func (c *completions) wakeConsumers() {
	close(c.wake)
	c.wake = make(chan struct{})
}

func (c *completions) next(ctx context.Context) (*Result, error) {
	for {
		c.mu.Lock()
		if len(c.queue) > 0 {
			r := c.queue[0]
			c.queue[0] = nil
			c.queue = c.queue[1:]
			c.mu.Unlock()
			return r, nil
		}
		over, wake := c.hasEnded, c.wake
		c.mu.Unlock()
		if over {
			return nil, io.EOF
		}
		select {
		case <-wake:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

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
