// Package ask sends requests to the dispatcher of a run, through its socket or as files in the run
// directory, and waits for the answers in the journal. Prepare or Leave makes a Request, and Wait
// waits for its answer. Commands and screens use the package, with and without a dispatcher.
//
// Compare compares a run with its changed jobs files. Its result, a Diff, makes the requests that
// update the run.
package ask

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"dcs-tui/internal/text"
	"dcs-tui/jobs"
	"dcs-tui/jobs/action"
	"dcs-tui/jobs/journal"
	"dcs-tui/jobs/live"
	"dcs-tui/jobs/rundir"
)

// Timeouts of Wait. A dispatcher polls every second, but disks may be slow, and files that another
// machine writes appear late.
const (
	AnswerTimeout = 15 * time.Second // for the answer of a dispatcher on this machine
	// More than journal.StaleAfter, after which a dispatcher without heartbeats counts as dead.
	AnswerTimeoutFar = 45 * time.Second
	EndTimeout       = 30 * time.Second // for the end of jobs that are being ended
	stoppedTimeout   = 3 * time.Second  // for the answer of a process that SIGSTOP has stopped
	// socketTimeout is the time after which a request that was sent through the socket is also
	// left as a file: the dispatcher may be stopped, or die before it records the request.
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

// TrackedRequest is a request and what is known of its fate. It is not safe for concurrent use.
type TrackedRequest struct {
	Trace
	LeftOut int   // number of jobs that the caller left out of the request
	Problem error // the last error of reading the journal or writing the file

	awaited map[jobs.ID]bool        // see Await
	ended   map[jobs.ID]jobs.Record // see EndRecord

	run      *rundir.Run
	body     *action.Request
	reader   *journal.Reader
	recorded bool // the dispatcher has reported that its answer is durable
	filed    bool // the request is a file in the run directory
}

// Leave writes a request into the run directory. The request is durable when Leave returns.
func Leave(run *rundir.Run, q *action.Request) (*TrackedRequest, error) {
	r, err := Prepare(run, q)
	if err != nil {
		return nil, err
	}
	return r, r.writeFile()
}

// Prepare makes a request that Wait sends through the socket, or as a file if that is not possible.
// Nothing is sent before Wait.
func Prepare(run *rundir.Run, q *action.Request) (*TrackedRequest, error) {
	if _, err := q.Encode(); err != nil {
		return nil, err
	}
	r := track(run, rundir.NewRequestName(q.At), q)
	return r, r.Problem
}

// Open returns a request that is a file in the run directory and waits to be carried out.
func Open(run *rundir.Run, name string) (*TrackedRequest, error) {
	if !rundir.IsRequestName(name) {
		return nil, fmt.Errorf("%q is not the name of a request", name)
	}
	body, err := run.ReadRequest(name)
	if err != nil {
		return nil, err
	}
	r := track(run, name, body)
	r.filed = true
	return r, r.Problem
}

// Do returns the action that is requested.
func (r *TrackedRequest) Do() action.Name { return r.body.Do }

func track(run *rundir.Run, name string, body *action.Request) *TrackedRequest {
	r := &TrackedRequest{Trace: Trace{Name: name}, ended: map[jobs.ID]jobs.Record{}, run: run, body: body,
		reader: journal.NewReader(run, journal.Tail(run))}
	r.Poll()
	return r
}

// writeFile writes the request into the run directory, unless that was done before.
func (r *TrackedRequest) writeFile() error {
	if r.filed {
		return nil
	}
	err := r.run.FileRequestAs(r.Name, r.body)
	r.filed = err == nil
	return err
}

// Poll reads the records that the journal has gained since the last Poll.
func (r *TrackedRequest) Poll() {
	_ = r.reader.Watch(true) // a file that cannot be read proves nothing
	var durable live.Durable
	if r.recorded && !r.Answered && r.reader.Owner != nil { // live.json may be a second old
		durable = live.Durable{Epoch: r.reader.Owner.Epoch, Bytes: math.MaxInt64}
	}
	_, r.Problem = r.reader.Follow(durable, func(_ int, rec *jobs.Record) {
		if rec.Seq != 0 && rec.Kind != jobs.KindAcked {
			delete(r.awaited, rec.Job)
			if r.body.Do == action.Submit && (!r.Answered || rec.Job == r.First) {
				r.ended[rec.Job] = *rec // the answer may come after the end of its job
			}
		}
		r.OnRecord(rec)
	})
}

// EndRecord returns the record that ended the first of the submitted jobs. It returns nil if the
// job has not ended, or if other readers of the run cannot see the record yet.
func (r *TrackedRequest) EndRecord() *jobs.Record {
	if end, ok := r.ended[r.First]; ok && r.Answered && r.reader.Published() {
		return &end
	}
	return nil
}

// Owner returns the dispatcher of the run as of the last Poll.
func (r *TrackedRequest) Owner() *journal.Owner { return r.reader.Owner }

// IsDispatched reports whether somebody dispatches the run, as of the last Poll.
func (r *TrackedRequest) IsDispatched() bool { return r.reader.IsDispatched() }

// Jobs returns the jobs that it names. A request that was not needed, and so not prepared, names
// none.
func (r *TrackedRequest) Jobs() jobs.Ranges {
	if r.body == nil {
		return nil
	}
	return r.body.Jobs
}

// Await makes Wait and IsAwaiting wait for the end of an unfinished job.
func (r *TrackedRequest) Await(id jobs.ID) {
	jobs.Insert(&r.awaited, id, true)
}

// IsAwaiting reports whether a job that was passed to Await has not ended.
func (r *TrackedRequest) IsAwaiting() bool { return len(r.awaited) > 0 }

// Wait sends the request to owner, the dispatcher of the run. It waits for the answer and for the
// end of jobs that are being ended, up to the timeouts of this package. dial may be nil. gone
// reports that the dispatcher has died before it answered or before the jobs ended; an unanswered
// request is then in the run directory for the next dispatcher.
func (r *TrackedRequest) Wait(ctx context.Context, owner *journal.Owner, dial Dial) (gone bool) {
	answerTimeout := AnswerTimeout
	if owner.Liveness() != journal.Alive {
		answerTimeout = AnswerTimeoutFar
	}
	asked, answered := time.Now(), time.Time{}
	sent, closeConn := r.send(ctx, owner, dial)
	defer closeConn()
	fileAt := time.After(socketTimeout)
	if sent == nil {
		r.Problem = r.writeFile()
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
		case r.IsOver():
			return false
		case r.Answered && time.Since(answered) >= EndTimeout, !r.Answered && time.Since(asked) >= answerTimeout:
			return false
		}
		switch now := r.reader; {
		case now.Owner == nil:
		case now.Liveness == journal.Dead:
			r.Poll() // its last records
			return !r.IsOver() && r.fileForNext()
		case !r.Answered && time.Since(asked) >= stoppedTimeout && now.Owner.IsStopped():
			return false
		case now.Silent:
			return r.fileForNext()
		}
		select {
		case err := <-sent:
			sent = nil // yields one value
			r.recorded = err == nil
			if !r.recorded && !r.refusedBy(err) {
				r.Problem = r.writeFile()
			}
		case <-fileAt:
			r.Problem = r.writeFile()
			if r.Problem != nil {
				fileAt = time.After(socketTimeout)
			}
		case <-time.After(pollInterval):
		case <-ctx.Done():
			r.Problem = r.writeFile()
			return false
		}
	}
}

