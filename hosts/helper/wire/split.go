package wire

import (
	"fmt"

	"dcs-tui/hosts"
)

// halves cuts a message that is a list of attempts in two messages that mean
// the same when they arrive one after the other. ok is false when it cannot.
func halves(m any) (one, two hosts.Message, ok bool) {
	switch m := m.(type) {
	case hosts.Launch:
		h := len(m.Jobs) / 2
		a, b := m, m
		a.Jobs, b.Jobs = m.Jobs[:h], m.Jobs[h:]
		return a, b, h > 0
	case hosts.Started:
		h := len(m.Jobs) / 2
		return hosts.Started{Jobs: m.Jobs[:h]}, hosts.Started{Jobs: m.Jobs[h:]}, h > 0
	case hosts.Exits:
		h := len(m.Jobs) / 2
		return hosts.Exits{Jobs: m.Jobs[:h]}, hosts.Exits{Jobs: m.Jobs[h:]}, h > 0
	case hosts.Probed:
		h := len(m.Jobs) / 2
		return hosts.Probed{Jobs: m.Jobs[:h]}, hosts.Probed{Jobs: m.Jobs[h:]}, h > 0
	case hosts.Looked:
		h := len(m.Jobs) / 2
		a, b := m, m
		a.Jobs, b.Jobs = m.Jobs[:h], m.Jobs[h:]
		return a, b, h > 0
	case hosts.Listed:
		h := len(m.Jobs) / 2
		a, b := m, m
		a.Jobs, b.Jobs, a.Last = m.Jobs[:h], m.Jobs[h:], false
		return a, b, h > 0
	}
	return nil, nil, false
}

// what names a message for people.
func what(m any) string {
	switch m := m.(type) {
	case hosts.Launch:
		if len(m.Jobs) == 1 {
			return fmt.Sprintf("the launch of %s", m.Jobs[0].Attempt)
		}
	case hosts.Exits:
		if len(m.Jobs) == 1 {
			return fmt.Sprintf("the outcome of %s", m.Jobs[0].Attempt)
		}
	}
	if m, ok := m.(hosts.Message); ok {
		return fmt.Sprintf("a message %q", m.Word())
	}
	return "a message"
}
