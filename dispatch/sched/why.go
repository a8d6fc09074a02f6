package sched

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"dcs-tui/internal/text"
	"dcs-tui/jobs"
)

// Why explains in one sentence why a job is not running, or what it is doing.
func (c *Core) Why(now Time, id jobs.ID) string {
	j := c.table.Job(id)
	if j == nil {
		return fmt.Sprintf("There is no job %d.", id)
	}
	if late := c.whyLate(now, j); late != "" {
		return c.why(now, id, j) + " Its deadline cannot be met: " + late + "."
	}
	return c.why(now, id, j)
}

func (c *Core) why(now Time, id jobs.ID, j *jobs.Job) string {
	switch {
	case j.State.Terminal():
		return c.whyEnded(id, j)
	case j.State == jobs.Running:
		return c.whyOpen(now, id, j)
	}
	switch c.queue.states[id-1] {
	case stateWaitingForAttempt:
		return fmt.Sprintf("Job %d waits until its attempt of an earlier round is over.", id)
	case stateWaitingForJobs:
		if after := j.Spec.After(); !after.NeedSuccess() {
			return fmt.Sprintf("Job %d waits for %s to end (after=%s).", id, c.unmetRequirement(j), after)
		}
		return fmt.Sprintf("Job %d waits for %s to succeed.", id, c.unmetRequirement(j))
	case stateRetrying:
		last := j.CountedAttempt()
		if n := c.numPostponed(j); n > 0 && last != nil && last.Outcome.AsksToRunLater() {
			return fmt.Sprintf("Job %d has asked %s to be run again later (exit code %d); it runs again in %s.",
				id, text.Plural(n, "time"), jobs.ExitRunLater, text.Span(c.queue.timerAt[id]-now.Mono))
		}
		return fmt.Sprintf("Job %d failed (try %d of %d) and is tried again in %s.", id, j.Failures, c.maxTries(j),
			text.Span(c.queue.timerAt[id]-now.Mono))
	}
	return fmt.Sprintf("Job %d waits: %s.", id, c.whyReady(j))
}

func (c *Core) whyEnded(id jobs.ID, j *jobs.Job) string {
	s := fmt.Sprintf("Job %d %s", id, j.State.Clause())
	if a := j.CountedAttempt(); a != nil && a.Outcome != nil && j.Reason == "" && j.State != jobs.Succeeded {
		switch o := a.Outcome; {
		case o.Signal != "":
			s += fmt.Sprintf(": signal %s on %s", o.Signal, a.Host)
		case j.State == jobs.Failed:
			s += fmt.Sprintf(": exit %d on %s", o.Exit, a.Host)
		}
	}
	if j.Reason != "" {
		s += ": " + j.Reason
	}
	return s + "."
}

func (c *Core) whyOpen(now Time, id jobs.ID, j *jobs.Job) string {
	f := c.inFlightOf(j)
	if f == nil {
		return fmt.Sprintf("Job %d is running.", id)
	}
	name := f.host.spec.Name
	switch {
	case c.isCancelPending(id) && f.host.linked:
		return fmt.Sprintf("Job %d is being ended on %s: %s.", id, name, c.table.Cancels[id].Reason)
	case c.isCancelPending(id):
		return fmt.Sprintf("Job %d is canceled as soon as %s can be reached or is given up.", id, name)
	case f.killed && c.hardness.IsTooHard(j):
		return fmt.Sprintf("Job %d is being stopped on %s: %s.", id, name, c.hardness.Why(j))
	case !f.host.linked && f.started:
		return fmt.Sprintf("Job %d was running on %s, which cannot be reached (%s)%s%s.", id, name,
			text.WithoutSubject(f.host.reason, name), c.awaitText(now, f), f.host.sessionAdvice())
	case !f.host.linked && now.Mono < c.leaseEnd(f.host):
		return fmt.Sprintf("Job %d was sent to %s, which cannot be reached (%s); it may still start there "+
			"and waits until its lease has run out, in %s.", id, name, text.WithoutSubject(f.host.reason, name),
			text.Span(c.leaseEnd(f.host)-now.Mono))
	case !f.host.linked:
		return fmt.Sprintf("Job %d was sent to %s, which cannot be reached (%s)%s.", id, name,
			text.WithoutSubject(f.host.reason, name), c.awaitText(now, f))
	case f.isSuspended():
		return fmt.Sprintf("Job %d is suspended on %s: %s.", id, name, f.host.heartbeat.Owner.Who)
	case f.started:
		return fmt.Sprintf("Job %d runs on %s.", id, name)
	case f.host.hold != jobs.NotHeld:
		return fmt.Sprintf("Job %d was sent to %s, which %s.", id, name, f.host.whyHeld())
	case c.Paused():
		return fmt.Sprintf("Job %d was sent to %s and does not start there: launching is paused.", id, name)
	}
	due := ""
	if n := c.slotForBuffered(f.host, f.slots); n != nil {
		due = "; " + n.Text()
	}
	return fmt.Sprintf("Job %d was sent to %s and starts when a slot is free there%s.", id, name, due)
}

