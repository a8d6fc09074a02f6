package dispatch

import (
	"time"

	"dcs-tui/dispatch/sched"
	"dcs-tui/internal/text"
	"dcs-tui/jobs/live"
)

const (
	sampleInterval = 5 * time.Second
	maxSamples     = 60
	notUp          = 255
)

// history holds samples of the last minutes of each host.
type history struct {
	hosts  map[string]*hostHistory
	nextAt time.Duration // Time.Mono of the next sample
}

type hostHistory struct {
	history    [maxSamples]uint8 // a ring buffer
	numSamples int               // samples so far
	note       string            // last message
}

// sample takes the samples that are due. After a pause of this process, the current value is used
// for all missed samples.
func (p *history) sample(e *engine, now sched.Time) {
	if now.Mono < p.nextAt {
		return
	}
	times := min(maxSamples, 1+int((now.Mono-p.nextAt)/sampleInterval))
	p.nextAt = now.Mono - now.Mono%sampleInterval + sampleInterval
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
			h.history[h.numSamples%maxSamples] = share
			h.numSamples++
		}
	}
}

// maxNote is the maximum number of bytes of hostHistory.note.
const maxNote = 1000

// setNote stores the last message about a host.
func (p *history) setNote(host, note string) {
	if h := p.hosts[host]; h != nil && note != "" {
		h.note = text.ShortenBytes(note, maxNote)
	}
}

// liveHosts returns what the engine knows of each host beside the core's view of it, in the same
// order. fillHost completes it.
func (e *engine) liveHosts(views []sched.HostView) []live.Host {
	list := make([]live.Host, len(views))
	for i, v := range views {
		l := &list[i]
		l.Linked = e.core.Linked(v.Name)
		if a := e.agents[v.Name]; a != nil {
			l.Delay = time.Duration(a.delay.Load())
			if l.Linked {
				l.Files = text.Join("; ", v.Heartbeat.Files, a.describeReturns())
			}
		}
		if h := e.history.hosts[v.Name]; h != nil {
			l.Note, l.History = h.note, h.samples()
		}
	}
	return list
}

// samples returns the history, oldest first.
func (h *hostHistory) samples() []uint8 {
	n := min(h.numSamples, maxSamples)
	list := make([]uint8, n)
	for i := range list {
		list[i] = h.history[(h.numSamples-n+i)%maxSamples]
	}
	return list
}
