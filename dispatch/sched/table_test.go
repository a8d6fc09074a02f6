package sched

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"dcs-tui/dispatch/sched/blame"
	"dcs-tui/hosts"
	"dcs-tui/internal/text"
	"dcs-tui/jobs"
)

// stage drives a core manually: a test sends events at chosen instants and inspects the commands.
type stage struct {
	t           *testing.T
	c           *Core
	at          time.Duration
	commands    []Command     // of the last step
	records     []jobs.Record // of the last step
	journal     []jobs.Record
	finish      *Finish
	heartbeatAt time.Duration // when the next heartbeats are due
	nodes       []string      // of an instance; nil if it is a single host
}

func testHost(name string, slots int, tags ...string) *hosts.Host {
	return &hosts.Host{Name: name, Slots: hosts.SlotRule{Fixed: slots}, Link: "ssh", GPUs: -1, Tags: tags}
}

func inventoryOf(hs ...*hosts.Host) *hosts.Inventory { return &hosts.Inventory{Hosts: hs} }

func newStage(t *testing.T, cfg Config, hs ...*hosts.Host) *stage {
	return newInventoryStage(t, cfg, inventoryOf(hs...))
}

func newInventoryStage(t *testing.T, cfg Config, inv *hosts.Inventory) *stage {
	s := &stage{t: t, c: New(cfg, &jobs.Table{}, inv)}
	if at, ok := s.c.Next(); !ok || at != 0 {
		t.Errorf("Next before the first step: %v %v", at, ok)
	}
	t.Cleanup(func() {
		want(t, "defects", s.c.Defects, 0)
	})
	s.step(Tick{})
	return s
}

// connectedStage returns a stage whose hosts are up.
func connectedStage(t *testing.T, cfg Config, hs ...*hosts.Host) *stage {
	s := newStage(t, cfg, hs...)
	for _, h := range hs {
		s.up(h.Name)
	}
	return s
}

// stageWithJobs returns a connected stage with n jobs that have no options.
func stageWithJobs(t *testing.T, n int, cfg Config, hs ...*hosts.Host) *stage {
	s := connectedStage(t, cfg, hs...)
	s.submitPlain(n)
	return s
}

func (s *stage) now() Time { return Time{s.at, wallStart + jobs.Stamp(s.at)} }

func (s *stage) step(ev Event) []Command {
	s.records, s.commands = s.c.Step(s.now(), ev)
	s.journal = append(s.journal, s.records...)
	for _, o := range s.commands {
		if o, ok := o.(Finish); ok {
			s.finish = &o
		}
	}
	return s.commands
}

// wait lets d pass and steps whenever the core requested it. The named hosts send heartbeats.
func (s *stage) wait(d time.Duration, beating ...string) (all []Command) {
	end := s.at + d
	for {
		next := end
		at, ok := s.c.Next()
		if ok && at < next {
			next = at
		}
		if len(beating) > 0 && s.heartbeatAt < next {
			next = s.heartbeatAt
		}
		s.at = max(s.at, next)
		if len(beating) > 0 && s.at >= s.heartbeatAt {
			for _, h := range beating {
				if s.c.byName[h] == nil {
					continue // the host has left
				}
				all = append(all, s.step(HostHeartbeat{Host: h,
					Heartbeat: &hosts.Heartbeat{MemFree: -1, DiskFree: -1, Running: s.c.byName[h].numOpen}})...)
			}
			s.heartbeatAt = s.at + HeartbeatInterval
		}
		if s.at >= end {
			return append(all, s.step(Tick{})...)
		}
		if ok && at == s.at {
			all = append(all, s.step(Tick{})...)
		}
	}
}

func (s *stage) submit(last bool, opts ...*jobs.Options) {
	s.submitAfter(last, nil, opts...)
}

// submitAfter is like submit. after holds the dependencies of jobs.
func (s *stage) submitAfter(last bool, after map[jobs.ID]jobs.Dependencies, opts ...*jobs.Options) {
	specs := specsOf(len(s.c.table.Jobs)+1, opts...)
	for _, spec := range specs {
		spec.SetAfter(after[spec.ID])
	}
	s.step(Submit{Specs: specs, Last: last})
}

// specsOf returns the specifications of jobs with these options, whose ids begin with first.
func specsOf(first int, opts ...*jobs.Options) (specs []*jobs.Spec) {
	for i, o := range opts {
		specs = append(specs, &jobs.Spec{ID: jobs.ID(first + i), Command: "true", Options: o})
	}
	return specs
}

// repeatOptions returns the options of n equal jobs.
func repeatOptions(n int, o *jobs.Options) []*jobs.Options {
	return slices.Repeat([]*jobs.Options{o}, n)
}

// submitPlain submits n jobs without options.
func (s *stage) submitPlain(n int) { s.submit(true, repeatOptions(n, jobs.NoOptions)...) }

// up connects hosts with one core more than slots, 16 GiB of memory, and two GPUs.
func (s *stage) up(names ...string) (all []Command) {
	for _, n := range names {
		slots := s.c.byName[n].spec.Slots.Fixed
		all = append(all, s.connect(n, hosts.Hello{Cores: slots + 1, Slots: slots, MemBytes: 16 << 30, GPUs: 2})...)
	}
	return all
}

