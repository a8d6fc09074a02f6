package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"dcs-tui/dispatch"
	"dcs-tui/dispatch/sched"
	"dcs-tui/dispatch/sched/halt"
	"dcs-tui/internal/text"
	"dcs-tui/jobs"
	"dcs-tui/jobs/journal"
	"dcs-tui/jobs/rundir"
)

// State is the state in which a run has ended.
type State string

const (
	Succeeded State = "succeeded" // all jobs succeeded
	Failed    State = "failed"    // all jobs have ended, and some did not succeed
	Reached   State = "reached"   // the results are those for which --halt was given; jobs may be left
	NoHosts   State = "no_hosts"  // no host could be used
	Canceled  State = "canceled"  // a person canceled it
	Stopped   State = "stopped"   // jobs are left, or another dispatcher owns the run
)

// StateOf returns the state of a run whose last dispatcher has ended like this. counts is the result of
// jobs.Table.Judged. canceled means that a person canceled the whole run, and unread that not all jobs of
// its input were read and submitted. halts is the --halt of the run. Results count for it if they have
// ended the dispatcher, or if all jobs have ended. If a person has stopped a run that has reached its goal
// and was continued, jobs are left as in any other run.
func StateOf(how sched.Finished, counts [jobs.Skipped + 1]int, canceled, unread bool, halts halt.Rule) State {
	open := counts[jobs.Queued] + counts[jobs.Running]
	total := 0
	for _, n := range counts {
		total += n
	}
	switch {
	case how == sched.NoHosts:
		return NoHosts
	case how == sched.Fenced, counts[jobs.Running] > 0:
		return Stopped
	case how == sched.Reached && !canceled:
		return Reached
	case open > 0:
		return Stopped
	case canceled:
		return Canceled
	case unread:
		return Stopped
	case counts[jobs.Succeeded] == total:
		return Succeeded
	case halts.IsGoalReached(counts):
		return Reached
	}
	return Failed
}

// FinishOf returns how the last dispatcher of a run that nobody dispatches has ended. If it has recorded
// nothing, because it died, that depends on whether jobs are left.
func FinishOf(t *jobs.Table) sched.Finish {
	if how, ok := sched.ParseFinished(t.Closed.How); ok {
		return sched.Finish{How: how, Why: t.Closed.Reason}
	}
	if t.Unfinished() == 0 {
		return sched.Finish{How: sched.AllDone}
	}
	return sched.Finish{How: sched.Stopped}
}

// Outcome describes how a run has ended.
type Outcome struct {
	State State
	Run   *rundir.Run
	// Table is the final state of all jobs. It contains jobs that were not submitted as queued.
	Table    *jobs.Table
	Finish   sched.Finish
	Input    rundir.Input
	InputErr error // error in the input; State is then that of the jobs before it
	Refused  int   // number of refused lines of the input
	Canceled bool
	Deleted  bool // the run directory was deleted
	// Copied reports that the hosts know a later dispatcher than the run directory does. The
	// directory is a copy, or was restored from an earlier state.
	Copied              bool
	Hosts               []sched.HostView // last state of the hosts
	HostsKeepingOutputs int              // number of hosts that keep the outputs of their jobs themselves
	LeavesFiles         bool             // PackRest may move outputs into packs
	Warnings            []string         // about data that could not be stored

	Began     time.Time     // start of this dispatcher
	SlotTime  time.Duration // slot time that this dispatcher had for jobs (see slotTime)
	PeakSlots int           // maximum number of slots that were available at once
}

// BusyTime returns the slot time that jobs have used since Began.
func (o *Outcome) BusyTime() (busy time.Duration) {
	since := jobs.StampOf(o.Began)
	for j := range o.Table.RowsWithOptions() {
		for _, a := range j.Attempts {
			if a.Outcome != nil && a.Outcome.Ended >= since {
				ran := min(a.Outcome.Elapsed(), a.Outcome.Ended.Sub(since))
				busy += ran * time.Duration(j.Spec.SlotCount())
			}
		}
	}
	return busy
}

