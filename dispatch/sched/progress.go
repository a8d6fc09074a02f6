package sched

import (
	"time"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// progress is what a running job last said of itself, as a beat brought it.
type progress struct {
	text  string
	share float64       // 0: nothing that can be reckoned with
	age   time.Duration // of the attempt when it said something new
	at    time.Duration // Time.Mono of that
}

// hear takes in what the jobs of a host say of themselves.
func (h *host) hear(b *hosts.Beat, now time.Duration) {
	if len(b.Progress) == 0 {
		return
	}
	for f := h.head; f != nil; f = f.next {
		if !f.started {
			continue
		}
		if text, ok := b.Progress[f.id.String()]; ok && text != f.said.text {
			share, _ := jobs.ReadProgress(text)
			f.said = progress{text, max(0, share), f.age(now), now}
		}
	}
}

// leastShare is how much of it a job must have done before it can be said how long the
// rest takes.
const leastShare = 0.01

// left is the law of how long a job still takes that has run for age seconds, by its own
// account: as long for each part as so far. The less it has done the less that is
// sure, and one that is overdue takes as long again.
func (p *progress) left(age float64) (law, bool) {
	if p.share < leastShare {
		return law{}, false
	}
	at := p.age.Seconds()
	whole := at / p.share
	rest := whole - age
	mean := max(rest, -rest, whole/20)
	doubt := 0.2 + 0.8*sqr(1-p.share) // of the whole to come
	return lawOf(mean, mean*doubt+whole/50), true
}
