package cli

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"dcs-tui/internal/cli/console"
	"dcs-tui/internal/cli/exit"
	"dcs-tui/jobs"
	"dcs-tui/jobs/query"
)

// failureFields are what --retry-on and --no-retry-on may name of an attempt that failed.
var failureFields = []query.Field[*jobs.Outcome]{
	{Name: "exit", Type: query.NumberType, Value: func(o *jobs.Outcome) query.Value {
		if failureCause(o) != "exit" {
			return query.Value{}
		}
		return query.NumberValue(float64(o.Exit))
	}},
	{Name: "signal", Type: query.TextType, Value: func(o *jobs.Outcome) query.Value { return query.TextValue(o.Signal) }},
	{Name: "cause", Type: query.TextType, Value: func(o *jobs.Outcome) query.Value { return query.TextValue(failureCause(o)) }, Check: knownCause},
	{Name: "time", Type: query.DurationType, Value: func(o *jobs.Outcome) query.Value { return query.NumberValue(o.Elapsed().Seconds()) }},
	{Name: "mem", Type: query.SizeType, Value: func(o *jobs.Outcome) query.Value { return query.NumberValue(float64(o.MaxRSSBytes)) }},
}

// failureCauses are the values of cause.
var failureCauses = []string{"exit", "signal", "timeout", "start", "disk", "memory"}

// failureCause returns in a word why an attempt failed.
func failureCause(o *jobs.Outcome) string {
	switch {
	case o.DiskFull:
		return "disk"
	case o.Error != "":
		return "start"
	case o.Memory != "":
		return "memory"
	case o.TimedOut:
		return "timeout"
	case o.Signal != "":
		return "signal"
	}
	return "exit"
}

func knownCause(l query.Literal) error {
	for _, cause := range failureCauses {
		if l.Value.Text == cause {
			return nil
		}
	}
	return query.Unknown("cause", l.Value.Text, failureCauses)
}

// parseFailures reads a query over failures; nil: the text is empty.
func parseFailures(text string) (func(*jobs.Outcome) bool, error) {
	if text == "" {
		return nil, nil
	}
	q, err := query.Parse(text)
	if err != nil {
		return nil, err
	}
	return query.Compile(q, query.Lookup[*jobs.Outcome](func(name string) (*query.Field[*jobs.Outcome], error) {
		names := make([]string, len(failureFields))
		for i := range failureFields {
			f := failureFields[i]
			if names[i] = f.Name; f.Name == name {
				f.Fact = true
				return &f, nil
			}
		}
		return nil, query.Unknown("field of a failure", name, names)
	}), nil)
}

// failureFlag takes a query over failures.
func failureFlag(to *string) *flagValue[string] {
	parse := func(s string) (string, error) { _, err := parseFailures(s); return s, err }
	return &flagValue[string]{to, "query", parse, func(s string) string { return s }}
}

// final returns the function that reports whether a job is not tried again after a
// failure; nil: neither query was given. The queries were checked when the flags were read.
func final(retryOn, noRetryOn string, retryTimeouts bool) func(*jobs.Outcome) bool {
	again, _ := parseFailures(retryOn)
	never, _ := parseFailures(noRetryOn)
	if again == nil && never == nil {
		return nil
	}
	return func(o *jobs.Outcome) bool {
		switch {
		case never != nil && never(o):
			return true
		case again != nil:
			return !again(o)
		}
		return o.TimedOut && !retryTimeouts
	}
}

// growthFlag takes a factor of 1 to 100.
func growthFlag(to *float64) *flagValue[float64] {
	parse := func(s string) (float64, error) {
		f, err := strconv.ParseFloat(s, 64)
		if err != nil || !(f >= 1 && f <= 100) {
			return 0, exit.Usagef("%q is not a factor from 1 to 100", s)
		}
		return f, nil
	}
	return &flagValue[float64]{to, "factor", parse, func(f float64) string { return fmt.Sprint(f) }}
}

// warning is the signal that warns a job of its end, and how long before.
type warning struct {
	signal int
	before time.Duration
}

// warnFlag takes a signal and a time: USR1@60s.
func warnFlag(to *warning) *flagValue[warning] {
	parse := func(s string) (w warning, err error) {
		name, before, ok := strings.Cut(s, "@")
		if !ok {
			return w, exit.Usagef("%q is not SIGNAL@TIME, such as USR1@60s", s)
		}
		name = "SIG" + strings.TrimPrefix(strings.ToUpper(name), "SIG")
		if w.signal = jobs.SignalNumber(name); w.signal == 0 || name == "SIGKILL" || name == "SIGSTOP" {
			return w, exit.Usagef("%s is not a signal that a program can handle; USR1 and USR2 are usual", console.Shorten(name))
		}
		w.before, err = jobs.ParseDuration(before)
		return w, err
	}
	text := func(w warning) string { return jobs.SignalName(w.signal) + "@" + w.before.String() }
	return &flagValue[warning]{to, "signal@time", parse, text}
}
