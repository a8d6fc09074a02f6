package sched

// oddFor is how long a host must miss attempts before it is asked about them.
const oddFor = SuspectAfter

// heal compares the host's count of attempts with ours. Messages under way make
// them differ for moments; when a difference lasts, a message was lost in spite of
// all, and the attempts that have been there for long are asked about. A report
// that never came must not leave a run open for ever.
func (c *Core) heal(h *host) {
	if h.beat.Running+h.beat.Buffered >= h.open {
		h.oddAt = 0
		return
	}
	if h.oddAt == 0 {
		h.oddAt = c.now.Mono
	}
	if c.now.Mono-h.oddAt < oddFor {
		return
	}
	h.oddAt = 0
	for f := h.head; f != nil; f = f.next {
		if c.now.Mono-max(f.launchedAt, f.startedAt) >= oddFor {
			h.out.probe = append(h.out.probe, f.id)
		}
	}
}
