package cli

import (
	"cmp"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"dcs-tui/dispatch/sched"
	"dcs-tui/hosts"
	"dcs-tui/internal/text"
	"dcs-tui/jobs"
	"dcs-tui/jobs/query"
)

// flagValue is a pflag.Value that stores what parse returns in *to.
type flagValue[T comparable] struct {
	to    *T
	kind  string // name of the value in the help
	parse func(string) (T, error)
	text  func(T) string
}

// String returns "" for the zero value, which means that the flag was not given.
func (v *flagValue[T]) String() string {
	var zero T
	if v.to == nil || *v.to == zero {
		return ""
	}
	return v.text(*v.to)
}
func (v *flagValue[T]) Type() string { return v.kind }
func (v *flagValue[T]) Set(s string) error {
	t, err := v.parse(s)
	if err == nil {
		*v.to = t
	}
	return err
}

// durationFlag takes a duration like the options of a jobs file: 90s, 30m, 1d.
func durationFlag(to *time.Duration) *flagValue[time.Duration] {
	return &flagValue[time.Duration]{to, "TIME", jobs.ParseDuration, time.Duration.String}
}

// delayFlag takes a duration, or 0.
func delayFlag(to *time.Duration) *flagValue[time.Duration] {
	return &flagValue[time.Duration]{to, "TIME", jobs.ParseDelay, time.Duration.String}
}

// optionalFlag is a flag whose pointer stays nil if the flag is not given.
func optionalFlag[T any](to **T, kind string, parse func(string) (T, error)) *flagValue[*T] {
	parsePointer := func(s string) (*T, error) { t, err := parse(s); return &t, err }
	return &flagValue[*T]{to, kind, parsePointer, func(t *T) string { return fmt.Sprint(*t) }}
}

// ageFlag takes a duration with a unit: 30 alone could mean days, and prune removes runs.
func ageFlag(to *time.Duration) *flagValue[time.Duration] {
	parse := func(s string) (time.Duration, error) {
		if _, err := strconv.ParseFloat(s, 64); err == nil {
			return 0, text.Errorf("%s has no unit: write %[1]sd for days or %[1]sh for hours", text.Shorten(s))
		}
		return jobs.ParseDuration(s)
	}
	return &flagValue[time.Duration]{to, "TIME", parse, time.Duration.String}
}

// parseCount returns a function that reads a whole number of at least 1 and at most limit.
func parseCount(limit int) func(string) (int, error) {
	return func(s string) (int, error) {
		n, err := strconv.Atoi(s)
		switch {
		case err != nil || n < 1:
			return 0, text.Errorf("%q is not a whole number of at least 1", text.Shorten(s))
		case n > limit:
			return 0, text.Errorf("%d is more than %d", n, limit)
		}
		return n, nil
	}
}

// countFlag takes a whole number of at least 1.
func countFlag(to *int) *flagValue[int] {
	return &flagValue[int]{to, "N", parseCount(math.MaxInt), strconv.Itoa}
}

// triesFlag takes a number of tries, like the option of a jobs file.
func triesFlag(to *int) *flagValue[int] {
	return &flagValue[int]{to, "N", parseCount(jobs.MaxTries), strconv.Itoa}
}

// checkedFlag takes a text for which parse returns no error.
func checkedFlag[T any](to *string, kind string, parse func(string) (T, error)) *flagValue[string] {
	check := func(s string) (string, error) { _, err := parse(s); return s, err }
	return &flagValue[string]{to, kind, check, func(s string) string { return s }}
}

