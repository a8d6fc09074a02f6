package runview

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"dcs-tui/dispatch"
	"dcs-tui/dispatch/sched"
	"dcs-tui/jobs"
)

// Do asks for an action and returns when it is carried out, or refused.
func (b *Board) Do(ctx context.Context, a Action) (*Answer, error) {
	l, ok := b.from.(*liveSource)
	switch {
	case !ok && b.opt.Act == nil:
		return nil, refuse("nobody dispatches the run: it can only be looked at")
	case !ok:
		return b.opt.Act(ctx, a)
	case isClosed(l.ended()):
		return nil, ErrGone
	}
	switch a.Do {
	case Cancel, Requeue, Priority, Edit:
		return doJobs(ctx, l, a)
	case Pause, Continue:
		return pause(ctx, l, a)
	case DrainHost, StopHost, UseHost, Slots:
		return doHost(ctx, l, a)
	case DrainRun, StopRun, CancelRun, Reply:
		if b.opt.Act == nil {
			return nil, refuse("%s is not possible here", a.Do)
		}
		return b.opt.Act(ctx, a)
	case Resume:
		return nil, refuse("the run is dispatched: there is nothing to resume")
	}
	return nil, refuse("there is no action %q", string(a.Do))
}

func refuse(format string, args ...any) error {
	return &Refused{Why: fmt.Sprintf(format, args...)}
}

// doJobs carries out what is asked for jobs, all of it in one request of the core.
func doJobs(ctx context.Context, l *liveSource, a Action) (*Answer, error) {
	if !sound(a.Jobs) {
		return nil, errRanges
	}
	var total int
	if err := l.visit(ctx, func(k *desk) { total = len(k.table.Jobs) }); err != nil {
		return nil, err
	}
	ids := a.Jobs.IDs(jobs.ID(total))
	if len(ids) == 0 {
		return nil, refuse("the run has no such job")
	}
	v, err := verbOf(a, ids)
	if err != nil {
		return nil, err
	}
	events := []sched.Event{v.event}
	if a.Do == Priority && a.Relative {
		events = nil
		if err := l.visit(ctx, func(k *desk) {
			for _, id := range ids {
				events = append(events, sched.SetPriority{Jobs: []jobs.ID{id}, Priority: int(k.table.Job(id).Priority) + a.Number})
			}
		}); err != nil {
			return nil, err
		}
	}
	text := asker() + " asked: " + fmt.Sprintf(v.asked, jobsText(a.Jobs, ids))
	if a.Why != "" {
		text += " (" + a.Why + ")"
	}
	var is dispatch.Asked
	if a.Do == Cancel && a.Waiting {
		v.none = "nothing was cancelled: what waited has started or ended meanwhile"
		is, err = l.d.CancelWaiting(ctx, text, by(a.Why), ids)
	} else {
		is, err = l.d.Ask(ctx, text, events...)
	}
	if err != nil {
		return nil, gone(ctx, err)
	}
	ans := &Answer{Done: is.Did, Left: is.Left + max(0, a.Jobs.Count()-len(ids))}
	switch {
	case ans.Done == 0:
		ans.Text = v.none
	case ans.Left == 0:
		ans.Text = fmt.Sprintf(v.did, jobs.Plural(ans.Done, "job"))
	default:
		ans.Text = fmt.Sprintf(v.did, jobs.Plural(ans.Done, "job")) + fmt.Sprintf("; %d left alone", ans.Left)
	}
	if a.Do == Cancel {
		for _, id := range is.Ended {
			ans.Changed.Add(id)
		}
	}
	return ans, nil
}

