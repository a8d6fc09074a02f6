package tui

import (
	"strings"

	"dcs-tui/jobs"
)

// at is the place of the cursor. When its job is no longer listed it is another of the
// same cause, never all of them.
func (p *failedPane) at(lines []failedLine) int {
	group, last := 0, 0
	for i, l := range lines {
		if key(l.group) != p.cause {
			continue
		}
		if last = i; l.row == nil && l.rest == 0 {
			group = i
		}
		if l.row != nil && l.row.ID == p.job || l.rest > 0 && p.job < 0 {
			return i
		}
	}
	if p.job != 0 && last > group {
		return min(last, group+max(1, p.below))
	}
	return group
}

// see notes when what is under the cursor has gone.
func (p *failedPane) see(m *model) {
	lines := p.lines(m)
	if len(lines) == 0 || p.cause == [2]string{} {
		return
	}
	before, had := p.cause, p.job
	p.put(lines, p.at(lines))
	if p.cause != before || p.job != had {
		p.slip = slip{from: failedName(m, before, had), gone: true, at: m.now()}
	}
}

func (p *failedPane) slipped(m *model) (*slip, string) {
	if len(p.lines(m)) == 0 {
		return &p.slip, ""
	}
	return &p.slip, failedName(m, p.cause, p.job)
}

// failedName is how a job, or else a cause, is called in sentences.
func failedName(m *model, cause [2]string, job jobs.ID) string {
	if job > 0 {
		return jobName(job)
	}
	return strings.TrimSpace(m.cut(m.cellText(cause[0]+" "+cause[1], 40), 40))
}

// put sets the cursor on a line.
func (p *failedPane) put(lines []failedLine, at int) {
	l := lines[at]
	p.cause, p.job, p.below = key(l.group), 0, 0
	switch {
	case l.row != nil:
		p.job = l.row.ID
	case l.rest > 0:
		p.job = -1
	default:
		return
	}
	for i := at; i > 0 && lines[i-1].group == l.group; i-- {
		p.below++
	}
}

func (p *failedPane) move(m *model, by int) {
	if lines := p.lines(m); len(lines) > 0 {
		p.put(lines, max(0, min(len(lines)-1, p.at(lines)+by)))
	}
}
