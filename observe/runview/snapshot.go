package runview

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"dcs-tui/internal/text"
	"dcs-tui/jobs"
	"dcs-tui/jobs/journal"
	"dcs-tui/jobs/results"
)

// Snapshot implements Source.
func (v *View) Snapshot(ctx context.Context, ask Query) (*Snapshot, error) {
	until := time.Now().Add(ask.Wait)
	if err := v.Ready(ctx); err != nil {
		return nil, err
	}
	if ask.Table != nil && ask.After == 0 {
		v.tables.awaitFirst(ctx, ask.Table)
	}
	for ctx.Err() == nil {
		p, news, due, err := v.trySnapshot(&ask, until)
		if err != nil {
			return nil, err
		}
		if p != nil {
			v.explain(ctx, p)
			return p, nil
		}
		select {
		case <-news:
		case <-time.After(time.Until(due)):
		case <-ctx.Done():
		}
	}
	return nil, ctx.Err()
}

// trySnapshot returns the snapshot, or the channel to wait for.
func (v *View) trySnapshot(ask *Query, until time.Time) (p *Snapshot, news <-chan struct{}, due time.Time, err error) {
	v.mu.Lock()
	defer v.mu.Unlock() // also after a panic, because other goroutines use the View
	if v.closed {
		return nil, nil, due, ErrGone
	}
	now := time.Now()
	if v.hasPending() && now.Sub(v.madeAt) >= wakeInterval {
		v.update(now)
	}
	if x := v.keptOrder(ask.Jobs); x != nil && x.isDue(v.edition) {
		v.remake(x)
		v.version++
	}
	if ask.After == 0 || v.version > ask.After || !now.Before(until) {
		if v.hasPending() { // counts and rows must agree
			v.update(now)
		}
		return v.snapshot(ask), nil, due, nil
	}
	due, news = until, v.news
	soon := func(t time.Time) {
		if t.Before(due) {
			due = t
		}
	}
	if v.hasPending() {
		news = nil
		soon(v.madeAt.Add(wakeInterval))
	}
	if len(v.retries) > 0 {
		wait := max(v.retries[0].at.Time().Sub(v.now()), v.madeAt.Add(wakeInterval).Sub(now))
		soon(now.Add(wait))
	}
	if x := v.keptOrder(ask.Jobs); x != nil && x.edition != v.edition {
		soon(x.next())
	}
	return nil, news, due, nil
}

// hasPending reports whether rows must be remade.
func (v *View) hasPending() bool {
	return v.dirty || v.version == 0 || len(v.stale.ids) > 0 || v.total() != len(v.rows) ||
		len(v.retries) > 0 && v.retries[0].at <= jobs.StampOf(v.now())
}

// update remakes the rows of the jobs that have changed, which makes a new version.
func (v *View) update(now time.Time) {
	if len(v.rows) > v.total() { // specifications that were shown are gone
		v.restart(v.table, &pollResult{events: v.events})
	}
	v.markDueRetries(jobs.StampOf(v.now()))
	if n := v.total() - len(v.rows); n > 0 {
		v.rows = slices.Grow(v.rows, n)
	}
	for len(v.rows) < v.total() || len(v.stale.ids) > 0 {
		for _, id := range v.stale.take() {
			if int(id) <= v.total() {
				v.remakeRow(id)
			}
		}
		for len(v.rows) < v.total() {
			v.remakeRow(jobs.ID(len(v.rows) + 1))
		}
	}
	v.version, v.dirty, v.madeAt = v.version+1, false, now
}

// total returns the number of jobs that are shown.
func (v *View) total() int { return max(v.table.NumJobs(), min(v.stored, v.table.NumSpecs())) }

// job returns a job, or nil if there is none. A job that is stored but not accepted yet is queued.
// mu is held.
func (v *View) job(id jobs.ID) *jobs.Job {
	if j := v.table.Job(id); j != nil || id < 1 || int(id) > v.total() {
		return j
	}
	s := v.table.Spec(id)
	return &jobs.Job{Spec: s, Round: 1, Priority: int32(s.Priority)}
}

func (v *View) remakeRow(id jobs.ID) {
	j := v.reader.Job(v.table, id)
	if j == nil {
		j = v.job(id)
	}
	c := v.change(id, j)
	v.setRow(&c)
}

// markDueRetries marks the jobs as stale whose wait for the next try is over.
func (v *View) markDueRetries(now jobs.Stamp) {
	v.retriedAt = now
	for len(v.retries) > 0 && v.retries[0].at <= now {
		r := v.retries.Pop()
		if x := &v.rows[r.id-1]; x.phase == Retry && x.when == r.at {
			v.stale.add(jobs.ID(r.id))
		}
	}
}

