package hosts

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"dcs-tui/jobs"
)

// Host is one machine of the inventory, every default filled in. It is known by
// Name everywhere: several machines may share a host name or a boot id.
type Host struct {
	Name      string
	Addresses []string // tried in turn; never empty for ssh
	Port      int      // 0: what ssh_config says, else 22
	User      string   // "": what ssh_config says, else the local user
	Identity  string   // key file; "": what ssh_config says, else the usual ones
	Jump      []string // gateways in order; nil: what ssh_config says

	Slots       SlotRule
	Yield       bool // fewer slots as the load of others rises
	MaxLoad     float64
	MinMemFree  int64 // bytes
	MinDiskFree int64 // bytes
	Quiet       []Quiet
	Owner       string        // what is done while a person uses it: OwnerPause, OwnerSuspend, or "" for nothing
	OwnerIdle   time.Duration // 0: DefaultOwnerIdle
	Nice        int
	Tags        []string // sorted
	Queues      []Kept   // which queues it, or a part of it, is kept for
	GPUs        int      // -1: as many as the host reports
	GPUIDs      []int    // the devices that may be used, in the order of their numbers; nil: those that the host reports
	NoMemLimit  bool     // mem= of a job reserves memory and limits nothing
	Weight      float64  // relative speed, 1 unless told
	WorkDir     string   // "": ~/.dcs-tui
	ShareDir    string   // "": /var/tmp/dcs-share
	Setup       string
	Send        []string      // files that every job gets there: PATH or PATH:DEST, on the dispatcher's machine
	LostAfter   time.Duration // 0: the default, 60 s

	Link    string   // "ssh", "local" or "command"
	Command []string // argv of a "command" link
	Shells  int      // number of shells at the far end that split the words of a "command" link again (see RemoteShells)

	File string // where it was read from, for messages
	Line int
}

// SlotRule is `slots` of the inventory: a fixed number, or the cores of the
// host less a reserve ("cores-1").
type SlotRule struct {
	Fixed int // > 0: exactly so many
	Less  int // otherwise: cores - Less, at least 1
}

// Count returns the slots of a host with that many cores, at least 1.
func (r SlotRule) Count(cores int) int {
	if r.Fixed > 0 {
		return r.Fixed
	}
	return max(1, cores-r.Less)
}

// Quiet is a daily time of rest in the host's local time; it may span midnight.
type Quiet struct{ From, To time.Duration }

// The values of Host.Owner.
const (
	OwnerPause   = "pause"   // nothing is started
	OwnerSuspend = "suspend" // and running jobs are suspended
)

// DefaultOwnerIdle is how long a person counts as present after the last use of a host.
const DefaultOwnerIdle = 10 * time.Minute

// DefaultLostAfter is how long a host may be silent before it is given up.
const DefaultLostAfter = 60 * time.Second

// LostAfterOrDefault returns LostAfter, or the default when it is 0.
func (h *Host) LostAfterOrDefault() time.Duration {
	if h.LostAfter > 0 {
		return h.LostAfter
	}
	return DefaultLostAfter
}

// Same reports whether two hosts differ in nothing but where they were read from.
func (h *Host) Same(o *Host) bool {
	a, b := *h, *o
	a.File, a.Line, b.File, b.Line = "", 0, "", 0
	return reflect.DeepEqual(a, b)
}

// Inventory is a hosts.toml as read.
type Inventory struct {
	File  string // "" when there is none: this machine alone
	Text  string // content of the file, kept because a pipe cannot be read again
	Hosts []*Host

	Providers []*Provider
	Tokens    []jobs.Token // how many of each kind jobs may hold together, by name; a Count may be 0

	defaults *draft // [defaults]; nil: none
}

// GPUNumbers returns the numbers of the devices that may be used, in their order. hello is
// what the host reports, nil if that is not known. nil: it depends on what the host reports.
func (h *Host) GPUNumbers(hello *Hello) []int {
	numbers := h.GPUIDs
	switch {
	case numbers == nil && hello != nil:
		numbers = hello.GPUNumbers()
	case numbers == nil && h.GPUs < 0:
		return nil
	}
	if h.GPUs < 0 {
		return numbers
	}
	if h.GPUs > len(numbers) && h.GPUIDs == nil { // the inventory knows more than the host
		numbers = upTo(h.GPUs)
	}
	return append([]int{}, numbers[:min(h.GPUs, len(numbers))]...)
}

// GPUNumbers returns the numbers of the devices that were found, in their order.
func (m *Hello) GPUNumbers() []int {
	if len(m.GPUIDs) > 0 {
		return m.GPUIDs
	}
	return upTo(m.GPUs)
}

