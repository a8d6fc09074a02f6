package hosts

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"dcs-tui/jobs"
)

// keyType is the type of a key: how its value is read into a draft. Errors of set do not name
// the key.
type keyType struct {
	set func(d *draft, v any) error
	get func(d *draft) any // to report changes of a host; nil: not compared

	option func(word string) any // the value of KEY=WORD; nil: as the word looks, see optionValue
}

// asText returns a word as it is, also one that looks like a number.
func asText(word string) any { return word }

// asTexts returns a text, or the list of texts between commas.
func asTexts(word string) any {
	if !strings.Contains(word, ",") {
		return word
	}
	var list []any
	for part := range strings.SplitSeq(word, ",") {
		list = append(list, part)
	}
	return list
}

// fieldType returns the type of a key whose value parse turns into a field of the draft.
func fieldType[T any](at func(*draft) *T, parse func(v any) (T, error)) keyType {
	return keyType{
		set: func(d *draft, v any) error {
			t, err := parse(v)
			if err == nil {
				*at(d) = t
			}
			return err
		},
		get: func(d *draft) any { return *at(d) },
	}
}

// lineType returns the type of one line of text, not empty.
func lineType(at func(*draft) *string, parse func(string) (string, error)) keyType {
	t := fieldType(at, func(v any) (string, error) {
		s, err := oneLine(v)
		if err != nil {
			return "", err
		}
		return parse(s)
	})
	t.option = asText
	return t
}

// listType returns the type of a text, or a list of texts.
func listType[T any](at func(*draft) *[]T, parse func([]string) ([]T, error)) keyType {
	t := fieldType(at, func(v any) ([]T, error) {
		items, err := textList(v)
		if err != nil {
			return nil, err
		}
		return parse(items)
	})
	t.option = asTexts
	return t
}

// shellType returns the type of text for a shell, which may have several lines.
func shellType(at func(*draft) *string, mayBeEmpty bool) keyType {
	t := fieldType(at, func(v any) (string, error) {
		s, ok := v.(string)
		trimmed := strings.TrimSpace(s)
		switch {
		case !ok:
			return "", wrongKind(v, "a text in quotes")
		case trimmed == "" && !mayBeEmpty:
			return "", errors.New("must not be empty")
		case strings.ContainsRune(s, 0):
			return "", errors.New("contains a NUL byte")
		}
		return trimmed, nil
	})
	t.option = asText
	return t
}

// numberType returns the type of a whole number from low to high.
func numberType(at func(*draft) *int, low, high int) keyType {
	return fieldType(at, func(v any) (int, error) { return wholeNumber(v, low, high) })
}

// decimalType returns the type of a number that is not negative.
func decimalType(at func(*draft) *float64, mayBeZero bool) keyType {
	return fieldType(at, func(v any) (float64, error) {
		f, err := decimal(v)
		if err == nil && (math.IsNaN(f) || math.IsInf(f, 0) || f < 0 || f == 0 && !mayBeZero) {
			err = fmt.Errorf("must be a positive number, not %v", f)
		}
		return f, err
	})
}

// decimal returns a number with or without a point.
func decimal(v any) (float64, error) {
	switch n := v.(type) {
	case float64:
		return n, nil
	case int64:
		return float64(n), nil
	}
	return 0, wrongKind(v, "a number without quotes")
}

// boolType returns the type of a yes or no. It sets the field to whether the value equals when.
func boolType(at func(*draft) *bool, when bool) keyType {
	return fieldType(at, func(v any) (bool, error) {
		b, ok := v.(bool)
		if !ok {
			return false, wrongKind(v, "true or false without quotes")
		}
		return b == when, nil
	})
}

// sizeType returns the type of a number of bytes as in a jobs file, or 0.
func sizeType(at func(*draft) *int64) keyType {
	return fieldType(at, func(v any) (int64, error) { return sizeOrZero(v, `a size such as "2G"`) })
}

// sizeOrZero returns a number of bytes as in a jobs file, or 0. want describes it for the error.
func sizeOrZero(v any, want string) (int64, error) {
	s, err := quantity(v, want)
	if err != nil || s == "0" {
		return 0, err
	}
	return jobs.ParseSize(s)
}

