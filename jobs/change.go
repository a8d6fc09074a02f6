package jobs

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"dcs-tui/internal/text"
)

// Change is a user's change of accepted jobs. A nil field leaves the option as it is. A zero value
// resets the option to the run's default.
type Change struct {
	Command  *string        `json:"command,omitempty"`
	Name     *string        `json:"name,omitempty"`
	Timeout  *time.Duration `json:"timeout_ns,omitempty"`
	MemBytes *int64         `json:"mem,omitempty"`
	Tries    *int           `json:"tries,omitempty"`
	Slots    *int           `json:"slots,omitempty"`
	GPUs     *GPUs          `json:"gpus,omitempty"`
	Tags     *[]string      `json:"tags,omitempty"` // in any order
}

// MaxCommand is the maximum length of a changed command, in bytes.
const MaxCommand = 1 << 20

// Empty reports whether the change changes nothing.
func (c *Change) Empty() bool { return *c == Change{} }

// Check returns what makes the change impossible for every job.
func (c *Change) Check() error {
	if c.Command != nil {
		switch {
		case strings.TrimSpace(*c.Command) == "":
			return errors.New("the command is empty")
		case strings.IndexByte(*c.Command, 0) >= 0:
			return errors.New("the command holds a NUL byte, which no shell can be given")
		case len(*c.Command) > MaxCommand:
			return fmt.Errorf("the command is longer than %d MiB; put the work into a script and call that",
				MaxCommand>>20)
		}
	}
	if c.Name != nil {
		if _, err := parseLabel(*c.Name); err != nil {
			return fmt.Errorf("name: %w", err)
		}
	}
	if c.Timeout != nil && (*c.Timeout < 0 || *c.Timeout > math.MaxInt64/2) {
		return fmt.Errorf("timeout: %s is out of range", *c.Timeout)
	}
	if c.MemBytes != nil && (*c.MemBytes < 0 || *c.MemBytes > math.MaxInt64/2) {
		return fmt.Errorf("mem: %d bytes is out of range", *c.MemBytes)
	}
	for _, n := range []struct {
		key   string
		value *int
		most  int
	}{{"tries", c.Tries, MaxTries}, {"slots", c.Slots, MaxSlots}} {
		if n.value != nil && (*n.value < 0 || *n.value > n.most) {
			return fmt.Errorf("%s: %d is not between 0 (the default) and %d", n.key, *n.value, n.most)
		}
	}
	if c.GPUs != nil {
		if err := c.GPUs.check(); err != nil {
			return fmt.Errorf("gpus: %w", err)
		}
	}
	if c.Tags != nil {
		if len(*c.Tags) > maxTags {
			return fmt.Errorf("tags: %d of them are too many", len(*c.Tags))
		}
		if err := new(settings).setList("tags", slices.Clone(*c.Tags)); err != nil {
			return err
		}
	}
	return nil
}

const maxTags = 1000

// Apply returns the changed specification and does not modify s. A job whose line in jobs.jsonl is
// damaged cannot be changed, because most of it is unknown.
func (c *Change) Apply(s *Spec) (*Spec, error) { return new(Changer).Apply(c, s) }

// Changer applies changes to many specifications. Specifications that shared their Options share
// the changed ones.
type Changer struct {
	of     *Change
	shared map[*Options]*Options
	in     Interner
}

// Apply is Change.Apply.
func (r *Changer) Apply(c *Change, s *Spec) (*Spec, error) {
	if s.Options != nil && s.Damage != "" {
		return nil, fmt.Errorf("job %d cannot be changed: %s", s.ID, s.Damage)
	}
	if r.of != c {
		if err := c.Check(); err != nil {
			return nil, err
		}
		r.of, r.shared = c, map[*Options]*Options{}
	}
	changed := *s
	if c.Command != nil {
		changed.Command = *c.Command
	}
	if c.Name != nil {
		changed.Name = *c.Name
	}
	changed.Options = cmp.Or(changed.Options, NoOptions)
	o := r.shared[changed.Options]
	if (Change{Command: c.Command, Name: c.Name}) == *c {
		o = changed.Options // no option changes
	}
	if o == nil {
		o = r.in.Share(c.changedOptions(changed.Options))
		r.shared[changed.Options] = o
	}
	changed.Options = o
	return &changed, nil
}

// changedOptions returns a changed copy.
func (c *Change) changedOptions(old *Options) *Options {
	o := *old
	setIfGiven(&o.Timeout, c.Timeout)
	setIfGiven(&o.MemBytes, c.MemBytes)
	setIfGiven(&o.Tries, c.Tries)
	setIfGiven(&o.Slots, c.Slots)
	setIfGiven(&o.GPUs, c.GPUs)
	if c.Tags != nil {
		o.Tags = slices.Compact(slices.Sorted(slices.Values(*c.Tags)))
	}
	return &o
}

func setIfGiven[T any](to *T, from *T) {
	if from != nil {
		*to = *from
	}
}

// Equal reports whether two specifications of a job are equal.
func (s *Spec) Equal(o *Spec) bool {
	return s == o || string(AppendSpecJSON(nil, s)) == string(AppendSpecJSON(nil, o))
}

// String describes the change for people, not yet sanitized: "timeout 2h0m0s, tries 5".
func (c *Change) String() string {
	var parts []string
	if c.Command != nil {
		parts = append(parts, "command "+text.Shorten(*c.Command))
	}
	if c.Name != nil {
		parts = append(parts, "name "+*c.Name)
	}
	describe(&parts, "timeout", c.Timeout, time.Duration.String)
	describe(&parts, "mem", c.MemBytes, FormatSize)
	describe(&parts, "tries", c.Tries, strconv.Itoa)
	describe(&parts, "slots", c.Slots, strconv.Itoa)
	describe(&parts, "gpus", c.GPUs, GPUs.String)
	describe(&parts, "tags", c.Tags, func(tags []string) string { return strings.Join(tags, ",") })
	return strings.Join(parts, ", ")
}

// describe adds the key and the value of a field that is set.
func describe[T any](parts *[]string, key string, value *T, text func(T) string) {
	if value != nil {
		*parts = append(*parts, key+" "+text(*value))
	}
}