// connect sends the hello of a host and its first heartbeat.
func (s *stage) connect(name string, hello hosts.Hello) []Command {
	commands := s.step(HostUp{Host: name, Hello: &hello})
	return append(commands,
		s.step(HostHeartbeat{Host: name, Heartbeat: &hosts.Heartbeat{MemFree: -1, DiskFree: -1}})...)
}

// heartbeat lets a heartbeat interval pass and sends a heartbeat of a host. What b leaves out is
// not known; the host has all attempts that were sent to it.
func (s *stage) heartbeat(name string, b hosts.Heartbeat) []Command {
	s.at += HeartbeatInterval
	b.MemFree, b.DiskFree = cmp.Or(b.MemFree, -1), cmp.Or(b.DiskFree, -1)
	b.Running = cmp.Or(b.Running, s.c.byName[name].numOpen)
	return s.step(HostHeartbeat{Host: name, Heartbeat: &b})
}

// endAfter ends an attempt with the given run time.
func (s *stage) endAfter(name, attempt string, d time.Duration) []Command {
	return s.ended(name, attempt, jobs.Outcome{Started: s.now().Wall - jobs.Stamp(d), Ended: s.now().Wall})
}

// endAllAfter ends the first attempts of jobs 1 to n on a host, with the given run time each.
func (s *stage) endAllAfter(name string, n int, d time.Duration) {
	for i := range n {
		s.endAfter(name, fmt.Sprintf("%d.1", i+1), d)
	}
}

// letRest puts a host on which no job has succeeded on trial. It rests for d.
func (s *stage) letRest(name string, d time.Duration) {
	h := s.c.byName[name]
	h.probation.onTrial, h.probation.since, h.probation.restsUntil = true, s.at, s.at+d
	h.touch()
}

// letRestFrom puts a host on which jobs have succeeded on trial because a job of a queue has failed there. It
// rests from those for d.
func (s *stage) letRestFrom(name string, id jobs.ID, d time.Duration) {
	h, kind := s.c.byName[name], s.c.kinds.KindOf(s.job(id).Spec)
	h.probation.all.Succeeded++
	h.probation.all.AddFailure(blame.Failure{ID: jobs.AttemptID{Job: id, N: 1}, Kind: kind, Took: time.Millisecond})
	h.probation.kinds = kind
	s.letRest(name, d)
}

// attemptsOn returns the attempts that are in flight on a host, the oldest first.
func (s *stage) attemptsOn(name string) (all []jobs.AttemptID) {
	for f := s.c.byName[name].oldest; f != nil; f = f.nextOnHost {
		all = append(all, f.id)
	}
	return all
}

// endFirst ends the oldest attempt on a host.
func (s *stage) endFirst(name string, o jobs.Outcome) []Command {
	return s.ended(name, s.c.byName[name].oldest.id.String(), o)
}

// launchItems returns what commands launch on a host, or on all hosts if name is "".
func launchItems(commands []Command, name string) (items []LaunchItem) {
	for _, o := range commands {
		if l, ok := o.(Launch); ok && (name == "" || l.Host == name) {
			items = append(items, l.Jobs...)
		}
	}
	return items
}

// launchedOn returns the attempts that commands launch on a host, or on all hosts if name is "".
func launchedOn(commands []Command, name string) string {
	var ids []string
	for _, p := range launchItems(commands, name) {
		ids = append(ids, p.Attempt.String())
	}
	return strings.Join(ids, " ")
}

// devices returns the GPUs of each attempt that commands launch.
func devices(commands []Command) string {
	var all [][]int
	for _, p := range launchItems(commands, "") {
		all = append(all, p.GPUs)
	}
	return fmt.Sprint(all)
}

// formatCommands formats the commands of one kind for comparison.
func formatCommands[T Command](commands []Command) string {
	var all []string
	for _, o := range commands {
		if v, ok := o.(T); ok {
			all = append(all, fmt.Sprintf("%v", v))
		}
	}
	return strings.Join(all, " ")
}

func attemptIDs(text string) (all []jobs.AttemptID) {
	for w := range strings.FieldsSeq(text) {
		id, err := jobs.ParseAttemptID(w)
		if err != nil {
			panic(err)
		}
		all = append(all, id)
	}
	return all
}

func (s *stage) started(name, attempts string) []Command {
	m := &hosts.Started{}
	for i, id := range attemptIDs(attempts) {
		m.Jobs = append(m.Jobs, hosts.StartedJob{Attempt: id, Slot: i + 1, At: s.now().Wall})
	}
	return s.step(AttemptsStarted{name, m})
}

// endedRunTime is the run time that ended assigns to jobs.
const endedRunTime = 2 * time.Second

