package runview

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"time"

	"dcs-tui/internal/text"
	"dcs-tui/jobs"
	"dcs-tui/jobs/action"
	"dcs-tui/jobs/journal"
	"dcs-tui/jobs/live"
	"dcs-tui/jobs/metrics"
	"dcs-tui/jobs/results"
)

// RunStatus is the status of a run.
type RunStatus uint8

// The statuses.
const (
	StatusRunning  RunStatus = iota // somebody dispatches it, as far as this machine can tell
	StatusFinished                  // all jobs are over
	StatusStopped                   // jobs are left, and its dispatcher has ended or is ending
	StatusCrashed                   // jobs are left, and its dispatcher died
	// Jobs are left, and its dispatcher on another machine gives no heartbeat, or its owner file is missing.
	StatusSilent
)

// IsDispatched reports whether somebody dispatches the run and will continue to do so.
func (s RunStatus) IsDispatched() bool { return s == StatusRunning }

// facts holds what a poll found out about the run as a whole.
type facts struct {
	err        error            // why nothing can be shown
	owner      *journal.Owner   // nil: there is no owner file
	liveness   journal.Liveness // of the owner's process
	silent     *journal.Owner   // the owner, if it is silent (see journal.Reader)
	dispatched bool
	problem    string            // what prevents the dispatcher or this program from working
	missing    string            // what part of the input is missing
	left       string            // see LeftBehind
	trouble    []string          // see UselessHosts
	requests   []string          // names of the requests that wait for a dispatcher; nil while there is one
	waiting    []*action.Request // those of requests that are for jobs; nil: not known
	standby    string            // see WatchingStandby; "" while somebody dispatches the run
	records    int               // from which missing, left, and trouble, empty while dispatched is set, were computed
}

// equal reports whether both look the same to an observer.
func (f *facts) equal(o *facts) bool {
	return f.err == nil && o.err == nil && f.dispatched == o.dispatched && f.problem == o.problem &&
		f.missing == o.missing && slices.Equal(f.requests, o.requests) && f.standby == o.standby &&
		(f.owner == nil) == (o.owner == nil) && (f.owner == nil || f.owner.Token == o.owner.Token) &&
		slices.Equal(f.trouble, o.trouble)
}

// facts returns what the last poll found out. before is what the poll before found out, and
// err is the error of the last one.
func (f *follower) facts(err error, before facts) facts {
	records := f.Report().Records
	n := facts{owner: f.Owner, liveness: f.Liveness, silent: f.SilentOwner(), dispatched: f.IsDispatched(),
		records: records}
	switch {
	case err == nil && n.dispatched:
		n.problem = f.Owner.Problem
		if f.Owner.IsStopped() {
			n.problem = StoppedText(f.Owner)
		}
	case err != nil && records == 0 && before.records == 0:
		n.err = err
	case err != nil:
		n.problem = err.Error()
	}
	if n.dispatched {
		return n
	}
	if before.dispatched || before.records != records || before.err != nil || f.read == 0 {
		n.left, n.trouble = LeftBehind(f.Table()), UselessHosts(f.Table(), f.hostEvents)
		if n.left != "" {
			n.trouble = append([]string{n.left}, n.trouble...)
		}
		if input, err := f.Run.ReadInput(); err == nil && input.Cut() {
			n.missing = InputText(input, f.Table())
		}
	} else {
		n.missing, n.left, n.trouble = before.missing, before.left, before.trouble
	}
	n.standby = WatchingStandby(f.Table(), f.Live)
	f.read = max(1, records)
	if names, err := f.Run.WaitingNames(f.Table()); err == nil && len(names) > 0 {
		n.requests, n.waiting = names, before.waiting
		if n.waiting == nil || before.records != records || !slices.Equal(names, before.requests) {
			n.waiting = f.jobRequests()
		}
	}
	return n
}

// jobRequests returns the requests for jobs that the next dispatcher can carry out; nil: they cannot be read now.
// Those that add jobs may be large, and are not kept.
func (f *follower) jobRequests() []*action.Request {
	waiting, err := f.Run.WaitingRequests(f.Table())
	if err != nil {
		return nil
	}
	list := []*action.Request{}
	for _, q := range waiting {
		if q.All || q.Jobs != nil {
			list = append(list, q)
		}
	}
	return list
}

// WatchingStandby returns the machine of the standby that watched when the dispatcher died, or "" if
// there was none or the dispatcher has ended by itself. last is what the dispatcher published last, nil
// if nothing.
func WatchingStandby(table *jobs.Table, last *live.State) string {
	if last == nil || last.Epoch != table.Epoch || table.Closed.How != "" {
		return ""
	}
	return last.Standby
}

// orRemoved replaces the error of a poll if the run directory does not exist any more.
func (v *View) orRemoved(err error) error {
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if _, statErr := v.run.Disk.Lstat(v.run.Dir); errors.Is(statErr, fs.ErrNotExist) {
		return fmt.Errorf("the run directory %s was removed or moved; the screen shows its last state", v.run.Dir)
	}
	return err
}