// ErrOver is returned after the run has ended.
var ErrOver = errors.New("the run has ended")

// errHung reports that something did not respond when the run was closed.
var errHung = fmt.Errorf("the run directory or a host did not answer for %s; leaving nevertheless, "+
	"`resume` continues the run",
	text.Duration(CloseTimeout))

// Close ends the run. If the run is not over, Close stops it: running jobs continue, and a later
// dispatcher adopts them. Close returns an error and no outcome only if the run directory or a host
// hangs after a person has requested a stop.
func (r *Run) Close() (*Outcome, error) {
	r.cancel()
	r.signals.withTimeout(keepMetricsTimeout, nil, r.awaitStoredMetrics) // while the hosts are connected
	r.awaitLastReads()
	var finish sched.Finish
	var err error
	if !r.signals.withTimeout(CloseTimeout, nil, func() { finish, err = r.closeDispatcher() }) {
		r.closeSocket()
		return nil, errHung
	}
	close(r.over)
	r.closeSocket()
	o := r.outcome(finish)
	r.signals.withTimeout(WriteTimeout, nil, func() {
		r.tidiers.Wait()
		r.reporter.Wait()
		r.hostLogs.Close()
	})
	if !o.Deleted {
		if finish.How == sched.AllDone && err == nil { // without it, `runs` replays the journal
			r.signals.withTimeout(WriteTimeout, nil, func() { _ = journal.WriteCounts(r.dir, r.table) })
		}
		r.signals.withTimeout(WriteTimeout, nil, func() { o.Warnings = append(o.Warnings, r.closeJobLogs()...) })
		r.leavesFiles = finish.How == sched.AllDone && err == nil && r.table.Ended &&
			r.opts.PackFiles > 0 && r.table.NumJobs() >= r.opts.PackFiles
		o.LeavesFiles = r.leavesFiles
		if err != nil {
			o.Warnings = append(o.Warnings,
				fmt.Sprintf("the journal could not be written to the end: %v; "+
					"`resume` asks the hosts for what it lacks", err))
		}
	}
	return o, nil
}

// awaitStoredMetrics waits until the declared metrics are stored, and reports those that are not.
func (r *Run) awaitStoredMetrics() {
	ctx, cancel := context.WithTimeout(context.Background(), keepMetricsTimeout)
	defer cancel()
	for _, note := range r.metrics.Close(ctx) {
		r.printWarning(note)
	}
}

func (r *Run) closeDispatcher() (sched.Finish, error) {
	r.feeder.Wait()
	r.instances.running.Wait()           // its commands were killed
	if last := r.sample(); last != nil { // a short run has no other sample
		r.hostDirs.retry(last.Hosts)
	}
	finish, err := r.d.Close()
	switch {
	case r.mirror.IsTakenOver():
	case finish.How == sched.Fenced:
		r.isCopied, _ = r.journal.SkipTo(finish.Epoch)
	case r.d.ClaimedEpoch() > 0:
		_, _ = r.journal.SkipTo(r.d.ClaimedEpoch()) // if the host is right, the next dispatcher can use it
	}
	r.closePublisher()
	if cerr := r.journal.Close(); err == nil && finish.How != sched.Fenced {
		err = cerr
	}
	r.mirror.Close(err == nil && finish.How != sched.Fenced)
	// The directory may have been deleted since the dispatcher last looked for it.
	if (err != nil || finish.How != sched.AllDone) && r.location.Deleted() {
		r.isDeleted.Store(true)
	}
	return finish, err
}

func (r *Run) closeJobLogs() (warnings []string) {
	for _, l := range r.jobLogs {
		if err := l.Close(); err != nil {
			warnings = append(warnings, err.Error())
		}
	}
	return warnings
}

