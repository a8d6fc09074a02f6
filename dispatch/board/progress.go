package board

import (
	"strconv"
	"strings"

	"dcs-tui/dispatch/view"
	"dcs-tui/jobs"
)

// say adds to a row what its job says of itself. A host is heard only on its own jobs.
func (b *Board) say(r *view.Row) {
	if h := b.status.progress[r.Host]; h != nil && r.Phase <= view.Away {
		if text, ok := h.text[jobs.AttemptID{Job: r.ID, N: r.Attempt}.String()]; ok {
			r.Progress, r.Said = readProgress(text)
		}
	}
}

// maxSaid bounds the jobs of a host that are heard: more cannot run there.
const maxSaid = 4096

// progressed enters what running jobs say of themselves, where a new beat has come.
func (b *Board) progressed(before, now *status) {
	for host, h := range now.progress {
		if old := before.progress[host]; old != nil && old.beat == h.beat {
			continue
		}
		left := maxSaid
		for name, text := range h.text {
			if left--; left < 0 {
				break
			}
			id, err := jobs.ParseAttemptID(name)
			if err != nil || int(id.Job) > len(b.rows) {
				continue
			}
			r := &b.rows[id.Job-1]
			share, _ := readProgress(text)
			if n := uint16(share * 10_000); share >= 0 && runs(r.phase) && int(r.attempts) == id.N && b.names[r.host] == host && n != r.progress {
				r.progress = n
				b.edition++
			}
		}
	}
}

// readProgress reads DCS_PROGRESS: "0.42", "42%" or "21/50". What is none of these is
// shown as it is.
func readProgress(text string) (share float64, said string) {
	const longest = 64
	text = strings.TrimSpace(text[:min(len(text), longest)])
	number := func(s string) (float64, bool) {
		f, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
		return f, err == nil
	}
	share = -1
	if s, ok := strings.CutSuffix(text, "%"); ok {
		if f, ok := number(s); ok {
			share = f / 100
		}
	} else if s, of, ok := strings.Cut(text, "/"); ok {
		a, ok1 := number(s)
		n, ok2 := number(of)
		if ok1 && ok2 && n > 0 {
			share = a / n
		}
	} else if f, ok := number(text); ok {
		share = f
	}
	if share >= 0 && share <= 1 {
		return share, ""
	}
	return -1, text
}
