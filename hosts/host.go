package hosts

import (
	"reflect"
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
