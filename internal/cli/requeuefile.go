package cli

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"dcs-tui/dispatch"
	"dcs-tui/internal/cli/console"
	"dcs-tui/internal/cli/exit"
	"dcs-tui/internal/cli/standing"
	"dcs-tui/jobs"
	"dcs-tui/jobs/journal"
	"dcs-tui/jobs/rundir"
)

// requeueFiles brings a run up to date with its jobs files, which were changed since:
// what succeeded stays, what failed runs again, what is new is added.
func (a *app) requeueFiles(args, files []string, opt askOptions) error {
	run, err := a.openRun(args)
	if err != nil {
		return err
	}
	table, err := settledTable(run)
	if err != nil {
		return err
	}
	b, err := a.readBatch(likeRun(run), files, false)
	if err != nil {
		return err
	}
	relative := cwdResolver{cwd: run.Asked.Cwd}
	for _, s := range b.specs {
		relative.resolve(s)
	}
	m := matchJobs(table, b.specs)
	if err := m.loosen(table, b.specs); err != nil {
		return err
	}
	m.intoQueues(table)
	a.con.Line(m.plan(table, files)...)
	a.tellColumns(run, b.columns)
	if len(m.rounds(table))+len(m.fresh)+len(m.queued)+len(m.changes)+len(m.ranked) == 0 {
		a.con.Line("nothing to do")
		return a.tellRematched(run, m, table, nil, opt)
	}
	if err := a.agree(opt.yes, "requeue", m.intent(table)+" in "+console.CleanLine(run.Name())); err != nil {
		return err
	}
	if err := stillSettled(run, table); err != nil { // to read files and to answer takes time
		return err
	}
	s, err := a.askRematch(run, m)
	if err != nil {
		return err
	}
	return a.tellRematched(run, m, table, s, opt)
}

// settledTable is what a run has, when none of its jobs are on their way: those would be
// compared as missing, and added once more.
func settledTable(run *rundir.Run) (*jobs.Table, error) {
	names, _, err := run.RequestNames()
	if err != nil {
		return nil, exit.Usagef("%w", err)
	}
	table, err := standing.WholeTable(run)
	if err != nil {
		return nil, err
	}
	owner, err := journal.ReadOwner(run)
	alive := err == nil && owner != nil && owner.Life() != journal.Dead
	// One that was taken in is only waiting to be removed.
	names = slices.DeleteFunc(names, func(name string) bool { return table.Requests[name] })
	if len(names) > 0 {
		p := exit.Usagef("%s of the run %s not been carried out yet", jobs.Plural(len(names), "request"), jobs.Verb(len(names), "has", "have"))
		if alive {
			return nil, p.WithAdvice("its dispatcher does in a moment; then compare again")
		}
		return nil, p.WithAdvice("dcs-tui resume %s does; then compare again", console.ShellWord(standing.Ref(run)))
	}
	had, err := standing.ReadInput(run)
	if err != nil {
		return nil, exit.Usagef("%w", err)
	}
	storing := false
	if want, ok := run.Asked.Options[optionJobs].(int64); ok {
		storing = alive && len(table.Jobs) < int(want)
	}
	reading := alive && owner.Epoch <= 1 // of a pipe later dispatchers read no more
	if storing || had.State == standing.InputOpen && (had.Again || reading) {
		p := exit.Usagef("not all jobs of the run were made yet: %s", standing.Came(table))
		if alive {
			return nil, p.WithAdvice("compare again when they were")
		}
		return nil, p.WithAdvice("dcs-tui resume %s makes the rest; then compare again", console.ShellWord(standing.Ref(run)))
	}
	return table, nil
}

// stillSettled says that nobody has added jobs since they were compared, nor is about to.
func stillSettled(run *rundir.Run, compared *jobs.Table) error {
	now, err := settledTable(run)
	if err != nil {
		return err
	}
	if n := len(now.Jobs) - len(compared.Jobs); n != 0 {
		return exit.Usagef("nothing was done: %s %s added to the run meanwhile", jobs.Plural(n, "job"), were(n)).WithAdvice("compare again")
	}
	return nil
}

// loosen brings the numbers in after of new jobs to those of the new ones alone. What
// comes after a job that has succeeded waits for it no more.
func (m *rematch) loosen(t *jobs.Table, specs []*jobs.Spec) error {
	number := map[jobs.ID]jobs.ID{} // in the file, among the new ones
	for i, s := range m.fresh {
		number[s.ID] = jobs.ID(i + 1)
	}
	succeeded := map[jobs.ID]bool{}
	have := map[string]int{}
	ids := map[string][]jobs.ID{}
	for i := range t.Jobs {
		ids[matchKey(t.Jobs[i].Spec)] = append(ids[matchKey(t.Jobs[i].Spec)], jobs.ID(i+1))
	}
	for _, s := range specs {
		key := matchKey(s)
		if n := have[key]; n < len(ids[key]) {
			succeeded[s.ID] = t.Job(ids[key][n]).State == jobs.Succeeded
			have[key]++
		}
	}
	for i, s := range m.fresh {
		if len(s.After) == 0 {
			continue
		}
		own := *s.Options
		own.After = nil
		for _, dep := range s.After {
			switch {
			case number[dep] > 0:
				own.After = append(own.After, number[dep])
			case !succeeded[dep]:
				return exit.Usagef("%s:%d: this job is new and comes after job %d of the file, which the run has and which has not succeeded", s.File, s.Line, dep).
					WithAdvice("run that again first, then compare again")
			}
		}
		loose := *s
		loose.Options = &own
		m.fresh[i] = &loose
	}
	return nil
}

