// Package publish tells observers what a dispatcher knows: through live.json in the run
// directory, and through the socket to those that are connected.
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

// The pace of publication.
const (
	durableInterval  = 50 * time.Millisecond // minimum between pushes of the durable position
	changedInterval  = time.Second           // minimum between states, when something has changed
	reportedInterval = 3 * time.Second       // … when only host reports have come
	idleInterval     = 10 * time.Second      // maximum between states
)

// Dispatcher is where states come from; dispatch.Dispatcher implements it.
type Dispatcher interface {
	// Live returns the state, the last one after the dispatcher has ended.
	Live(context.Context) (*live.State, error)
	Signals() dispatch.Signals
}

// Journal is what the publisher asks of the journal. Durable must not block.
type Journal interface {
	Durable() live.Durable
	Fenced() (epoch int, err error)
}

// Socket pushes to connected observers; dispatch/socket.Server implements it. nil
// arguments have not changed. It must not block.
type Socket interface {
	Publish(durable *live.Durable, state *live.State)
}

// Options describes what to publish, and where.
type Options struct {
	Run        *rundir.Run
	Token      string // of the owner file
	Dispatcher Dispatcher
	Journal    Journal
	Socket     Socket // nil: there is none
	// Warn, if set, is told when live.json cannot be written, once until it can be
	// written again. It must not block.
	Warn func(error)
}

// Publisher publishes until it is closed. A disk that hangs holds up the file, and
// nothing else.
type Publisher struct {
	o        Options
	question atomic.Pointer[live.Question]
	standby  atomic.Pointer[string]
	asked    chan struct{} // holds a signal when question or standby has changed
	states   chan *live.State
	stop     context.CancelFunc
	loop     sync.WaitGroup
	writer   chan struct{} // closed when the writer has ended
}

// Start begins to publish.
func Start(o Options) *Publisher {
	ctx, stop := context.WithCancel(context.Background())
	p := &Publisher{o: o, asked: make(chan struct{}, 1), states: make(chan *live.State, 1), stop: stop, writer: make(chan struct{})}
	p.loop.Go(func() { p.run(ctx) })
	go p.write()
	return p
}

// SetQuestion sets the question that the dispatcher asks a person; nil: none.
func (p *Publisher) SetQuestion(q *live.Question) {
	p.question.Store(q)
	p.signal()
}

// SetStandby sets the machines on which a standby dispatcher watches; see live.State.
func (p *Publisher) SetStandby(machines string) {
	p.standby.Store(&machines)
	p.signal()
}

func (p *Publisher) signal() {
	select {
	case p.asked <- struct{}{}:
	default:
	}
}

// Close publishes the last state and ends. Call it when the dispatcher has ended, and
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

// run publishes at the pace of the constants above. While a signal would change nothing,
// it stays in its channel, so that a busy engine does not wake this goroutine each time.
func (p *Publisher) run(ctx context.Context) {
	signals := p.o.Dispatcher.Signals()
	var pushed live.Durable
	var pushedAt, publishedAt time.Time
	interval := time.Duration(0) // of the next state from the last one
	moved := false               // the durable position is to be pushed
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		changed, durable := signals.Changed, signals.Durable
		if interval <= changedInterval {
			changed = nil
		}
		if moved {
			durable = nil
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
			interval = changedInterval
		case <-p.asked:
			interval = min(interval, changedInterval)
		case <-signals.Reported:
			interval = min(interval, reportedInterval)
		case <-durable:
			moved, interval = true, min(interval, changedInterval)
		case <-timer.C:
		}
		now := time.Now()
		if moved && now.Sub(pushedAt) >= durableInterval {
			moved, pushedAt = false, now
			if d := p.o.Journal.Durable(); d != pushed && p.o.Socket != nil {
				pushed = d
				p.o.Socket.Publish(&d, nil)
			}
		}
		if now.Sub(publishedAt) >= interval {
			publishedAt, interval = now, idleInterval
			drain(signals.Changed)
			drain(signals.Reported)
			p.publish(ctx)
		}
		next := publishedAt.Add(interval)
		if at := pushedAt.Add(durableInterval); moved && at.Before(next) {
			next = at
		}
		timer.Reset(time.Until(next))
	}
}

func drain(c <-chan struct{}) {
	select {
	case <-c:
	default:
	}
}

// publish pushes a state and gives it to the writer.
func (p *Publisher) publish(ctx context.Context) {
	s, err := p.o.Dispatcher.Live(ctx)
	if err != nil {
		return
	}
	s.Token, s.Question, s.Durable = p.o.Token, p.question.Load(), p.o.Journal.Durable()
	if machines := p.standby.Load(); machines != nil {
		s.Standby = *machines
	}
	if p.o.Socket != nil {
		p.o.Socket.Publish(&s.Durable, s)
	}
	select {
	case <-p.states: // the writer has not come to it
	default:
	}
	p.states <- s
}

// write writes the newest state each time, until the run belongs to another dispatcher.
func (p *Publisher) write() {
	defer close(p.writer)
	warned, loads := false, live.NewLoadLog(p.o.Run)
	for s := range p.states {
		if s.Deleted { // the path may be that of another run by now
			continue
		}
		var fenced error
		err := live.WriteIf(p.o.Run, s, func() error {
			by, err := p.o.Journal.Fenced()
			if err == nil && by > 0 {
				fenced = fmt.Errorf("epoch %d has taken the run over", by)
			}
			return errors.Join(err, fenced)
		})
		if fenced != nil {
			for range p.states { // it is not ours any more
			}
			return
		}
		if err != nil && !warned && s.Problem == "" && p.o.Warn != nil { // else the problem has been reported
			p.o.Warn(err)
		}
		if warned = err != nil; !warned {
			loads.Record(s)
		}
	}
}