// parseHalt parses --halt: a number or a percentage of failed jobs, or GNU parallel's form, such as
// now,fail=1 or soon,success=10%. "" and never mean never.
func parseHalt(s string) (h sched.Halt, err error) {
	if s == "" || s == "never" {
		return h, nil
	}
	number := s
	if when, rest, ok := strings.Cut(s, ","); ok {
		what, n, _ := strings.Cut(rest, "=")
		of, known := map[string]sched.HaltOf{"fail": sched.HaltOfFailures, "success": sched.HaltOfSuccesses, "done": sched.HaltOfAll}[what]
		if !known || when != "now" && when != "soon" {
			return h, text.Errorf("%q is not WHEN,WHAT=N: WHEN is now or soon, WHAT is fail, success or done, such as now,fail=1", text.Shorten(s))
		}
		h.Now, h.Of, number = when == "now", of, n
	}
	if share, ok := strings.CutSuffix(number, "%"); ok {
		h.Percent, err = strconv.ParseFloat(share, 64)
		if err != nil || !(h.Percent > 0 && h.Percent <= 100) {
			return sched.Halt{}, text.Errorf("%q is not a percentage above 0%% and up to 100%%", text.Shorten(number))
		}
		return h, nil
	}
	h.Jobs, err = strconv.Atoi(number)
	if err != nil || h.Jobs < 1 {
		return sched.Halt{}, text.Errorf("%q is neither a number of jobs, such as 5, nor a percentage, such as 10%%", text.Shorten(number))
	}
	return h, nil
}

// parseSlots parses --jobs: a number of slots, -N for all cores but N, or 100% for all cores.
func parseSlots(s string) (hosts.SlotRule, error) {
	digits, less := strings.CutPrefix(s, "-")
	n, err := strconv.Atoi(digits)
	switch {
	case s == "100%" || s == "+0":
		return hosts.SlotRule{}, nil
	case err != nil || n < 0 || digits[0] == '+' || n == 0 && !less:
		return hosts.SlotRule{}, text.Errorf("%q is neither a number of slots nor -N (all cores but N)", text.Shorten(s))
	case n > jobs.MaxSlots:
		return hosts.SlotRule{}, text.Errorf("%d is more than %d", n, jobs.MaxSlots)
	case less:
		return hosts.SlotRule{Less: n}, nil
	}
	return hosts.SlotRule{Fixed: n}, nil
}

// choiceFlag takes one of words, which setUpFlags completes.
type choiceFlag struct {
	flagValue[string]
	words []string
}

func newChoice(to *string, words ...string) *choiceFlag {
	parse := func(s string) (string, error) {
		if !slices.Contains(words, s) {
			return "", text.Errorf("%q is not one of %s", text.Shorten(s), strings.Join(words, ", "))
		}
		return s, nil
	}
	return &choiceFlag{flagValue[string]{to, strings.Join(words, "|"), parse, func(s string) string { return s }}, words}
}

// perQueue is the value of a flag QUEUE=N that may be given several times.
type perQueue struct {
	low, high int
	names     []string // of queues, in the order in which they were given
	of        map[string]int
}

func (v *perQueue) String() string {
	var parts []string
	for _, name := range v.names {
		parts = append(parts, fmt.Sprintf("%s=%d", name, v.of[name]))
	}
	return strings.Join(parts, ",")
}
func (v *perQueue) Type() string { return "QUEUE=N" }
func (v *perQueue) Set(s string) error {
	i := strings.LastIndexByte(s, '=')
	if i < 0 {
		return text.Errorf("%q is not QUEUE=N", text.Shorten(s))
	}
	n, err := strconv.Atoi(s[i+1:])
	if err != nil || n < v.low || n > v.high {
		return text.Errorf("%q is not a whole number from %d to %d", text.Shorten(s[i+1:]), v.low, v.high)
	}
	if v.of == nil {
		v.of = map[string]int{}
	}
	if _, twice := v.of[s[:i]]; !twice {
		v.names = append(v.names, s[:i])
	}
	v.of[s[:i]] = n
	return nil
}

// tokenCounts is the value of a flag NAME=N,... that may be given several times.
type tokenCounts []jobs.Token

