package run

import (
	"context"
	"fmt"
	"io"
	"math"
	"sync"
	"time"

	"dcs-tui/dispatch"
	"dcs-tui/grid/search"
	"dcs-tui/internal/text"
	"dcs-tui/jobs"
	"dcs-tui/jobs/journal"
	"dcs-tui/jobs/metrics"
	"dcs-tui/jobs/query"
	"dcs-tui/jobs/results"
	"dcs-tui/jobs/rundir"
)

// Search proposes the jobs of a run based on earlier results, or ends jobs with poor values, or
// both.
type Search struct {
	Proposer    search.Proposer // nil: the jobs have another source
	Trials      int
	Best        results.Order
	Trial       func(at []float64) *jobs.Spec // makes a job
	Coordinates func(params []jobs.Param) (at []float64, ok bool)
	Rungs       *search.Rungs // nil: no job is ended early
}

// searcher is the search of a run. Its trials are the jobs that it has submitted itself, in order.
// It stores nothing, because its state follows from the jobs and their results.
type searcher struct {
	*Search
	r      *Run
	reader *metrics.Reader
	names  []string // names of the metrics
	unit   *string  // of the objective in the first result; nil: there is none yet
	cwd    string   // working directory of the jobs
	// Jobs to end, with the step that decided this; used only by the caller of HandleReport.
	toEnd      map[jobs.ID]float64
	toldReport map[jobs.ID]bool // jobs whose unusable report was reported; used like toEnd

	// The fields below are owned by the feeder.
	trials  []search.Trial
	trialOf map[jobs.ID]int // index into trials, by job

	mu             sync.Mutex
	pendingResults []results.Result // results that handleResults has not handled
	wake           chan struct{}    // holds a signal if there are such results
}

// newSearcher returns the search of a run, with the trials of earlier dispatchers. The table does
// not belong to the dispatcher yet.
func newSearcher(r *Run, o *Owned, s *Search) *searcher {
	w := &searcher{Search: s, r: r, trialOf: map[jobs.ID]int{}, toEnd: map[jobs.ID]float64{},
		toldReport: map[jobs.ID]bool{}, wake: make(chan struct{}, 1)}
	if s.Rungs != nil && o.Table.NumJobs() > 0 {
		w.refill(o)
	}
	if s.Proposer == nil {
		return w
	}
	for spec := range o.AllSpecs() {
		w.add(spec)
	}
	w.pendingResults = metrics.Locations(o.Run).Rows(o.Table, jobs.JobState.Terminal).All()
	columns, _ := metrics.Declared(o.Run.Settings)
	for _, c := range columns {
		w.names = append(w.names, c.Name)
	}
	w.reader = metrics.NewReader(o.Run, columns)
	return w
}

// add appends a trial.
func (s *searcher) add(spec *jobs.Spec) {
	t := search.Trial{State: search.Failed}
	if spec == nil { // lost by damage
		s.trials = append(s.trials, t)
		return
	}
	if spec.Options != nil {
		s.cwd = spec.Cwd
		if spec.Request != "" {
			return
		}
	}
	if at, ok := s.Coordinates(spec.Params()); ok {
		t = search.Trial{At: at}
	}
	s.trialOf[spec.ID] = len(s.trials)
	s.trials = append(s.trials, t)
}

// HandleResults handles durable results. It does not block.
func (s *searcher) HandleResults(list []*dispatch.Result) {
	if s.Proposer == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, res := range list {
		s.pendingResults = append(s.pendingResults, *res)
	}
	dispatch.Signal(s.wake)
}

// refill gives the rungs the values that earlier dispatchers have recorded.
func (s *searcher) refill(o *Owned) {
	_, err := journal.Follow(o.Run).Packed().Poll(journal.Limit{End: true}, func(_ int, r *jobs.Record) {
		j := o.Table.Job(r.Job)
		if r.Kind != jobs.KindEvent || j == nil {
			return
		}
		v, ok := r.Reported()
		if !ok {
			return
		}
		line := search.Report(v)
		if _, poor := s.Rungs.Add(int(r.Job), line); poor && !j.State.Terminal() {
			s.toEnd[r.Job] = line.Step
		}
	})
	if err != nil {
		s.r.printWarning("the values that jobs have reported could not be read: " + err.Error())
	}
}

// HandleReport handles the last lines of a job's report and returns those to keep as events. It
// ends an unfinished job with poor values. One goroutine calls it, and it does not block.
func (s *searcher) HandleReport(job jobs.ID, over bool, report string) (keep []jobs.Reported) {
	if s.Rungs == nil {
		return nil
	}
	lines, wrong := search.ParseReports(report)
	if len(wrong) > 0 && !s.toldReport[job] {
		s.toldReport[job] = true
		s.r.printText(fmt.Sprintf("job %d appended %q to DCS_REPORT, which is not a step and a number, "+
			"such as 3 0.25: the line is ignored", job, text.ShortenTo(text.Line(wrong[0]), 60)))
	}
	for _, line := range lines {
		reached, poor := s.Rungs.Add(int(job), line)
		if reached {
			keep = append(keep, jobs.Reported(line))
		}
		if poor {
			s.toEnd[job] = line.Step
			break
		}
	}
	step, poor := s.toEnd[job]
	delete(s.toEnd, job)
	if poor && !over {
		go s.r.inbox.EndPoor(job, fmt.Sprintf("halving: poor at step %v", step))
	}
	return keep
}