// intoQueues puts new jobs into the queue of the others of their file.
func (m *rematch) intoQueues(t *jobs.Table) {
	queue := map[string]string{}
	for i := range t.Jobs {
		s := t.Jobs[i].Spec
		if _, ok := queue[s.File]; !ok {
			queue[s.File] = s.Queue
		}
	}
	changeOptions(m.fresh, func(o *jobs.Options) {
		if o.Queue == "" {
			o.Queue = queue[o.File]
		}
	})
}

// requests are what has to be asked for, in this order: nothing that is gone starts
// meanwhile. What has become of a job since it was compared counts: one that has succeeded
// is not run again, and one that is gone and runs is left as it is.
func (m *rematch) requests() []*rundir.Request {
	var asks []*rundir.Request
	if len(m.queued) > 0 {
		asks = append(asks, &rundir.Request{Do: rundir.DoCancel, Jobs: jobs.RangesOf(m.queued), Spare: rundir.SpareStarted, Why: "not in the jobs file any more"})
	}
	for _, c := range m.changes {
		asks = append(asks, &rundir.Request{Do: rundir.DoEdit, Jobs: jobs.RangesOf(c.ids), Spare: rundir.SpareSucceeded, Edit: &c.Change})
	}
	if len(m.again) > 0 {
		asks = append(asks, &rundir.Request{Do: rundir.DoRequeue, Jobs: jobs.RangesOf(m.again), Spare: rundir.SpareSucceeded})
	}
	for _, p := range slices.Sorted(maps.Keys(m.ranked)) { // of what is over it would not matter before
		asks = append(asks, &rundir.Request{Do: rundir.DoPriority, Jobs: jobs.RangesOf(m.ranked[p]), Priority: p})
	}
	return asks
}

// askRematch leaves the requests.
func (a *app) askRematch(run *rundir.Run, m *rematch) (*submission, error) {
	all := &submission{run: run}
	asks := m.requests()
	for i, q := range asks {
		q.By, q.At = dispatch.Asker(), time.Now()
		e, err := leave(run, q)
		if err != nil {
			if i > 0 {
				a.warn("%d of %d requests were left for the dispatcher before that", i, len(asks))
			}
			return nil, err
		}
		all.parts = append(all.parts, e)
	}
	if len(m.fresh) > 0 {
		s, err := a.submitTo(run, m.fresh)
		if err != nil {
			return nil, err
		}
		all.parts, all.waits = append(all.parts, s.parts...), s.waits
		if all.waits {
			return all, nil
		}
	}
	owner, err := journal.ReadOwner(run)
	if err != nil {
		return nil, exit.Usagef("%w", err)
	}
	for _, e := range all.parts {
		gone := owner == nil || owner.Life() == journal.Dead
		if gone {
			e.read()
		} else if !e.over() {
			gone = e.await(owner)
		}
		switch {
		case e.refused != "":
			return nil, exit.Usagef("%s", console.CleanLine(e.refused))
		case e.taken:
			continue
		case !gone:
			a.unanswered(e, owner)
		}
		all.waits = true
		return all, nil // the rest waits as well
	}
	for i, q := range asks {
		if q.Do != rundir.DoPriority { // those are counted with what else becomes of them
			m.left += all.parts[i].left
		}
	}
	return all, nil
}

// rematchedJSON is what requeue --file --json prints.
type rematchedJSON struct {
	V         int    `json:"v"`
	Run       string `json:"run"`
	UID       string `json:"uid"`
	Do        string `json:"do"`
	Answered  bool   `json:"answered"`
	Succeeded int    `json:"succeeded"` // not run again
	Again     int    `json:"again"`
	Open      int    `json:"open"`
	New       int    `json:"new"`
	Gone      int    `json:"gone"`
	Cancelled int    `json:"cancelled"` // of those
	Changed   int    `json:"changed"`
	Left      int    `json:"left_alone"` // of again, changed and cancelled: something else had become of them
}

func (a *app) tellRematched(run *rundir.Run, m *rematch, t *jobs.Table, s *submission, opt askOptions) error {
	if opt.json {
		j := &rematchedJSON{V: 1, Run: run.Name(), UID: run.UID(), Do: rundir.DoRequeue, Answered: s == nil || !s.waits, Succeeded: m.succeeded,
			Again: len(m.rounds(t)), Open: m.open, New: len(m.fresh), Gone: len(m.gone), Cancelled: len(m.queued), Left: m.left}
		changed := map[jobs.ID]bool{}
		for _, c := range m.changes {
			for _, id := range c.ids {
				changed[id] = true
			}
		}
		for _, ids := range m.ranked {
			for _, id := range ids {
				changed[id] = true
			}
		}
		j.Changed = len(changed)
		return a.printJSON(j)
	}
	switch {
	case s == nil:
	case s.waits && a.code != 0: // was said
	case s.waits:
		a.con.Line("nobody dispatches the run: it waits for", "  dcs-tui resume "+console.ShellWord(console.CleanLine(standing.Ref(run))))
	default:
		text := "done: " + m.intent(t)
		if m.left > 0 {
			text += fmt.Sprintf("; %s %s left alone: changed since the comparison", jobs.Plural(m.left, "job"), were(m.left))
		}
		a.con.Line(text)
	}
	return nil
}
