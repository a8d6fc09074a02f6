package cli

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"dcs-tui/dispatch/sched/halt"
	"dcs-tui/hosts"
	"dcs-tui/internal/text"
	"dcs-tui/jobs"
	"dcs-tui/jobs/query"
	"dcs-tui/jobs/results"
)

// flagValue is a pflag.Value that stores what parse returns in *to.
type flagValue[T any] struct {
	to     *T
	kind   string // name of the value in the help, or what it may be: drain|cancel
	parse  func(string) (T, error)
	isList bool     // each value adds to those before
	given  []string // what was parsed, which run.toml keeps
}

func newFlag[T any](to *T, kind string, parse func(string) (T, error)) *flagValue[T] {
	return &flagValue[T]{to: to, kind: kind, parse: parse}
}

// String returns the value that was given or, for the help, the default: "" is the zero value.
func (v *flagValue[T]) String() string {
	switch s, isText := any(v.to).(*string); {
	case v.to == nil:
		return ""
	case isText:
		return *s
	case v.given != nil:
		return strings.Join(v.given, ",")
	case reflect.ValueOf(v.to).Elem().IsZero():
		return ""
	}
	return fmt.Sprint(*v.to)
}
func (v *flagValue[T]) Type() string { return v.kind }

// takesSeveral reports whether each value adds to those before.
func (v *flagValue[T]) takesSeveral() bool { return v.isList }
func (v *flagValue[T]) Set(s string) error {
	t, err := v.parse(s)
	if err != nil {
		return err
	}
	if !v.isList {
		v.given = nil
	}
	*v.to, v.given = t, append(v.given, s)
	return nil
}

// newListFlag returns the value of a flag that may be given several times. It stores what parse
// returns for each value.
func newListFlag[T any](to *[]T, parse func(string) (T, error)) *flagValue[[]T] {
	v := newFlag(to, "stringArray", func(s string) ([]T, error) {
		t, err := parse(s)
		return append(*to, t), err
	})
	v.isList = true
	return v
}

// newCommaFlag is newListFlag for a flag whose values may be lists with commas, like those of
// pflag. add adds what a word means to a list. An empty list is an empty word, which add refuses: it
// is probably an unset variable of a shell.
func newCommaFlag[T any](to *[]T, kind string, add func(list []T, word string) ([]T, error)) *flagValue[[]T] {
	v := newFlag(to, kind, func(s string) ([]T, error) {
		lines, err := csv.NewReader(strings.NewReader(s)).ReadAll()
		if err != nil {
			return nil, err
		}
		list := *to
		words := slices.Concat(lines...)
		if len(words) == 0 {
			words = []string{""}
		}
		for _, word := range words {
			if list, err = add(list, word); err != nil {
				return nil, err
			}
		}
		return list, nil
	})
	v.isList = true
	return v
}

// appending returns a function that appends what parse returns for a word to a list.
func appending[T any](parse func(string) (T, error)) func([]T, string) ([]T, error) {
	return func(list []T, word string) ([]T, error) { t, err := parse(word); return append(list, t), err }
}

// checkedFlag refuses a second value, and a text with characters that are not what they look like; see
// jobs.AmbiguousWord.
type checkedFlag struct {
	pflag.Value
	name   string
	isList bool    // its value is a list with commas
	given  *string // nil: not given yet
}

// notPlain are flags with a command or a regular expression, which may contain every character.
var notPlain = []string{"setup", "on-done", "ask", "shell", "result"}

// lastCounts are flags of one value of which the last counts, as in GNU parallel. So an alias can give
// them, and a command line replace them. The Python client gives output-max in this way.
var lastCounts = []string{"jobs", "delay", "timeout", "tries", "halt", "joblog", "cwd", "output-max"}

// checkValuesOf makes a flag with values a checkedFlag.
func checkValuesOf(f *pflag.Flag) {
	if kind := f.Value.Type(); kind != "bool" && kind != "count" {
		value, _ := pflag.UnquoteUsage(f)
		f.Value = &checkedFlag{Value: f.Value, name: f.Name, isList: strings.HasSuffix(value, ",...")}
		if f.DefValue == "[]" {
			f.DefValue = "" // the help shows the default of a type that it does not know
		}
	}
}

// Set implements pflag.Value.
func (c *checkedFlag) Set(s string) error {
	if c.given != nil && *c.given != s && c.takesOne() {
		before, now := text.Shorten(*c.given), text.Shorten(s)
		err := text.Errorf("given twice, as %q and as %q", before, now)
		if c.isList {
			return err.WithAdvice("give all in one list: --%s %s,%s", c.name, before, now)
		}
		return err.WithAdvice("give it once: it has one value")
	}
	if err := c.checkText(s); err != nil {
		return err
	}
	c.given = &s
	return c.Value.Set(s)
}

func (c *checkedFlag) takesOne() bool {
	_, isSlice := c.Value.(pflag.SliceValue)
	own, isOwn := c.Value.(interface{ takesSeveral() bool })
	return !isSlice && !(isOwn && own.takesSeveral()) && !slices.Contains(lastCounts, c.name)
}

