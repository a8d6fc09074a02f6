// Package publish publishes the state that a dispatcher has in addition to the journal. A Publisher
// writes live.json in the run directory, for all observers. It pushes the same state and the
// durable position of the journal to the clients of the dispatcher's socket.
package publish

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"dcs-tui/dispatch"
	"dcs-tui/jobs/live"
	"dcs-tui/jobs/rundir"
)

// Intervals between publications.
const (
	durableInterval  = 50 * time.Millisecond // minimum between pushes of the durable position
	changedInterval  = time.Second           // minimum between states after a change
	reportedInterval = 3 * time.Second       // minimum between states after mere host reports
	idleInterval     = 10 * time.Second      // maximum between states
)

// Dispatcher is the source of states. dispatch.Dispatcher implements it.
type Dispatcher interface {
	// Live returns the state. After the end of the dispatcher it returns the last one.
	Live(context.Context) (*live.State, error)
	Signals() dispatch.Signals
}

// Journal is the part of the journal that the publisher needs. Durable must not block.
type Journal interface {
	Durable() live.Durable
	Fenced() (epoch int, err error)
}

// Socket pushes to its clients. dispatch/socket.Server implements it. nil means unchanged. Publish
// must not block.
type Socket interface {
	Publish(durable *live.Durable, state *live.State)
}

// Options configures a Publisher.
type Options struct {
	Run        *rundir.Run
	Token      string // of the owner file
	Dispatcher Dispatcher
	Journal    Journal
	Socket     Socket // nil: there is none
	// Warn is called with the first of several failures to write live.json. It must not block.
	// May be nil.
	Warn func(error)
}

// Publisher publishes until it is closed. A hung disk delays only the file.
type Publisher struct {
	opts         Options
	question     atomic.Pointer[live.Question]
	standby      atomic.Pointer[string]
	metricsOf    atomic.Pointer[[]string]
	textsChanged chan struct{} // holds a signal when question, standby, or metricsOf has changed
	states       chan shownState
	mu           sync.Mutex
	waiting      []chan<- struct{} // calls of Show that wait for the next state; with mu
	showAsked    chan struct{}     // holds a signal when waiting has grown
	stop         context.CancelFunc
	loop         sync.WaitGroup
	writer       chan struct{} // closed when the writer has ended
}

// shownState is a state to write, and the calls of Show that wait until it is written.
type shownState struct {
	*live.State
	waiting []chan<- struct{}
}

// Start starts a Publisher.
func Start(o Options) *Publisher {
	ctx, stop := context.WithCancel(context.Background())
	p := &Publisher{opts: o, textsChanged: make(chan struct{}, 1), showAsked: make(chan struct{}, 1),
		states: make(chan shownState, 1), stop: stop, writer: make(chan struct{})}
	p.loop.Go(func() { p.run(ctx) })
	go p.write()
	return p
}

// SetQuestion sets the question to the person; nil means that there is none.
func (p *Publisher) SetQuestion(q *live.Question) {
	p.question.Store(q)
	dispatch.Signal(p.textsChanged)
}

// SetStandby sets the machines on which a standby dispatcher watches; see live.State.
func (p *Publisher) SetStandby(machines string) {
	p.standby.Store(&machines)
	dispatch.Signal(p.textsChanged)
}

// SetMetricsOf sets the hosts whose metrics the run waits for before it can end; see live.State.
func (p *Publisher) SetMetricsOf(hosts []string) {
	p.metricsOf.Store(&hosts)
	dispatch.Signal(p.textsChanged)
}

// Show publishes a state now and returns when live.json has it, so that all observers see what was
// durable before the call. It returns earlier if ctx ends, as it may while the disk hangs.
func (p *Publisher) Show(ctx context.Context) {
	shown := make(chan struct{})
	p.mu.Lock()
	p.waiting = append(p.waiting, shown)
	p.mu.Unlock()
	dispatch.Signal(p.showAsked)
	select {
	case <-shown:
	case <-p.writer:
	case <-ctx.Done():
	}
}

