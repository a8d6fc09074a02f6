package jobs

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"dcs-tui/internal/text"
)

// optionKeys are the keys of #DCS lines and of JSON job files.
var optionKeys = []string{"name", "queue", "priority", "tries", "retry_delay", "timeout", "deadline", "est", "tags",
	"gpus", "mem",
	"slots", "tokens", "after", "env.NAME", "cwd", "setup", "on_lost", "speculate", "hardness", "send", "return",
	"share", "queue_priority", "queue_slots"}

// listKeys holds those of the keys that take a list.
var listKeys = []string{"tags", "tokens", "after", "hardness", "send", "return"}

// settings holds the options of a job while it is parsed.
type settings struct {
	name string
	Options
	after Dependencies
	last  ID                        // the job before this one
	named func(pattern string) []ID // returns earlier jobs whose names match; nil: there are none
}

// set sets an option to a value. The empty text resets it to the run's default, but makes an
// environment variable empty. Slices may be shared, so they are replaced and never changed.
func (s *settings) set(key, v string) error {
	if strings.IndexByte(v, 0) >= 0 {
		return fmt.Errorf("%s holds a NUL byte, which no argument of a program can hold", key)
	}
	if name, ok := strings.CutPrefix(key, "env."); ok {
		return s.setEnv(name, v)
	}
	if slices.Contains(listKeys, key) {
		if v == "" {
			return s.setList(key, nil)
		}
		return s.setList(key, splitList(v))
	}
	set := scalarOptions[key]
	if set == nil {
		return unknownOption(key, optionKeys)
	}
	if err := set(s, v); err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	return nil
}

// scalarOptions holds a function for each option with a single value, which sets it.
var scalarOptions = map[string]func(*settings, string) error{
	"name":        scalarOption(func(s *settings) *string { return &s.name }, parseLabel),
	"queue":       scalarOption(func(s *settings) *string { return &s.Queue }, parseLabel),
	"priority":    scalarOption(func(s *settings) *int { return &s.Priority }, count(math.MinInt32, math.MaxInt32)),
	"tries":       scalarOption(func(s *settings) *int { return &s.Tries }, count(1, MaxTries)),
	"retry_delay": scalarOption(func(s *settings) **time.Duration { return &s.RetryDelay }, pointerTo(ParseDelay)),
	"timeout":     scalarOption(func(s *settings) *time.Duration { return &s.Timeout }, ParseDuration),
	"deadline":    scalarOption(func(s *settings) *time.Time { return &s.Deadline }, ParseDeadline),
	"est":         scalarOption(func(s *settings) *time.Duration { return &s.Estimate }, ParseDuration),
	"gpus":        scalarOption(func(s *settings) *GPUs { return &s.GPUs }, parseGPUs),
	"mem":         scalarOption(func(s *settings) *int64 { return &s.MemBytes }, ParseSize),
	"slots":       scalarOption(func(s *settings) *int { return &s.Slots }, count(1, MaxSlots)),
	"cwd":         scalarOption(func(s *settings) *string { return &s.Cwd }, verbatim),
	"setup":       scalarOption(func(s *settings) *string { return &s.Setup }, verbatim),
	"on_lost":     scalarOption(func(s *settings) *OnLost { return &s.OnLost }, parseOnLost),
	"speculate":   scalarOption(func(s *settings) *bool { return &s.NoCopies }, parseNoCopies),
	"share":       scalarOption(func(s *settings) *int { return &s.Share }, count(1, MaxShare)),
	"queue_priority": scalarOption(func(s *settings) **int { return &s.QueuePriority },
		pointerTo(count(math.MinInt32, math.MaxInt32))),
	"queue_slots": scalarOption(func(s *settings) *int { return &s.QueueSlots }, count(1, MaxSlots)),
}

// scalarOption returns a function that sets an option to a parsed value. The empty text stands for
// the zero value, the run's default.
func scalarOption[T any](option func(*settings) *T, parse func(string) (T, error)) func(*settings, string) error {
	return func(s *settings, v string) (err error) {
		var value T
		if v != "" {
			value, err = parse(v)
		}
		*option(s) = value
		return err
	}
}

func pointerTo[T any](parse func(string) (T, error)) func(string) (*T, error) {
	return func(v string) (*T, error) {
		value, err := parse(v)
		return &value, err
	}
}

func verbatim(v string) (string, error) { return v, nil }

func parseOnLost(v string) (o OnLost, err error) {
	err = o.UnmarshalText([]byte(v))
	return o, err
}

func parseNoCopies(v string) (bool, error) {
	if v != "true" && v != "false" {
		return false, fmt.Errorf("%q is neither true nor false", v)
	}
	return v == "false", nil
}

// splitList splits a list at its commas. A comma in an item is written \,.
func splitList(v string) (items []string) {
	var item []byte
	for i := 0; i < len(v); i++ {
		switch {
		case v[i] == ',':
			items, item = append(items, strings.TrimSpace(string(item))), item[:0]
			continue
		case v[i] == '\\' && i+1 < len(v):
			i++
			if v[i] != ',' {
				item = append(item, '\\') // a backslash of a pattern
			}
		}
		item = append(item, v[i])
	}
	return append(items, strings.TrimSpace(string(item)))
}

// joinList is the inverse of splitList.
func joinList(items []string) string {
	quote := func(item string) string { return strings.ReplaceAll(item, ",", `\,`) }
	return strings.Join(text.Each(items, quote), ",")
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
		if s.after, err = parseAfter(items, s.last, s.named); err != nil {
			return fmt.Errorf("after: %w", err)
		}
	case "hardness":
		s.Hardness = slices.Clone(items)
	case "send":
		for _, item := range items {
			path, _, _ := strings.Cut(item, ":")
			if err := CheckLocal(path); err != nil {
				return fmt.Errorf("send: %w", err)
			}
		}
		s.Send = slices.Clone(items)
	case "return":
		if _, err := ParseReturn(items); err != nil {
			return fmt.Errorf("return: %w", err)
		}
		s.Return = slices.Clone(items)
	}
	return nil
}

// maxEnvValue is the maximum length of a value, in bytes, so that NAME=value is shorter than
// MAX_ARG_STRLEN of execve(2), 128 KiB.
const maxEnvValue = 127 << 10

// setEnv sets a variable. The variables are sorted by name.
func (s *settings) setEnv(name, v string) error {
	if !isEnvName(name) {
		return fmt.Errorf("env.%s: a variable's name has letters, digits and _ and does not begin with a digit", name)
	}
	if strings.HasPrefix(name, "DCS_") {
		return fmt.Errorf("env.%s: the variables DCS_… are set by dcs-tui itself", name)
	}
	if strings.IndexByte(v, 0) >= 0 {
		return fmt.Errorf("env.%s holds a NUL byte, which no argument of a program can hold", name)
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

func isEnvName(s string) bool {
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

func unknownOption(key string, known []string) error {
	best := text.Nearest(key, known)
	if best != "" {
		return fmt.Errorf("unknown option %q: did you mean %s?", key, best)
	}
	return fmt.Errorf("unknown option %q: the options are %s", key, strings.Join(known, ", "))
}