// gone tells the end of the dispatcher from that of ctx.
func gone(ctx context.Context, err error) error {
	switch {
	case errors.Is(err, dispatch.ErrLeaving):
		return ErrLeaving
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return ErrGone
}

// verb is an action on jobs: what it gives the core, and the words for it.
type verb struct {
	event sched.Event
	asked string // with a place for the jobs
	did   string // with a place for their number
	none  string // nothing was done
}

func verbOf(a Action, ids []jobs.ID) (verb, error) {
	switch a.Do {
	case Cancel:
		return verb{sched.Cancel{Jobs: ids, Why: by(a.Why)}, "cancel %s", "%s cancelled", "nothing to cancel: it is over already"}, nil
	case Requeue:
		return verb{sched.Requeue{Jobs: ids}, "run %s again", "%s queued again", "nothing to run again: it is not over yet"}, nil
	case Priority:
		v := verb{sched.SetPriority{Jobs: ids, Priority: a.Number}, fmt.Sprintf("priority %d for %%s", a.Number),
			fmt.Sprintf("%%s with priority %d", a.Number), "the priority of what is over does not matter any more"}
		if a.Relative {
			v.asked = fmt.Sprintf("priority %+d for %%s", a.Number)
			v.did = fmt.Sprintf("priority %+d for %%s", a.Number)
		}
		return v, nil
	}
	if a.Edit == nil {
		return verb{}, refuse("nothing is to be changed")
	}
	c := changeOf(a.Edit)
	if c.Empty() {
		return verb{}, refuse("nothing is to be changed")
	}
	if err := c.Check(); err != nil {
		return verb{}, refuse("%v", err)
	}
	return verb{sched.Edit{Jobs: ids, Change: c}, "change %s", "%s changed", "not changed: a job that runs cannot be"}, nil
}

func changeOf(e *Change) jobs.Change {
	c := jobs.Change{Name: e.Name, Timeout: e.Timeout, MemBytes: e.MemBytes, Tries: e.Tries, Slots: e.Slots, GPUs: e.GPUs, Tags: e.Tags}
	if e.Command != "" {
		c.Command = &e.Command
	}
	return c
}

// asker names whoever asks on a screen: nobody but the user of the dispatcher can.
func asker() string { return dispatch.Asker() + " (screen)" }

// who is asker, and why he asks where that is known, for the event log.
func who(why string) string {
	if why == "" {
		return asker()
	}
	return asker() + ", " + why
}

// by says who or what an action comes from, for the jobs.
func by(why string) string {
	if why == "" {
		return "by a person"
	}
	return why
}

// jobsText names jobs: "job 17", "jobs 3-9", "120 jobs".
func jobsText(which jobs.Ranges, ids []jobs.ID) string {
	switch {
	case len(ids) == 1:
		return fmt.Sprintf("job %d", ids[0])
	case len(which) == 1:
		return fmt.Sprintf("jobs %d-%d", ids[0], ids[len(ids)-1])
	}
	return jobs.Plural(len(ids), "job")
}

// pause stops launching, or continues it. Continuing also ends a drain.
func pause(ctx context.Context, l *liveSource, a Action) (*Answer, error) {
	on := a.Do == Pause
	var paused, draining bool
	look := func(k *desk) {
		is := k.in.Status()
		paused, draining = is.Paused, is.Drain != ""
	}
	if err := l.visit(ctx, look); err != nil {
		return nil, err
	}
	text, why := "launching continues", "asked for by "+who(a.Why)
	if on {
		text = "launching is paused"
	}
	if paused == on && (on || !draining) {
		return &Answer{Text: text + " already"}, nil
	}
	var do []sched.Event
	notice := dispatch.Notice{}
	if paused != on {
		do = append(do, sched.Pause{On: on})
		notice.Text = text + ": " + why
	}
	if !on && draining {
		do = append(do, sched.EndDrain{Why: why})
		notice.Text = "" // the core reports it
	}
	if err := l.d.Order(ctx, notice, do...); err != nil {
		return nil, gone(ctx, err)
	}
	if on || !draining {
		return &Answer{Done: 1, Text: text}, nil
	}
	switch err := l.visit(ctx, look); {
	case err != nil:
		return nil, err
	case draining:
		return nil, refuse("the drain is over and the dispatcher is ending; resume the run to continue it")
	}
	return &Answer{Done: 1, Text: text}, nil
}

// doHost carries out what is asked for a host.
func doHost(ctx context.Context, l *liveSource, a Action) (*Answer, error) {
	var names []string
	running, slots, given := 0, 0, 0
	if err := l.visit(ctx, func(k *desk) {
		for _, h := range k.core.Hosts() {
			names = append(names, h.Name)
			if h.Name == a.Host {
				running, slots, given = h.Running, h.Slots, h.Given
			}
		}
	}); err != nil {
		return nil, err
	}
	if !slices.Contains(names, a.Host) {
		if near := jobs.Nearest(a.Host, names); near != "" {
			return nil, refuse("there is no host %s; did you mean %s?", a.Host, near)
		}
		return nil, refuse("there is no host %s", a.Host)
	}
	var ev sched.Event
	var text string
	switch a.Do {
	case DrainHost:
		ev, text = sched.DrainHost{Host: a.Host, On: true}, "finishes what runs there and starts nothing more"
	case StopHost:
		ev, text = sched.DrainHost{Host: a.Host, On: true, Now: true}, "is stopped: what ran there is ended and queued again"
	case UseHost:
		ev, text = sched.DrainHost{Host: a.Host}, "is used again"
	default:
		n := a.Number
		if a.Relative {
			n += slots
		}
		switch {
		case a.Relative && slots == 0 && given == 0:
			return nil, refuse("%s has not said yet how many slots it has", a.Host)
		case n < 1 && (a.Relative || n < 0):
			return nil, refuse("%s has at least 1 slot; drain it to have nothing started there", a.Host)
		}
		n = min(n, jobs.MaxSlots)
		ev, text = sched.SetSlots{Host: a.Host, Slots: n, By: who(a.Why)}, "has "+jobs.Plural(n, "slot")+" now"
		if n == 0 {
			text = "has as many slots as its rule gives"
		}
	}
	notice := dispatch.Notice{Host: a.Host, Text: a.Host + " " + text + ": asked for by " + who(a.Why)}
	if a.Do == Slots {
		notice = dispatch.Notice{} // the core reports it
	}
	if err := l.d.Order(ctx, notice, ev); err != nil {
		return nil, gone(ctx, err)
	}
	ans := &Answer{Done: 1, Text: a.Host + " " + text}
	if running > 0 && (a.Do == DrainHost || a.Do == StopHost) {
		ans.Text += fmt.Sprintf(" (%s in use)", jobs.Plural(running, "slot"))
	}
	return ans, nil
}
