package cli

import (
	"context"
	"errors"
	"io"
	"sync"
	"syscall"
	"time"

	"dcs-tui/dispatch"
)

// consume takes results until the run is over and shows each as it was asked.
func (s *session) consume() {
	for {
		r, err := s.d.Next(context.Background())
		if err != nil {
			if !errors.Is(err, io.EOF) {
				s.app.warn("results end early: %v", err)
			}
			break
		}
		s.figures.Add(r)
		s.show(r)
	}
	s.ack.flush()
}

// show writes one result. Those of earlier sessions come again only to whoever
// acknowledges them, which is --json.
func (s *session) show(r *dispatch.Result) {
	if r.Seq > s.earlier {
		for _, l := range s.joblogs {
			l.Add(r)
		}
		s.con.Line(s.con.JobLine(r))
	} else if !s.flags.json {
		return
	}
	if s.out == nil {
		return
	}
	err := s.out.Print(r)
	switch {
	case err == nil:
		if s.flags.json {
			s.ack.had(r.Seq)
		}
	case errors.Is(err, syscall.EPIPE):
		s.out = nil
		s.obey(wishStop, "standard output was closed")
	default:
		if s.flags.json { // the run goes on; what nobody has taken comes with the next resume --json
			s.out, s.unprinted = nil, true
			s.app.warn("no more results are printed: %v", err)
			return
		}
		s.app.warn("job %d: %v", r.Job, err)
	}
}

// acker tells the dispatcher what the consumer has had, some results at a time:
// an acknowledgement costs a record in the journal. A result that was printed
// and not acknowledged before a crash comes again, which is what "at least once"
// allows.
type acker struct {
	mu    sync.Mutex
	d     *dispatch.Dispatcher
	seq   int64
	told  int64
	since time.Time
}

// ackEvery bounds how long results stay unacknowledged while more come.
const ackEvery = 50 * time.Millisecond

func (a *acker) had(seq int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.seq = max(a.seq, seq)
	if now := time.Now(); now.Sub(a.since) >= ackEvery {
		a.since = now
		a.tell()
	}
}

func (a *acker) flush() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.tell()
}

func (a *acker) tell() {
	if a.seq > a.told {
		a.told = a.seq
		a.d.Ack(a.seq)
	}
}
