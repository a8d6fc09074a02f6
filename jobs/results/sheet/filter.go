package sheet

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode"

	"dcs-tui/jobs"
	"dcs-tui/jobs/results/column"
)

// Filter is a condition on rows, such as
//
//	C>=0.1 and (state=succeeded or host=ws*) and not name~'^test'
//
// Comparisons are = (or ==) != < <= > >= and ~ !~ for regular expressions (RE2, found
// anywhere in the text); `and` (also a comma), `or`, `not` and parentheses join them.
// A column is a word, or in brackets when it looks like something else: [1]>0.5. A
// value is a word, or in quotes; with = and != a * in a word without quotes stands for
// any text and a ? for one character. Numbers are compared as numbers. Between two
// comparisons `and` may be left out.
type Filter struct {
	text   string
	root   *node
	search bool // of ParseSearch
}

// node is a comparison, a word of a search, or and, or, not of others.
type node struct {
	kind        tokenKind // andToken, orToken, notToken; opToken: a comparison; wordToken: a word
	left, right *node
	cmp         *comparison
	word        Word
}

// comparison is COLUMN OP VALUE.
type comparison struct {
	at      int
	column  string
	op      string
	value   string
	quoted  bool
	number  float64
	numeric bool           // value is a number
	expr    *regexp.Regexp // of ~ and !~
	glob    string         // value as path.Match wants it, "" when it holds no *
}

