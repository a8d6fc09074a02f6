package sim

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"dcs-tui/dispatch/commit"
	"dcs-tui/dispatch/sched"
	"dcs-tui/hosts"
	"dcs-tui/jobs"
	"dcs-tui/jobs/journal"
)

// Invariants lists all invariants.
var Invariants []string

func invariant(text string) string {
	Invariants = append(Invariants, text)
	return text
}

// The names of the invariants. Messages and docs/internals/mutations.md use these texts.
var (
	OneResult         = invariant("one result a round")
	SeqWithoutGaps    = invariant("result numbers without gaps")
	SuccessIsProved   = invariant("no success without a whole sentinel")
	TrueOutcome       = invariant("recorded outcomes are what happened")
	StartsOnce        = invariant("an attempt starts at most once")
	RecordBeforeStart = invariant("no start without a durable record")
	RecordBeforeSend  = invariant("no launch leaves before its record is durable")
	LaunchedOnce      = invariant("an attempt is sent to a host once")
	OneLiveAttempt    = invariant("one live attempt of a job unless by policy")
	NoStartAfterEnd   = invariant("an attempt that is recorded as over never starts")
	NoStartAfterLease = invariant("nothing starts after its lease")
	SlotsHold         = invariant("slots are never exceeded")
	StepsAreShort     = invariant("a step launches no more than it may")
	LimitsHold        = invariant("tokens and the slots of a queue are never exceeded")
	KeptHolds         = invariant("what a host keeps for a queue is given to no other")
	DevicesHold       = invariant("jobs have no more than the whole of a device")
	SharedSlotsHold   = invariant("no more slots of a shared host are held than there are")
	NobodyStarves     = invariant("a run that shares a host has a slot of it within the time of the rule")
	CopiesHold        = invariant("no more copies of a job than allowed, within its tries, " +
		"each on a host of its own unless asked")
	UnknownNotRerun     = invariant("a job with an attempt of unknown fate is not run again")
	SettledByItsMachine = invariant("an attempt is settled only by the machine on which it was launched")
	AskedHostsStay      = invariant("a host that people added or removed stays so")
	InstanceRecorded    = invariant("an instance is created, and terminated, after its record")
	InstanceUnused      = invariant("no instance is terminated with open attempts or unfetched output")
	InstancesGo         = invariant("no instance is left at the end of the run")
	NotLostEarly        = invariant("no attempt is given up before its time")
	NeverStartedIsTrue  = invariant("what is recorded as never started never ran")
	FencedChanges       = invariant("a fenced dispatcher changes nothing")
	FenceIsTrue         = invariant("a dispatcher is fenced by a newer one only")
	DurableFactsKept    = invariant("what was durable stays")
	ResultsDurable      = invariant("results are shown only when durable")
	ResultsSame         = invariant("a result never changes")
	ResultsShown        = invariant("every result is shown")
	JournalIsState      = invariant("the journal gives the live state")
	ReplayIsState       = invariant("recovery gives the state of the journal")
	JournalFolds        = invariant("every durable record fits the facts")
	CoreHasNoDefects    = invariant("the core makes no record that does not fit")
	CanceledStays       = invariant("a canceled job is not launched again")
	CanceledByPeople    = invariant("a job is canceled only when a person asked")
	HarderSkipped       = invariant("no job is launched that is as hard as one that timed out")
	HarderStopped       = invariant("what runs and is as hard as a job that timed out is stopped")
	SkippedForCause     = invariant("a job is skipped only for a timeout as easy, or after one that did not succeed")
	PauseHolds          = invariant("nothing is launched while paused")
	DrainedHolds        = invariant("nothing is launched on a drained host")
	QuietHolds          = invariant("nothing is launched in the quiet hours of a host")
	OwnersHold          = invariant("nothing is launched on a host whose owner is there")
	HostSettingsHold    = invariant("what people asked of a host holds until they take it back")
	RequestsOnce        = invariant("a request of people is carried out once")
	RequestsExpire      = invariant("a request for another dispatcher is refused")
	OwnFailuresOnly     = invariant("only its own failures use up a job's tries")
	TriesHold           = invariant("a job fails no more often than it may")
	BadHostCostsNothing = invariant("a job that fails only on bad hosts succeeds in the end")
	ExecutionsBounded   = invariant("a job runs no more than three times its tries, and once more for each host")
	NoFalseProbation    = invariant("no host is on probation on which only broken jobs have failed")
	RunsAsEdited        = invariant("a job runs, and has its result, as it was last edited")
	TimeGoesOn          = invariant("the next tick is not in the past")
	RunEnds             = invariant("the run ends")
	JobsEnd             = invariant("every job ends while some host stays usable")
	NothingLeft         = invariant("nothing of the run is alive at its end")
	CleanEnd            = invariant("the end is written when all is over and clean")
)

