package dispatch

import (
	"time"

	"dcs-tui/dispatch/sched"
	"dcs-tui/internal/text"
)

const (
	sampleInterval = 5 * time.Second
	maxSamples     = 60
	notUp          = 255
)

// Host is the core's view of a host, with the additional data of the engine.
type Host struct {
	sched.HostView
	Linked  bool          // a helper responds
	Delay   time.Duration // newest round trip over its link; 0: not measured
	Files   string        // files that are being sent or fetched, in words
	Note    string        // last message about it
	History []uint8       // as in live.Host
}

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

// hosts returns every host of the inventory.
func (e *engine) hosts(now sched.Time) []Host {
	e.history.sample(e, now)
	views := e.core.Hosts()
	list := make([]Host, len(views))
	for i, v := range views {
		list[i] = Host{HostView: v, Linked: e.core.Linked(v.Name)}
		if a := e.agents[v.Name]; a != nil {
			list[i].Delay = time.Duration(a.delay.Load())
			if list[i].Linked {
				list[i].Files = joinTexts("; ", v.Heartbeat.Files, a.transfer.text())
			}
		}
		if h := e.history.hosts[v.Name]; h != nil {
			list[i].Note, list[i].History = h.note, h.samples()
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