func (s *stage) ended(name, attempts string, o jobs.Outcome) []Command {
	if o.Ended == 0 {
		o.Started, o.Ended = s.now().Wall-jobs.Stamp(endedRunTime), s.now().Wall
	}
	m := &hosts.Exits{}
	for i, id := range attemptIDs(attempts) {
		m.Jobs = append(m.Jobs, hosts.ExitedJob{Attempt: id, Slot: i + 1, Outcome: o})
	}
	return s.step(AttemptsEnded{name, m})
}

func (s *stage) probedAs(name, attempts string, a hosts.Answer, o *jobs.Outcome) []Command {
	m := &hosts.Probed{}
	for _, id := range attemptIDs(attempts) {
		m.Jobs = append(m.Jobs, hosts.ProbedJob{Attempt: id, Answer: a, Outcome: o, Started: s.now().Wall})
	}
	return s.step(AttemptsProbed{name, m})
}

func (s *stage) job(id jobs.ID) *jobs.Job { return s.c.table.Job(id) }

func (s *stage) wantState(id jobs.ID, want jobs.JobState) {
	s.t.Helper()
	if got := s.job(id).State; got != want {
		s.t.Errorf("job %d is %s (%s), want %s", id, got, s.job(id).Reason, want)
	}
}

// history describes a job: its state, its round and its failures unless they are 1 and 0, and its
// attempts, such as "queued in round 2, 1 failure: a lost, b exited".
func (s *stage) history(id jobs.ID) string {
	j := s.job(id)
	msg := j.State.String()
	if j.Round != 1 {
		msg += fmt.Sprintf(" in round %d", j.Round)
	}
	if j.Failures > 0 {
		msg += ", " + text.Plural(int(j.Failures), "failure")
	}
	var attempts []string
	for _, a := range j.Attempts {
		attempts = append(attempts, fmt.Sprintf("%s %s", a.Host, a.State))
	}
	return strings.TrimSuffix(msg+": "+strings.Join(attempts, ", "), ": ")
}

// finishText returns how the run has finished, such as "done"; "" if it goes on.
func (s *stage) finishText() string {
	if s.finish == nil {
		return ""
	}
	return s.finish.How.String()
}

// wantETA checks that the forecast is between least and most, or that there is none if most is 0.
func (s *stage) wantETA(what string, least, most time.Duration) {
	s.t.Helper()
	if eta, spread, ok := s.c.ETA(s.now()); ok != (most > 0) || ok && (eta < least || eta > most) {
		s.t.Errorf("%s: the forecast is %s ± %s, %v; want %s to %s", what, eta, spread, ok, least, most)
	}
}

// eventsAbout returns the texts of all events so far that contain part.
func (s *stage) eventsAbout(part string) (texts []string) {
	for _, r := range s.journal {
		if r.Kind == jobs.KindEvent && strings.Contains(r.Reason, part) {
			texts = append(texts, r.Reason)
		}
	}
	return texts
}

// numEvents returns the number of events so far that contain part.
func (s *stage) numEvents(part string) int { return len(s.eventsAbout(part)) }

// numRecords returns the number of records of a kind so far.
func (s *stage) numRecords(kind jobs.Kind) (n int) {
	for _, r := range s.journal {
		if r.Kind == kind {
			n++
		}
	}
	return n
}

// folded adds records to a table and returns it.
func folded(t *testing.T, table *jobs.Table, records ...jobs.Record) *jobs.Table {
	t.Helper()
	for i := range records {
		if err := jobs.Fold(table, &records[i]); err != nil {
			t.Fatal(err)
		}
	}
	return table
}

// restart returns a stage with a new core that has replayed the journal of the old one.
func restart(s *stage, hs ...*hosts.Host) *stage { return restartAfter(s, len(s.journal), hs...) }

// restartAfter returns a stage with a new core for which only the first n records of the journal
// were durable.
func restartAfter(s *stage, n int, hs ...*hosts.Host) *stage {
	table := folded(s.t, &jobs.Table{Specs: s.c.table.Specs, Damaged: s.c.table.Damaged}, s.journal[:n]...)
	next := &stage{t: s.t, c: New(s.c.cfg, table, inventoryOf(hs...)), at: s.at, journal: slices.Clone(s.journal[:n])}
	next.step(Tick{})
	return next
}

func want[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got == want {
		return
	}
	format := "%s: got %v, want %v"
	if _, ok := any(got).(string); ok { // it may be empty, or contain spaces
		format = "%s: got %q, want %q"
	}
	t.Errorf(format, what, got, want)
}

// wantBetween checks that a value is in a range.
func wantBetween[T cmp.Ordered](t *testing.T, what string, got, least, most T) {
	t.Helper()
	if got < least || got > most {
		t.Errorf("%s: got %v, want %v to %v", what, got, least, most)
	}
}

func wantContains(t *testing.T, what, got, part string) {
	t.Helper()
	if !strings.Contains(got, part) {
		t.Errorf("%s: %q does not contain %q", what, got, part)
	}
}

const wallStart = jobs.Stamp(1_700_000_000_000_000_000)

var errRefused = &hosts.Error{Host: "melon", Class: hosts.Unreachable, Err: errors.New("connection refused")}

var succeeded = jobs.Outcome{}
var exit1 = jobs.Outcome{Exit: 1}
