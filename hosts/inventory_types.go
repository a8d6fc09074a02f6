package hosts

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"dcs-tui/jobs"
)

// kind names the type of a TOML value for people.
func kind(v any) string {
	switch v.(type) {
	case string:
		return "a text"
	case int64:
		return "a whole number"
	case float64:
		return "a decimal number"
	case bool:
		return "true or false"
	case []any:
		return "a list"
	case map[string]any, []map[string]any:
		return "a table"
	}
	return "a date or time"
}

func wrongKind(v any, want string) error { return fmt.Errorf("must be %s, not %s", want, kind(v)) }

// oneLine reads a text that is not empty and has no control characters.
func oneLine(v any) (string, error) {
	s, ok := v.(string)
	if !ok {
		return "", wrongKind(v, `a text in quotes`)
	}
	if strings.TrimSpace(s) == "" {
		return "", fmt.Errorf("must not be empty")
	}
	if i := strings.IndexFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f }); i >= 0 {
		return "", fmt.Errorf("contains the control character %q", s[i])
	}
	return s, nil
}

func str(set func(*draft, string) error) func(*draft, any) error {
	return func(d *draft, v any) error {
		s, err := oneLine(v)
		if err != nil {
			return err
		}
		return set(d, s)
	}
}

// list takes a text, or a list of texts.
func list(set func(*draft, []string) error) func(*draft, any) error {
	return func(d *draft, v any) error {
		items, err := texts(v)
		if err != nil {
			return err
		}
		return set(d, items)
	}
}

func texts(v any) ([]string, error) {
	raw, ok := v.([]any)
	if !ok {
		if _, isText := v.(string); !isText {
			return nil, wrongKind(v, "a text or a list of texts")
		}
		raw = []any{v}
	}
	items := []string{}
	for _, one := range raw {
		s, err := oneLine(one)
		if err != nil {
			return nil, err
		}
		items = append(items, s)
	}
	return items, nil
}

func number(low, high int, set func(*draft, int)) func(*draft, any) error {
	return func(d *draft, v any) error {
		n, ok := v.(int64)
		if !ok {
			return wrongKind(v, "a whole number without quotes")
		}
		if n < int64(low) || n > int64(high) {
			return fmt.Errorf("must be from %d to %d, not %d", low, high, n)
		}
		set(d, int(n))
		return nil
	}
}

func decimal(zero bool, set func(*draft, float64)) func(*draft, any) error {
	return func(d *draft, v any) error {
		f, ok := v.(float64)
		if n, whole := v.(int64); whole {
			f, ok = float64(n), true
		}
		if !ok {
			return wrongKind(v, "a number without quotes")
		}
		if math.IsNaN(f) || math.IsInf(f, 0) || f < 0 || f == 0 && !zero {
			return fmt.Errorf("must be a positive number, not %v", f)
		}
		set(d, f)
		return nil
	}
}

func boolean(set func(*draft, bool)) func(*draft, any) error {
	return func(d *draft, v any) error {
		b, ok := v.(bool)
		if !ok {
			return wrongKind(v, "true or false without quotes")
		}
		set(d, b)
		return nil
	}
}

// size parses a number of bytes as in a jobs file, and 0 for none.
func size(set func(*draft, int64)) func(*draft, any) error {
	return func(d *draft, v any) error {
		s, err := quantity(v, `a size such as "2G"`)
		if err != nil {
			return err
		}
		n := int64(0)
		if s != "0" {
			n, err = jobs.ParseSize(s)
		}
		if err == nil {
			set(d, n)
		}
		return err
	}
}

// span parses a duration as in a jobs file, of at least low and at most high (0: any).
func span(low, high time.Duration, set func(*draft, time.Duration)) func(*draft, any) error {
	return func(d *draft, v any) error {
		s, err := quantity(v, `a duration such as "60s"`)
		if err != nil {
			return err
		}
		t, err := jobs.ParseDuration(s)
		switch {
		case err != nil:
			return err
		case t < low:
			return fmt.Errorf("must be at least %s, not %s", low, t)
		case high > 0 && t > high:
			return fmt.Errorf("must be at most %s, not %s", high, t)
		}
		set(d, t)
		return nil
	}
}

// quantity returns the text of a number, with or without a unit. want describes what is
// expected, for the error.
func quantity(v any, want string) (string, error) {
	switch v := v.(type) {
	case int64:
		return strconv.FormatInt(v, 10), nil
	case string:
		return v, nil
	}
	return "", wrongKind(v, want)
}

// parseQuiet reads a daily time of rest: 22:00-06:00.
func parseQuiet(s string) (Quiet, error) {
	from, to, ok := strings.Cut(s, "-")
	bad := fmt.Errorf("%q is not a time of day such as 22:00-06:00", s)
	if !ok {
		return Quiet{}, bad
	}
	a, okA := clock(strings.TrimSpace(from))
	b, okB := clock(strings.TrimSpace(to))
	if !okA || !okB || a == 24*time.Hour {
		return Quiet{}, bad
	}
	if a == b {
		return Quiet{}, fmt.Errorf("the quiet time %q starts when it ends; for a whole day write 00:00-24:00", s)
	}
	return Quiet{From: a, To: b}, nil
}

// clock reads HH:MM, 24:00 included.
func clock(s string) (time.Duration, bool) {
	h, m, ok := strings.Cut(s, ":")
	if !ok || len(h) < 1 || len(h) > 2 || len(m) != 2 {
		return 0, false
	}
	hour, err1 := strconv.ParseUint(h, 10, 8)
	minute, err2 := strconv.ParseUint(m, 10, 8)
	if err1 != nil || err2 != nil || minute > 59 || hour > 24 || hour == 24 && minute > 0 {
		return 0, false
	}
	return time.Duration(hour)*time.Hour + time.Duration(minute)*time.Minute, true
}

// splitWords cuts a command into words the way a shell does: blanks separate,
// '…' is literal, "…" and bare text know the backslash. Nothing is expanded: a
// variable or a redirection would silently not be one, so bare shell operators
// are refused.
func splitWords(s string) ([]string, error) {
	var words []string
	var word strings.Builder
	started := false
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case strings.IndexByte(" \t\r\n", c) >= 0:
			if started {
				words = append(words, word.String())
				word.Reset()
				started = false
			}
		case c == '\'' || c == '"':
			started = true
			end := quoted(s[i+1:], c, &word)
			if end < 0 {
				return nil, fmt.Errorf("the command %q has a quote %c that is not closed", s, c)
			}
			i += end
		case c == '\\':
			if i++; i == len(s) {
				return nil, fmt.Errorf("the command %q ends in a backslash", s)
			}
			started = true
			word.WriteByte(s[i])
		case strings.IndexByte("|&;<>$`()", c) >= 0:
			return nil, fmt.Errorf("the command %q contains %q, but no shell reads it; use sh -c '…' or quote it", s, c)
		default:
			started = true
			word.WriteByte(c)
		}
	}
	if started {
		words = append(words, word.String())
	}
	return words, nil
}

// quoted adds to word what stands before the closing quote and returns how many
// bytes that took, the quote included; -1 when there is none.
func quoted(s string, quote byte, word *strings.Builder) int {
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == quote:
			return i + 1
		case s[i] == '\\' && quote == '"' && i+1 < len(s) && strings.IndexByte("\"\\$`", s[i+1]) >= 0:
			i++
			word.WriteByte(s[i])
		default:
			word.WriteByte(s[i])
		}
	}
	return -1
}