// atEnd checks the promises about a finished run.
func (w *World) atEnd() {
	g := &w.ledger
	if !g.ended && !slices.ContainsFunc(w.hosts, func(h *host) bool { return h.isDead }) {
		w.fail(CleanEnd, "the run is over, and the journal does not say so")
	}
	if len(g.jobs) != len(w.specs) {
		w.fail(RunEnds, "%d jobs of %d were accepted", len(g.jobs), len(w.specs))
	}
	for i := range g.jobs {
		a := &g.jobs[i]
		if !a.isOver {
			w.fail(RunEnds, "job %d has no result", i+1)
		}
		for n := range a.attempts {
			if a.attempts[n].open {
				w.fail(RunEnds, "the fate of %d.%d is not known", i+1, n+1)
			}
		}
	}
	for _, r := range w.people.requests {
		if !w.people.removed[r.Name] {
			w.fail(RequestsOnce, "%s was never taken in", r.Name)
		}
	}
	for seq := int64(1); seq <= g.seq && !w.damaged; seq++ { // damage may destroy a result before anybody has seen it
		if _, ok := w.consumer.got[seq]; !ok {
			w.fail(ResultsShown, "result %d of job %d was never shown", seq, g.seqs[seq])
		}
	}
	for id := range jobs.ID(len(w.specs)) {
		for _, live := range w.truth.live[id+1] {
			if w.isCleaned(w.truth.factOf(live).host) {
				w.fail(NothingLeft, "%s is alive", live)
			}
		}
	}
	w.checkCloud()
	for _, h := range w.hosts {
		if len(h.spool) > 0 && w.isCleaned(h) {
			w.fail(NothingLeft, "%s waits in the spool of %s", h.spool[0].id, h.name)
		}
	}
}

// The checks while a dispatcher works.

// checkTake compares the state with which a dispatcher begins with the ledger.
func (w *World) checkTake(l *dispatcher, t *jobs.Table, report *journal.Report) {
	g := &w.ledger
	l.listedInstances, l.absentUntil = map[string]*hosts.Host{}, map[string]time.Duration{}
	l.receivedAt, l.listed, l.reportedBy = map[*host]time.Duration{}, map[*host]time.Duration{}, map[reportSource]bool{}
	if w.isDamageUnread {
		w.isDamageUnread = false
		g.restart(w, t)
		return
	}
	if report.Damaged && !w.damaged {
		w.fail(ReplayIsState, "the journal of epoch %d is taken for damaged: %v", l.epoch, report.Warnings)
	}
	s := g.table
	if t.Seq != s.Seq || t.Acked != s.Acked || t.Epoch != s.Epoch || t.Ended != s.Ended || t.Paused != s.Paused ||
		t.Counts != s.Counts ||
		!equalMaps(t.Cancels, s.Cancels) || !equalMaps(t.Requests, s.Requests) || !equalMaps(t.Hosts, s.Hosts) ||
		!equalMaps(t.Machines, s.Machines) || !equalMaps(t.At, s.At) || !equalMaps(t.Inventory, s.Inventory) ||
		!equalMaps(t.Instances, s.Instances) {
		w.fail(ReplayIsState, "epoch %d: counts %v, and the journal says %v", l.epoch, t.Counts, s.Counts)
	}
	if t.NumJobs() != s.NumJobs() {
		w.fail(ReplayIsState, "epoch %d has %d jobs, and the journal %d", l.epoch, t.NumJobs(), s.NumJobs())
	}
	for j := range t.Rows() {
		if why := difference(j, s.Job(j.Spec.ID)); why != "" {
			w.fail(ReplayIsState, "epoch %d: job %d: %s", l.epoch, j.Spec.ID, why)
		}
	}
	g.touched = g.touched[:0]
}

