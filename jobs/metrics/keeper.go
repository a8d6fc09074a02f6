package metrics

import (
	"context"
	"slices"
	"sync"

	"dcs-tui/internal/text"
	"dcs-tui/jobs"
	"dcs-tui/jobs/results"
)

// Keeper reads the metrics of outputs that only a host has as jobs end, and stores them in
// KeptFile, because the host may be unreachable later. It reads no other outputs. NewKeeper makes a
// Keeper. A nil Keeper keeps nothing. Its methods are safe for concurrent use.
type Keeper struct {
	reader *Reader
	ctx    context.Context
	stop   context.CancelFunc

	mu      sync.Mutex
	added   map[jobs.AttemptID]struct{} // a resume delivers some results twice
	waiting []results.Result
	working chan struct{} // closed when the goroutine ends; nil: there is none
	lacking []results.Result
	closed  bool
}

// NewKeeper makes a Keeper, which owns r from then on. r.Fetch must be set.
func NewKeeper(r *Reader) *Keeper {
	k := &Keeper{reader: r, added: map[jobs.AttemptID]struct{}{}}
	k.ctx, k.stop = context.WithCancel(context.Background())
	return k
}

// Add queues a result for reading. It does not block. The next dispatcher reads the results that
// are added after Close, and those that could not be read before Close.
func (k *Keeper) Add(res *results.Result) {
	if k == nil || !slices.Contains(k.reader.files, "") || res.Stdout == "" || !k.reader.isRemote(res) {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, twice := k.added[res.Attempt]; twice || k.closed {
		return
	}
	k.added[res.Attempt] = struct{}{}
	k.waiting = append(k.waiting, *res)
	k.startReading()
}

// startReading starts to read the queued results. mu is held.
func (k *Keeper) startReading() {
	if len(k.waiting) > 0 && k.working == nil && k.ctx.Err() == nil {
		k.working = make(chan struct{})
		go k.readQueued()
	}
}

// waitIdle waits until nothing is being read, or until ctx is done.
func (k *Keeper) waitIdle(ctx context.Context) {
	k.mu.Lock()
	working := k.working
	k.mu.Unlock()
	if working == nil {
		return
	}
	select {
	case <-working:
	case <-ctx.Done():
	}
}

// MissingHosts waits until no more can be read, or until ctx is done. It returns the hosts whose
// outputs could not be read.
func (k *Keeper) MissingHosts(ctx context.Context) (names []string) {
	if k == nil {
		return nil
	}
	k.waitIdle(ctx)
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, res := range k.lacking {
		if !slices.Contains(names, res.Host) {
			names = append(names, res.Host)
		}
	}
	return names
}

// Retry retries the outputs that could not be read.
func (k *Keeper) Retry() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		return
	}
	k.waiting, k.lacking = append(k.waiting, k.lacking...), nil
	k.startReading()
}

// readQueued reads queued results until there are none.
func (k *Keeper) readQueued() {
	for {
		k.mu.Lock()
		if len(k.waiting) == 0 || k.ctx.Err() != nil {
			close(k.working)
			k.working = nil
			k.mu.Unlock()
			return
		}
		list := k.waiting
		k.waiting = nil
		k.mu.Unlock()
		_, err := k.reader.Read(k.ctx, results.RowsOf(list), nil)
		k.mu.Lock()
		for _, res := range list {
			if _, ok := k.reader.known[res.Attempt]; !ok || err != nil {
				k.lacking = append(k.lacking, res)
			}
		}
		k.mu.Unlock()
	}
}

// Close retries outputs that could not be read, waits until everything is read or ctx is done, and
// returns sentences about metrics that could not be kept.
func (k *Keeper) Close(ctx context.Context) (notes []string) {
	if k == nil {
		return nil
	}
	k.mu.Lock()
	k.closed = true
	k.mu.Unlock()
	k.waitIdle(ctx)
	k.stop()
	k.waitIdle(context.Background())
	k.mu.Lock()
	list := append(k.lacking, k.waiting...)
	k.lacking, k.waiting = nil, nil
	k.mu.Unlock()
	if len(list) == 0 {
		return nil
	}
	f, err := k.reader.Read(ctx, results.RowsOf(list), nil)
	if err != nil {
		return []string{"the metrics of " + text.Plural(len(list), "job") +
			" are not all kept: the hosts that have the outputs did not answer in time"}
	}
	return f.Notes
}
