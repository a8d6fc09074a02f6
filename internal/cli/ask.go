package cli

import (
	"time"

	"dcs-tui/dispatch"
	"dcs-tui/internal/cli/console"
	"dcs-tui/internal/cli/exit"
	"dcs-tui/internal/cli/standing"
	"dcs-tui/jobs"
	"dcs-tui/jobs/journal"
	"dcs-tui/jobs/rundir"
)

// How long a command waits for the dispatcher: it looks every second, but its disk or
// ours may be slow, and what another machine writes is seen late.
const (
	answerHere  = 15 * time.Second
	answerAway  = 45 * time.Second // more than journal.StaleAfter: by then it is known to be dead or alive
	endPatience = 30 * time.Second // with jobs that are being ended
	answerEvery = 200 * time.Millisecond
	// One that somebody has stopped does not answer before it is let go on.
	stoppedPatience = 3 * time.Second
)

// errand is a request that was left for the dispatcher, and what has become of it.
type errand struct {
	run    *rundir.Run
	name   string
	jobs   jobs.Ranges
	reader *journal.Follower

	taken     bool
	refused   string
	did, left int
	first     jobs.ID          // of the jobs that were submitted
	before    int              // jobs left alone already when it was asked
	open      map[jobs.ID]bool // being ended
	awaited   map[jobs.ID]bool // open jobs whose end is awaited, whoever asked for it
	otherwise int              // ended of themselves meanwhile
	fault     error            // why the journal could not be read the last time
}

// ask leaves a request for jobs.
func ask(run *rundir.Run, do string, ids []jobs.ID) (*errand, error) {
	return leave(run, &rundir.Request{Do: do, Jobs: jobs.RangesOf(ids), By: dispatch.Asker(), At: time.Now()})
}

// leave leaves a request in the run directory. It goes there also when the dispatcher
// can be reached at its socket: the file is durable before anybody is told that it
// was asked, is carried out once by its name whoever dispatches by then, and is the
// same on every machine. The socket is the bell: see ring.
func leave(run *rundir.Run, q *rundir.Request) (*errand, error) {
	e := &errand{run: run, jobs: q.Jobs, reader: journal.Tail(run), open: map[jobs.ID]bool{}}
	if e.read(); e.fault != nil {
		return nil, exit.Usagef("%w", e.fault)
	}
	var err error
	e.name, err = run.FileRequest(q)
	if err != nil {
		return nil, exit.Usagef("%w", err)
	}
	return e, nil
}

// read takes from the journal what has come since.
func (e *errand) read() {
	limit, _, _, _ := journal.Observe(e.run)
	_, e.fault = e.reader.Poll(limit, func(_ int, r *jobs.Record) {
		if r.Seq != 0 && r.Kind != jobs.KindAcked {
			delete(e.awaited, r.Job)
		}
		switch {
		case r.Kind == jobs.KindRequest && r.Request == e.name:
			e.taken, e.did, e.left, e.first = true, r.Count, r.N, r.Job
			if r.Reason != "" {
				e.refused = "the request " + e.name + " is refused: " + r.Reason
			}
		case r.Kind == jobs.KindCancelling && r.Request == e.name:
			e.open[r.Job] = true
		case r.Seq != 0 && r.Kind != jobs.KindAcked && e.open[r.Job]:
			delete(e.open, r.Job)
			if r.Next != jobs.Cancelled {
				e.otherwise++
			}
		}
	})
}

// over says that there is nothing more to wait for.
func (e *errand) over() bool { return e.refused != "" || e.taken && len(e.open) == 0 }

// await waits until the request has been carried out, as far as that is a matter of
// moments. gone: the dispatcher is dead, and has not taken it in or not ended it.
func (e *errand) await(owner *journal.Owner) (gone bool) {
	patience := answerHere
	if owner.Life() != journal.Alive {
		patience = answerAway
	}
	asked, sign, taken := time.Now(), time.Now(), time.Time{}
	token, beat := owner.Token, owner.Beat
	heard, hush := e.ring(owner)
	defer hush()
	for ; ; heard = pause(heard) {
		e.read()
		if e.taken && taken.IsZero() {
			taken = time.Now()
		}
		switch {
		case e.over():
			return false
		case e.taken && time.Since(taken) >= endPatience, !e.taken && time.Since(asked) >= patience:
			return false
		}
		now, err := journal.ReadOwner(e.run)
		switch {
		case err != nil || now == nil: // torn, gone, or not to be read: that proves nothing
		case now.Life() == journal.Dead:
			e.read() // its last words
			return !e.over()
		case !e.taken && time.Since(asked) >= stoppedPatience && standing.Stopped(now):
			return false
		case now.Token != token || now.Beat != beat || now.Life() == journal.Alive:
			sign, token, beat = time.Now(), now.Token, now.Beat
		case time.Since(sign) >= journal.StaleAfter:
			return true
		}
	}
}

// unanswered says that the dispatcher is alive and has not answered.
func (a *app) unanswered(e *errand, owner *journal.Owner) {
	a.code = exit.Left
	who := console.CleanLine(owner.String())
	switch {
	case standing.Stopped(owner):
		a.warn("%s is stopped (Ctrl-Z, SIGSTOP); the request waits: kill -CONT %d lets it go on", who, owner.PID)
	case owner.Problem != "":
		a.warn("%s has not taken it in yet; the request waits: %s", who, owner.Problem)
	default:
		a.warn("%s has not answered yet; the request waits until it does, or for the next resume", who)
	}
	if e.fault != nil {
		a.warn("%v", e.fault)
	}
}

// asked is what --json prints of a request.
type asked struct {
	V        int       `json:"v"`
	Run      string    `json:"run"`
	UID      string    `json:"uid"`
	Do       string    `json:"do"`      // cancel or requeue
	Request  *string   `json:"request"` // its name; null when there was nothing to ask
	Answered bool      `json:"answered"`
	Jobs     int       `json:"jobs"`        // that were cancelled or requeued
	Left     int       `json:"left_alone"`  // that were over (cancel) or not over (requeue)
	Ended    int       `json:"ended"`       // of the jobs to cancel, those that ended of themselves meanwhile
	Ending   []jobs.ID `json:"still_alive"` // of the jobs to cancel, those that have not ended yet
}