func equalMaps[K comparable, V any](a, b map[K]V) bool {
	return len(a) == len(b) && (len(a) == 0 || reflect.DeepEqual(a, b))
}

// difference describes how two states of a job differ. It returns "" if they are equal.
func difference(a, b *jobs.Job) string {
	x, y := *a, *b
	x.Spec, y.Spec = nil, nil
	if a.Spec.Equal(b.Spec) && reflect.DeepEqual(x, y) {
		return ""
	}
	text := fmt.Sprintf("%+v and %+v", *a, *b)
	for i := range min(len(a.Attempts), len(b.Attempts)) {
		if x, y := a.Attempts[i], b.Attempts[i]; !reflect.DeepEqual(x, y) {
			text += fmt.Sprintf("; attempt %s: %+v and %+v", x.ID, *x, *y)
		}
	}
	return text
}

// CheckCore, if set, is called at the end of a turn. It describes what is inconsistent in a core,
// or returns "". The tests of package sched set it.
var CheckCore func(*sched.Core) string

// checkTurn checks a dispatcher at the end of a turn, before its commands are released.
func (w *World) checkTurn(l *dispatcher, out *commit.Out) {
	if n := l.core.Defects; n != 0 {
		w.fail(CoreHasNoDefects, "%d of them", n)
	}
	if CheckCore != nil {
		if why := CheckCore(l.core); why != "" {
			w.fail(CoreHasNoDefects, "%s", why)
		}
	}
	if at, ok := l.loop.Next(); ok && at < l.now().Mono && at != 0 {
		w.fail(TimeGoesOn, "at %v a tick is wanted at %v", l.now().Mono, at)
	}
	w.checkProbation(l)
	g := &w.ledger
	if !out.Durable || l.epoch != g.epoch || l.fencedBy > 0 {
		return
	}
	t, s := l.core.Table(), g.table
	w.checkStopped(l, t)
	w.checkHostSettings(l)
	if t.Seq != s.Seq || t.Acked != s.Acked || t.Counts != s.Counts || t.NumJobs() != s.NumJobs() ||
		!equalMaps(t.Cancels, s.Cancels) || !equalMaps(t.Hosts, s.Hosts) {
		w.fail(JournalIsState, "live counts %v, journal %v", t.Counts, s.Counts)
	}
	for _, id := range g.touched {
		if why := difference(t.Job(id), s.Job(id)); why != "" {
			w.fail(JournalIsState, "job %d: %s", id, why)
		}
	}
	g.touched = g.touched[:0]
}

// checkRecord checks a decision when it is made.
func (w *World) checkRecord(l *dispatcher, r *jobs.Record) {
	switch r.Kind {
	case jobs.KindLaunching:
		// A dispatcher that does not know yet that it was taken over finds the attempts of its successor.
		if w.isRecorded(r) || l.epoch < w.ledger.epoch && w.isOnHost(r) {
			return
		}
		w.checkHardness(l.core.Table(), r)
		if l.pausedByPeople {
			w.fail(PauseHolds, "%s is launched", r.Attempt())
		}
		w.checkPlace(l, r)
		w.checkLimits(l, r)
		if l.drained[r.Host] {
			w.fail(DrainedHolds, "%s is launched on %s", r.Attempt(), r.Host)
		}
		if isQuiet(l.specs[r.Host].Quiet, l.now().Wall) {
			w.fail(QuietHolds, "%s is launched on %s", r.Attempt(), r.Host)
		}
		if l.ownerPresent[r.Host] {
			w.fail(OwnersHold, "%s is launched on %s", r.Attempt(), r.Host)
		}
	case jobs.KindLost:
		w.checkLost(l, r)
	case jobs.KindRunning, jobs.KindExited, jobs.KindSuperseded, jobs.KindCanceled:
		w.checkSettled(l, r)
	}
}

