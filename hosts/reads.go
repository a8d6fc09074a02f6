package hosts

import (
	"context"
	"fmt"
	"io/fs"
	"sync"
	"time"
)

// MaxReads bounds the Reads of a host that are not answered, because its heartbeats and results
// use the same link.
const MaxReads = 8

// PendingReads sends Reads to a Worker and passes on the Chunks that answer them. It is safe for
// concurrent use.
type PendingReads struct {
	host   string
	worker Worker
	tokens chan struct{} // holds a token for each Read that is not answered
	ended  chan struct{} // closed by End
	err    error         // valid after ended

	mu      sync.Mutex
	answers map[int64]chan *Chunk // by the ID of the Read
	lastID  int64
	since   time.Time // of the last answer, or of the first Read after all others were answered
}

// NewPendingReads returns a PendingReads for the Worker of a host.
func NewPendingReads(host string, w Worker) *PendingReads {
	return &PendingReads{host: host, worker: w, tokens: make(chan struct{}, MaxReads),
		ended: make(chan struct{}), answers: map[int64]chan *Chunk{}}
}

// Read sends m and waits for the answer. It returns the piece and the size of the whole file. The
// error is fs.ErrNotExist if the host has no such file, and that of End after End.
func (p *PendingReads) Read(ctx context.Context, m Read) (data []byte, size int64, err error) {
	select {
	case p.tokens <- struct{}{}: // Answer takes it back, also if nobody waits for the answer any more
	case <-p.ended:
		return nil, 0, p.err
	case <-ctx.Done():
		return nil, 0, ctx.Err()
	}
	answer := make(chan *Chunk, 1)
	p.mu.Lock()
	if len(p.answers) == 0 {
		p.since = time.Now()
	}
	p.lastID++
	m.ID = p.lastID
	p.answers[m.ID] = answer
	p.mu.Unlock()
	if err := p.worker.Send(&m); err != nil {
		p.Answer(&Chunk{ID: m.ID})
		return nil, 0, err
	}
	select {
	case c := <-answer:
		return c.Bulk, c.Size, p.check(&m, c)
	case <-p.ended:
		return nil, 0, p.err
	case <-ctx.Done():
		return nil, 0, ctx.Err()
	}
}

// check returns an error unless c is an answer to m with a piece.
func (p *PendingReads) check(m *Read, c *Chunk) error {
	switch {
	case c.None:
		return fmt.Errorf("%s has no such file: %s: %w", p.host, c.Why, fs.ErrNotExist)
	case c.Size < 0:
		return fmt.Errorf("%s: %s", p.host, c.Why)
	case len(c.Bulk) > max(0, m.Limit), m.Offset >= 0 && c.Offset != m.Offset, c.Offset < 0,
		c.Size < int64(len(c.Bulk)):
		return fmt.Errorf("%s sent an unexpected piece: %d bytes at %d of %d", p.host, len(c.Bulk), c.Offset, c.Size)
	}
	return nil
}

// Answer passes an answer on. It ignores one that was not asked for, and does not block.
func (p *PendingReads) Answer(c *Chunk) {
	p.mu.Lock()
	answer := p.answers[c.ID]
	delete(p.answers, c.ID)
	p.since = time.Now()
	p.mu.Unlock()
	if answer != nil {
		answer <- c
		<-p.tokens
	}
}

// Silence returns for how long answers have been due and none has come.
func (p *PendingReads) Silence() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.answers) == 0 {
		return 0
	}
	return time.Since(p.since)
}

// End makes all Reads that are not answered, and all later ones, fail with err. It is called once.
func (p *PendingReads) End(err error) {
	p.err = err
	close(p.ended)
}
