package hosts

import (
	"fmt"

	"dcs-tui/internal/text"
)

// CapacityKind is the kind of a CapacityLimit.
type CapacityKind int

// The kinds. Their numbers are part of the wire format.
const (
	CapacityOfCPUs          CapacityKind = iota + 1 // processors that the session may use (cpuset, affinity)
	CapacityOfCPUTime                               // cores, by a control group's quota
	CapacityOfMemory                                // bytes, by a control group
	CapacityOfProcesses                             // processes and threads, by a control group (pids.max)
	CapacityOfUserProcesses                         // processes and threads of the user (ulimit -u)
	CapacityOfFiles                                 // open files of a process (ulimit -n)
	CapacityOfSlots                                 // slots of the user, by the administrators
	CapacityOfReservations                          // bytes that jobs of the user may reserve, by the administrators
	CapacityOfProcessList                           // processes of other users are hidden; without a value
)

// CapacityLimit is a limit of the sessions on a host. It is below what the machine has, or below what
// the slots may need.
type CapacityLimit struct {
	Kind  CapacityKind
	Value float64 // in the unit of the kind
	Of    float64 // what the machine has; 0: not known, or without meaning
}

// String describes the limit.
func (l CapacityLimit) String() string {
	switch l.Kind {
	case CapacityOfCPUs:
		return fmt.Sprintf("%g of %s may be used (cpuset or taskset)", l.Value, text.Plural(int(l.Of), "core"))
	case CapacityOfCPUTime:
		return fmt.Sprintf("a control group limits CPU time to %.3g of %s", l.Value, text.Plural(int(l.Of), "core"))
	case CapacityOfMemory:
		return fmt.Sprintf("a control group limits memory to %s of %s",
			text.Size(int64(l.Value)), text.Size(int64(l.Of)))
	case CapacityOfProcesses:
		return fmt.Sprintf("a control group allows %.0f processes and threads (pids.max)", l.Value)
	case CapacityOfUserProcesses:
		return fmt.Sprintf("%.0f processes and threads per user (ulimit -u)", l.Value)
	case CapacityOfFiles:
		return fmt.Sprintf("%.0f open files per process (ulimit -n)", l.Value)
	case CapacityOfSlots:
		return fmt.Sprintf("its administrators allow you %s of %.0f (%s)",
			text.Plural(int(l.Value), "slot"), l.Of, UserLimitsFile)
	case CapacityOfReservations:
		return fmt.Sprintf("its administrators allow your jobs %s of %s of memory (%s)", text.Size(int64(l.Value)),
			text.Size(int64(l.Of)), UserLimitsFile)
	case CapacityOfProcessList:
		return "processes of other users are hidden (/proc is mounted with hidepid), so their programs on GPUs, " +
			"and owners at consoles without logind, are not noticed"
	}
	return fmt.Sprintf("a limit of kind %d: %g", l.Kind, l.Value)
}