func (c *checkedFlag) checkText(s string) error {
	why := jobs.AmbiguousWord(s)
	switch c.name {
	case "where", "retry-on", "no-retry-on":
		_, why = jobs.Ambiguous(s) // queries have quotes
	}
	if why == "" || slices.Contains(notPlain, c.name) {
		return nil
	}
	if _, err := os.Lstat(s); err == nil {
		return nil // the name of a file
	}
	refused := text.Errorf("%s", why)
	if c.name == "env" {
		return refused.WithAdvice("if that is intended, export the variable, and give --env NAME")
	}
	return refused
}

// absolutePath returns an absolute path, because resume may be called from another directory.
func absolutePath(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	return filepath.Abs(path)
}

// optional returns a function like parse that returns a pointer, for a flag that is nil if it is
// not given.
func optional[T any](parse func(string) (T, error)) func(string) (*T, error) {
	return func(s string) (*T, error) { t, err := parse(s); return &t, err }
}

// parseAge parses a duration with a unit: 30 alone could mean days, and prune removes runs.
func parseAge(s string) (time.Duration, error) {
	if _, err := strconv.ParseFloat(s, 64); err == nil {
		return 0, text.Errorf("%s has no unit: write %[1]sd for days or %[1]sh for hours", text.Shorten(s))
	}
	return jobs.ParseDuration(s)
}

// parseCount parses a whole number of at least 1.
func parseCount(s string) (int, error) { return parseCountTo(math.MaxInt)(s) }

// parsePackFiles parses a whole number of at least 1, or off, which is 0.
func parsePackFiles(s string) (int, error) {
	if s == "off" {
		return 0, nil
	}
	n, err := parseCount(s)
	if err != nil {
		err = text.Errorf("%q is neither a whole number of at least 1 nor off", text.Shorten(s))
	}
	return n, err
}

