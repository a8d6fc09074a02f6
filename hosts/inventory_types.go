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

func text(set func(*draft, string) error) func(*draft, any) error {
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

// span parses a duration as in a jobs file.
func span(set func(*draft, time.Duration) error) func(*draft, any) error {
	return func(d *draft, v any) error {
		s, err := quantity(v, `a duration such as "60s"`)
		if err != nil {
			return err
		}
		t, err := jobs.ParseDuration(s)
		if err != nil {
			return err
		}
		return set(d, t)
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
