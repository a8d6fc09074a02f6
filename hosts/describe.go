package hosts

import (
	"fmt"
	"strconv"
	"strings"

	"dcs-tui/jobs"
)

// Way describes how the host is reached.
func (h *Host) Way() string {
	switch h.Link {
	case "local":
		return "this machine"
	case "command":
		return strings.Join(h.Command, " ")
	}
	text := strings.Join(h.Addresses, ", ")
	if h.User != "" {
		text = h.User + "@" + text
	}
	if h.Port != 0 {
		text += " port " + strconv.Itoa(h.Port)
	}
	if len(h.Jump) > 0 {
		text += " through " + strings.Join(h.Jump, ", ")
	}
	return "ssh " + text
}

// Limits describes the slots and limits that the inventory gives the host.
func (h *Host) Limits() string {
	var parts []string
	add := func(given bool, format string, args ...any) {
		if given {
			parts = append(parts, fmt.Sprintf(format, args...))
		}
	}
	switch r := h.Slots; {
	case r.Fixed > 0:
		add(true, "%s", jobs.Plural(r.Fixed, "slot"))
	case r.Less > 0:
		add(true, "cores-%d slots", r.Less)
	default:
		add(true, "a slot a core")
	}
	add(len(h.Tags) > 0, "tags %s", strings.Join(h.Tags, ","))
	add(len(h.Queues) > 0, "kept for queue %s", h.KeptText())
	add(len(h.GPUNumbers(nil)) > 0, "%s", jobs.Plural(len(h.GPUNumbers(nil)), "GPU"))
	add(h.NoMemLimit, "mem= is no limit")
	add(h.Weight != 1, "weight %g", h.Weight)
	add(!h.Yield, "does not yield")
	add(h.MaxLoad > 0, "load at most %g", h.MaxLoad)
	add(h.MinMemFree > 0, "%s of memory left free", jobs.FormatSize(h.MinMemFree))
	add(h.MinDiskFree > 0, "%s of disk left free", jobs.FormatSize(h.MinDiskFree))
	for _, q := range h.Quiet {
		add(true, "quiet %02d:%02d-%02d:%02d", int(q.From.Hours()), int(q.From.Minutes())%60, int(q.To.Hours()), int(q.To.Minutes())%60)
	}
	add(h.Owner == OwnerPause, "starts nothing while a person uses it")
	add(h.Owner == OwnerSuspend, "jobs are suspended while a person uses it")
	return strings.Join(parts, ", ")
}

// Text lists who uses what on a shared host, "" if nobody is known to.
func (s *Sharing) Text() string {
	if s == nil {
		return ""
	}
	var users []string
	for _, u := range s.Users {
		text := u.Name + " " + jobs.Plural(u.Slots, "slot")
		if u.Want > u.Slots {
			text += fmt.Sprintf(" of %d wanted", u.Want)
		}
		for _, n := range u.GPUs {
			text += fmt.Sprintf(", GPU %d", n)
		}
		if len(u.Runs) > 0 {
			text += " (" + strings.Join(u.Runs, ", ") + ")"
		}
		users = append(users, text)
	}
	return strings.Join(users, "; ")
}