func (c *Core) unmetRequirement(j *jobs.Job) string {
	names := text.Each(c.dependencies.Unmet(j.Spec.After()), func(id jobs.ID) string { return fmt.Sprint(id) })
	if len(names) == 1 {
		return "job " + names[0]
	}
	return "jobs " + text.List(names, 5)
}

// whyReady describes what a ready job waits for: the run, its hosts, or the jobs before it.
func (c *Core) whyReady(j *jobs.Job) string {
	switch {
	case c.Paused():
		return "launching is paused"
	case c.drain != nil:
		return "nothing more is launched: " + c.drain.Why
	case c.stopped || c.fenced || c.finished:
		return "this dispatcher has stopped"
	case c.reconcileUntil > 0 && !c.table.Damaged:
		return "the hosts must first list their attempts of this run"
	case c.reconcileUntil > 0:
		return "a part of the journal is lost, so the hosts must first list their attempts"
	case len(c.hosts) == 0 && c.hasStartingInstance():
		return "there is no host yet; " + c.describeStartingInstance()
	case len(c.hosts) == 0:
		return "there is no host" + c.whyNoInstance(c.classOf(j))
	}
	cl := c.classOf(j)
	p := c.placementOf(cl, slices.Values(c.hosts))
	unfit, closed := p.passed[passedUnfit].n, &p.passed[passedClosed]
	fit := len(c.hosts) - unfit
	up := fit - closed.n
	gpus := p.passed[passedGPUs].n + p.passed[passedForeign].n
	also := ""
	if i := slices.IndexFunc(c.hosts, func(h *host) bool { return h.keepsFrom(cl) }); i >= 0 {
		also = fmt.Sprintf("; %s is kept for queue %s", c.hosts[i].spec.Name, c.hosts[i].spec.KeptText())
	}
	switch {
	case fit == 0 && cl.key.excluded != "":
		on := strings.ReplaceAll(cl.key.excluded, "\n", ", ")
		return "an attempt of it may still be alive on " + on + ", which has not answered yet"
	case fit == 0:
		return "no host of the inventory can run it"
	case up == 0:
		away := closed.first.spec.Name + " " + closed.first.status().Clause() + also
		if n := c.nextSlotFor(cl); n != nil {
			away += "; " + n.Text()
		}
		if fit == 1 {
			return "the only host that can run it cannot take it: " + away
		}
		return fmt.Sprintf("none of the %d hosts that can run it takes jobs; for one, %s", fit, away)
	case c.waitsForPool(cl):
		return c.whyWaitsForPool(cl)
	case gpus == up && p.passed[passedForeign].n > 0:
		return "the GPUs it needs are in use, some of them by others" + also
	case gpus == up:
		return "the GPUs it needs are in use" + also
	case gpus+p.passed[passedMemory].n == up:
		return "the memory it needs is in use by other jobs" + also
	case p.passed[passedAvoided].n > 0 && p.host == nil:
		return c.whyAvoids(j)
	case p.host != nil && c.holders&HoldFiles != 0:
		return whyFiles
	case p.host != nil && c.isLaunchDelayed():
		return fmt.Sprintf("--delay: at least %s lie between two starts", c.cfg.LaunchDelay)
	case p.host != nil:
		return "it is next"
	}
	if h := p.passed[passedReserved].first; h != nil {
		id, _ := h.reserved.head(c)
		what := text.Plural(h.reserved.key.slots, "slot")
		if n := h.reserved.key.gpus.Devices(); n > 1 {
			what = text.Plural(n, "GPU")
		}
		return fmt.Sprintf("%s is kept for job %d, which needs %s at once", h.spec.Name, id, what)
	}
	if h := p.passed[passedTime].first; h != nil {
		left := text.Span(h.instance.endsAt - c.now.Mono)
		if cl.key.maxRunTime == 0 {
			return fmt.Sprintf("without a timeout or an estimate it is not started in the last %s of an allocation; "+
				"that of %s ends in %s", text.Span(h.instance.provider.spec.Slurm.Margin), h.spec.Name, left)
		}
		return fmt.Sprintf("it may take %s, and the allocation of %s ends in %s", text.Span(cl.key.maxRunTime),
			h.spec.Name, left)
	}
	if h := p.passed[passedTrial].first; h != nil {
		return h.spec.Name + " " + c.whyOnTrial(h)
	}
	if n := c.nextSlotFor(cl); n != nil {
		also += "; " + n.Text()
	}
	if cl.key.slots > 1 {
		return fmt.Sprintf("it needs %d slots at once and no host has so many free%s", cl.key.slots, also)
	}
	if up == 1 {
		return "every usable slot of the only host that can run it now is busy" + also
	}
	return fmt.Sprintf("every usable slot of the %d hosts that can run it is busy%s", up, also)
}

