package hosts

import (
	"cmp"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"dcs-tui/internal/text"
	"dcs-tui/jobs"
)

// Host is one machine of the inventory, with all defaults filled in. It is identified by
// Name: several machines may share a host name or a boot id.
type Host struct {
	Name      string
	Addresses []string // tried in turn; never empty for ssh
	Port      int      // 0: from ssh_config, else 22
	User      string   // "": from ssh_config, else the local user
	Identity  string   // key file; "": from ssh_config, else the usual ones
	SSHConfig string   // file instead of ~/.ssh/config; "": --ssh-config, or the usual ones
	Jump      []string // gateways in order; nil: from ssh_config

	Slots       SlotRule
	Yield       bool    // reduces slots for other users' load
	MaxLoad     float64 // load from which on no jobs start; 0: no limit
	MinMemFree  int64   // bytes
	MinDiskFree int64   // bytes
	Quiet       []Quiet
	// While a person uses it: OwnerPause, OwnerSuspend, or "" for no effect.
	Owner     string
	OwnerIdle time.Duration // 0: DefaultOwnerIdle
	Nice      int
	Pin       bool       // each job is bound to cores of its own
	Tags      []string   // sorted
	Queues    []KeptPart // parts that are kept for queues
	GPUs      int        // -1: as many as the host reports
	// Sorted numbers of the devices that may be used; nil: those that the host reports.
	GPUIDs     []int
	NoMemLimit bool    // mem= of a job reserves memory without limiting it
	Weight     float64 // relative speed; the default is 1
	WorkDir    string  // "": ~/.dcs-tui
	ShareDir   string  // "": /var/tmp/dcs-share
	Setup      string
	// Files of the dispatcher's machine that every job gets: PATH or PATH:DEST.
	Send      []string
	LostAfter time.Duration // 0: DefaultLostAfter
	// How long its jobs wait for it when it is silent and the network may be the cause.
	OutageAfter time.Duration // 0: DefaultOutageAfter

	Heartbeat    time.Duration // interval of its heartbeats; 0: DefaultHeartbeat
	SuspectAfter time.Duration // silence after which it is suspect; 0: five heartbeats

	// A job there is a straggler from this multiple of its expected run time and from this age on;
	// 0: as elsewhere in the run.
	StragglerFactor float64
	StragglerAge    time.Duration

	Link    string   // "ssh", "local" or "command"
	Command []string // argv of a "command" link
	Shells  int      // see RemoteShells

	File string // file from which it was read, for messages
	Line int
}

// SlotRule is `slots` of the inventory: a fixed number, or the number of cores less a
// reserve ("cores-1").
type SlotRule struct {
	Fixed int // number of slots if it is positive
	Less  int // otherwise cores - Less, at least 1
}

// Count returns the number of slots of a host with that many cores, at least 1.
func (r SlotRule) Count(cores int) int {
	if r.Fixed > 0 {
		return r.Fixed
	}
	return max(1, cores-r.Less)
}

// String returns the rule as it is written in the inventory.
func (r SlotRule) String() string {
	switch {
	case r.Fixed > 0:
		return strconv.Itoa(r.Fixed)
	case r.Less == 0:
		return "cores"
	}
	return "cores-" + strconv.Itoa(r.Less)
}

// The values of Host.Owner, in addition to "".
const (
	OwnerPause   = "pause"   // no jobs start while an owner is present
	OwnerSuspend = "suspend" // running jobs are suspended, too
)

// DefaultOwnerIdle is how long a person counts as present after the last use of a host.
const DefaultOwnerIdle = 10 * time.Minute

// DefaultLostAfter is how long a host may send no heartbeat before it is lost.
const DefaultLostAfter = 60 * time.Second

// LostAfterOrDefault returns LostAfter, or the default when it is 0.
func (h *Host) LostAfterOrDefault() time.Duration { return cmp.Or(h.LostAfter, DefaultLostAfter) }

// DefaultHeartbeat is the interval of the heartbeats of a host.
const DefaultHeartbeat = 3 * time.Second

// maxHeartbeat is the longest interval of heartbeats, and minSuspectAfter is the shortest silence
// that makes a host suspect. A dispatcher that is held up for up to 6 s does not notice that.
const (
	maxHeartbeat    = 30 * time.Second
	minSuspectAfter = 6 * time.Second
)

// HeartbeatOrDefault returns Heartbeat, or the default when it is 0.
func (h *Host) HeartbeatOrDefault() time.Duration { return cmp.Or(h.Heartbeat, DefaultHeartbeat) }

// SuspectAfterOrDefault returns SuspectAfter, or the default when it is 0.
func (h *Host) SuspectAfterOrDefault() time.Duration {
	return cmp.Or(h.SuspectAfter, max(minSuspectAfter, 5*h.HeartbeatOrDefault()))
}

// checkSilence returns an error if heartbeat, suspect_after, and lost_after do not fit together. A
// single late heartbeat must not cut the link. A host must be suspect before it is lost, because
// its lease is extended until then, and it may start jobs during its lease.
func (h *Host) checkSilence() error {
	if h.Heartbeat == 0 && h.SuspectAfter == 0 {
		return nil // a short lost_after alone gets a warning
	}
	beat, suspect, lost := h.HeartbeatOrDefault(), h.SuspectAfterOrDefault(), h.LostAfterOrDefault()
	switch {
	case suspect < 2*beat:
		return fmt.Errorf("suspect_after (%s) must be at least twice heartbeat (%s)", suspect, beat)
	case lost < suspect && h.SuspectAfter == 0:
		return fmt.Errorf("lost_after (%s) must be at least five times heartbeat (%s), "+
			"unless suspect_after says otherwise",
			lost, beat)
	case lost < suspect:
		return fmt.Errorf("lost_after (%s) must be at least suspect_after (%s)", lost, suspect)
	}
	return nil
}