// snapshot returns the snapshot that q describes. mu is held.
func (v *View) snapshot(ask *Query) *Snapshot {
	p := &Snapshot{Version: v.version}
	v.fill(p)
	if w := ask.Jobs; w != nil {
		x := v.order(keyOf(w))
		first, n := placeWindow(len(x.ids), slices.Index(x.ids, uint32(w.Cursor)), w)
		p.Jobs = &Page{Filter: w.Filter, Wrong: x.wrong, Sort: w.Sort, Reverse: w.Reverse, Matched: len(x.ids),
			First: first, Cursor: w.Cursor, Rows: make([]Row, 0, n)}
		for _, id := range x.ids[first : first+n] {
			p.Jobs.Rows = append(p.Jobs.Rows, v.row(jobs.ID(id)))
		}
		v.placeRows(p.Jobs.Rows)
		if x.edition != v.edition {
			p.Jobs.Settled = time.Since(x.madeAt)
		}
	}
	v.focus = ask.Focus
	if v.focus != 0 {
		p.Detail = v.detail(v.focus)
	}
	if ask.Host != "" {
		p.Host = v.hostDetail(ask.Host)
	}
	if ask.Groups {
		for _, g := range v.groups.top(&v.list) {
			if g.rows == nil {
				for _, id := range g.newest {
					g.rows = append(g.rows, v.row(jobs.ID(id)))
				}
			}
			p.Groups = append(p.Groups, g.view(v.names.Values))
		}
	}
	if ask.Table != nil {
		p.Table = v.tableOf(ask.Table)
	}
	if ask.Events != nil {
		p.Events = v.events.window(ask.Events)
	}
	return p
}

// explain asks the dispatcher for the reason of the state of the job in focus.
func (v *View) explain(ctx context.Context, p *Snapshot) {
	if p.Detail == nil || p.Detail.Row.Phase.Terminal() || p.Status != StatusRunning {
		return
	}
	conn := v.connection()
	if conn == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if why, err := conn.Why(ctx, p.Detail.Row.ID); err == nil {
		p.Detail.Why = why
	}
}

