package jobs

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"dcs-tui/internal/text"
)

// These limits apply to the jobs file, the command line, the inventory, and host
// reports. Each is defined once, so that no layer accepts what another one truncates.
const (
	MaxSlots  = 4096      // slots and cores of a host, and therefore slots of a job
	MaxGPUs   = 1024      // of a host, and therefore of a job
	MaxShare  = 1_000_000 // share of a queue
	MaxTries  = 1_000_000 // attempts of a job
	MaxTokens = 1_000_000 // tokens of a kind, of a run and therefore of a job
)

// DefaultTries is the number of attempts of a job, in all, if nothing sets another.
const DefaultTries = 3

var durationUnits = map[string]time.Duration{
	"": time.Second, "ms": time.Millisecond, "s": time.Second, "m": time.Minute, "h": time.Hour,
	"d": 24 * time.Hour, "w": 7 * 24 * time.Hour,
}

// ParseDuration parses a positive duration: 30s, 5m, 2h, 1.5h, 1d12h, 2w, 250ms, or a number of
// seconds. A day has 24 hours.
func ParseDuration(s string) (time.Duration, error) {
	bad := func() (time.Duration, error) {
		return 0, fmt.Errorf("%q is not a duration: write for example 30s, 5m, 2h, 1d12h, or a number of seconds%s", s,
			hint(s))
	}
	total, rest := 0.0, s
	for first := true; first || rest != ""; first = false {
		n, unit, more, ok := measure(rest)
		factor, known := durationUnits[unit]
		if !ok || !known || unit == "" && (!first || more != "") {
			return bad()
		}
		total += n * float64(factor)
		rest = more
	}
	if total < 1 {
		return 0, fmt.Errorf("the duration %s must be greater than zero", s)
	}
	if total > math.MaxInt64/2 {
		return 0, fmt.Errorf("the duration %s is longer than a century", s)
	}
	return time.Duration(math.Round(total)), nil
}

// ParseDelay is like ParseDuration, but also accepts 0.
func ParseDelay(s string) (time.Duration, error) {
	if d, err := time.ParseDuration(s); err == nil && d == 0 {
		return 0, nil
	}
	return ParseDuration(s)
}

// ParseSize parses a positive number of bytes: 512M, 8G, 1.5T, or a plain number. K, M, G, T,
// and P are powers of 1024, in either case. They may be followed by B, i, or iB. A plain number
// below a MiB is refused, because 16 probably means 16G.
func ParseSize(s string) (int64, error) {
	n, unit, rest, ok := measure(s)
	unit = strings.ToUpper(unit)
	power := 0
	if unit != "" && unit != "B" {
		power = 1 + strings.IndexByte("KMGTP", unit[0])
		ok = ok && power > 0 && slices.Contains([]string{"", "B", "I", "IB"}, unit[1:])
	}
	if !ok || rest != "" {
		return 0, fmt.Errorf("%q is not a size: write for example 512M, 8G, 1T, or a number of bytes%s", s, hint(s))
	}
	if unit == "" && n > 0 && n < 1<<20 {
		return 0, fmt.Errorf("%s bytes? Write %[1]sG or %[1]sM", s)
	}
	n *= math.Pow(1024, float64(power))
	if n < 1 || n > math.MaxInt64/2 {
		return 0, fmt.Errorf("the size %s is out of range", s)
	}
	return int64(math.Round(n)), nil
}

// FormatSize formats a number of bytes exactly, as ParseSize parses it: 20M, 1536M, 8G.
func FormatSize(n int64) string {
	unit := 0
	for ; n != 0 && n%1024 == 0 && unit < 5; unit++ {
		n /= 1024
	}
	return strconv.FormatInt(n, 10) + "BKMGTP"[unit:unit+1]
}

