package jobs

import (
	"fmt"
	"strings"
)

// keyValue is one option of a #DCS line.
type keyValue struct{ key, value string }

// isDirective says whether a line (without leading blanks) is a #DCS line.
func isDirective(line []byte) bool { return len(line) >= 4 && string(line[:4]) == "#DCS" }

// parseDirective reads what follows #DCS.
func parseDirective(text string) (isDefault bool, options []keyValue, err error) {
	if text != "" && text[0] != ' ' && text[0] != '\t' {
		return false, nil, fmt.Errorf("a blank must follow #DCS: #DCS key=value")
	}
	rest := strings.TrimLeft(text, " \t")
	if after, ok := strings.CutPrefix(rest, "default"); ok && (after == "" || after[0] == ' ' || after[0] == '\t') {
		isDefault, rest = true, strings.TrimLeft(after, " \t")
	}
	for rest != "" {
		var kv keyValue
		if kv, rest, err = nextOption(rest); err != nil {
			return isDefault, nil, err
		}
		for _, earlier := range options {
			if earlier.key == kv.key {
				return isDefault, nil, fmt.Errorf("%s is given twice", kv.key)
			}
		}
		options = append(options, kv)
	}
	if len(options) == 0 {
		return isDefault, nil, fmt.Errorf("no option follows: write key=value, for example #DCS timeout=2h")
	}
	return isDefault, options, nil
}

// nextOption cuts one key=value off; s is not empty and starts with no blank.
func nextOption(s string) (kv keyValue, rest string, err error) {
	end := strings.IndexAny(s, "= \t")
	if end < 0 {
		end = len(s)
	}
	kv.key, rest = s[:end], s[end:]
	if rest == "" || rest[0] != '=' {
		if strings.HasPrefix(strings.TrimLeft(rest, " \t"), "=") {
			return kv, "", fmt.Errorf("write %s=value without blanks around the =", kv.key)
		}
		return kv, "", fmt.Errorf("unknown directive %q: after #DCS come options as key=value, or the word default and then options", kv.key)
	}
	if kv.value, rest, err = nextValue(rest[1:]); err != nil {
		return kv, "", fmt.Errorf("%s: %w", kv.key, err)
	}
	return kv, strings.TrimLeft(rest, " \t"), nil
}

// nextValue reads a bare word, 'a text' as it stands, or "a text" in which \"
// and \\ stand for " and \.
func nextValue(s string) (value, rest string, err error) {
	if s == "" || s[0] != '\'' && s[0] != '"' {
		end := strings.IndexAny(s, " \t")
		if end < 0 {
			end = len(s)
		}
		if strings.ContainsAny(s[:end], `'"`) {
			return "", "", fmt.Errorf("a quote inside the value %s: put the whole value in quotes", s[:end])
		}
		return s[:end], s[end:], nil
	}
	quote := s[0]
	var out []byte
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] == quote:
			if rest = s[i+1:]; rest != "" && rest[0] != ' ' && rest[0] != '\t' {
				return "", "", fmt.Errorf("a blank must follow the closing quote")
			}
			return string(out), rest, nil
		case quote == '"' && s[i] == '\\' && i+1 < len(s) && (s[i+1] == '"' || s[i+1] == '\\'):
			i++
		}
		out = append(out, s[i])
	}
	return "", "", fmt.Errorf("the closing %c is missing", quote)
}

// misspelt says whether a comment was probably meant as a #DCS line: the
// letters DCS with other case or blanks, and then an option.
func misspelt(line []byte) bool {
	if len(line) > 200 {
		line = line[:200]
	}
	word, rest, _ := strings.Cut(strings.TrimLeft(string(line[1:]), " \t"), " ")
	next, _, _ := strings.Cut(strings.TrimLeft(rest, " \t"), " ")
	return strings.EqualFold(word, "DCS") && (next == "default" || strings.IndexByte(next, '=') > 0)
}