// durationType returns the type of a duration as in a jobs file, from low to high; high 0: without
// a limit.
func durationType(at func(*draft) *time.Duration, low, high time.Duration) keyType {
	return fieldType(at, func(v any) (time.Duration, error) {
		s, err := quantity(v, `a duration such as "60s"`)
		if err != nil {
			return 0, err
		}
		t, err := jobs.ParseDuration(s)
		switch {
		case err != nil:
			return 0, err
		case t < low:
			return 0, fmt.Errorf("must be at least %s, not %s", low, t)
		case high > 0 && t > high:
			return 0, fmt.Errorf("must be at most %s, not %s", high, t)
		}
		return t, nil
	})
}

// quantity returns the text of a number, with or without a unit. want describes it for the
// error.
func quantity(v any, want string) (string, error) {
	switch v := v.(type) {
	case int64:
		return strconv.FormatInt(v, 10), nil
	case string:
		return v, nil
	}
	return "", wrongKind(v, want)
}

func wholeNumber(v any, low, high int) (int, error) {
	n, ok := v.(int64)
	if !ok {
		return 0, wrongKind(v, "a whole number without quotes")
	}
	if n < int64(low) || n > int64(high) {
		return 0, fmt.Errorf("must be from %d to %d, not %d", low, high, n)
	}
	return int(n), nil
}

// oneLine returns a text that is not empty and has no control characters.
func oneLine(v any) (string, error) {
	s, ok := v.(string)
	if !ok {
		return "", wrongKind(v, `a text in quotes`)
	}
	if strings.TrimSpace(s) == "" {
		return "", errors.New("must not be empty")
	}
	if i := strings.IndexFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f }); i >= 0 {
		return "", fmt.Errorf("contains the control character %q", s[i])
	}
	return s, nil
}

func textList(v any) ([]string, error) {
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

func wrongKind(v any, want string) error {
	is := "a date or time"
	switch v.(type) {
	case string:
		is = "a text"
	case int64:
		is = "a whole number"
	case float64:
		is = "a decimal number"
	case bool:
		is = "true or false"
	case []any:
		is = "a list"
	case map[string]any, []map[string]any:
		is = "a table"
	}
	return fmt.Errorf("must be %s, not %s", want, is)
}

// parseQuiet parses a daily time of rest: 22:00-06:00.
func parseQuiet(s string) (Quiet, error) {
	from, to, _ := strings.Cut(s, "-")
	a, okA := timeOfDay(strings.TrimSpace(from))
	b, okB := timeOfDay(strings.TrimSpace(to))
	switch {
	case !okA || !okB || a == 24*time.Hour:
		return Quiet{}, fmt.Errorf("%q is not a time of day such as 22:00-06:00", s)
	case a == b:
		return Quiet{}, fmt.Errorf("the quiet time %q starts when it ends; for a whole day write 00:00-24:00", s)
	}
	return Quiet{From: a, To: b}, nil
}

// timeOfDay parses HH:MM, 24:00 included.
func timeOfDay(s string) (time.Duration, bool) {
	if s == "24:00" {
		return 24 * time.Hour, true
	}
	t, err := time.Parse("15:04", s)
	return time.Duration(t.Hour())*time.Hour + time.Duration(t.Minute())*time.Minute, err == nil
}

// shellToken matches blanks, a text in quotes, a quoted character, bare text, or a single
// character.
var shellToken = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?s)[ \t\r\n]+|'[^']*'|"(?:[^"\\]|\\.)*"|\\.|[^ \t\r\n'"\\|&;<>$\x60()]+|.`)
})

// escapePattern matches a quoted character in "…".
var escapePattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\\(["\\$\x60])`) })

// splitWords splits a command into words as a shell does: blanks separate words, '…' is
// literal, and in "…" and bare text a backslash quotes. Nothing is expanded, so bare shell
// operators are an error.
func splitWords(s string) (words []string, err error) {
	started := false
	for _, token := range shellToken().FindAllString(s, -1) {
		switch c := token[0]; {
		case strings.IndexByte(" \t\r\n", c) >= 0:
			started = false
			continue
		case token == "'", token == `"`:
			return nil, fmt.Errorf("the command %q has a quote %c that is not closed", s, c)
		case token == `\`:
			return nil, fmt.Errorf("the command %q ends in a backslash", s)
		case strings.IndexByte("|&;<>$`()", c) >= 0:
			return nil, fmt.Errorf("the command %q contains %q, but no shell reads it; use sh -c '…' or quote it",
				s, c)
		case c == '\'':
			token = token[1 : len(token)-1]
		case c == '"':
			token = escapePattern().ReplaceAllString(token[1:len(token)-1], "$1")
		case c == '\\':
			token = token[1:]
		}
		if !started {
			started, words = true, append(words, "")
		}
		words[len(words)-1] += token
	}
	return words, nil
}
