package dispatch

import (
	"time"

	"dcs-tui/dispatch/sched"
)

const (
	sampleEvery = 5 * time.Second
	samples     = 60
	notUp       = 255
)

// Host is a host as the core sees it, with what the engine keeps of its past.
type Host struct {
	sched.HostView
	Linked  bool          // a helper answers
	Delay   time.Duration // the newest round trip over its link; 0: not measured
	Files   string        // what is being sent to it or brought from it, in words
	Note    string        // the last message about it
	History []uint8       // as of live.Host
}

// past is what the engine keeps of its hosts' last minutes: a few bytes each.
type past struct {
	hosts map[string]*hostPast
	next  time.Duration // Time.Mono of the next sample
}

type hostPast struct {
	history [samples]uint8 // a ring
	n       int            // samples so far
	note    string
}

// look takes the samples that are due: of a longer pause of ours nothing is known but
// how it ended.
func (p *past) look(e *engine, now sched.Time) {
	if now.Mono < p.next {
		return
	}
	times := min(samples, 1+int((now.Mono-p.next)/sampleEvery))
	p.next = now.Mono - now.Mono%sampleEvery + sampleEvery
	for _, v := range e.core.Hosts() {
		h := p.hosts[v.Name]
		if h == nil {
			continue
		}
		share := uint8(notUp)
		switch {
		case !e.core.Linked(v.Name):
		case v.Slots > 0:
			share = uint8(min(100, 100*v.Running/v.Slots))
		default:
			share = 0
		}
		for range times {
			h.history[h.n%samples] = share
			h.n++
		}
	}
}

// told keeps what was said last of a host.
func (p *past) told(host, text string) {
	if h := p.hosts[host]; h != nil && text != "" {
		h.note = cut(text)
	}
}

// hosts returns every host of the inventory.
func (e *engine) hosts(now sched.Time) []Host {
	e.past.look(e, now)
	views := e.core.Hosts()
	list := make([]Host, len(views))
	for i, v := range views {
		list[i] = Host{HostView: v, Linked: e.core.Linked(v.Name)}
		if a := e.agents[v.Name]; a != nil {
			list[i].Delay = time.Duration(a.delay.Load())
			list[i].Files = joinFiles(v.Beat.Files, a.transfer.text(), list[i].Linked)
		}
		if h := e.past.hosts[v.Name]; h != nil {
			list[i].Note, list[i].History = h.note, h.samples()
		}
	}
	return list
}

// samples returns the history, oldest first.
func (h *hostPast) samples() []uint8 {
	n := min(h.n, samples)
	list := make([]uint8, n)
	for i := range list {
		list[i] = h.history[(h.n-n+i)%samples]
	}
	return list
}
