package hosts

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"

	"dcs-tui/internal/text"
	"dcs-tui/jobs"
)

// UserLimitsFile is the file in which the administrators of a host say what its users may use. The
// helper reads it on the host.
const UserLimitsFile = "/etc/dcs-tui/limits.toml"

// UserLimits is what the administrators of a host allow a user.
type UserLimits struct {
	Slots  int    // of all runs of the user; 0: any number
	Memory int64  // bytes that the jobs of the user may reserve; 0: any number
	Closed string // why the host is closed to the user; "": it is open
}

// ParseUserLimits returns the limits of the user with one of these names. A table [user.NAME]
// overrides what stands above all tables. Each problem is a line of text. A key with a problem has
// no effect.
func ParseUserLimits(data []byte, names ...string) (limits UserLimits, problems []string) {
	var root map[string]any
	if _, err := toml.Decode(string(data), &root); err != nil {
		return limits, []string{err.Error()}
	}
	users, _ := root["user"].(map[string]any)
	if users != nil {
		delete(root, "user")
	}
	problems = limits.set("", root)
	for _, name := range slices.Sorted(maps.Keys(users)) {
		one := UserLimits{}
		into := &one // checked, and ignored
		if slices.Contains(names, name) {
			into = &limits
		}
		table, ok := users[name].(map[string]any)
		if !ok {
			problems = append(problems, fmt.Sprintf("user.%s must be a table, [user.%s]", name, name))
			continue
		}
		problems = append(problems, into.set("user."+name+".", table)...)
	}
	return limits, problems
}

// set sets the limits that a table has. table is the prefix of its keys in problems.
func (l *UserLimits) set(table string, values map[string]any) (problems []string) {
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if err := l.setKey(key, values[key]); err != nil {
			problems = append(problems, fmt.Sprintf("%s%s: %v", table, key, err))
		}
	}
	return problems
}

func (l *UserLimits) setKey(key string, v any) error {
	switch key {
	case "slots":
		n, err := wholeNumber(v, 0, jobs.MaxSlots)
		if err == nil {
			l.Slots = n
		}
		return err
	case "memory":
		n, err := sizeOrZero(v, `a size such as "64G"`)
		if err == nil {
			l.Memory = n
		}
		return err
	case "closed":
		s, ok := v.(string)
		if !ok {
			return wrongKind(v, "a message in quotes")
		}
		l.Closed = strings.Join(strings.Fields(s), " ")
		return nil
	}
	return errors.New("unknown key; use slots, memory, or closed")
}

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
