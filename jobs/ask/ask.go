// Package ask asks for something at a run: it hands a request to anyone who dispatches the
// run, through the socket or as a file, and waits for the answer in the journal. The same
// code serves commands and screens, with and without a dispatcher.
//
// Compare makes the requests that update a run from its changed jobs files.
package ask

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"

	"dcs-tui/jobs"
	"dcs-tui/jobs/journal"
	"dcs-tui/jobs/live"
	"dcs-tui/jobs/rundir"
)

// How long Wait waits. A dispatcher polls every second, but its disk or ours may be slow,
// and what another machine writes is seen late.
const (
	AnswerTimeout    = 15 * time.Second // for the answer of a dispatcher on this machine
	AnswerTimeoutFar = 45 * time.Second // more than journal.StaleAfter: by then it is known to be dead or alive
	EndTimeout       = 30 * time.Second // for the end of jobs that are being ended
	stoppedTimeout   = 3 * time.Second  // for a process that is stopped by SIGSTOP
	// socketTimeout is how long the socket may take before the request is left as a file,
	// too: its dispatcher may be stopped, or die before it can record the request.
	socketTimeout = 2 * time.Second
	pollInterval  = 200 * time.Millisecond
)

// Conn is a connection to the socket of a dispatcher. *socket.Client is one.
type Conn interface {
	Wake(ctx context.Context, name string) error
	Request(ctx context.Context, name string, body json.RawMessage) error
	Close()
}

// Dial connects to the dispatcher on this machine.
type Dial func(context.Context, *rundir.Run, *journal.Owner) (Conn, error)

// Request is a request that somebody asks for, and what happened to it. It is for one
// goroutine.
type Request struct {
	Trace
	LeftOut int   // jobs that whoever asks has left alone already
	Problem error // why the journal could not be read the last time, or the file not be left

	awaited map[jobs.ID]bool        // see Await
	ended   map[jobs.ID]jobs.Record // see End

	run    *rundir.Run
	body   *rundir.Request
	reader *journal.Reader
	sure   bool // the dispatcher has said that the answer is durable
	filed  bool
}

// Leave leaves a request as a file in the run directory. It is durable when Leave returns.
func Leave(run *rundir.Run, q *rundir.Request) (*Request, error) {
	r, err := Prepare(run, q)
	if err != nil {
		return nil, err
	}
	return r, r.file()
}

// Prepare makes a request that Wait sends through the socket, or leaves as a file when
// that is not possible. Nothing is asked before Wait.
func Prepare(run *rundir.Run, q *rundir.Request) (*Request, error) {
	if _, err := q.Encode(); err != nil {
		return nil, err
	}
	r := &Request{Trace: Trace{Name: rundir.NewRequestName(q.At)}, ended: map[jobs.ID]jobs.Record{}, run: run, body: q, reader: journal.NewReader(run, journal.Tail(run))}
	r.Poll()
	return r, r.Problem
}

// file leaves the request in the run directory, once.
func (r *Request) file() error {
	if r.filed {
		return nil
	}
	err := r.run.FileRequestAs(r.Name, r.body)
	r.filed = err == nil
	return err
}

// Poll reads what the journal has of the request since the last Poll.
func (r *Request) Poll() {
	_ = r.reader.Watch(true) // what cannot be read proves nothing
	var durable live.Durable
	if r.sure && !r.Answered && r.reader.Owner != nil { // live.json may be a second old
		durable = live.Durable{Epoch: r.reader.Owner.Epoch, Bytes: math.MaxInt64}
	}
	_, r.Problem = r.reader.Follow(durable, func(_ int, rec *jobs.Record) {
		if rec.Seq != 0 && rec.Kind != jobs.KindAcked {
			delete(r.awaited, rec.Job)
			if r.body.Do == rundir.DoSubmit && (!r.Answered || rec.Job == r.First) {
				r.ended[rec.Job] = *rec // the answer may come after the end of its job
			}
		}
		r.See(rec)
	})
}

// End returns the record that ended the first of the jobs that were submitted; nil: it is
// not over, or other readers of the run do not know it yet.
func (r *Request) End() *jobs.Record {
	if end, ok := r.ended[r.First]; ok && r.Answered && r.reader.Published() {
		return &end
	}
	return nil
}

// Owner returns who dispatches the run, as of the last Poll.
func (r *Request) Owner() *journal.Owner { return r.reader.Owner }

// Dispatched reports whether somebody dispatches the run, as of the last Poll.
func (r *Request) Dispatched() bool { return r.reader.Dispatched() }

// Jobs returns the jobs that it names.
func (r *Request) Jobs() jobs.Ranges { return r.body.Jobs }

// Await makes Awaits report whether this job, which is open, has ended since.
func (r *Request) Await(id jobs.ID) {
	if r.awaited == nil {
		r.awaited = map[jobs.ID]bool{}
	}
	r.awaited[id] = true
}

// Awaits reports whether a job of Await has not ended yet.
func (r *Request) Awaits() bool { return len(r.awaited) > 0 }