// DefaultOutageAfter is the default of Host.OutageAfter.
const DefaultOutageAfter = 15 * time.Minute

// OutageAfterOrDefault returns OutageAfter, or the default when it is 0.
func (h *Host) OutageAfterOrDefault() time.Duration {
	return cmp.Or(h.OutageAfter, DefaultOutageAfter)
}

// Equal reports whether two hosts are equal apart from the place where they were read.
func (h *Host) Equal(o *Host) bool {
	a, b := *h, *o
	a.File, a.Line, b.File, b.Line = "", 0, "", 0
	return reflect.DeepEqual(a, b)
}

// Inventory holds the content of a hosts.toml.
type Inventory struct {
	File  string // "" when there is none: this machine alone
	Text  string // content of the file, kept because a pipe cannot be read again
	Hosts []*Host

	Providers []*Provider
	// Number of tokens of each kind that jobs may hold together, by name; Count may be 0.
	Tokens []jobs.Token

	defaults *draft    // [defaults]; nil: none
	slots    *SlotRule // slots of each host; nil: as the file says
}

// GPUNumbers returns the sorted numbers of the devices that may be used. hello is nil if it is not
// known; the result is then nil if it depends on hello.
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
	if h.GPUs > len(numbers) && h.GPUIDs == nil { // the inventory has more than the host reports
		numbers = numbersBelow(h.GPUs)
	}
	return append([]int{}, numbers[:min(h.GPUs, len(numbers))]...)
}

// GPUNumbers returns the sorted numbers of the devices that the host has.
func (m *Hello) GPUNumbers() []int {
	if len(m.GPUIDs) > 0 {
		return m.GPUIDs
	}
	return numbersBelow(m.GPUs)
}

// numbersBelow returns 0, 1 … n-1.
func numbersBelow(n int) []int {
	numbers := make([]int, n)
	for i := range numbers {
		numbers[i] = i
	}
	return numbers
}

// Route describes how the host is reached.
func (h *Host) Route() string {
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
		add(true, "%s", text.Plural(r.Fixed, "slot"))
	case r.Less > 0:
		add(true, "cores-%d slots", r.Less)
	default:
		add(true, "a slot a core")
	}
	add(len(h.Tags) > 0, "tags %s", strings.Join(h.Tags, ","))
	add(len(h.Queues) > 0, "kept for queue %s", h.KeptText())
	add(len(h.GPUNumbers(nil)) > 0, "%s", text.Plural(len(h.GPUNumbers(nil)), "GPU"))
	add(h.NoMemLimit, "mem= is not a limit")
	add(h.Pin, "a job is bound to cores")
	add(h.Weight != 1, "weight %g", h.Weight)
	add(!h.Yield, "does not yield")
	add(h.MaxLoad > 0, "load below %g", h.MaxLoad)
	add(h.MinMemFree > 0, "%s of memory left free", jobs.FormatSize(h.MinMemFree))
	add(h.MinDiskFree > 0, "%s of disk left free", jobs.FormatSize(h.MinDiskFree))
	for _, q := range h.Quiet {
		add(true, "quiet %02d:%02d-%02d:%02d", int(q.From.Hours()), int(q.From.Minutes())%60, int(q.To.Hours()),
			int(q.To.Minutes())%60)
	}
	add(h.Owner == OwnerPause, "starts nothing while a person uses it")
	add(h.Owner == OwnerSuspend, "jobs are suspended while a person uses it")
	return strings.Join(parts, ", ")
}

// KeptPart is the part of a host that is kept for the jobs of a queue: slots, GPUs, or, if both
// are 0, all of it.
type KeptPart struct {
	Queue       string
	Slots, GPUs int
}

// String returns k as it is written in the inventory.
func (k KeptPart) String() string {
	s := k.Queue + text.If(k.Slots > 0, fmt.Sprintf(" slots=%d", k.Slots))
	return s + text.If(k.GPUs > 0, fmt.Sprintf(" gpus=%d", k.GPUs))
}

// checkQueues returns an error if more is kept than the host is known to have.
func (h *Host) checkQueues() error {
	slots, gpus := h.KeptFrom("")
	switch {
	case h.Slots.Fixed > 0 && slots > h.Slots.Fixed:
		return fmt.Errorf("%s are kept, and the host has %d", text.Plural(slots, "slot"), h.Slots.Fixed)
	case h.GPUs >= 0 && gpus > h.GPUs:
		return fmt.Errorf("%s are kept, and the host has %d", text.Plural(gpus, "GPU"), h.GPUs)
	}
	return nil
}

// IsOpenTo reports whether jobs of a queue may run on the host.
func (h *Host) IsOpenTo(queue string) bool {
	open := true
	for _, k := range h.Queues {
		if k.Queue == queue {
			return true
		}
		open = open && k.Slots+k.GPUs > 0
	}
	return open
}

// KeptFrom returns the slots and GPUs of the host that are kept for queues other than queue.
func (h *Host) KeptFrom(queue string) (slots, gpus int) {
	for _, k := range h.Queues {
		if k.Queue != queue {
			slots += k.Slots
			gpus += k.GPUs
		}
	}
	return slots, gpus
}

// KeptText lists what is kept for queues: "urgent, late slots=2".
func (h *Host) KeptText() string {
	return strings.Join(text.Each(h.Queues, KeptPart.String), ", ")
}
