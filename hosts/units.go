package hosts

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

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