// Match implements Source.
func (v *View) Match(ctx context.Context, text string) (jobs.Ranges, error) {
	if err := v.Ready(ctx); err != nil {
		return nil, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.update(time.Now())
	f, err := parseFilter(text, v.known)
	if err != nil {
		return nil, &Refused{Why: err.Error()}
	}
	which := jobs.Ranges{}
	for _, id := range v.matching(f) {
		which.Add(jobs.ID(id))
	}
	return which, nil
}

// Cost returns the cost of ending these jobs.
func (v *View) Cost(ctx context.Context, which jobs.Ranges) (Cost, error) {
	if err := v.Ready(ctx); err != nil {
		return Cost{}, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.update(time.Now())
	var w Cost
	now := jobs.StampOf(v.now())
	for _, x := range which {
		for id := max(1, x.First); id <= x.Last && int(id) <= len(v.rows); id++ {
			switch r := &v.rows[id-1]; {
			case r.phase.Terminal():
				w.Over++
			case r.phase == Sent:
				w.Sent++
			case isRunningPhase(r.phase):
				w.Running++
				if r.when > 0 {
					w.Lost += max(0, now.Sub(r.when)) * time.Duration(max(1, v.options.Values[r.options].Slots))
				}
			default:
				w.Queued++
			}
		}
	}
	return w, nil
}

// row returns the whole row of a job.
func (v *View) row(id jobs.ID) Row {
	j := v.job(id)
	p, a := v.phase(id, j)
	r := Row{
		ID: id, Phase: p, Title: j.Spec.Title(), Params: j.Spec.Params(), Priority: int(j.Priority), Place: -1,
		Failures: int(j.Failures), Tries: v.triesOf(j), Round: int(j.Round), Attempt: len(j.Attempts),
		Copies: Copies(j), Progress: -1,
	}
	if j.Spec.Options != nil {
		r.Queue = j.Spec.Queue
	}
	r.Straggler = v.isStraggler(id, p)
	if p == Retry {
		r.Retry = j.Retry.Time()
	}
	if a != nil {
		r.Host, r.Slot = a.Host, int(a.Slot)
		r.Started = v.startOf(a).Time()
		if o := a.Outcome; o != nil {
			r.Started, r.Ended, r.Suspended = o.Started.Time(), o.Ended.Time(), o.Suspended
			r.CPU, r.MaxRSS = o.CPU, o.MaxRSSBytes
		}
	}
	f, _ := failureOf(p, j, a)
	r.Cause, r.Last = f.Cause, f.LastLine
	if isRunningPhase(p) && int(id) <= len(v.rows) && v.rows[id-1].progress != noProgress {
		r.Progress = float64(v.rows[id-1].progress) / 10_000 // the last one that is known
	}
	if v.state != nil && p <= Away {
		if text, ok := v.state.Progress[jobs.AttemptID{Job: id, N: r.Attempt}.String()]; ok {
			r.Progress, r.Said = jobs.ReadProgress(text)
		}
	}
	return r
}

// failureOf explains why a job or its last try failed. a is the attempt of the job's phase. counted
// reports whether the failure is counted among the failures by cause.
func failureOf(p Phase, j *jobs.Job, a *jobs.Attempt) (f results.Failure, counted bool) {
	state, reason := j.State, j.Reason
	counted = isFailedPhase(p)
	switch {
	case p == Succeeded, !p.Terminal() && p != Retry && j.Failures == 0:
		return f, false
	case !p.Terminal():
		a = lastTry(j)
		if a == nil {
			return results.Failure{Cause: reason}, false
		}
		state, reason = jobs.Failed, cmp.Or(a.Reason, reason)
		counted = j.Failures > 0 && a.Outcome != nil && !a.Outcome.OK()
	}
	return results.FailureOf(state, reason, a), counted
}

func (v *View) detail(id jobs.ID) *Detail {
	j := v.job(id)
	if j == nil {
		return nil
	}
	spec := *j.Spec
	spec.Options = cmp.Or(spec.Options, jobs.NoOptions)
	d := &Detail{Row: v.row(id), Spec: &spec, Estimate: spec.Estimate, Why: v.why(id, j)}
	if d.Estimate == 0 && v.state != nil {
		for _, q := range v.state.Queues {
			if q.Name == d.Row.Queue {
				d.Estimate = q.Mean + 2*q.Deviation
			}
		}
	}
	for _, a := range lastAttempts(j) {
		d.Attempts = append(d.Attempts, v.attempt(a))
	}
	return d
}

func (v *View) attempt(a *jobs.Attempt) Attempt {
	x := Attempt{
		ID: a.ID, Host: a.Host, Slot: int(a.Slot), Round: int(a.Round), State: a.State.String(), Reason: a.Reason,
		Launched: a.Launched.Time(), Started: v.startOf(a).Time(), Charged: a.Charged,
	}
	if o := a.Outcome; o != nil {
		x.Started, x.Ended, x.Suspended = o.Started.Time(), o.Ended.Time(), o.Suspended
		x.CPU, x.MaxRSS, x.Last = o.CPU, o.MaxRSSBytes, o.LastLine
		x.Result = results.Cause(jobs.Failed, "", o)
	}
	if a.Outcome != nil || a.Started != 0 {
		x.Far = v.farDir(a)
	}
	return x
}

// why returns why a job is not running, or what it is doing, as far as the table shows it.
func (v *View) why(id jobs.ID, j *jobs.Job) string {
	_, a := v.phase(id, j)
	what, unknown, next := "waits", "", "continues it"
	switch {
	case j.State == jobs.Running && a != nil:
		what, unknown, next = "was sent to "+a.Host, ", so what has become of it is not known", "asks the host"
		if a.State == jobs.AttemptRunning {
			what = "was started on " + a.Host
		}
	case j.State != jobs.Queued:
		return fmt.Sprintf("Job %d %s%s.%s", id, j.State.Clause(), whyEnded(j), v.requestText(id))
	}
	if !v.facts.dispatched {
		_, end := v.end()
		return fmt.Sprintf("Job %d %s; nobody dispatches the run%s: %s. dcs-tui resume %s.%s", id, what, unknown, end,
			next, v.requestText(id))
	}
	if s := v.state; s != nil && s.NextSlot != nil && j.State == jobs.Queued {
		what += "; " + s.NextSlot.Text()
	}
	if v.facts.liveness == journal.Alive {
		return fmt.Sprintf("Job %d %s; the run's dispatcher knows more.", id, what)
	}
	return fmt.Sprintf("Job %d %s; the run's dispatcher on %s knows more: run dcs-tui why there.", id, what,
		v.facts.owner.Host)
}

// requestText names the actions for a job that wait for the next dispatcher, in a sentence; "": none does.
func (v *View) requestText(id jobs.ID) string {
	var asked []string
	for _, q := range v.facts.waiting {
		if (q.All || q.Jobs.Has(id)) && !slices.Contains(asked, string(q.Do)) {
			asked = append(asked, string(q.Do))
		}
	}
	return text.If(asked != nil,
		" What was requested for it waits for the next dcs-tui resume: "+strings.Join(asked, ", ")+".")
}

// whyEnded continues the sentence that a finished job has failed, was canceled, and so on. The
// dispatcher uses the same words.
func whyEnded(j *jobs.Job) string {
	if j.State == jobs.Succeeded {
		return ""
	}
	counted := j.CountedAttempt()
	f, _ := failureOf(Canceled, j, counted)
	cause, host := f.Cause, ""
	if counted != nil && (j.State == jobs.Failed || j.State == jobs.TimedOut) {
		switch o := counted.Outcome; {
		case o == nil || o.OK() || o.Error != "": // the cause has the reason
		case j.Reason != "":
			cause += ": " + j.Reason
		default:
			cause += ExitMeaning(o)
		}
		if j.Reason == "" {
			host = " on " + counted.Host
		}
	}
	if strings.HasSuffix(j.State.Clause(), cause) { // such as "timed out"
		return host
	}
	return ": " + cause + host
}