// plainGlob leaves a meaning to * and ? alone. A text may hold slashes, which
// path.Match keeps apart.
var plainGlob = strings.NewReplacer("[", `\[`, `\`, `\\`, "/", "\x00")

const (
	maxFilter = 10_000 // bytes
	maxDepth  = 100    // of parentheses and nots
)

// ParseFilter reads a filter. Whether its columns exist shows when it is used.
func ParseFilter(text string) (*Filter, error) {
	f, err := parse(text, false)
	if f == nil && err == nil {
		return nil, errors.New("the filter is empty; for example: C>=0.1 and state=succeeded")
	}
	return f, err
}

// parse reads a filter or a search; nil if it is empty.
func parse(text string, search bool) (*Filter, error) {
	if len(text) > maxFilter {
		return nil, fmt.Errorf("the filter has %d bytes; at most %d", len(text), maxFilter)
	}
	p := &filterParser{lexer{rest: text, search: search}}
	if err := p.next(); err != nil || p.tok.kind == endToken {
		return nil, err
	}
	root, err := p.or(0)
	if err != nil {
		return nil, err
	}
	if p.tok.kind != endToken {
		if text := instead(&p.tok); text != "" && p.tok.kind == wordToken {
			return nil, p.errorf("%s", text)
		}
		return nil, p.errorf("%s is not expected here; `and` or `or` joins comparisons", &p.tok)
	}
	return &Filter{text, root, search}, nil
}

// String returns what was parsed.
func (f *Filter) String() string { return f.text }

// Columns returns the names of the columns of which the filter speaks, as typed.
func (f *Filter) Columns() []string { return f.root.columns(nil) }

func (n *node) columns(names []string) []string {
	switch {
	case n == nil:
		return names
	case n.cmp != nil:
		return append(names, n.cmp.column)
	}
	return n.right.columns(n.left.columns(names))
}

// Split parts a filter by its conditions that all must hold: those about the rows of s,
// and those that name another column, such as the mean of a group. nil: there are none.
func (f *Filter) Split(s *Sheet) (rows, others *Filter) {
	if f == nil {
		return nil, nil
	}
	add := func(to **Filter, n *node) {
		if *to == nil {
			*to = &Filter{f.text, n, f.search}
		} else {
			*to = &Filter{f.text, &node{kind: andToken, left: (*to).root, right: n}, f.search}
		}
	}
	var part func(n *node)
	part = func(n *node) {
		if n.kind == andToken {
			part(n.left)
			part(n.right)
			return
		}
		for _, name := range n.columns(nil) {
			if _, err := s.Column(name); err != nil {
				add(&others, n)
				return
			}
		}
		add(&rows, n)
	}
	part(f.root)
	return rows, others
}

// ordered are the columns that are compared with < and the like.
func (n *node) ordered(names []string) []string {
	switch {
	case n == nil:
		return names
	case n.cmp != nil && strings.ContainsAny(n.cmp.op, "<>"):
		return append(names, n.cmp.column)
	}
	return n.right.ordered(n.left.ordered(names))
}

type filterParser struct{ lexer }

// next reads the next word where none is an operator's right side.
func (p *filterParser) next() error {
	if p.search {
		return p.nextOfSearch()
	}
	return p.lexer.next(false)
}

func (p *filterParser) or(depth int) (*node, error) {
	return p.joined(orToken, depth, func() (*node, error) { return p.joined(andToken, depth, func() (*node, error) { return p.not(depth) }) })
}

func (p *filterParser) joined(kind tokenKind, depth int, part func() (*node, error)) (*node, error) {
	left, err := part()
	for err == nil && (p.tok.kind == kind || kind == andToken && p.begins()) {
		if p.tok.kind == kind {
			if err = p.next(); err != nil {
				break
			}
		}
		var right *node
		if right, err = part(); err == nil {
			left = &node{kind: kind, left: left, right: right}
		}
	}
	return left, err
}

// begins says that another condition begins here, so that `and` was left out.
func (p *filterParser) begins() bool {
	switch p.tok.kind {
	case openToken, notToken:
		return true
	case wordToken:
		after := p.lexer
		return p.search || after.next(false) == nil && after.tok.kind == opToken
	}
	return false
}

func (p *filterParser) not(depth int) (*node, error) {
	if depth > maxDepth {
		return nil, p.errorf("more than %d parentheses in each other", maxDepth)
	}
	switch p.tok.kind {
	case notToken:
		if err := p.next(); err != nil {
			return nil, err
		}
		inner, err := p.not(depth + 1)
		return &node{kind: notToken, left: inner}, err
	case openToken:
		if err := p.next(); err != nil {
			return nil, err
		}
		inner, err := p.or(depth + 1)
		if err != nil {
			return nil, err
		}
		if p.tok.kind != closeToken {
			return nil, p.errorf("a ) is wanted, not %s", &p.tok)
		}
		return inner, p.next()
	case wordToken:
		if p.tok.search {
			n := &node{kind: wordToken, word: Word{p.tok.text, p.tok.quoted}}
			return n, p.next()
		}
		return p.comparison()
	}
	return nil, p.errorf("a comparison such as C>=0.1 is wanted, not %s", &p.tok)
}

func (p *filterParser) comparison() (*node, error) {
	word := p.tok
	c := &comparison{at: word.at, column: word.text}
	if err := p.lexer.next(false); err != nil {
		return nil, err
	}
	if p.tok.kind != opToken || strings.HasSuffix(word.text, ":") && !word.quoted {
		if text := instead(&word); text != "" {
			return nil, p.errorf("%s", text)
		}
		return nil, p.errorf("after %s one of = != < <= > >= ~ !~ is wanted, not %s; to search for a text, write command~%s", quote(c.column), &p.tok, asValue(c.column))
	}
	if c.op = p.tok.text; c.op == "==" {
		c.op = "="
	}
	if err := p.lexer.next(true); err != nil {
		return nil, err
	}
	if p.tok.kind != wordToken {
		return nil, p.errorf("a value is wanted after %s, not %s ('' is no value)", c.op, &p.tok)
	}
	c.value, c.quoted = p.tok.text, p.tok.quoted
	if !c.quoted {
		c.number, c.numeric = column.Number(c.value)
	}
	switch c.op {
	case "~", "!~":
		expr, err := regexp.Compile(c.value)
		if err != nil {
			return nil, p.errorf("%s", jobs.Clean(strings.TrimPrefix(err.Error(), "error parsing regexp: "), 100))
		}
		c.expr = expr
	case "=", "!=":
		if inner, ok := strings.CutPrefix(c.value, "["); ok && p.search && !c.quoted && strings.Contains(inner, "]") {
			return nil, p.errorf("* and ? stand for other characters, [ is itself: %s~'^%s$' finds one of several, and in quotes it is text", c.column, c.value)
		}
		if !c.quoted && strings.ContainsAny(c.value, "*?") {
			c.glob = plainGlob.Replace(c.value)
		}
	}
	return &node{kind: opToken, cmp: c}, p.next()
}

// asValue is a text as it is typed for a value.
func asValue(text string) string {
	switch text = jobs.Clean(text, 40); {
	case !strings.ContainsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(`(),&|'"`, r) }):
		return text
	case strings.Contains(text, "'"):
		return `"` + text + `"`
	}
	return "'" + text + "'"
}
