package cli

import (
	"strconv"
	"strings"
	"time"

	"dcs-tui/internal/cli/console"
	"dcs-tui/internal/cli/exit"
	"dcs-tui/jobs"
	"dcs-tui/jobs/results"
)

// spanValue is a flag that takes a duration as the jobs file does: 90s, 30m, 1d.
type spanValue time.Duration

func (v *spanValue) String() string {
	if *v == 0 {
		return ""
	}
	return time.Duration(*v).String()
}
func (v *spanValue) Type() string { return "duration" }
func (v *spanValue) Set(s string) error {
	d, err := jobs.ParseDuration(s)
	if err == nil {
		*v = spanValue(d)
	}
	return err
}

// delayValue is a duration, or 0. It stays nil if the flag was not given.
type delayValue struct{ to **time.Duration }

func (v delayValue) String() string {
	if v.to == nil || *v.to == nil {
		return ""
	}
	return (*v.to).String()
}
func (v delayValue) Type() string { return "duration" }
func (v delayValue) Set(s string) error {
	d, err := jobs.ParseDelay(s)
	if err == nil {
		*v.to = &d
	}
	return err
}

// ageValue is a duration with a unit: who writes 30 for an age means days, and what is
// older goes.
type ageValue time.Duration

func (v *ageValue) String() string { return (*spanValue)(v).String() }
func (v *ageValue) Type() string   { return "duration" }
func (v *ageValue) Set(s string) error {
	if _, err := strconv.ParseFloat(s, 64); err == nil {
		return exit.Usagef("%s of what? Write a unit: %[1]sd for days, %[1]sh for hours", console.Shorten(s))
	}
	return (*spanValue)(v).Set(s)
}

// text says it in words: "30 days", "36 hours".
func (v ageValue) text() string {
	d := time.Duration(v)
	for _, u := range []struct {
		name string
		long time.Duration
	}{{"day", 24 * time.Hour}, {"hour", time.Hour}, {"minute", time.Minute}, {"second", time.Second}} {
		if d >= u.long && d%u.long == 0 {
			return jobs.Plural(int(d/u.long), u.name)
		}
	}
	return results.HumanDuration(d)
}

// countValue is a whole number from 1; 0, which means none, only by default.
type countValue int

func (v *countValue) String() string { return strconv.Itoa(int(*v)) }
func (v *countValue) Type() string   { return "n" }
func (v *countValue) Set(s string) error {
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 {
		return exit.Usagef("%q is not a whole number from 1", console.Shorten(s))
	}
	*v = countValue(n)
	return nil
}

// countUpTo is a countValue with an end, that of the option in a jobs file.
type countUpTo struct {
	*countValue
	most int
}

func (c countUpTo) Set(s string) error {
	var n countValue
	if err := n.Set(s); err != nil {
		return err
	}
	if int(n) > c.most {
		return exit.Usagef("%d is more than %d", int(n), c.most)
	}
	*c.countValue = n
	return nil
}

// sizeValue is a size as the jobs file has it: 500M, 8G; in bytes.
type sizeValue int64

func (v *sizeValue) String() string {
	if *v == 0 {
		return ""
	}
	return jobs.FormatSize(int64(*v))
}
func (v *sizeValue) Type() string { return "size" }
func (v *sizeValue) Set(s string) error {
	n, err := jobs.ParseSize(s)
	if err == nil {
		*v = sizeValue(n)
	}
	return err
}

// haltValue is n or n%.
type haltValue string

func (v *haltValue) String() string { return string(*v) }
func (v *haltValue) Type() string   { return "n|n%" }
func (v *haltValue) Set(s string) error {
	if _, _, err := parseHalt(s); err != nil {
		return err
	}
	*v = haltValue(s)
	return nil
}

// parseHalt reads --halt; "" means never.
func parseHalt(s string) (failures int, percent float64, err error) {
	if s == "" {
		return 0, 0, nil
	}
	if number, is := strings.CutSuffix(s, "%"); is {
		percent, err = strconv.ParseFloat(number, 64)
		if err != nil || !(percent > 0 && percent <= 100) {
			return 0, 0, exit.Usagef("%q is not a share of failed jobs: more than 0%%, at most 100%%", console.Shorten(s))
		}
		return 0, percent, nil
	}
	failures, err = strconv.Atoi(s)
	if err != nil || failures < 1 {
		return 0, 0, exit.Usagef("%q is neither a number of failed jobs such as 5, nor a share such as 10%%", console.Shorten(s))
	}
	return failures, 0, nil
}

// choiceValue is one of some words.
type choiceValue string

type choice struct {
	to    *choiceValue
	words []string
}

func (v *choiceValue) of(words ...string) *choice { return &choice{v, words} }

func (c *choice) String() string {
	if c.to == nil {
		return ""
	}
	return string(*c.to)
}
func (c *choice) Type() string { return strings.Join(c.words, "|") }
func (c *choice) Set(s string) error {
	for _, w := range c.words {
		if s == w {
			*c.to = choiceValue(s)
			return nil
		}
	}
	return exit.Usagef("%q is not one of %s", console.Shorten(s), strings.Join(c.words, ", "))
}