// isQuiet reports whether a time is in the quiet hours of a host in the zone UTC.
func isQuiet(spans []hosts.Quiet, at jobs.Stamp) bool {
	day := time.Duration(at) % (24 * time.Hour)
	return slices.ContainsFunc(spans, func(q hosts.Quiet) bool {
		if q.From > q.To { // over midnight
			return day >= q.From || day < q.To
		}
		return day >= q.From && day < q.To
	})
}

// checkLost checks that an attempt is given up only if it is dead, if its host was silent for as
// long as its rule requires, or if it is a copy whose job is over.
func (w *World) checkLost(l *dispatcher, r *jobs.Record) {
	if strings.HasPrefix(r.Reason, "its job has a result") && w.cfg.Copies > 1 && r.Next.Terminal() && r.Seq == 0 {
		return
	}
	if strings.HasPrefix(r.Reason, "a person asked to queue its job again") {
		w.checkAbandoned(l, r)
		return
	}
	if strings.HasPrefix(r.Reason, "the instance ") {
		if f := w.truth.factOf(r.Attempt()); f != nil && f.isAlive {
			w.fail(NotLostEarly, "%s is recorded as lost (%s), and it runs", r.Attempt(), r.Reason)
		}
		return
	}
	if f := w.truth.factOf(r.Attempt()); !strings.Contains(r.Reason, "its host "+r.Host+" is lost") {
		if f != nil && f.isAlive && !w.isOfSuccessor(l, r.Attempt()) {
			w.fail(NotLostEarly, "%s is recorded as lost (%s), and it runs", r.Attempt(), r.Reason)
		}
		w.checkSettled(l, r)
		return // it is taken for dead; another check ensures that it never starts again
	}
	h := l.launchedOn(r.Attempt())
	if w.damaged && h == nil {
		h = w.machineOf(r.Host)
	}
	if h == nil {
		return // after damage, nobody knows where it was
	}
	silent, rule := l.now().Mono-l.receivedAt[h], w.minLostAfter[r.Host]
	if silent < rule {
		w.fail(NotLostEarly, "%s is given up (%s) after %v without a heartbeat of %s", r.Attempt(), r.Reason,
			silent, r.Host)
	}
}

// isOfSuccessor reports whether an attempt was launched by a dispatcher that has taken over from l. If
// the run directory does not answer l, l takes the record of the attempt for lost, and does not know
// its machine. What l decides about it is never durable.
func (w *World) isOfSuccessor(l *dispatcher, id jobs.AttemptID) bool {
	e := w.ledger.entry(id)
	return e != nil && e.epoch > l.epoch
}

// checkAbandoned checks that an attempt that a person has given up was on a silent host.
func (w *World) checkAbandoned(l *dispatcher, r *jobs.Record) {
	h := l.launchedOn(r.Attempt())
	if h == nil {
		return // after damage, or under an earlier dispatcher
	}
	silent, unknown := l.now().Mono-l.receivedAt[h], new(hosts.Host)
	least := cmp.Or(w.knownSpecs[r.Host], unknown).SuspectAfterOrDefault()
	// The dispatcher may not know the specification of a machine that is none of its hosts.
	if spec := l.specs[r.Host]; spec == nil || w.machineAt(spec) != h {
		least = min(least, unknown.SuspectAfterOrDefault())
	}
	if silent < least {
		w.fail(NotLostEarly, "%s is given up (%s) after %v without a heartbeat of %s", r.Attempt(), r.Reason,
			silent, r.Host)
	}
}

// recordReceived records the events and requests that a dispatcher has received.
func (w *World) recordReceived(l *dispatcher, ev sched.Event) {
	switch ev := ev.(type) {
	case sched.Pause:
		l.pausedByPeople = ev.On
	case sched.Cancel:
		w.people.recordCancel(l, ev)
	case sched.Request:
		if l.core.Table().Requests[ev.Name] || ev.Epoch != 0 && ev.Epoch != l.epoch {
			return // it is not carried out
		}
		for _, do := range ev.Do {
			w.recordReceived(l, do)
		}
	case sched.HostUp:
		l.ownerPresent[ev.Host] = ev.Hello.Owner.Who != ""
	case sched.HostHeartbeat:
		l.ownerPresent[ev.Host] = ev.Heartbeat.Owner.Who != ""
	case sched.SetInventory:
		l.inventory = ev.Inventory
		l.updateSpecs()
	case sched.InstancesListed:
		for _, name := range ev.Names {
			l.listedInstances[name] = ev.Hosts[name][0]
		}
		l.updateSpecs()
	case sched.SetSlots, sched.DrainHost:
		l.noteHostRequest(ev)
	}
}

