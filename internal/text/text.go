// Package text formats what people read. It formats durations, sizes, and numbers of things, makes
// text of users and programs safe for a terminal, shortens it, and quotes it for a shell. Its errors
// carry advice.
//
// There is one function for each purpose, so that the same quantity looks the same everywhere. A
// column of the screen that needs fewer cells uses Clock or ShortSize.
package text

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"unicode/utf8"
)

// Line returns s as one line that is safe to print on a terminal.
func Line(s string) string {
	return Clean(strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r == '\n' || r == '\r' }), "; "), 0)
}

// Shorten cuts s to 100 runes.
func Shorten(s string) string { return ShortenTo(s, 100) }

// ShortenTo cuts s to n runes, after a word if that loses little. If s is longer, the result ends in ….
func ShortenTo(s string, n int) string {
	if Cut(s, n) == s {
		return s
	}
	cut := Cut(s, n-1)
	return cut[:WordEnd(cut, s[len(cut):])] + "…"
}

// Limits of a cut after a word: it drops at most maxWordCut runes, and a beginning of fewer than
// minWordCut runes is cut anywhere, because each letter counts there.
const maxWordCut, minWordCut = 20, 40

// WordEnd returns the length of the part to show of the beginning s of a text, of which rest is cut off.
// The part ends after a word if that loses little: half a path or a name would look like another.
func WordEnd(s, rest string) int {
	end := len(s)
	if !strings.HasPrefix(rest, " ") {
		end = strings.LastIndexByte(s, ' ')
		if end < 0 || utf8.RuneCountInString(s[end:]) > maxWordCut || utf8.RuneCountInString(s) < minWordCut {
			return len(s)
		}
	}
	return len(strings.TrimRight(s[:end], " "))
}

// Cut returns the first n runes of s.
func Cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	i := 0
	for pos := range s {
		if i == n {
			return s[:pos]
		}
		i++
	}
	return s
}

// ShortenBytes cuts s to n bytes, which must be at least three. If s is longer, the result ends in ….
// No character is cut in two. Use it where bytes are limited; Shorten is for people.
func ShortenBytes(s string, n int) string {
	if len(s) <= n {
		return s
	}
	end := n - len("…")
	for i := 0; i < utf8.UTFMax-1 && end > 0 && !utf8.RuneStart(s[end]); i++ {
		end--
	}
	return s[:end] + "…"
}

// WithoutSubject removes subject, such as the name of a host or "job 7", from the beginning of a
// text, where a column or a heading names it already.
func WithoutSubject(s, subject string) string {
	// Not the address ws01:22.
	if rest, ok := strings.CutPrefix(s, subject); ok && subject != "" &&
		(strings.HasPrefix(rest, " ") || strings.HasPrefix(rest, ": ")) {
		return strings.TrimLeft(rest, ": ")
	}
	return s
}

// ShellWord quotes s so that a shell reads it as one word. Plain words stay as they are. Commands
// in messages need it.
func ShellWord(s string) string {
	plain := s != ""
	for _, c := range []byte(s) {
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' ||
			strings.IndexByte("_-./,:=@%+", c) >= 0) {
			plain = false
		}
	}
	if plain {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// reservedWord matches words that are no command at the beginning of a command line: reserved words
// of common shells, assignments, and what zsh expands.
var reservedWord = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`=|^(?:case|coproc|do|done|elif|else|end|esac|fi|for|foreach|function|if|in|` +
		`nocorrect|noglob|repeat|select|then|time|until|while)$`)
})

// ShellCommand quotes a program and its arguments so that a shell runs exactly them.
func ShellCommand(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = ShellWord(w)
		switch {
		case quoted[i] != w:
		case i == 0 && reservedWord().MatchString(w):
			quoted[i] = "command " + w // to fish, it is reserved also in quotes
		case strings.HasPrefix(w, "="):
			quoted[i] = "'" + w + "'"
		}
	}
	return strings.Join(quoted, " ")
}

// Path returns a path for messages. It is relative if it is below the current directory.
func Path(path string) string {
	if wd, err := os.Getwd(); err == nil {
		if rel, err := filepath.Rel(wd, path); err == nil && !strings.HasPrefix(rel, "..") {
			return rel
		}
	}
	return path
}

// Error is an error with advice for the user.
type Error struct {
	Err    error
	Advice string // what to do; "": there is no advice
}

// Errorf formats an error without advice.
func Errorf(format string, args ...any) *Error { return &Error{Err: fmt.Errorf(format, args...)} }

// WithAdvice sets the advice and returns e.
func (e *Error) WithAdvice(format string, args ...any) *Error {
	e.Advice = fmt.Sprintf(format, args...)
	return e
}

// Error returns the message without the advice.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the error without the advice.
func (e *Error) Unwrap() error { return e.Err }
