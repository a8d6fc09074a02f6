package dispatch

import (
	"dcs-tui/dispatch/sched"
	"dcs-tui/jobs"
)

// SubmitRequested submits the jobs of a request and then answers it. Each job is stored with the
// name of the request, so that a later dispatcher recognizes it. The numbers in After count from
// the first of the jobs. After an error the call may be repeated.
func (d *Dispatcher) SubmitRequested(r sched.Request, specs []*jobs.Spec) error {
	d.submit.Lock()
	defer d.submit.Unlock()
	base := jobs.ID(d.submitted)
	done := map[*jobs.Options]*jobs.Options{}
	stored := make([]*jobs.Spec, len(specs))
	for i, s := range specs {
		o := done[s.Options]
		if o == nil {
			own := *s.Options
			own.Request = r.Name
			o = &own
			done[s.Options] = o
		}
		own := *s
		own.ID, own.Options = base+jobs.ID(i+1), o
		own.ShiftAfter(base)
		stored[i] = &own
	}
	if err := d.cfg.StoreSpecs(stored); err != nil {
		return err
	}
	if r.First == 0 {
		r.First = base + 1
	}
	r.Count += len(stored)
	if !d.send(input{ev: sched.Submit{Specs: stored}}) {
		return errEnded
	}
	d.submitted += len(stored)
	d.send(input{ev: r})
	return nil
}
