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

func newPast(names []string) past {
	p := past{hosts: make(map[string]*hostPast, len(names))}
	for _, n := range names {
		p.hosts[n] = new(hostPast)
	}
	return p
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

// host adds the past to a view.
func (p *past) host(v sched.HostView) Host {
	out := Host{HostView: v}
	h := p.hosts[v.Name]
	if h == nil {
		return out
	}
	out.Note = h.note
	n := min(h.n, samples)
	out.History = make([]uint8, n)
	for i := range n {
		out.History[i] = h.history[(h.n-n+i)%samples]
	}
	return out
}