func (v *tokenCounts) Type() string { return "NAME=N,..." }
func (v *tokenCounts) String() string {
	return strings.ReplaceAll((&jobs.Options{Tokens: *v}).TokenText(), ":", "=")
}
func (v *tokenCounts) Set(s string) error {
	for part := range strings.SplitSeq(s, ",") {
		name, n, ok := strings.Cut(part, "=")
		t, err := jobs.ParseToken(name + ":" + n)
		if !ok || err != nil {
			return text.Errorf("%q is not NAME=N, such as matlab=5", text.Shorten(part))
		}
		*v = append(slices.DeleteFunc(*v, func(had jobs.Token) bool { return had.Name == t.Name }), t)
	}
	return nil
}

// notShared is the value of --run-share off.
const notShared = -1

// runShareEnv is the environment variable with the --run-share of runs without that flag.
const runShareEnv = "DCS_TUI_RUN_SHARE"

func runShareFlag(to *int) *flagValue[int] {
	return &flagValue[int]{to, "N|off", parseRunShare, func(n int) string {
		if n == notShared {
			return "off"
		}
		return strconv.Itoa(n)
	}}
}

func parseRunShare(s string) (int, error) {
	if s == "off" {
		return notShared, nil
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 || n > hosts.MaxShareWeight {
		return 0, text.Errorf("%q is neither off nor a number from 1 to %d", text.Shorten(s), hosts.MaxShareWeight)
	}
	return n, nil
}

// runShare returns the weight of the run. It is 0 if the run does not share slots.
func runShare(given int) int {
	if given == 0 {
		given, _ = parseRunShare(os.Getenv(runShareEnv))
	}
	return max(0, cmp.Or(given, 1))
}

// failureFields are the fields of a failed attempt that --retry-on and --no-retry-on may name.
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

// failureCauses are the values of the field cause.
var failureCauses = []string{"exit", "signal", "timeout", "start", "files", "disk", "memory"}

// failureCause returns the cause of a failure, one of failureCauses.
func failureCause(o *jobs.Outcome) string {
	switch {
	case o.DiskFull:
		return "disk"
	case o.Unreturned:
		return "files"
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

// parseFailures parses a query over failures. It returns nil if the text is empty.
func parseFailures(text string) (func(*jobs.Outcome) bool, error) {
	if text == "" {
		return nil, nil
	}
	q, err := query.Parse(text)
	if err != nil {
		return nil, err
	}
	return query.Compile(q, query.Fields[*jobs.Outcome](func(name string) (*query.Field[*jobs.Outcome], error) {
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

// final returns a function that reports whether a job is not retried after a failure. It returns
// nil if neither query was given. The queries were checked when the flags were parsed.
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
			return 0, text.Errorf("%q is not a factor from 1 to 100", s)
		}
		return f, nil
	}
	return &flagValue[float64]{to, "FACTOR", parse, func(f float64) string { return fmt.Sprint(f) }}
}

// warning is a signal that warns a job of its end, and how long before the end it is sent.
type warning struct {
	signal int
	before time.Duration
}

// warnFlag takes a signal and a time: USR1@60s.
func warnFlag(to *warning) *flagValue[warning] {
	parse := func(s string) (w warning, err error) {
		name, before, ok := strings.Cut(s, "@")
		if !ok {
			return w, text.Errorf("%q is not SIGNAL@TIME, such as USR1@60s", s)
		}
		name = "SIG" + strings.TrimPrefix(strings.ToUpper(name), "SIG")
		if w.signal = jobs.SignalNumber(name); w.signal == 0 || name == "SIGKILL" || name == "SIGSTOP" {
			return w, text.Errorf("%s is not a signal that a program can handle; USR1 and USR2 are usual", text.Shorten(name))
		}
		w.before, err = jobs.ParseDuration(before)
		return w, err
	}
	text := func(w warning) string { return jobs.SignalName(w.signal) + "@" + w.before.String() }
	return &flagValue[warning]{to, "SIGNAL@TIME", parse, text}
}
