package runview

import (
	"strings"
	"time"

	"dcs-tui/dispatch"
	"dcs-tui/dispatch/sched"
	"dcs-tui/jobs/live"
)

// status is what is known of the run as a whole.
type status struct {
	run     dispatch.Status
	total   int
	life    Life
	over    string
	trouble []string
	hosts   []live.Host
	links   []bool // of hosts: a helper answers
	// stragglers are as many as the core has: rows may be a moment behind.
	stragglers int
	hardnesses int              // that HardnessOrder knows
	hybrid     bool             // local slots take the shortest job first
	progress   map[string]*said // by host
	beats      []time.Duration  // of hosts: the newest
}

// said is what the jobs of a host said of themselves (DCS_PROGRESS) by its newest beat.
type said struct {
	beat time.Duration
	text map[string]string // by attempt; never changed
}

// status copies what is known of the run.
func (k *desk) status() *status {
	s := &status{total: len(k.table.Jobs)}
	if k.in == nil {
		s.run = dispatch.Status{At: time.Now(), Tries: k.tries, More: k.past.past.More}
		s.life, s.over, s.trouble, s.hosts = k.past.past.Life, k.past.over, k.past.trouble, k.past.hosts
		return s
	}
	s.run = k.in.Status()
	if f := s.run.Finish; f != nil {
		s.life, s.over = Ended, overText(f)
		if f.How == sched.Fenced {
			s.life, s.run.Problem = Taken, "" // it writes no journal any more
		}
	}
	s.stragglers, s.hardnesses, s.hybrid = k.core.Stragglers(), k.core.Hardnesses(), k.core.Hybrid()
	mono := k.mono.Mono
	for _, h := range k.in.Hosts() {
		s.hosts = append(s.hosts, hostOf(&h, mono))
		s.links = append(s.links, h.Linked)
		s.beats = append(s.beats, h.LastBeat)
		if len(h.Beat.Progress) > 0 {
			if s.progress == nil {
				s.progress = map[string]*said{}
			}
			s.progress[h.Name] = &said{h.LastBeat, h.Beat.Progress}
		}
	}
	return s
}

func overText(f *sched.Finish) string {
	switch f.How {
	case sched.AllDone:
		return "all jobs are over" + andLeft(f.Why)
	case sched.Drained:
		return "drained" + because(f.Why)
	case sched.Stopped:
		return "stopped" + because(f.Why)
	case sched.Fenced:
		who, _, _ := strings.Cut(f.Why, ";") // after it: what becomes of the old one
		return who
	}
	return f.Why
}

func andLeft(why string) string {
	if why == "" {
		return ""
	}
	return "; " + why
}

func hostOf(h *dispatch.Host, mono time.Duration) live.Host {
	b := &h.Beat
	v := live.Host{
		Name: h.Name, State: h.State.String(), Reason: h.Reason, Stopped: h.Stopped, Note: h.Note, Slots: h.Slots, Usable: h.Usable,
		Running: h.Running, Buffered: h.Buffered, Done: h.Done, Failed: h.Failed,
		Load: b.Load, Busy: b.Busy, Ours: b.Ours, MemFree: b.MemFree, DiskFree: b.DiskFree, FSDelay: b.FSDelay,
		Delay: h.Delay, History: h.History,
	}
	if m := h.Hello; m != nil {
		v.Cores, v.GPUs, v.MemBytes = m.Cores, m.GPUs, m.MemBytes
	}
	if h.LastBeat > 0 {
		v.Beat = max(1, mono-h.LastBeat)
	} else {
		v.DiskFree = -1
	}
	if h.Down > 0 {
		v.Down = max(1, mono-h.Down)
	}
	if h.RetryAt > mono {
		v.RetryIn = h.RetryAt - mono
	}
	return v
}

// fill puts it into a picture.
func (s *status) fill(p *Picture) {
	r := &s.run
	p.Life, p.Over, p.Trouble, p.More, p.Tries = s.life, s.over, s.trouble, r.More, r.Tries
	p.Rate, p.Rates, p.ETA, p.Spread = r.Rate, r.Rates, r.ETA, r.Spread
	p.Paused, p.Draining, p.Problem, p.Hosts = r.Paused, r.Drain, r.Problem, s.hosts
	p.Stuck = r.Stuck
	for i := range s.hosts {
		p.SlotsBusy += s.hosts[i].Running
		p.Slots += s.hosts[i].Slots
		p.Usable += s.hosts[i].Usable
	}
}

// aged adds the time since s was taken to the ages of the hosts.
func (s *status) aged(now time.Time) []live.Host {
	d := now.Sub(s.run.At)
	if d <= 0 || len(s.hosts) == 0 {
		return s.hosts
	}
	list := make([]live.Host, len(s.hosts))
	copy(list, s.hosts)
	for i := range list {
		h := &list[i]
		if h.Beat > 0 {
			h.Beat += d
		}
		if h.Down > 0 {
			h.Down += d
		}
		if h.RetryIn > 0 {
			h.RetryIn = max(0, h.RetryIn-d)
		}
	}
	return list
}

// changes takes what the engine has gathered; of a table there is nothing.
func (k *desk) changes(most int) dispatch.Changes {
	if k.in == nil {
		return dispatch.Changes{}
	}
	return k.in.Changes(k.watch, most)
}