// outcome describes the end. The table belongs to r again.
func (r *Run) outcome(finish sched.Finish) *Outcome {
	r.addUnsubmitted()
	o := &Outcome{
		Run:      r.dir,
		Table:    r.table,
		Finish:   finish,
		Input:    r.input,
		InputErr: r.inputErr,
		Refused:  r.numRefused,
		Canceled: r.isCanceled.Load() ||
			r.table.CanceledAll,
		Deleted:             r.Deleted(),
		Copied:              r.isCopied,
		HostsKeepingOutputs: r.hostDirs.numKeepingOutputs(r.table),
		Began:               r.began,
	}
	if last := r.snapshot.Load(); last != nil {
		o.Hosts = last.Hosts
	}
	o.SlotTime, o.PeakSlots = r.slotTime.total()
	o.State = StateOf(finish.How, r.table.Judged(), o.Canceled, r.inputUnread, r.opts.Policy.Halt)
	if o.Deleted && finish.How != sched.Fenced {
		o.State = Stopped // no data is left that shows what happened to the jobs
	}
	return o
}

// addUnsubmitted adds the jobs that were not submitted before an early end to the table, as queued.
func (r *Run) addUnsubmitted() {
	for len(r.stored) > 0 && int(r.stored[0].ID) <= r.table.NumJobs() {
		r.stored = r.stored[1:]
	}
	r.table.SetSpecs(r.table.NumJobs(), r.stored)
	r.table.AcceptStored()
}

// Deleted reports whether the run directory is known to have been deleted.
func (r *Run) Deleted() bool {
	last := r.snapshot.Load()
	return r.isDeleted.Load() || last != nil && last.Deleted
}

// slotTime integrates the number of available slots, for the efficiency in the summary. Each sample
// counts for the time since the previous one. Slots that are free because more jobs have yet to come do
// not count, nor does the time after the last job. It is safe for concurrent use.
type slotTime struct {
	mu       sync.Mutex
	last     time.Time
	slots    int // number of slots that counted at the last sample
	maxSlots int // maximum number of slots
	sum      time.Duration
	over     bool // a sample was taken after the last job
}

// add adds a sample. limit is --max-slots, or 0 for none.
func (u *slotTime) add(at time.Time, s *dispatch.Snapshot, limit int) {
	slots, used := 0, 0
	for _, h := range s.Hosts {
		switch h.State {
		case jobs.HostUp, jobs.HostSuspect, jobs.HostDraining:
			slots += h.Slots
			used += h.Running
		}
	}
	if limit > 0 {
		slots = min(slots, limit)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.over {
		return
	}
	u.over, u.maxSlots = s.Finished, max(u.maxSlots, slots)
	if s.InputOpen && s.Counts[jobs.Queued] == 0 {
		slots = min(slots, used)
	}
	if !u.last.IsZero() {
		u.sum += at.Sub(u.last) * time.Duration(max(u.slots, slots))
	}
	u.last, u.slots = at, slots
}

func (u *slotTime) total() (sum time.Duration, most int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.sum, u.maxSlots
}

// RunHook runs the user's --on-done command with the outcome of the run in its environment. Its
// output goes to w. Its exit status does not change code, which is that of the run.
func (o *Outcome) RunHook(command string, code int, w io.Writer) error {
	cmd := exec.Command("/bin/sh", "-c", command)
	cmd.Stdout, cmd.Stderr = w, w
	cmd.Env = append(os.Environ(), "DCS_RUN="+o.Run.Name(), "DCS_RUN_DIR="+o.Run.Dir, "DCS_STATE="+string(o.State),
		fmt.Sprintf("DCS_EXIT=%d", code))
	total := 0
	for s, n := range o.Table.Counts {
		total += n
		cmd.Env = append(cmd.Env, fmt.Sprintf("DCS_%s=%d", strings.ToUpper(jobs.JobState(s).String()), n))
	}
	cmd.Env = append(cmd.Env, fmt.Sprintf("DCS_TOTAL=%d", total))
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("--on-done: %w", err)
	}
	return nil
}
