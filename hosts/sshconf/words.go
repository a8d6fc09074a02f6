package sshconf

import (
	"fmt"
	"strings"
)

// splitLine cuts a line of ssh_config into keyword, lower case, and arguments.
// The keyword may be followed by blanks, an = or both; "…" and '…' keep blanks;
// a backslash keeps a quote or a backslash; a # that starts an argument begins a
// comment. The keyword is "" for an empty line.
func splitLine(line string) (keyword string, args []string, err error) {
	line = strings.Trim(line, " \t\r\f")
	if line == "" || line[0] == '#' {
		return "", nil, nil
	}
	end := strings.IndexAny(line, " \t=\"")
	if end < 0 {
		return strings.ToLower(line), nil, nil
	}
	if end == 0 {
		return "", nil, fmt.Errorf("a keyword is missing")
	}
	keyword = strings.ToLower(line[:end])
	rest := strings.TrimLeft(line[end:], " \t")
	rest = strings.TrimLeft(strings.TrimPrefix(rest, "="), " \t")
	args, err = splitArguments(rest)
	return keyword, args, err
}

func splitArguments(s string) ([]string, error) {
	var args []string
	var word strings.Builder
	inside := false // a word has begun
	quote := byte(0)
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c == '\\' && i+1 < len(s) && (s[i+1] == '\\' || s[i+1] == '"' || s[i+1] == '\'' || quote == 0 && s[i+1] == ' '):
			i++
			word.WriteByte(s[i])
			inside = true
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0:
			word.WriteByte(c)
		case c == '"' || c == '\'':
			quote, inside = c, true
		case c == ' ' || c == '\t':
			if inside {
				args = append(args, word.String())
				word.Reset()
				inside = false
			}
		case c == '#' && !inside:
			return args, nil
		default:
			word.WriteByte(c)
			inside = true
		}
	}
	if quote != 0 {
		return nil, fmt.Errorf("a quote is not closed")
	}
	if inside {
		args = append(args, word.String())
	}
	return args, nil
}