// Close publishes the last state and ends the Publisher. Call it when the dispatcher has ended, and
// before the journal is closed. It waits for the disk until ctx ends.
func (p *Publisher) Close(ctx context.Context) error {
	p.stop()
	p.loop.Wait()
	p.publish(ctx)
	close(p.states)
	select {
	case <-p.writer:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("write the last %s: %w", rundir.LiveFile, ctx.Err())
	}
}

// run publishes at the intervals above. It leaves a signal that would have no effect in its
// channel, so that a busy engine does not wake this goroutine each time.
func (p *Publisher) run(ctx context.Context) {
	signals := p.opts.Dispatcher.Signals()
	var pushed live.Durable
	var pushedAt, publishedAt time.Time
	interval := time.Duration(0) // from the last state to the next one
	moved := false               // the durable position must be pushed
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		changed, reports, durable := signals.Changes, signals.Reports, signals.Durable
		if interval <= changedInterval {
			changed = nil
		}
		if interval <= reportedInterval {
			reports = nil
		}
		if moved {
			durable = nil
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
			interval = changedInterval
		case <-p.textsChanged:
			interval = min(interval, changedInterval)
		case <-p.showAsked:
			interval = 0
		case <-reports:
			interval = min(interval, reportedInterval)
		case <-durable:
			moved, interval = true, min(interval, changedInterval)
		case <-timer.C:
		}
		now := time.Now()
		if moved && now.Sub(pushedAt) >= durableInterval {
			moved, pushedAt = false, now
			if d := p.opts.Journal.Durable(); d != pushed && p.opts.Socket != nil {
				pushed = d
				p.opts.Socket.Publish(&d, nil)
			}
		}
		if now.Sub(publishedAt) >= interval {
			publishedAt, interval = now, idleInterval
			clearSignal(signals.Changes)
			clearSignal(signals.Reports)
			p.publish(ctx)
		}
		next := publishedAt.Add(interval)
		if at := pushedAt.Add(durableInterval); moved && at.Before(next) {
			next = at
		}
		timer.Reset(time.Until(next))
	}
}

func clearSignal(c <-chan struct{}) {
	select {
	case <-c:
	default:
	}
}

// publish pushes a state and passes it to the writer.
func (p *Publisher) publish(ctx context.Context) {
	p.mu.Lock()
	waiting := p.waiting
	p.waiting = nil
	p.mu.Unlock()
	s, err := p.opts.Dispatcher.Live(ctx)
	if err != nil { // the Publisher is being closed, which publishes again
		return
	}
	s.Token, s.Question, s.Durable = p.opts.Token, p.question.Load(), p.opts.Journal.Durable()
	if machines := p.standby.Load(); machines != nil {
		s.Standby = *machines
	}
	if hosts := p.metricsOf.Load(); hosts != nil && len(*hosts) > 0 {
		s.MetricsOf, s.More = *hosts, false
	}
	if p.opts.Socket != nil {
		p.opts.Socket.Publish(&s.Durable, s)
	}
	select {
	case old := <-p.states: // the writer has not received it
		waiting = append(waiting, old.waiting...)
	default:
	}
	p.states <- shownState{s, waiting}
}

// write writes states until another dispatcher has taken over the run.
func (p *Publisher) write() {
	defer close(p.writer)
	warned, samples := false, live.NewSampleLog(p.opts.Run)
	for s := range p.states {
		if s.Deleted { // the path may belong to another run now
			s.release()
			continue
		}
		var fenced error
		err := live.Write(p.opts.Run, s.State, func() error {
			by, err := p.opts.Journal.Fenced()
			if err == nil && by > 0 {
				fenced = fmt.Errorf("epoch %d has taken the run over", by)
			}
			return errors.Join(err, fenced)
		})
		s.release()
		if fenced != nil {
			for s := range p.states { // discard further states
				s.release()
			}
			return
		}
		// Report the error once, unless s.Problem reports it.
		if err != nil && !warned && s.Problem == "" && p.opts.Warn != nil {
			p.opts.Warn(err)
		}
		warned = err != nil
		if !warned {
			samples.Record(s.State)
		}
	}
}

// release lets the calls of Show return.
func (s *shownState) release() {
	for _, shown := range s.waiting {
		close(shown)
	}
}
