package ask

import (
	"fmt"
	"slices"

	"dcs-tui/jobs"
)

// Trace is what has become of a request, as far as records of the journal have been shown
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

// See takes in a record. All that follow the request must be shown, of any job.
func (t *Trace) See(r *jobs.Record) {
	ended := r.Seq != 0 && r.Kind != jobs.KindAcked
	if ended && t.Ending[r.Job] {
		delete(t.Ending, r.Job)
		if r.Next != jobs.Cancelled {
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
	case r.Kind == jobs.KindCancelling:
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
