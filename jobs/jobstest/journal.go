package jobstest

import (
	"slices"
	"sync"

	"dcs-tui/jobs"
)

// Journal is the journal of a dispatcher in memory. Its disk can fail and hang. It is safe for
// concurrent use.
type Journal struct {
	mu      sync.Mutex
	pending []jobs.Record
	durable []jobs.Record
	syncs   int // number of successful calls of Sync
	failure error
	missing error
	epoch   int           // of the dispatcher that has taken the run over
	hung    chan struct{} // nil: the disk does not hang

	heartbeatErr error
	heartbeats   int
}

// Append keeps records until Sync makes them durable, even if it returns an error.
func (j *Journal) Append(rs []jobs.Record) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.pending = append(j.pending, rs...)
	return j.failure
}

// Sync makes the records durable.
func (j *Journal) Sync() error {
	j.wait()
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.failure == nil {
		j.syncs++
		j.durable, j.pending = append(j.durable, j.pending...), nil
	}
	return j.failure
}

// Fenced returns what FencedBy and Vanish have set.
func (j *Journal) Fenced() (int, error) {
	j.wait()
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.epoch > 0 {
		return j.epoch, nil
	}
	return 0, j.missing
}

// Heartbeat returns what FailHeartbeat has set.
func (j *Journal) Heartbeat() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.heartbeatErr == nil {
		j.heartbeats++
	}
	return j.heartbeatErr
}

// wait waits while the disk hangs.
func (j *Journal) wait() {
	j.mu.Lock()
	hung := j.hung
	j.mu.Unlock()
	if hung != nil {
		<-hung
	}
}

// Fail makes Append and Sync fail, unless err is nil.
func (j *Journal) Fail(err error) { j.set(func() { j.failure = err }) }

// FailHeartbeat makes Heartbeat fail, unless err is nil.
func (j *Journal) FailHeartbeat(err error) { j.set(func() { j.heartbeatErr = err }) }

// Heartbeats returns how many calls of Heartbeat have succeeded.
func (j *Journal) Heartbeats() (n int) {
	j.set(func() { n = j.heartbeats })
	return n
}

// Vanish makes Fenced fail, unless err is nil.
func (j *Journal) Vanish(err error) { j.set(func() { j.missing = err }) }

// FencedBy sets the epoch of the dispatcher that has taken the run over.
func (j *Journal) FencedBy(epoch int) { j.set(func() { j.epoch = epoch }) }

// Hang makes Sync and Fenced wait until release is called.
func (j *Journal) Hang() (release func()) {
	hung := make(chan struct{})
	j.set(func() { j.hung = hung })
	return func() {
		j.set(func() { j.hung = nil })
		close(hung)
	}
}

func (j *Journal) set(change func()) {
	j.mu.Lock()
	defer j.mu.Unlock()
	change()
}

// Durable returns the durable records.
func (j *Journal) Durable() []jobs.Record {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.durable)
}

// Syncs returns how many calls of Sync have succeeded.
func (j *Journal) Syncs() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.syncs
}

// Has reports whether a durable record matches.
func (j *Journal) Has(match func(*jobs.Record) bool) bool {
	return slices.ContainsFunc(j.Durable(), func(r jobs.Record) bool { return match(&r) })
}