// upTo returns 0, 1 … n-1.
func upTo(n int) []int {
	numbers := make([]int, n)
	for i := range numbers {
		numbers[i] = i
	}
	return numbers
}

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
		if u.Memory > 0 {
			text += fmt.Sprintf(", %.3g GiB", float64(u.Memory)/(1<<30))
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

// Limits of a line that reports changes of an inventory.
const (
	maxNamed   = 4 // hosts of each kind of change
	maxChanges = 4 // different changes
)

// Changes describes in one line which hosts were added, removed and changed.
// It returns "" if none was. Hosts with the same change are grouped.
func Changes(old, now []*Host) string {
	before := map[string]*Host{}
	for _, h := range old {
		before[h.Name] = h
	}
	var added, removed, changes []string
	changed := map[string][]string{} // hosts by change
	for _, h := range now {
		was := before[h.Name]
		delete(before, h.Name)
		if was == nil {
			added = append(added, h.Name)
			continue
		}
		if text := hostChange(was, h); text != "" {
			if changed[text] == nil {
				changes = append(changes, text)
			}
			changed[text] = append(changed[text], h.Name)
		}
	}
	for _, h := range old {
		if before[h.Name] != nil {
			removed = append(removed, h.Name)
		}
	}
	var parts []string
	say := func(what string, names []string) {
		if len(names) > 0 {
			parts = append(parts, what+" "+nameSome(names))
		}
	}
	say("added", added)
	say("removed", removed)
	slices.SortStableFunc(changes, func(a, b string) int { return cmp.Compare(len(changed[b]), len(changed[a])) })
	rest := 0
	for i, text := range changes {
		if i >= maxChanges {
			rest += len(changed[text])
			continue
		}
		parts = append(parts, nameSome(changed[text])+": "+text)
	}
	if rest > 0 {
		parts = append(parts, jobs.Plural(rest, "other host")+" changed")
	}
	return strings.Join(parts, "; ")
}

// nameSome joins names. It shortens a long list.
func nameSome(names []string) string {
	if more := len(names) - maxNamed; more > 1 {
		names = append(slices.Clone(names[:maxNamed]), strconv.Itoa(more)+" more")
	}
	return strings.Join(names, ", ")
}

// hostChange describes how a host has changed. It returns "" if it has not.
func hostChange(old, now *Host) string {
	var parts []string
	value := func(key, was, is string) {
		if was != is {
			parts = append(parts, key+" "+cmp.Or(is, "none")+" (was "+cmp.Or(was, "none")+")")
		}
	}
	value("slots", slotsValue(old.Slots), slotsValue(now.Slots))
	value("tags", strings.Join(old.Tags, " "), strings.Join(now.Tags, " "))
	value("queues", old.KeptText(), now.KeptText())
	value("address", strings.Join(old.Addresses, " "), strings.Join(now.Addresses, " "))
	var others []string
	for _, o := range []struct {
		key     string
		was, is any
	}{
		{"port", old.Port, now.Port}, {"user", old.User, now.User}, {"identity", old.Identity, now.Identity},
		{"jump", old.Jump, now.Jump}, {"yield", old.Yield, now.Yield}, {"max_load", old.MaxLoad, now.MaxLoad},
		{"min_mem_free", old.MinMemFree, now.MinMemFree}, {"min_disk_free", old.MinDiskFree, now.MinDiskFree},
		{"quiet", old.Quiet, now.Quiet}, {"owner", old.Owner, now.Owner}, {"owner_idle", old.OwnerIdle, now.OwnerIdle}, {"nice", old.Nice, now.Nice}, {"gpus", old.GPUs, now.GPUs}, {"gpu_ids", old.GPUIDs, now.GPUIDs}, {"mem_limit", !old.NoMemLimit, !now.NoMemLimit}, {"weight", old.Weight, now.Weight},
		{"work_dir", old.WorkDir, now.WorkDir}, {"share_dir", old.ShareDir, now.ShareDir},
		{"setup", old.Setup, now.Setup}, {"send", old.Send, now.Send}, {"lost_after", old.LostAfter, now.LostAfter},
		{"link", append([]string{old.Link}, old.Command...), append([]string{now.Link}, now.Command...)},
	} {
		if !reflect.DeepEqual(o.was, o.is) {
			others = append(others, o.key)
		}
	}
	if len(others) > 0 {
		parts = append(parts, "other "+strings.Join(others, ", "))
	}
	return strings.Join(parts, ", ")
}

// slotsValue returns the rule for slots as it is written in the inventory.
func slotsValue(r SlotRule) string {
	if r.Fixed > 0 {
		return strconv.Itoa(r.Fixed)
	}
	if r.Less == 0 {
		return "cores"
	}
	return "cores-" + strconv.Itoa(r.Less)
}