// status returns the status of the run and, unless it is running, a sentence about how it
// ended. mu is held.
func (v *View) status() (RunStatus, string) {
	f, t := &v.facts, v.table
	left := v.numLeft()
	if f.dispatched {
		closed := t.Closed
		if s := v.state; closed.How == "" && s != nil && s.Finish != nil && s.Finish.How != "fenced" {
			closed = jobs.Closing{How: s.Finish.How, Reason: s.Finish.Why}
		}
		switch {
		case closed.How == "":
			return StatusRunning, ""
		case closed.How == jobs.ClosedDone:
			return StatusFinished, text.Join("; ", "all jobs are over", closed.Reason)
		case left == 0:
			return StatusFinished, closedText(closed)
		}
		return StatusStopped, closedText(closed)
	}
	status, over := v.end()
	switch {
	case left > 0:
		over += "; " + text.Plural(left, "job") + " left"
	case v.total() == 0:
		over = "no job was read"
	case t.Counts[jobs.Succeeded] == v.total():
		over = "all jobs succeeded"
	case t.Counts[jobs.Canceled] > 0:
		over = "over: " + ProgressOf(t, nil).Counts()
	default:
		over = "some jobs did not succeed"
	}
	return status, text.Join("; ", over, f.left, f.missing)
}

// end returns the status and the end of a run that nobody dispatches; see endOf. mu is held.
func (v *View) end() (RunStatus, string) {
	return endOf(v.table, v.numLeft(), v.facts.owner, v.facts.liveness)
}

// numLeft returns the number of unfinished jobs, with those that no dispatcher has accepted. mu is held.
func (v *View) numLeft() int { return v.table.Unfinished() + max(0, v.stored-v.table.NumJobs()) }

// LeftBehind describes where processes of a finished run may still be alive. A run ends only when
// every host has been left clean. LeftBehind returns "" if the run has ended or has unfinished
// jobs.
func LeftBehind(t *jobs.Table) string {
	if t.Ended || t.NumJobs() == 0 || t.Unfinished() > 0 {
		return ""
	}
	var lost []string // hosts that were given up while attempts ran there
	for j := range t.RowsWithOptions() {
		for _, a := range j.Attempts {
			if a.State == jobs.AttemptLost && a.Host != "" && !slices.Contains(lost, a.Host) {
				lost = append(lost, a.Host)
			}
		}
	}
	const limit = 5
	slices.Sort(lost)
	where := cmp.Or(text.List(lost, limit), "hosts")
	return "processes that jobs left behind may still be alive on " + where + ": resume ends them"
}

// StoppedText tells the user how to continue an owner that is stopped by a signal.
func StoppedText(o *journal.Owner) string {
	return fmt.Sprintf("it is stopped (Ctrl-Z, SIGSTOP): kill -CONT %d continues it", o.PID)
}

// now returns the time by the dispatcher's clock, as far as it is known. mu is held.
func (v *View) now() time.Time { return time.Now().Add(v.clockOffset) }

// setState handles what the dispatcher published; nil: nobody dispatches the run. mu is held.
func (v *View) setState(s *live.State) {
	old := v.state
	if old == s {
		return
	}
	v.state, v.seenAt = s, time.Now()
	before := v.fleet
	v.fleet = fleetOf(s)
	if s == nil {
		v.clockOffset = 0
		v.markRunning()
		return
	}
	switch ahead := s.At.Sub(v.seenAt); {
	case v.facts.owner == nil || v.facts.liveness == journal.Alive:
		v.clockOffset = 0
	// The state with the shortest delay is the most accurate.
	case old == nil || old.Token != s.Token || ahead > v.clockOffset:
		v.clockOffset = ahead
	}
	if old == nil || !maps.Equal(before, v.fleet) {
		v.markRunning()
	} else {
		for _, r := range []jobs.Ranges{old.Stragglers, s.Stragglers, old.Ending, s.Ending} {
			for _, id := range r.IDs(jobs.ID(len(v.rows))) {
				v.stale.add(id)
			}
		}
	}
	v.handleProgress(s.Progress)
}

// handleProgress stores the progress that running jobs report.
func (v *View) handleProgress(progress map[string]string) {
	for name, text := range progress {
		id, err := jobs.ParseAttemptID(name)
		if err != nil || id.Job < 1 || int(id.Job) > len(v.rows) {
			continue
		}
		r := &v.rows[id.Job-1]
		share, _ := jobs.ReadProgress(text)
		if n := uint16(share * 10_000); share >= 0 && isRunningPhase(r.phase) && int(r.attempts) == id.N &&
			n != r.progress {
			r.progress = n
			v.edition++
		}
	}
}

