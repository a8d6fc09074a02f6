package tui

import (
	"fmt"
	"strings"
)

// tabsRow names the views with their counts, and at the right how the list of jobs is
// filtered and sorted.
func (m *model) tabsRow() string {
	var full, short []string
	for i := range tabs {
		name := string('1'+rune(i)) + " " + tabNames[i]
		long := name
		if n := m.tabCount(i); n != "" {
			long += " " + n
		}
		if i == m.tab {
			name, long = styleBold.with(styleHere).Render("["+name+"]"), styleBold.with(styleHere).Render("["+plainText(long)+"]")
		}
		full, short = append(full, long), append(short, name)
	}
	left := " " + strings.Join(full, "  ")
	right := m.listState()
	for _, tight := range []string{" " + strings.Join(short, "  "), strings.Join(short, " ")} {
		if width(left)+2+width(right) > m.w {
			left = tight
		}
	}
	return m.sides(left, m.cut(right, max(0, m.w-width(left)-2)), m.w)
}

// tabCount is the number beside the name of a view.
func (m *model) tabCount(t tab) string {
	if m.pic == nil {
		return ""
	}
	switch t {
	case tabJobs:
		if p := m.jobs.page; m.jobs.filter != "" && p != nil && m.jobs.fits(p) && p.Wrong == "" {
			return thousands(p.Matched)
		}
		return thousands(m.pic.Total)
	case tabHosts:
		if m.over() {
			return thousands(len(m.pic.Hosts))
		}
		up, _ := m.usable()
		return fmt.Sprintf("%d/%d", up, len(m.pic.Hosts))
	case tabFailed:
		if n := counts(m.pic).failed; n > 0 {
			return styleBad.Render(thousands(n))
		}
	}
	return ""
}

// listState says how the view is filtered and sorted.
func (m *model) listState() string {
	if p, ok := m.panes[m.tab].(interface{ state(*model) string }); ok {
		return p.state(m) + " "
	}
	if m.tab != tabJobs || m.pic == nil || m.pic.Jobs == nil {
		return ""
	}
	p := m.pic.Jobs
	arrow := m.g.down
	if p.Reverse {
		arrow = m.g.up
	}
	s := "sort:" + p.Sort.String() + " " + arrow + " "
	if p.Filter != "" {
		s = "/" + m.cut(m.clean(p.Filter), 24) + "  " + s
	}
	return s
}