// handleResults handles results: each gives a trial its value, or ends it without one.
func (s *searcher) handleResults(ctx context.Context) {
	s.mu.Lock()
	list := s.pendingResults
	s.pendingResults = nil
	s.mu.Unlock()
	if len(list) == 0 {
		return
	}
	found, err := s.reader.Read(ctx, results.RowsOf(list), func(int) string { return s.cwd })
	if err != nil {
		s.mu.Lock()
		s.pendingResults = append(list, s.pendingResults...)
		s.mu.Unlock()
		return
	}
	table := results.NewTable(results.TableInput{Jobs: list, Names: s.names, Metrics: found.Values})
	column, err := table.Column(s.Best.Column)
	for row := range table.Len() {
		i, ok := s.trialOf[table.Job(row)]
		if !ok {
			continue
		}
		t := &s.trials[i]
		t.State = search.Failed
		if err != nil || !table.Solved(row) {
			continue
		}
		v, unit := table.At(row, column), table.NumberUnit(column)
		if n, other := results.ParseMetric(v.Text); v.Kind == query.Text && n.Kind == query.Number {
			v.Kind, v.Number, unit = query.Number, n.Number, other // most of these results have another unit
		}
		finite := v.Kind == query.Number && !math.IsNaN(v.Number) && !math.IsInf(v.Number, 0)
		if finite && s.unit == nil {
			s.unit = &unit
		}
		if finite && *s.unit == unit {
			t.State, t.Value = search.Done, v.Number
			if s.Best.Desc {
				t.Value = -v.Number
			}
			continue
		}
		what := "no value of " + text.Line(s.Best.Column)
		switch {
		case finite:
			what = fmt.Sprintf("%s in another unit than the trials before (%q, not %q)", text.Line(s.Best.Column),
				unit, *s.unit)
		case v.Text != "":
			what = fmt.Sprintf("%s=%q, which is not a finite number", text.Line(s.Best.Column),
				text.ShortenTo(text.Line(v.Text), 60))
		}
		s.r.printText(fmt.Sprintf("job %d has %s: the search counts it as failed", table.Job(row), what))
	}
}

// feed submits trials until all are submitted, with about as many in flight as there are slots.
// It returns when the optimizer has all results.
func (s *searcher) feed(ctx context.Context) {
	r := s.r
	asking, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(r.inputCtx, cancel)()
	defer func() { s.Proposer.Close(s.trials) }()
	s.reader.Fetch = outputReader(r.d)
	every := time.NewTicker(demandInterval)
	defer every.Stop()
	var end error
	for end == nil {
		s.handleResults(ctx)
		var specs []*jobs.Spec
		specs, end = s.propose(asking)
		if r.inputCtx.Err() != nil {
			end = io.EOF // a canceled run misses no jobs
		}
		if ctx.Err() != nil || len(specs) > 0 && !r.submit(ctx, specs, false, nil) {
			return
		}
		for i, spec := range specs {
			s.trialOf[spec.ID] = len(s.trials) - len(specs) + i
		}
		if end == nil {
			select {
			case <-s.wake:
			case <-every.C: // the number of slots may have grown
			case <-asking.Done():
			}
		}
	}
	r.submitLast(ctx)
	if end == io.EOF && !r.inputUnread {
		r.storeInputMark(ctx, rundir.Input{State: rundir.InputDone, Again: r.input.Again})
	} else if end != io.EOF {
		r.inputUnread = true
		r.printText(text.ShortenTo(text.Line(end.Error()), 300) + "; no more trials are proposed; resume asks again")
		return
	}
	for s.numOpen() > 0 && ctx.Err() == nil {
		select {
		case <-s.wake:
			s.handleResults(ctx)
		case <-ctx.Done():
		}
	}
	last, cancel := context.WithTimeout(context.Background(), keepMetricsTimeout)
	defer cancel()
	s.handleResults(last)
}

// propose creates the trials for which there are slots, and appends them. It returns io.EOF if
// there are no more.
func (s *searcher) propose(ctx context.Context) (specs []*jobs.Spec, err error) {
	paths := jobs.AbsoluteCwd{Base: s.r.dir.Settings.Cwd}
	room := 1 - s.numOpen()
	if snap := s.r.d.Snapshot(); snap != nil {
		slots := 0
		for _, h := range snap.Hosts {
			slots += max(h.Running, int(h.Usable))
		}
		if most := s.r.opts.Policy.MaxSlots; most > 0 {
			slots = min(slots, most)
		}
		room += slots
	}
	for ; room > 0 && len(s.trials) < s.Trials && ctx.Err() == nil; room-- {
		at, err := s.Proposer.Propose(ctx, s.trials)
		if err != nil {
			return specs, err
		}
		spec := s.Trial(at)
		paths.Resolve(spec)
		at, _ = s.Coordinates(spec.Params()) // as the next dispatcher computes it
		s.trials = append(s.trials, search.Trial{At: at})
		specs = append(specs, spec)
	}
	if len(s.trials) >= s.Trials {
		return specs, io.EOF
	}
	return specs, nil
}

func (s *searcher) numOpen() (n int) {
	for i := range s.trials {
		if s.trials[i].State == search.Open {
			n++
		}
	}
	return n
}