// measure splits "12.5G/x" into the number, the letters after it, and the rest.
func measure(s string) (n float64, unit, rest string, ok bool) {
	unit = strings.TrimLeft(s, "0123456789.")
	n, err := strconv.ParseFloat(strings.TrimSuffix(s, unit), 64)
	rest = strings.TrimLeftFunc(unit, func(r rune) bool { return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' })
	return n, strings.TrimSuffix(unit, rest), rest, err == nil
}

// deadlineLayouts are tried in turn. Without a zone, a time is local.
var deadlineLayouts = []string{
	time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02 15:04:05", "2006-01-02 15:04",
	"2006-01-02T15:04Z07:00",
}

// ParseDeadline parses a time such as 2026-11-20T18:00 or '2026-11-20 18:00', which may have
// seconds and a zone, or a date, which means its last second. The result is in UTC.
func ParseDeadline(s string) (time.Time, error) {
	t, err := time.ParseInLocation("2006-01-02", s, time.Local)
	if err == nil {
		t = t.AddDate(0, 0, 1).Add(-time.Second)
	}
	for i := 0; err != nil && i < len(deadlineLayouts); i++ {
		t, err = time.ParseInLocation(deadlineLayouts[i], s, time.Local)
	}
	if err != nil {
		return t, fmt.Errorf("%q is not a point in time: write for example 2026-11-20T18:00 or 2026-11-20%s", s,
			hint(s))
	}
	if y := t.Year(); y < 1970 || y > 2261 {
		return t, fmt.Errorf("the deadline %s is out of range", s)
	}
	return t.UTC(), nil
}

// count returns a parser of whole numbers from low to high.
func count(low, high int) func(string) (int, error) {
	return func(s string) (int, error) {
		n, err := strconv.Atoi(s)
		if err != nil && !errors.Is(err, strconv.ErrRange) {
			return 0, fmt.Errorf("%q is not a whole number%s", s, ambiguity(s))
		}
		if err != nil || n < low || n > high {
			return 0, fmt.Errorf("%s is not between %d and %d", s, low, high)
		}
		return n, nil
	}
}

// parseAfter parses the dependencies of a job: numbers of jobs and ranges ("3", "5-9") from 1
// to last, and names of earlier jobs or patterns of them ("prepare-*"). Each may have a
// condition ("any:3").
func parseAfter(items []string, last ID, named func(pattern string) []ID) (after Dependencies, err error) {
	for _, item := range items {
		when := AfterSuccess
		if word, rest, ok := strings.Cut(item, ":"); ok {
			if i := slices.Index(conditionNames[:], word); i >= 0 {
				when, item = Condition(i), rest
			}
		}
		some, err := parseEarlier(item, last, named)
		if err != nil {
			return nil, err
		}
		for _, id := range some {
			after.Add(id, when)
		}
	}
	return after, nil
}

// parseEarlier parses a number, a range, or a name.
func parseEarlier(item string, last ID, named func(pattern string) []ID) (ids []ID, err error) {
	if item == "" || strings.Trim(item, "0123456789-") != "" {
		if named != nil {
			ids = named(item)
		}
		if len(ids) == 0 {
			return nil, fmt.Errorf("%q is neither the number of a job, such as 3 or 5-9, "+
				"nor the name of a job before this one%s", item, hint(item))
		}
		return ids, nil
	}
	a, b, isRange := strings.Cut(item, "-")
	if !isRange {
		b = a
	}
	from, err1 := strconv.Atoi(a)
	to, err2 := strconv.Atoi(b)
	if err1 != nil || err2 != nil || from < 1 || to < from {
		return nil, fmt.Errorf("%q is not a job number such as 3 or a range such as 5-9", item)
	}
	if to > int(last) {
		return nil, fmt.Errorf("job %d does not come before this one: jobs are numbered 1, 2, 3 … in file order, "+
			"and this is job %d", to, last+1)
	}
	for id := from; id <= to; id++ {
		ids = append(ids, ID(id))
	}
	return ids, nil
}

// GPUs is a number of devices in thousandths of one: whole devices, or a part of one device.
type GPUs int32

// WholeGPU is one device.
const WholeGPU GPUs = 1000

// Devices returns the number of devices on which the job runs.
func (g GPUs) Devices() int { return int((g + WholeGPU - 1) / WholeGPU) }

// Share returns the part of each of its devices that the job gets.
func (g GPUs) Share() GPUs { return min(g, WholeGPU) }

// String returns the number in the form of a jobs file.
func (g GPUs) String() string {
	s := strconv.Itoa(int(g / WholeGPU))
	if rest := g % WholeGPU; rest > 0 {
		s += strings.TrimRight(fmt.Sprintf(".%03d", rest), "0")
	}
	return s
}

// Text describes the number: "2 GPUs".
func (g GPUs) Text() string {
	if g > 0 && g < WholeGPU {
		return g.String() + " of a GPU"
	}
	return text.Plural(g.Devices(), "GPU")
}

// check returns an error if the number is not valid.
func (g GPUs) check() error {
	if g < 0 || g > MaxGPUs*WholeGPU || g > WholeGPU && g%WholeGPU != 0 {
		return fmt.Errorf("%s is neither a part of a device, such as 0.5, nor a whole number up to %d", g, MaxGPUs)
	}
	return nil
}

// MarshalJSON returns the number in the form of a jobs file.
func (g GPUs) MarshalJSON() ([]byte, error) { return []byte(g.String()), nil }

// UnmarshalJSON parses a number of devices.
func (g *GPUs) UnmarshalJSON(b []byte) (err error) {
	*g, err = parseGPUs(string(b))
	return err
}

// parseGPUs parses a whole number, or a part of a device with up to three digits after the point.
func parseGPUs(v string) (GPUs, error) {
	if v != "" && strings.Trim(v, "-0123456789") == "" {
		n, err := count(0, MaxGPUs)(v)
		return GPUs(n) * WholeGPU, err
	}
	whole, digits, _ := strings.Cut(v, ".")
	n, err := strconv.ParseUint((digits + "000")[:3], 10, 16)
	if len(digits) > 3 || digits == "" || err != nil || whole != "0" || n == 0 {
		return 0, fmt.Errorf("%q is neither a whole number nor a part of a device from 0.001 to 0.999%s", v, hint(v))
	}
	return GPUs(n), nil
}

// Token is a number of tokens of a kind, such as floating licenses of a program. A run has a
// number of each kind, and a job holds some while it runs.
type Token struct {
	Name  string
	Count int // of a job at least 1
}

// String returns the token in the form of a jobs file: matlab:2.
func (t Token) String() string { return fmt.Sprintf("%s:%d", t.Name, t.Count) }

// MarshalText returns the form matlab:2.
func (t Token) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText parses it.
func (t *Token) UnmarshalText(b []byte) (err error) {
	*t, err = ParseToken(string(b))
	return err
}

// ParseToken parses NAME:N, or NAME for one.
func ParseToken(s string) (t Token, err error) {
	name, n, more := strings.Cut(s, ":")
	t = Token{name, 1}
	if err = CheckTokenName(name); err == nil && more {
		t.Count, err = count(1, MaxTokens)(n)
	}
	return t, err
}

// CheckTokenName returns an error if a text cannot be the name of a kind of tokens.
func CheckTokenName(name string) error {
	if name == "" || strings.ContainsAny(name, " ,:=") {
		return fmt.Errorf("%q is not a name of tokens, such as matlab", name)
	}
	_, err := parseLabel(name)
	return err
}

// parseTokens parses a list of tokens.
func parseTokens(items []string) (list []Token, err error) {
	for _, item := range items {
		t, err := ParseToken(item)
		if err != nil {
			return nil, err
		}
		list = append(list, t)
	}
	return list, sortTokens(list)
}

// sortTokens sorts a list in which each kind may be only once.
func sortTokens(list []Token) error {
	slices.SortFunc(list, func(a, b Token) int { return strings.Compare(a.Name, b.Name) })
	for i := 1; i < len(list); i++ {
		if list[i].Name == list[i-1].Name {
			return fmt.Errorf("%s is given twice", list[i].Name)
		}
	}
	return nil
}

// TokenText returns the tokens of a job in the form of a jobs file.
func (o *Options) TokenText() string {
	return strings.Join(text.Each(o.Tokens, Token.String), ",")
}

// ReadProgress parses DCS_PROGRESS: "0.42", "42%", or "21/50". For any other text it returns the
// share -1 and the text itself.
func ReadProgress(text string) (share float64, said string) {
	const longest = 64
	text = strings.TrimSpace(text[:min(len(text), longest)])
	number := func(s string) (float64, bool) {
		f, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
		return f, err == nil
	}
	share = -1
	if s, ok := strings.CutSuffix(text, "%"); ok {
		if f, ok := number(s); ok {
			share = f / 100
		}
	} else if s, of, ok := strings.Cut(text, "/"); ok {
		a, ok1 := number(s)
		n, ok2 := number(of)
		if ok1 && ok2 && n > 0 {
			share = a / n
		}
	} else if f, ok := number(text); ok {
		share = f
	}
	if share >= 0 && share <= 1 {
		return share, ""
	}
	return -1, text
}

// signalNames holds the names of Linux (signal(7)) on every architecture that Go supports
// except MIPS. The index is the number.
var signalNames = [...]string{"", "SIGHUP", "SIGINT", "SIGQUIT", "SIGILL", "SIGTRAP", "SIGABRT", "SIGBUS", "SIGFPE",
	"SIGKILL", "SIGUSR1", "SIGSEGV", "SIGUSR2", "SIGPIPE", "SIGALRM", "SIGTERM", "SIGSTKFLT", "SIGCHLD", "SIGCONT",
	"SIGSTOP", "SIGTSTP", "SIGTTIN", "SIGTTOU", "SIGURG", "SIGXCPU", "SIGXFSZ", "SIGVTALRM", "SIGPROF", "SIGWINCH",
	"SIGIO", "SIGPWR", "SIGSYS"}

// maxSignal is SIGRTMAX.
const maxSignal = 64

// SignalName returns the name of a signal: "SIGKILL" for 9, "SIG40" for a real-time signal, or ""
// if there is no such signal.
func SignalName(n int) string {
	switch {
	case n < 1 || n > maxSignal:
		return ""
	case n < len(signalNames):
		return signalNames[n]
	}
	return "SIG" + strconv.Itoa(n)
}

// FullSignalName returns SIGKILL for KILL, kill, and SIGKILL. It does not check that there is such
// a signal.
func FullSignalName(s string) string { return "SIG" + strings.TrimPrefix(strings.ToUpper(s), "SIG") }

// SignalNumber is the inverse of SignalName; 0 for an unknown name.
func SignalNumber(name string) int {
	if n := slices.Index(signalNames[:], name); n >= 0 {
		return n // 0 for ""
	}
	if digits, ok := strings.CutPrefix(name, "SIG"); ok {
		if n, err := strconv.Atoi(digits); err == nil && SignalName(n) == name {
			return n
		}
	}
	return 0
}
