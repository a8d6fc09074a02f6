package sheet

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

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
// any text and a ? for one character. Numbers are compared as numbers.
type Filter struct {
	text string
	root *node
}

// node is a comparison, or and, or, not of others.
type node struct {
	kind        tokenKind // andToken, orToken, notToken; opToken: a comparison
	left, right *node
	cmp         *comparison
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
	if len(text) > maxFilter {
		return nil, fmt.Errorf("the filter has %d bytes; at most %d", len(text), maxFilter)
	}
	p := &filterParser{lexer{rest: text}}
	if err := p.next(false); err != nil {
		return nil, err
	}
	if p.tok.kind == endToken {
		return nil, errors.New("the filter is empty; for example: C>=0.1 and state=succeeded")
	}
	root, err := p.or(0)
	if err != nil {
		return nil, err
	}
	if p.tok.kind != endToken {
		return nil, p.errorf("%s is not expected here; `and` or `or` joins comparisons", &p.tok)
	}
	return &Filter{text, root}, nil
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

type filterParser struct{ lexer }

func (p *filterParser) or(depth int) (*node, error) {
	return p.joined(orToken, depth, func() (*node, error) { return p.joined(andToken, depth, func() (*node, error) { return p.not(depth) }) })
}

func (p *filterParser) joined(kind tokenKind, depth int, part func() (*node, error)) (*node, error) {
	left, err := part()
	for err == nil && p.tok.kind == kind {
		if err = p.next(false); err != nil {
			break
		}
		var right *node
		if right, err = part(); err == nil {
			left = &node{kind: kind, left: left, right: right}
		}
	}
	return left, err
}

func (p *filterParser) not(depth int) (*node, error) {
	if depth > maxDepth {
		return nil, p.errorf("more than %d parentheses in each other", maxDepth)
	}
	switch p.tok.kind {
	case notToken:
		if err := p.next(false); err != nil {
			return nil, err
		}
		inner, err := p.not(depth + 1)
		return &node{kind: notToken, left: inner}, err
	case openToken:
		if err := p.next(false); err != nil {
			return nil, err
		}
		inner, err := p.or(depth + 1)
		if err != nil {
			return nil, err
		}
		if p.tok.kind != closeToken {
			return nil, p.errorf("a ) is wanted, not %s", &p.tok)
		}
		return inner, p.next(false)
	case wordToken:
		return p.comparison()
	}
	return nil, p.errorf("a comparison such as C>=0.1 is wanted, not %s", &p.tok)
}

func (p *filterParser) comparison() (*node, error) {
	c := &comparison{at: p.tok.at, column: p.tok.text}
	if err := p.next(false); err != nil {
		return nil, err
	}
	if key, value, ok := strings.Cut(c.column, ":"); ok && p.tok.kind != opToken {
		return nil, p.errorf("%s is how the screen's filter has it; here it is %s", quote(c.column), quote(key+"="+value))
	}
	if p.tok.kind != opToken {
		return nil, p.errorf("after %s one of = != < <= > >= ~ !~ is wanted, not %s", quote(c.column), &p.tok)
	}
	if c.op = p.tok.text; c.op == "==" {
		c.op = "="
	}
	if err := p.next(true); err != nil {
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
		if !c.quoted && strings.ContainsAny(c.value, "*?") {
			c.glob = plainGlob.Replace(c.value)
		}
	}
	return &node{kind: opToken, cmp: c}, p.next(false)
}
