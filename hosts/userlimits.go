package hosts

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"

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
