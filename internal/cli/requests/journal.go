package requests

import (
	"slices"
	"sync"

	"dcs-tui/jobs"
	"dcs-tui/jobs/journal"
)

// Journal is the run's journal, and remembers what of it others wait for: a
// request's file may go only when the record that it was taken in is durable. Safe
// for concurrent use.
type Journal struct {
	*journal.Journal
	before map[string]bool // requests that earlier dispatchers took in; never written

	mu      sync.Mutex
	fresh   []string // requests in records that are not durable yet
	durable map[string]bool
	more    chan struct{}    // closed when further requests are durable; nil: nobody waits
	open    map[jobs.ID]bool // jobs that somebody waits for, not over
	ended   []jobs.ID        // of them, in records that are not durable yet
}

// NoteJournal notes what becomes of the requests of the run that this is the journal of.
func NoteJournal(j *journal.Journal, t *jobs.Table) *Journal {
	n := &Journal{Journal: j, before: map[string]bool{}, durable: map[string]bool{}}
	for name := range t.Requests {
		n.before[name] = true
	}
	return n
}

// Append notes the requests among the records. They stay in the journal's memory
// when it cannot be written, so they are noted all the same.
func (n *Journal) Append(recs []jobs.Record) error {
	n.mu.Lock()
	for i := range recs {
		switch r := &recs[i]; {
		case r.Kind == jobs.KindRequest:
			n.fresh = append(n.fresh, r.Request)
		case r.Seq != 0 && r.Kind != jobs.KindAcked && n.open[r.Job]:
			n.ended = append(n.ended, r.Job)
		}
	}
	n.mu.Unlock()
	return n.Journal.Append(recs)
}

// Sync notes that what was appended is durable.
func (n *Journal) Sync() error {
	err := n.Journal.Sync()
	if err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, name := range n.fresh {
		n.durable[name] = true
	}
	if len(n.fresh) > 0 && n.more != nil {
		close(n.more)
		n.more = nil
	}
	for _, id := range n.ended {
		delete(n.open, id)
	}
	n.fresh, n.ended = nil, nil
	return nil
}

// Taken says whether a request is in the journal for good.
func (n *Journal) Taken(name string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.durable[name] || n.before[name]
}

// Await begins to watch for the ends of these jobs, which are open now.
func (n *Journal) Await(open []jobs.ID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.open = make(map[jobs.ID]bool, len(open))
	for _, id := range open {
		n.open[id] = true
	}
}

// Left returns those of them that are not over, for good.
func (n *Journal) Left() []jobs.ID {
	n.mu.Lock()
	defer n.mu.Unlock()
	var ids []jobs.ID
	for id := range n.open {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// recorded says whether a request is in the journal for good, and returns what is closed
// when further ones are.
func (n *Journal) recorded(name string) (taken bool, more <-chan struct{}) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.more == nil {
		n.more = make(chan struct{})
	}
	return n.durable[name] || n.before[name], n.more
}