// hosts returns the hosts as they are now. mu is held.
func (v *View) hosts() []live.Host {
	if v.state == nil {
		if v.facts.dispatched {
			return v.inventory("nothing is known of it yet")
		}
		return v.pastHosts()
	}
	list := slices.Clone(v.state.Hosts)
	since := max(0, v.now().Sub(v.state.At))
	for i := range list {
		h := &list[i]
		if h.Heartbeat > 0 {
			h.Heartbeat += since
		}
		if h.Down > 0 {
			h.Down += since
		}
		if h.RetryIn > 0 {
			h.RetryIn = max(0, h.RetryIn-since)
		}
	}
	return list
}

func (v *View) inventory(reason string) []live.Host {
	list := make([]live.Host, len(v.opt.Hosts))
	for i, h := range v.opt.Hosts {
		list[i] = live.Host{Name: h.Name, HostStatus: jobs.HostStatus{State: jobs.HostUnknown, Reason: reason},
			Slots: max(0, h.Slots.Fixed), GPUs: max(0, h.GPUs), DiskFree: -1}
	}
	return list
}

// pastHosts returns the hosts of a run that nobody dispatches, with counts of their attempts.
func (v *View) pastHosts() []live.Host {
	if v.past != nil && v.pastAt == v.edition {
		return slices.Clone(v.past)
	}
	const reason = "nobody dispatches the run"
	list, counts := v.inventory(reason), CountHosts(v.table)
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		if !slices.ContainsFunc(list, func(h live.Host) bool { return h.Name == name }) {
			list = append(list, live.Host{Name: name, HostStatus: jobs.HostStatus{State: jobs.HostUnknown,
				Reason: reason}, DiskFree: -1})
		}
	}
	for i := range list {
		if c := counts[list[i].Name]; c != nil {
			list[i].Running, list[i].Failed, list[i].Done = c.Slots, c.Failed, c.Succeeded
		}
	}
	v.past, v.pastAt = list, v.edition
	return slices.Clone(list)
}

// fill sets the parts of a snapshot that describe the run as a whole. mu is held.
func (v *View) fill(p *Snapshot) {
	f := &v.facts
	p.MadeAt = time.Now()
	p.At = p.MadeAt.Add(v.clockOffset)
	p.Run = Run{Name: v.run.Name(), UID: v.run.UID(), Dir: v.run.Dir, Lab: v.opt.Lab, Created: v.run.Settings.Created,
		Epoch: v.table.Epoch, Best: metrics.Best(v.run.Settings)}
	if f.dispatched {
		p.Run.Owner, p.Run.Machine = f.owner.String(), f.owner.Host
	}
	p.Status, p.Over = v.status()
	if !f.dispatched {
		_, p.End = v.end()
	}
	p.Trouble, p.Requests, p.Problem = f.trouble, len(f.requests), f.problem
	p.Paused, p.Tries = v.table.Paused, v.tries()
	p.Hosts = v.hosts()
	for i := range p.Hosts {
		p.SlotsBusy += p.Hosts[i].Running
		p.Slots += p.Hosts[i].Slots
	}
	p.Total, p.Phases, p.Stragglers = len(v.rows), v.phases, v.stragglers // of the same version
	p.Idle = results.Idle{Suspended: v.phases[Suspended], Sent: v.sent}
	if s := v.state; s != nil {
		p.More, p.Draining, p.Stuck, p.Awaited, p.NextSlot = s.More, s.Draining, s.Stuck, s.Awaited, s.NextSlot
		p.Finish, p.MetricsOf = s.Finish, s.MetricsOf
		p.Rate, p.Rates, p.ETA, p.Spread = s.Rate, s.Rates, s.ETA, s.Spread
		p.Run.Standby = s.Standby
		p.Paused = p.Paused || s.Held && s.Problem != "" // a pause that cannot be recorded
		if s.Problem != "" {
			p.Problem = s.Problem
		}
		switch q := s.Question; {
		case q != nil && v.link.conn != nil:
			p.Question = q
		case q != nil && p.Problem == "": // only a person on that machine can answer
			p.Problem = fmt.Sprintf("the dispatcher asks on %s: %s (run dcs-tui attach there to answer)",
				p.Run.Machine, q.Text)
		}
	} else {
		p.More, p.Run.Standby = !f.dispatched && f.missing != "", f.standby
	}
	if !v.began.IsZero() && time.Since(v.began) > hungAfter && p.Problem == "" {
		p.Problem = fmt.Sprintf("the run directory %s does not answer", v.run.Dir)
	}
}

// tries returns the number of attempts of a job that sets none itself.
func (v *View) tries() int {
	if v.state != nil && v.state.Tries > 0 {
		return v.state.Tries
	}
	text, _ := v.run.Settings.Options["tries"].(string)
	n, _ := strconv.Atoi(text)
	return cmp.Or(max(n, 0), jobs.DefaultTries)
}