// checkLimit checks the number of slots that a dispatcher allows a host. A command that waited for
// the journal may be slightly older than the newest request.
func (w *World) checkLimit(l *dispatcher, o sched.SetLimit) {
	most := w.maxSlots(o.Host)
	if len(l.slotsByPeople) == 0 {
		most = w.maxRuleSlots[o.Host]
	}
	if o.Slots < 0 || o.Slots > most {
		w.fail(SlotsHold, "%s may have %d slots busy and has %d", o.Host, o.Slots, most)
	}
}

// checkLaunch checks a launch that a dispatcher sends.
func (w *World) checkLaunch(l *dispatcher, o *sched.Launch) {
	for _, p := range o.Jobs {
		if _, ok := l.givenGPUs[p.Attempt]; ok {
			w.fail(LaunchedOnce, "%s leaves again", p.Attempt)
		}
		if l.givenGPUs == nil {
			l.givenGPUs = map[jobs.AttemptID]givenGPUs{}
		}
		l.givenGPUs[p.Attempt] = givenGPUs{p.GPUs, p.Spec.GPUs.Share()}
		if len(p.GPUs) != p.Spec.GPUs.Devices() {
			w.fail(SlotsHold, "%s gets GPUs %v and wants %s", p.Attempt, p.GPUs, p.Spec.GPUs)
		}
		w.checkGPUs(l, p.Attempt)
		if l.epoch != w.ledger.epoch {
			continue // another dispatcher has taken over; what matters is whether the attempt starts
		}
		if e := w.ledger.entry(p.Attempt); e == nil || e.host != o.Host {
			w.fail(RecordBeforeSend, "%s leaves for %s", p.Attempt, o.Host)
		}
	}
}

// checkEpoch checks a launch that a host accepts, or a kill that it carries out.
func (w *World) checkEpoch(h *host, epoch int, ids ...jobs.AttemptID) {
	if epoch < h.fence {
		w.fail(FencedChanges, "%s starts or ends %v for epoch %d and knows epoch %d", h.name, ids, epoch, h.fence)
	}
}

// checkFence checks a dispatcher that stops because there is a newer one.
func (w *World) checkFence(l *dispatcher, by int) {
	if by <= l.epoch || by > len(w.ledger.files) {
		w.fail(FenceIsTrue, "epoch %d stops because of epoch %d, and the newest is %d", l.epoch, by,
			len(w.ledger.files))
	}
}

// checkResult checks that a result shows the outcome with which the attempt that gave it has ended.
func (w *World) checkResult(r *jobs.Record, s shownResult) {
	if r.Kind != jobs.KindExited {
		return
	}
	o := *r.Outcome
	o.LastLine = ""
	if s.outcome != o {
		w.fail(TrueOutcome, "result %d of %s shows %+v, and the attempt ended with %+v", s.seq, r.Attempt(),
			s.outcome, o)
	}
}

// checkShown checks a result that a consumer gets.
func (w *World) checkShown(s shownResult) {
	g := &w.ledger
	if s.seq < 1 || g.seqs[s.seq] != s.job {
		w.fail(ResultsDurable, "result %d of job %d is shown", s.seq, s.job)
	}
	old, ok := w.consumer.got[s.seq]
	if w.damaged && !g.byExit[s.seq] {
		// The result is no attempt's own; which attempt is reported with it depends on lost
		// records.
		old.outcome = s.outcome
	}
	if w.damaged {
		old.round = s.round // records of rounds, or records that tell rounds apart, may be lost
	}
	if ok && old != s {
		w.fail(ResultsSame, "result %d was %+v and is %+v", s.seq, old, s)
	}
}
