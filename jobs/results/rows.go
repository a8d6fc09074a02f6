package results

import (
	"cmp"
	"slices"

	"dcs-tui/jobs"
)

// Rows are results of jobs. Those of a run are made from its table one at a time, so that the
// results of a million jobs take no memory. Rows is not safe for concurrent use.
type Rows struct {
	list, more []Result // of RowsOf: more follows list

	// Otherwise ids holds the jobs, and the table is not nil.
	info   *RunInfo
	table  *jobs.Table
	ids    []jobs.ID
	amend  func(*jobs.Job, *Result)
	reader jobs.RowReader
	at     int  // 1 + index of the result in current; 0: none
	whole  bool // current has all fields
	// The result that was made last.
	current Result
}

// RowsOf returns the results of a list.
func RowsOf(list []Result) *Rows { return &Rows{list: list} }

// RowsOfBoth returns the results of two lists, one after the other, without copying them.
func RowsOfBoth(list, more []Result) *Rows { return &Rows{list: list, more: more} }

// listed returns a result of RowsOf.
func (r *Rows) listed(i int) *Result {
	if i < len(r.list) {
		return &r.list[i]
	}
	return &r.more[i-len(r.list)]
}

// Rows returns the results of the jobs in states that keep accepts, in the order of the jobs; nil:
// of all jobs. An unfinished job has a result without an outcome. The table must not change
// meanwhile.
func (p *RunInfo) Rows(t *jobs.Table, keep func(jobs.JobState) bool) *Rows {
	r := &Rows{info: p, table: t}
	for i := range t.NumJobs() {
		if id := jobs.ID(i + 1); keep == nil || keep(t.State(id)) {
			r.ids = append(r.ids, id)
		}
	}
	return r
}

// Amend makes the rows call f for each result of an unfinished job, which f may change.
func (r *Rows) Amend(f func(*jobs.Job, *Result)) { r.amend = f }

// Len returns the number of results.
func (r *Rows) Len() int {
	if r.table == nil {
		return len(r.list) + len(r.more)
	}
	return len(r.ids)
}

// Job returns the number of the job of a result.
func (r *Rows) Job(i int) jobs.ID {
	if r.table == nil {
		return r.listed(i).Job
	}
	return r.ids[i]
}

// State returns the state of the job of a result.
func (r *Rows) State(i int) jobs.JobState {
	if r.table == nil {
		return r.listed(i).State
	}
	return r.table.State(r.ids[i])
}

// Result returns a result. It is valid until the next call.
func (r *Rows) Result(i int) *Result { return r.result(i, true) }

// Facts returns a result that may lack its UID and its paths, which are expensive. It is valid until
// the next call.
func (r *Rows) Facts(i int) *Result { return r.result(i, false) }

func (r *Rows) result(i int, whole bool) *Result {
	if r.table == nil {
		return r.listed(i)
	}
	if r.at == i+1 && (r.whole || !whole) {
		return &r.current
	}
	j := r.reader.Job(r.table, r.ids[i])
	switch {
	case !j.State.Terminal():
		r.current = r.info.UnfinishedResult(j)
		if r.amend != nil {
			r.amend(j, &r.current)
		}
	case whole:
		r.current = r.info.Result(j)
	default:
		r.current, _ = r.info.facts(j)
	}
	r.at, r.whole = i+1, whole
	return &r.current
}

// Slice returns the results from to end-1. They stay valid.
func (r *Rows) Slice(from, end int) []Result {
	if r.table == nil && end <= len(r.list) {
		return r.list[from:end]
	}
	list := make([]Result, 0, end-from)
	for i := from; i < end; i++ {
		res := *r.Result(i)
		res.Params = slices.Clone(res.Params)
		if o := res.Outcome; o != nil {
			res.Outcome = new(*o)
		}
		list = append(list, res)
	}
	return list
}

// All returns all results. They stay valid.
func (r *Rows) All() []Result { return r.Slice(0, r.Len()) }

// SortBySeq sorts the results of a run by the order in which they were determined.
func (r *Rows) SortBySeq() {
	type place struct {
		seq int64
		id  jobs.ID
	}
	order := make([]place, len(r.ids))
	for i, id := range r.ids {
		order[i] = place{r.table.SeqOf(id), id}
	}
	slices.SortStableFunc(order, func(a, b place) int { return cmp.Compare(a.seq, b.seq) })
	for i, p := range order {
		r.ids[i] = p.id
	}
	r.at = 0
}
