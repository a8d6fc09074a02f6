package sheet

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"dcs-tui/jobs"
)

// token is a word of a filter.
type token struct {
	text   string
	kind   tokenKind
	quoted bool
	search bool   // it is no column of a comparison: ParseSearch
	at     int    // the number of its first character, 1 is the first
	rest   string // the filter from it on
}

type tokenKind uint8

const (
	endToken tokenKind = iota
	wordToken
	opToken // = != < <= > >= ~ !~
	openToken
	closeToken
	andToken
	orToken
	notToken
)

// operators, the longer of two that begin alike first.
var operators = []string{"==", "!=", "<=", ">=", "!~", "=", "<", ">", "~"}

// lexer reads a filter word by word.
type lexer struct {
	rest   string
	at     int // characters before rest
	tok    token
	search bool // ParseSearch
	open   int  // parentheses, of a search
}

func (l *lexer) skip(n int) {
	l.at += utf8.RuneCountInString(l.rest[:n])
	l.rest = l.rest[n:]
}

// next reads the next word; with value an operator's right side, in which = < > ~ and
// words such as `and` mean nothing.
func (l *lexer) next(value bool) error {
	l.skip(len(l.rest) - len(strings.TrimLeftFunc(l.rest, unicode.IsSpace)))
	l.tok = token{at: l.at + 1, rest: l.rest}
	if l.rest == "" {
		return nil
	}
	take := func(n int, kind tokenKind) {
		l.tok.text, l.tok.kind = l.rest[:n], kind
		l.skip(n)
	}
	switch c := l.rest[0]; {
	case c == '(':
		take(1, openToken)
		return nil
	case c == ')':
		take(1, closeToken)
		return nil
	case c == ',':
		take(1, andToken)
		return nil
	case strings.HasPrefix(l.rest, "&&"):
		take(2, andToken)
		return nil
	case strings.HasPrefix(l.rest, "||"):
		take(2, orToken)
		return nil
	case c == '"' || c == '\'':
		return l.quotedWord(c)
	case c == '[' && !value:
		i := strings.IndexByte(l.rest, ']')
		if i < 0 {
			return l.errorf("the [ is not closed")
		}
		take(i+1, wordToken)
		return nil
	}
	if !value {
		for _, op := range operators {
			if strings.HasPrefix(l.rest, op) {
				take(len(op), opToken)
				return nil
			}
		}
		if l.rest[0] == '!' {
			take(1, notToken)
			return nil
		}
	}
	n := strings.IndexFunc(l.rest, func(r rune) bool {
		return unicode.IsSpace(r) || strings.ContainsRune("(),&|", r) || !value && strings.ContainsRune("=<>~!\"'", r)
	})
	if n < 0 {
		n = len(l.rest)
	}
	if n == 0 { // a single & or |
		return l.errorf("%q is no word of a filter", l.rest[:1])
	}
	take(n, wordToken)
	if !value {
		switch strings.ToLower(l.tok.text) {
		case "and":
			l.tok.kind = andToken
		case "or":
			l.tok.kind = orToken
		case "not":
			l.tok.kind = notToken
		}
	}
	return nil
}

// quotedWord reads up to the closing quote; there is no escape: the other quote is
// for texts that hold one.
func (l *lexer) quotedWord(quote byte) error {
	i := strings.IndexByte(l.rest[1:], quote)
	if i < 0 {
		return l.errorf("the quote is not closed")
	}
	l.tok.text, l.tok.kind, l.tok.quoted = l.rest[1:i+1], wordToken, true
	l.skip(i + 2)
	return nil
}

func (l *lexer) errorf(format string, args ...any) error {
	return faultAt(l.search, l.tok.at, fmt.Sprintf(format, args...))
}

// faultAt is an error with its place; a search is short, and its end is where one types.
func faultAt(search bool, at int, text string) error {
	if search {
		return errors.New(text)
	}
	return fmt.Errorf("the filter, character %d: %s", at, text)
}

func (t *token) String() string {
	if t.kind == endToken {
		return "its end"
	}
	return fmt.Sprintf("%q", jobs.Clean(t.text, 40))
}
