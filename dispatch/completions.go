package dispatch

import (
	"context"
	"io"
	"sync"

	"dcs-tui/jobs"
)

// completions is the queue of results that wait for the consumer. Of results that the table already
// had when the dispatcher started, it holds only which they are: a resumed run may have a million. It
// is safe for concurrent use.
type completions struct {
	mu       sync.Mutex
	earlier  []earlierResult
	made     []*Result // of earlier, at most maxMade
	queue    []*Result // later ones
	hasEnded bool
	wake     chan struct{} // closed and replaced after each change
}

// earlierResult identifies a result of the table.
type earlierResult struct {
	seq int64
	job jobs.ID
}

// maxMade bounds how many earlier results are made at a time, which takes less than a millisecond.
const maxMade = 256

func newCompletions() *completions { return &completions{wake: make(chan struct{})} }

// add adds results. It may also be called after end.
func (c *completions) add(rs []*Result) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.queue = append(c.queue, rs...)
	c.wakeConsumers()
}

// addEarlier adds results of the table. They precede all later ones, because an acknowledgment covers
// the results before it.
func (c *completions) addEarlier(rs ...earlierResult) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.earlier = append(c.earlier, rs...)
	c.wakeConsumers()
}

// makeEarlier makes the earlier results that are next in the queue, unless some are still waiting.
func (c *completions) makeEarlier(load func([]earlierResult) []*Result) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.made) > 0 {
		return
	}
	n := min(len(c.earlier), maxMade)
	c.made = load(c.earlier[:n])
	c.earlier = c.earlier[n:]
	if len(c.earlier) == 0 {
		c.earlier = nil // frees the memory of those before
	}
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

// next returns the next result, or nil without an error if makeEarlier must make it.
func (c *completions) next(ctx context.Context) (*Result, error) {
	for {
		c.mu.Lock()
		r := pop(&c.made)
		mustMake := r == nil && len(c.earlier) > 0
		if r == nil && !mustMake {
			r = pop(&c.queue)
		}
		over, wake := c.hasEnded, c.wake
		c.mu.Unlock()
		switch {
		case r != nil || mustMake:
			return r, nil
		case over:
			return nil, io.EOF
		}
		select {
		case <-wake:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// pop removes the first result of a queue and returns it, or nil if there is none.
func pop(queue *[]*Result) *Result {
	if len(*queue) == 0 {
		return nil
	}
	r := (*queue)[0]
	(*queue)[0] = nil
	*queue = (*queue)[1:]
	return r
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