// fileForNext writes the request into the run directory for the next dispatcher, unless it has been
// answered. It returns true.
func (r *TrackedRequest) fileForNext() (gone bool) {
	if !r.Answered {
		r.Problem = r.writeFile()
	}
	return true
}

// refusedBy reports whether err means that the dispatcher refused the request, and records that.
func (r *TrackedRequest) refusedBy(err error) bool {
	refused, ok := err.(interface{ Refused() bool })
	if ok && refused.Refused() {
		r.Refused = err.Error()
		return true
	}
	return false
}

// send sends the request through the socket of the dispatcher or, if it is a file already, wakes
// the dispatcher. sent yields the error, which is nil when the answer is durable. sent is nil if
// there is no connection to the dispatcher.
func (r *TrackedRequest) send(ctx context.Context, owner *journal.Owner,
	dial Dial) (sent <-chan error, closeConn func()) {
	if dial == nil || owner.Socket == "" || owner.Liveness() != journal.Alive {
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

// Trace is the fate of a request according to the records that OnRecord has handled.
type Trace struct {
	Name    string // of the request
	IsEarly bool   // nobody waits for the jobs of Ending

	Answered bool
	// Why the request was refused; "": it was not, or has no answer yet.
	Why         string
	Refused     string           // the same in a sentence that names the request
	Done, Left  int              // number of jobs that were changed, and that were left alone
	First       jobs.ID          // first of the submitted jobs
	Ending      map[jobs.ID]bool // jobs that are being ended
	EndedItself int              // number of jobs that ended in another way before they were ended
	Priorities  map[int]bool     // the priorities that jobs were given
	Slots       *int             // the number of slots that a host was given; nil: none was
	// Jobs that were canceled, are being ended, or were skipped because of it; see JobsToRequeue.
	Affected []jobs.ID
}

// OnRecord handles a record. It must be called for all records after the request, of any job.
func (t *Trace) OnRecord(r *jobs.Record) {
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
		t.Why = r.Reason
		if t.Why != "" {
			t.Refused = "the request is refused: " + r.Reason
		}
	case r.Kind == jobs.KindCanceling && r.How != jobs.ThenRequeue:
		jobs.Insert(&t.Ending, r.Job, true)
		t.Affected = append(t.Affected, r.Job)
	case r.Kind == jobs.KindPriority:
		jobs.Insert(&t.Priorities, r.Priority, true)
	case r.Kind == jobs.KindHost:
		t.Slots = new(r.Slot) // the record is reused
	case ended && r.Kind == jobs.KindJob:
		t.Affected = append(t.Affected, r.Job)
	}
}

// Outcome returns what became of the request so far.
func (t *Trace) Outcome() action.Outcome {
	o := action.Outcome{
		Done:        t.Done,
		Left:        t.Left,
		EndedItself: t.EndedItself,
		Ending:      slices.Sorted(maps.Keys(t.Ending)),
		IsEarly:     t.IsEarly,
		Slots:       t.Slots,
	}
	if given := slices.Collect(maps.Keys(t.Priorities)); len(given) == 1 {
		o.Priority = &given[0]
	}
	return o
}

// IsOver reports whether nothing is left to wait for.
func (t *Trace) IsOver() bool { return t.Refused != "" || t.Answered && len(t.Ending) == 0 }

// JobsToRequeue returns the jobs that a requeue must name to undo a cancel: affected, and the
// queued jobs that depend on them, directly or not.
func JobsToRequeue(t *jobs.Table, affected []jobs.ID) []jobs.ID {
	children := map[jobs.ID][]jobs.ID{}
	for j := range t.Rows() {
		if j.State == jobs.Queued {
			for parent := range j.Spec.After().All() {
				children[parent] = append(children[parent], j.Spec.ID)
			}
		}
	}
	// A map takes thirty times as long for a million.
	all, seen := slices.Clone(affected), make([]bool, t.NumJobs()+1)
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

// SubmitRequests returns the requests that add jobs to a run. Each is at most action.MaxSubmit
// bytes.
func SubmitRequests(specs []*jobs.Spec) ([]*action.Request, error) {
	blocks := submitBlocks(specs)
	if len(blocks) > 1 && slices.ContainsFunc(specs, func(s *jobs.Spec) bool { return len(s.After()) > 0 }) {
		return nil, text.Errorf("jobs with the option after must be submitted in one request of at most %d MiB",
			action.MaxSubmit>>20).
			WithAdvice("submit several files, each with the jobs that depend on each other")
	}
	var requests []*action.Request
	for _, block := range blocks {
		requests = append(requests, &action.Request{Do: action.Submit, Specs: action.SpecsText(block)})
	}
	return requests, nil
}

// submitBlocks splits jobs into blocks that fit into a request, and numbers the jobs of each block
// from 1.
func submitBlocks(specs []*jobs.Spec) (blocks [][]*jobs.Spec) {
	if len(specs) == 0 {
		return nil
	}
	size, from := 0, 0
	var text []byte
	for i, s := range specs {
		text = jobs.AppendSpecJSON(text[:0], s)
		size += len(text) + 1
		if size > action.MaxSubmit && i > from {
			blocks = append(blocks, specs[from:i])
			from, size = i, len(text)+1
		}
	}
	blocks = append(blocks, specs[from:])
	for _, b := range blocks {
		for i, s := range b {
			s.ID = jobs.ID(i + 1)
		}
	}
	return blocks
}
