package jobs

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// optionKeys are the keys of #DCS lines and of JSON job files.
var optionKeys = []string{"name", "queue", "priority", "tries", "retry_delay", "timeout", "deadline", "est", "tags", "gpus", "mem",
	"slots", "tokens", "after", "env.NAME", "cwd", "setup", "on_lost", "speculate", "hardness", "send", "return", "share", "queue_priority", "queue_slots"}

// listKeys holds those of the keys that take a list.
var listKeys = []string{"tags", "tokens", "after", "hardness", "send", "return"}

// settings holds the options of a job while it is parsed.
type settings struct {
	name string
	Options
	last  ID                        // the job before this one
	named func(pattern string) []ID // returns earlier jobs whose names match; nil: there are none
}

// set sets an option to a value. The empty text resets it to the run's default, but makes an
// environment variable empty. Slices may be shared, so they are replaced and never changed.
func (s *settings) set(key, v string) error {
	if strings.IndexByte(v, 0) >= 0 {
		return fmt.Errorf("%s holds a NUL byte, which no program can be given", key)
	}
	if name, ok := strings.CutPrefix(key, "env."); ok {
		return s.setEnv(name, v)
	}
	if slices.Contains(listKeys, key) {
		if v == "" {
			return s.setList(key, nil)
		}
		items := strings.Split(v, ",")
		for i := range items {
			items[i] = strings.TrimSpace(items[i])
		}
		return s.setList(key, items)
	}
	switch key {
	case "cwd":
		s.Cwd = v
		return nil
	case "setup":
		s.Setup = v
		return nil
	}
	if !slices.Contains(optionKeys, key) {
		return unknownOption(key)
	}
	if err := s.setScalar(key, v); err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	return nil
}

func (s *settings) setScalar(key, v string) (err error) {
	switch key {
	case "name":
		s.name, err = optional(v, parseLabel)
	case "queue":
		s.Queue, err = optional(v, parseLabel)
	case "priority":
		s.Priority, err = optional(v, count(math.MinInt32, math.MaxInt32))
	case "tries":
		s.Tries, err = optional(v, count(1, MaxTries))
	case "retry_delay":
		s.RetryDelay, err = optional(v, func(v string) (*time.Duration, error) {
			d, err := ParseDelay(v)
			return &d, err
		})
	case "timeout":
		s.Timeout, err = optional(v, ParseDuration)
	case "deadline":
		s.Deadline, err = optional(v, ParseDeadline)
	case "est":
		s.Estimate, err = optional(v, ParseDuration)
	case "gpus":
		s.GPUs, err = optional(v, parseGPUs)
	case "mem":
		s.MemBytes, err = optional(v, ParseSize)
	case "slots":
		s.Slots, err = optional(v, count(1, MaxSlots))
	case "queue_slots":
		s.QueueSlots, err = optional(v, count(1, MaxSlots))
	case "share":
		s.Share, err = optional(v, count(1, MaxShare))
	case "queue_priority":
		s.QueuePriority, err = optional(v, func(v string) (*int, error) {
			n, err := count(math.MinInt32, math.MaxInt32)(v)
			return &n, err
		})
	case "on_lost":
		s.OnLost, err = optional(v, func(v string) (o OnLost, err error) {
			err = o.UnmarshalText([]byte(v))
			return o, err
		})
	case "speculate":
		s.NoCopies, err = optional(v, func(v string) (bool, error) {
			if v != "true" && v != "false" {
				return false, fmt.Errorf("%q is neither true nor false", v)
			}
			return v == "false", nil
		})
	}
	return err
}

// optional returns the zero value, the run's default, for the empty text.
func optional[T any](v string, parse func(string) (T, error)) (t T, err error) {
	if v == "" {
		return t, nil
	}
	return parse(v)
}

// setList sets a list option. No items reset it.
func (s *settings) setList(key string, items []string) (err error) {
	for i, item := range items {
		if key != "send" && key != "return" { // names of files may begin and end with blanks
			items[i] = strings.TrimSpace(item)
		}
		if items[i] == "" {
			return fmt.Errorf("%s: there is an empty item in the list", key)
		}
	}
	switch key {
	case "tags":
		for _, tag := range items {
			if _, err := parseLabel(tag); err != nil {
				return fmt.Errorf("tags: %w", err)
			}
			if strings.ContainsAny(tag, " ,") {
				return fmt.Errorf("tags: the tag %q has a space or a comma in it", tag)
			}
		}
		s.Tags = slices.Clone(items)
		slices.Sort(s.Tags)
		s.Tags = slices.Compact(s.Tags)
	case "tokens":
		if s.Tokens, err = parseTokens(items); err != nil {
			return fmt.Errorf("tokens: %w", err)
		}
	case "after":
		if s.After, s.AfterOn, err = parseAfter(items, s.last, s.named); err != nil {
			return fmt.Errorf("after: %w", err)
		}
	case "hardness":
		s.Hardness = slices.Clone(items)
	case "send", "return":
		for _, item := range items {
			path, _, _ := strings.Cut(item, ":")
			if key == "return" {
				path = item
			}
			if !filepath.IsLocal(path) {
				return fmt.Errorf("%s: %q leads out of the directory of the job", key, path)
			}
		}
		if key == "send" {
			s.Send = slices.Clone(items)
		} else {
			s.Return = slices.Clone(items)
		}
	}
	return nil
}

// maxEnvValue is the maximum length of a value, in bytes, so that NAME=value is shorter than
// MAX_ARG_STRLEN of execve(2), 128 KiB.
const maxEnvValue = 127 << 10

// setEnv sets a variable. The variables are sorted by name.
func (s *settings) setEnv(name, v string) error {
	if !validEnvName(name) {
		return fmt.Errorf("env.%s: a variable's name has letters, digits and _ and does not begin with a digit", name)
	}
	if strings.HasPrefix(name, "DCS_") {
		return fmt.Errorf("env.%s: the variables DCS_… are set by dcs-tui itself", name)
	}
	if strings.IndexByte(v, 0) >= 0 {
		return fmt.Errorf("env.%s holds a NUL byte, which no program can be given", name)
	}
	if len(v) > maxEnvValue {
		return fmt.Errorf("env.%s is longer than %d KiB, more than Linux hands to a program", name, maxEnvValue>>10)
	}
	i, found := slices.BinarySearchFunc(s.Env, name, func(e EnvVar, n string) int { return strings.Compare(e.Name, n) })
	s.Env = slices.Clone(s.Env)
	if found {
		s.Env[i].Value = v
	} else {
		s.Env = slices.Insert(s.Env, i, EnvVar{name, v})
	}
	return nil
}

func validEnvName(s string) bool {
	if len(s) > 512 {
		return false
	}
	for i, r := range s {
		letter := r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		if !letter && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return s != ""
}

// parseLabel checks a name that is shown in tables.
func parseLabel(s string) (string, error) {
	if len(s) > 200 {
		return "", fmt.Errorf("it is longer than 200 bytes")
	}
	if !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r >= 0x7f && r < 0xa0 }) {
		return "", fmt.Errorf("%q holds control characters or is not UTF-8", s)
	}
	return s, nil
}

func unknownOption(key string) error {
	best := Nearest(key, optionKeys)
	if best != "" {
		return fmt.Errorf("unknown option %q: did you mean %s?", key, best)
	}
	return fmt.Errorf("unknown option %q: the options are %s", key, strings.Join(optionKeys, ", "))
}