// whyAvoids describes for which host a job waits that avoids those where it has failed.
func (c *Core) whyAvoids(j *jobs.Job) string {
	h, in := c.nextSlot(j)
	if h == nil {
		return "it failed on the hosts that have free slots, and waits for another host"
	}
	why := fmt.Sprintf("it failed on the hosts that have free slots, and waits for %s, where it has not failed",
		h.spec.Name)
	switch {
	case !h.linked && h.isFirstDial():
		return why + " and to which a connection is being made"
	case !h.linked:
		return fmt.Sprintf("%s and which does not answer; it counts as lost in %s", why, text.Span(in))
	}
	return fmt.Sprintf("%s (a slot is expected in %s)", why, text.Span(in))
}

// whyOnTrial describes why a host gets one job at a time, as a continuation of its name. It returns
// "" if it does not.
func (c *Core) whyOnTrial(h *host) string {
	r := &h.probation
	if !r.onTrial {
		return ""
	}
	is := "slowed down"
	if r.onProbation {
		is = "on probation"
	}
	return fmt.Sprintf("has been %s for %s: %s; it gets one job at a time until one succeeds", is,
		text.Span(c.now.Mono-r.since), r.whyOnTrial())
}

// Paused reports whether nothing is launched or started because a person has paused the run, or because of
// a Hold.
func (c *Core) Paused() bool { return c.table.Paused || c.holders&^HoldFiles != 0 }

// whyFiles is why jobs wait for the end of HoldFiles.
const whyFiles = "the files of many jobs that have ended are packed first"

// WhyDraining returns why nothing more is launched until a person continues, or "" if the run does
// not drain.
func (c *Core) WhyDraining() string {
	if c.drain == nil {
		return ""
	}
	return c.drain.Why
}

// RunningView is a copy of data about open attempts that is not in the table.
type RunningView struct {
	Stragglers []jobs.ID // those that run far longer than others of their queues
	Ending     []jobs.ID // running jobs that are being ended
	Progress   []ProgressView
}

// ProgressView is the progress that a running attempt last reported.
type ProgressView struct {
	Attempt jobs.AttemptID
	Text    string
	At      time.Duration // Time.Mono
}

// Running returns a view of the open attempts, in no order. A job with several attempts may be
// listed twice. The cost is proportional to the number of open attempts.
func (c *Core) Running() RunningView {
	var v RunningView
	n := 0
	for h := range c.everyHost() {
		n += len(h.heartbeat.Progress)
	}
	v.Progress = make([]ProgressView, 0, n)
	for _, h := range c.allHosts() {
		for f := h.oldest; f != nil; f = f.nextOnHost {
			j := c.table.Job(f.id.Job)
			running := j != nil && j.State == jobs.Running
			if running && f.isStraggler && !f.killed {
				v.Stragglers = append(v.Stragglers, f.id.Job)
			}
			if f.progress.text != "" && !f.hasOutcome {
				v.Progress = append(v.Progress, ProgressView{f.id, f.progress.text, f.progress.at})
			}
			if running && (c.isCancelPending(f.id.Job) || c.hardness.IsTooHard(j)) {
				v.Ending = append(v.Ending, f.id.Job)
			}
		}
	}
	return v
}

// QueueView is how long the jobs of a queue take.
type QueueView struct {
	Name            string
	Mean, Deviation time.Duration
}

// Queues returns at most limit queues whose run times are known. Those with waiting jobs come
// first.
func (c *Core) Queues(limit int) []QueueView {
	var views []QueueView
	for _, waiting := range []bool{true, false} {
		for _, st := range c.queues {
			if (st.queued > 0) != waiting || len(views) == limit {
				continue
			}
			if mean, dev, ok := st.Moments(); ok {
				views = append(views, QueueView{st.share.Name, durationOfSeconds(mean), durationOfSeconds(dev)})
			}
		}
	}
	return views
}