// Wait has the request carried out and waits for the answer, and for the end of jobs that
// are being ended, as far as that takes moments. owner is who dispatches the run; dial may
// be nil. gone reports that the dispatcher is dead and has not answered, or not ended what
// it was to end: then the request is in the run directory for the next one.
func (r *Request) Wait(ctx context.Context, owner *journal.Owner, dial Dial) (gone bool) {
	answerTimeout := AnswerTimeout
	if owner.Life() != journal.Alive {
		answerTimeout = AnswerTimeoutFar
	}
	asked, answered := time.Now(), time.Time{}
	sent, hangUp := r.send(ctx, owner, dial)
	defer hangUp()
	filing := time.After(socketTimeout)
	if sent == nil {
		r.Problem = r.file()
		if r.Problem != nil {
			return false
		}
	}
	for {
		r.Poll()
		if r.Answered && answered.IsZero() {
			answered = time.Now()
		}
		switch {
		case r.Over():
			return false
		case r.Answered && time.Since(answered) >= EndTimeout, !r.Answered && time.Since(asked) >= answerTimeout:
			return false
		}
		switch now := r.reader; {
		case now.Owner == nil:
		case now.Life == journal.Dead:
			r.Poll() // its last records
			return !r.Over() && r.leaveFor()
		case !r.Answered && time.Since(asked) >= stoppedTimeout && now.Owner.Stopped():
			return false
		case now.Silent:
			return r.leaveFor()
		}
		select {
		case err := <-sent:
			sent = nil // it says so once
			if r.sure = err == nil; !r.sure && !r.refusedBy(err) {
				r.Problem = r.file()
			}
		case <-filing:
			if r.Problem = r.file(); r.Problem != nil {
				filing = time.After(socketTimeout)
			}
		case <-time.After(pollInterval):
		case <-ctx.Done():
			r.Problem = r.file()
			return false
		}
	}
}

// leaveFor leaves the request for the next dispatcher, unless it is answered.
func (r *Request) leaveFor() (gone bool) {
	if !r.Answered {
		r.Problem = r.file()
	}
	return true
}

// refusedBy records that the dispatcher refused the request itself.
func (r *Request) refusedBy(err error) bool {
	refused, ok := err.(interface{ Refused() bool })
	if ok && refused.Refused() {
		r.Refused = err.Error()
		return true
	}
	return false
}

// send hands the request to the dispatcher through its socket, or tells it of the file. The
// result comes through sent, nil when the answer is durable. sent is nil when there is no
// way to the dispatcher.
func (r *Request) send(ctx context.Context, owner *journal.Owner, dial Dial) (sent <-chan error, hangUp func()) {
	if dial == nil || owner.Socket == "" || owner.Life() != journal.Alive {
		return nil, func() {}
	}
	ctx, cancel := context.WithTimeout(ctx, AnswerTimeout)
	result, done := make(chan error, 1), make(chan struct{})
	filed := r.filed
	go func() {
		defer close(done)
		conn, err := dial(ctx, r.run, owner)
		if err != nil {
			result <- err
			return
		}
		defer conn.Close()
		if filed {
			err = conn.Wake(ctx, r.Name)
		} else if text, bad := r.body.Encode(); bad != nil {
			err = bad
		} else {
			err = conn.Request(ctx, r.Name, text)
		}
		result <- err
	}()
	return result, func() {
		cancel()
		<-done
	}
}

// Trace is what happened to a request, as far as records of the journal have been shown
// to it.
type Trace struct {
	Name string // of the request

	Answered    bool
	Why         string           // why it is not carried out; "": it is, or has no answer yet
	Refused     string           // the same in a sentence that names the request
	Done, Left  int              // jobs that it was carried out for, and that it left alone
	First       jobs.ID          // of the jobs that were submitted
	Ending      map[jobs.ID]bool // jobs that are being ended
	EndedItself int              // jobs that were to be ended and have ended in another way
	Affected    []jobs.ID        // jobs that it has canceled, is ending, or that are skipped because of it; see Undo
}

// See handles a record. All that follow the request must be shown, of any job.
func (t *Trace) See(r *jobs.Record) {
	ended := r.Seq != 0 && r.Kind != jobs.KindAcked
	if ended && t.Ending[r.Job] {
		delete(t.Ending, r.Job)
		if r.Next != jobs.Canceled {
			t.EndedItself++
		}
	}
	if r.Request != t.Name {
		return
	}
	switch {
	case r.Kind == jobs.KindRequest:
		t.Answered, t.Done, t.Left, t.First = true, r.Count, r.N, r.Job
		if t.Why = r.Reason; t.Why != "" {
			t.Refused = fmt.Sprintf("the request %s is refused: %s", t.Name, r.Reason)
		}
	case r.Kind == jobs.KindCanceling && r.How != jobs.ThenRequeue:
		if t.Ending == nil {
			t.Ending = map[jobs.ID]bool{}
		}
		t.Ending[r.Job] = true
		t.Affected = append(t.Affected, r.Job)
	case ended && r.Kind == jobs.KindJob:
		t.Affected = append(t.Affected, r.Job)
	}
}

// Over reports whether nothing is left to wait for.
func (t *Trace) Over() bool { return t.Refused != "" || t.Answered && len(t.Ending) == 0 }

// Undo returns the jobs that a requeue must name to bring back everything that a cancel
// has ended, is ending, or will have skipped: affected, and the jobs that wait for those.
func Undo(t *jobs.Table, affected []jobs.ID) []jobs.ID {
	children := map[jobs.ID][]jobs.ID{}
	for j := range t.Rows() {
		if j.State == jobs.Queued {
			for _, parent := range j.Spec.After {
				children[parent] = append(children[parent], j.Spec.ID)
			}
		}
	}
	all, seen := slices.Clone(affected), make([]bool, t.NumJobs()+1) // a map takes thirty times as long for a million
	for _, id := range all {
		seen[id] = true
	}
	for i := 0; i < len(all); i++ {
		for _, child := range children[all[i]] {
			if !seen[child] {
				seen[child] = true
				all = append(all, child)
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}
