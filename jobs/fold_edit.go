package jobs

import "fmt"

// edit gives a job another specification. What ran by the old one must be over; it
// counts for nothing any more, should an attempt that was given up as lost come back. A
// job that has a result keeps that as its earlier round's, with the specification that
// it had, and begins a new round. All in one record, so that a torn tail leaves neither
// a result under a command that did not give it nor a new round without the change.
func (t *Table) edit(j *Job, r *Record) error {
	switch {
	case r.Spec == nil || r.Spec.Options == nil || r.Spec.ID != r.Job:
		return fmt.Errorf("job %d is edited without a specification of its own", r.Job)
	case j.State == Running:
		return fmt.Errorf("job %d is %s and cannot be edited", r.Job, j.State)
	}
	for _, a := range j.Attempts {
		if a.State.Open() {
			return fmt.Errorf("job %d cannot be edited: its attempt %s may be alive", r.Job, a.ID)
		}
	}
	if j.State.Terminal() || t.Damaged && r.Count > int(j.Round) {
		t.nextRound(j, r.Reason)
	} else {
		for _, a := range j.Attempts {
			if a.Round == j.Round {
				a.Round = 0
			}
		}
		j.Failures, j.Retry, j.Reason = 0, 0, r.Reason
	}
	t.setSpec(j, r.Spec)
	return nil
}