// parseCountTo returns a function that parses a whole number of at least 1 and at most limit.
func parseCountTo(limit int) func(string) (int, error) {
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

// shortHalts are GNU parallel's short forms of --halt. Its 1 and its percentages are numbers of failures,
// as all numbers are here.
var shortHalts = map[string]string{"0": "never", "-1": "soon,success=1", "-2": "now,success=1"}

// parseHalt parses --halt: a number or a percentage of failed jobs, or GNU parallel's form, such as
// now,fail=1 or soon,success=10%. With "" the run halts only when no command is found, and with
// "never" not even then.
func parseHalt(s string) (h halt.Rule, err error) {
	if long, ok := shortHalts[s]; ok {
		s = long
	}
	switch s {
	case "", "never":
		return halt.Rule{Never: s == "never"}, nil
	case "2":
		return h, text.Errorf("2 means now,fail=1 in GNU parallel").
			WithAdvice("soon,fail=2 starts no more jobs after two failures; now,fail=1 ends all jobs after one")
	}
	number := s
	if when, rest, ok := strings.Cut(s, ","); ok {
		what, n, _ := strings.Cut(rest, "=")
		of := slices.Index(halt.ResultWords[:], what)
		if of < 0 || when != "now" && when != "soon" {
			return h, text.Errorf("%q is not WHEN,WHAT=N: WHEN is now or soon, WHAT is fail, success or done, "+
				"such as now,fail=1", text.Shorten(s))
		}
		h.Now, h.Of, number = when == "now", halt.Results(of), n
	}
	if share, ok := strings.CutSuffix(number, "%"); ok {
		h.Percent, err = strconv.ParseFloat(share, 64)
		if err != nil || !(h.Percent > 0 && h.Percent <= 100) {
			return halt.Rule{}, text.Errorf("%q is not a percentage above 0%% and up to 100%%", text.Shorten(number))
		}
		return h, nil
	}
	h.Jobs, err = strconv.Atoi(number)
	if err != nil || h.Jobs < 1 {
		return halt.Rule{}, text.Errorf("%q is neither a number of jobs, such as 5, nor a percentage, such as 10%%",
			text.Shorten(number))
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
		return hosts.SlotRule{}, text.Errorf("%q is neither a number of slots nor -N (all cores but N); "+
			"GNU parallel's 0, N%%, +N, and files are not supported", text.Shorten(s)).
			WithAdvice("slots in hosts.toml sets the slots of one host; " +
				"dcs-tui hosts slots changes them while a run is dispatched")
	case n > jobs.MaxSlots:
		return hosts.SlotRule{}, text.Errorf("%d is more than %d", n, jobs.MaxSlots)
	case less:
		return hosts.SlotRule{Less: n}, nil
	}
	return hosts.SlotRule{Fixed: n}, nil
}

// choices matches the kind of a flag that takes one of some words, which setUpArguments completes.
var choices = regexp.MustCompile(`^[a-z]+(\|[a-z]+)+$`)

// newChoice returns the value of a flag that takes one of some words.
func newChoice(to *string, words ...string) *flagValue[string] {
	return newFlag(to, strings.Join(words, "|"), func(s string) (string, error) {
		if !slices.Contains(words, s) {
			return "", text.Errorf("%q is not one of %s", text.Shorten(s), strings.Join(words, ", "))
		}
		return s, nil
	})
}

// newPerQueue returns the value of a flag QUEUE=N that may be given several times.
func newPerQueue(to *map[string]int, low, high int) *flagValue[map[string]int] {
	v := newFlag(to, "QUEUE=N", func(s string) (map[string]int, error) {
		i := strings.LastIndexByte(s, '=')
		if i < 0 {
			return nil, text.Errorf("%q is not QUEUE=N", text.Shorten(s))
		}
		n, err := strconv.Atoi(s[i+1:])
		if err != nil || n < low || n > high {
			return nil, text.Errorf("%q is not a whole number from %d to %d", text.Shorten(s[i+1:]), low, high)
		}
		jobs.Insert(to, s[:i], n)
		return *to, nil
	})
	v.isList = true
	return v
}

// addToken adds NAME=N to tokens, in place of an earlier one of this name.
func addToken(list []jobs.Token, word string) ([]jobs.Token, error) {
	name, n, ok := strings.Cut(word, "=")
	t, err := jobs.ParseToken(name + ":" + n)
	if !ok || err != nil {
		return nil, text.Errorf("%q is not NAME=N, such as matlab=5", text.Shorten(word))
	}
	return append(slices.DeleteFunc(list, func(had jobs.Token) bool { return had.Name == t.Name }), t), nil
}

// notShared is the value of --run-share off.
const notShared = -1

// runShareEnv is the environment variable with the --run-share of runs without that flag.
const runShareEnv = "DCS_TUI_RUN_SHARE"

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

// runShare returns the weight of the run, given the value of --run-share. It is 0 if the run does
// not share slots.
func runShare(given int) int {
	usual, _ := parseRunShare(os.Getenv(runShareEnv))
	return max(0, cmp.Or(given, usual, 1))
}

// failureFields are the fields of a failed attempt that --retry-on and --no-retry-on may name.
var failureFields = []query.Field[*jobs.Outcome]{
	{Name: "exit", Type: query.NumberType, Value: func(o *jobs.Outcome) query.Value {
		if results.FailureKind(o) != "exit" {
			return query.Value{}
		}
		return query.NumberValue(float64(o.Exit))
	}, Check: results.CheckExit},
	{Name: "signal", Type: query.TextType,
		Value: func(o *jobs.Outcome) query.Value { return query.TextValue(o.Signal) },
		Word:  results.SignalWord(func(o *jobs.Outcome) string { return o.Signal })},
	{Name: "cause", Type: query.TextType,
		Value: func(o *jobs.Outcome) query.Value { return query.TextValue(results.FailureKind(o)) },
		Check: func(l query.Literal) error { return results.CheckFailureKind(l.Value.Text) }},
	{Name: "time", Type: query.DurationType,
		Value: func(o *jobs.Outcome) query.Value { return query.NumberValue(o.Elapsed().Seconds()) }},
	{
		Name:  "mem",
		Type:  query.SizeType,
		Value: func(o *jobs.Outcome) query.Value { return query.NumberValue(float64(o.MaxRSSBytes)) },
	},
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
	fields := func(name string) (*query.Field[*jobs.Outcome], error) {
		var names []string
		for _, f := range failureFields {
			if f.Name == name {
				f.Fact = true
				return &f, nil
			}
			names = append(names, f.Name)
		}
		return nil, query.Unknown("field of a failure", name, names)
	}
	return query.Compile(q, fields, nil)
}

// finalFailures returns a function that reports whether a job is not retried after a failure, given
// the values of --retry-on and --no-retry-on. It returns nil if neither was given.
func finalFailures(again, never func(*jobs.Outcome) bool, retryTimeouts bool) func(*jobs.Outcome) bool {
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

// parseGrowth parses a factor of 1 to 100.
func parseGrowth(s string) (float64, error) {
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || !(f >= 1 && f <= 100) {
		return 0, text.Errorf("%q is not a factor from 1 to 100", s)
	}
	return f, nil
}

// warning is a signal that warns a job of its end, and how long before the end it is sent.
type warning struct {
	signal int
	before time.Duration
}

// parseWarning parses a signal and a time: USR1@60s.
func parseWarning(s string) (w warning, err error) {
	name, before, ok := strings.Cut(s, "@")
	if !ok {
		return w, text.Errorf("%q is not SIGNAL@TIME, such as USR1@60s", s)
	}
	name = jobs.FullSignalName(name)
	w.signal = jobs.SignalNumber(name)
	if w.signal == 0 || name == "SIGKILL" || name == "SIGSTOP" {
		return w, text.Errorf("%s is not a signal that a program can handle; USR1 and USR2 are usual",
			text.Shorten(name))
	}
	w.before, err = jobs.ParseDuration(before)
	return w, err
}
