package sched

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// stage drives a core manually: a test sends events at chosen instants and inspects the commands.
type stage struct {
	t        *testing.T
	c        *Core
	at       time.Duration
	commands []Command     // of the last step
	records  []jobs.Record // of the last step
	journal  []jobs.Record
	finish   *Finish
	hosts    []*hosts.Host // without instances
	beat     time.Duration // when the next heartbeats are due
	nodes    []string      // of an instance; nil if it is a single host
}

func box(name string, slots int) *hosts.Host {
	return &hosts.Host{Name: name, Slots: hosts.SlotRule{Fixed: slots}, Link: "ssh", GPUs: -1}
}

func newStage(t *testing.T, cfg Config, hs ...*hosts.Host) *stage {
	return newStageOf(t, cfg, &jobs.Table{}, hs...)
}

func newStageOf(t *testing.T, cfg Config, table *jobs.Table, hs ...*hosts.Host) *stage {
	s := &stage{t: t, c: New(cfg, table, hs), hosts: hs}
	t.Cleanup(func() {
		if s.c.Defects != 0 {
			t.Errorf("%d defects", s.c.Defects)
		}
	})
	s.step(Tick{})
	return s
}

func (s *stage) now() Time { return Time{s.at, wallStart + jobs.Stamp(s.at)} }

func (s *stage) step(ev Event) []Command {
	s.records, s.commands = s.c.Step(s.now(), ev)
	s.journal = append(s.journal, s.records...)
	for _, o := range s.commands {
		switch o := o.(type) {
		case Finish:
			s.finish = &o
		case UseInstances:
			list := slices.Clone(s.hosts)
			for _, name := range o.Names {
				if s.nodes == nil {
					list = append(list, box(name, 2))
				}
				for _, node := range s.nodes {
					list = append(list, box(name+"."+node, 2))
				}
			}
			s.commands = append(slices.Clone(s.commands), s.step(SetHosts{list})...)
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
		if len(beating) > 0 && s.beat < next {
			next = s.beat
		}
		s.at = max(s.at, next)
		if len(beating) > 0 && s.at >= s.beat {
			for _, h := range beating {
				if s.c.byName[h] == nil {
					continue // the host has left
				}
				all = append(all, s.step(HostBeat{h, &hosts.Beat{MemFree: -1, DiskFree: -1, Running: s.c.byName[h].open}})...)
			}
			s.beat = s.at + HeartbeatInterval
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
	var specs []*jobs.Spec
	for i, o := range opts {
		specs = append(specs, &jobs.Spec{ID: jobs.ID(len(s.c.table.Jobs) + i + 1), Command: "true", Options: o})
	}
	s.step(Submit{Specs: specs, Last: last})
}

// plain submits n jobs without options.
func (s *stage) plain(n int) { s.submit(true, slices.Repeat([]*jobs.Options{jobs.NoOptions}, n)...) }

func (s *stage) up(names ...string) (all []Command) {
	for _, n := range names {
		h := s.c.byName[n].spec
		all = append(all, s.step(HostUp{Host: n, Hello: &hosts.Hello{Cores: h.Slots.Fixed + 1, Slots: h.Slots.Fixed, MemBytes: 16 << 30, GPUs: 2}})...)
		all = append(all, s.step(HostBeat{n, &hosts.Beat{MemFree: -1, DiskFree: -1}})...)
	}
	return all
}

// on returns the attempts that commands launch on a host.
func on(commands []Command, name string) string {
	var ids []string
	for _, o := range commands {
		if l, ok := o.(Launch); ok && l.Host == name {
			for _, p := range l.Jobs {
				ids = append(ids, p.Attempt.String())
			}
		}
	}
	return strings.Join(ids, " ")
}

// said formats the commands of one kind for comparison.
func said[T Command](commands []Command) string {
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

// took is the run time that ended assigns to jobs.
const took = 2 * time.Second

func (s *stage) ended(name, attempts string, o jobs.Outcome) []Command {
	if o.Ended == 0 {
		o.Started, o.Ended = s.now().Wall-jobs.Stamp(took), s.now().Wall
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

func want(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %q, want %q", what, got, want)
	}
}

func contains(t *testing.T, what, got, part string) {
	t.Helper()
	if !strings.Contains(got, part) {
		t.Errorf("%s: %q does not contain %q", what, got, part)
	}
}

var okay = jobs.Outcome{}
var exit1 = jobs.Outcome{Exit: 1}
