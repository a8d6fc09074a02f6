package sim

import (
	"slices"
	"time"

	"dcs-tui/dispatch/sched"
	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// What a helper lets start: slots, leases, and what it takes back.

// setLimit changes how many slots may be busy.
func (p *helper) setLimit(n int) {
	if p.superseded() {
		return
	}
	p.h.limit = n
	p.h.fill()
}

// extend gives what waits more time. What has lapsed is taken back first.
func (p *helper) extend(to time.Duration) {
	h := p.h
	if p.superseded() {
		return
	}
	if h.uptime() > h.lease {
		p.takeBackAll()
	}
	h.lease = max(h.lease, to)
	h.fill()
}

func (p *helper) takeBackAll() {
	var gone []jobs.AttemptID
	for _, id := range slices.Clone(p.waiting) {
		if p.takeBack(id) {
			gone = append(gone, id)
		}
	}
	if gone != nil {
		p.tell(sched.AttemptsWithdrawn{Host: p.h.name, Msg: &hosts.Withdrawn{Attempts: gone, Why: "its lease ran out before a slot was free"}})
	}
}

// takeBack removes a waiting spec. True means that it will never start.
func (p *helper) takeBack(id jobs.AttemptID) bool {
	if !p.waiting.has(id) {
		return false
	}
	for i, s := range p.h.in {
		if s.id == id {
			p.h.in = append(p.h.in[:i:i], p.h.in[i+1:]...)
			p.waiting.del(id)
			return true
		}
	}
	return false
}
