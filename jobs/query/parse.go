// Package query implements the language that selects jobs: `@where` of a template, `--where` of the
// commands, and `/` on the screen. docs/query.md describes it for users.
//
// Parse parses a text without knowing its fields. Compile looks up the fields and returns a
// function of a row. The caller defines what a row is: the index of a row of a table, a point of a
// grid, or an event.
package query

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"dcs-tui/internal/text"
)

// Query is a condition on rows, such as
//
//	C>=0.1 and (state=succeeded or host=ws*) and not name~'^test'
type Query struct {
	text     string // all that was parsed
	root     *node
	from, to int // what of text is this query
}

// String returns the text that was parsed.
func (q *Query) String() string { return strings.TrimSpace(q.text[q.from:q.to]) }

type kind uint8

const (
	orNode      kind = iota // of parts
	andNode                 // of parts
	notNode                 // of parts[0]
	compareNode             // parts[0] op parts[1]; of ~ and !~ expr is the right side
	searchNode              // text
	calcNode                // parts[0] op parts[1]
	negNode                 // -parts[0]
	wordNode                // text: a number, a field, or a text
	fieldNode               // [text]
	quotedNode              // "text"
)

type node struct {
	kind   kind
	pos    int   // offset in the query
	ends   []int // of an andNode: offsets of the begin and the end of each part
	op     string
	text   string
	quoted bool // of a searchNode
	parts  []*node
	expr   *regexp.Regexp
}

// Error is an error in a query.
type Error struct {
	Query   string
	Pos     int // offset of the first wrong byte; len(Query) is the end
	Message string
}

// Error returns the position, counted in characters from 1, and the message.
func (e *Error) Error() string {
	return fmt.Sprintf("character %d: %s", 1+utf8.RuneCountInString(e.Query[:e.Pos]), e.Message)
}

const (
	maxQuery = 100_000 // bytes
	maxDepth = 100     // of parentheses, nots, and minus signs inside each other
)

// Parse parses a query. Compile checks whether its fields exist.
func Parse(text string) (*Query, error) {
	q, err := parse(text, false)
	if q == nil && err == nil {
		return nil, &Error{text, 0, "a comparison is expected, such as C>=0.1"}
	}
	return q, err
}

// ParseSearch parses what a user types to find rows. It is a query in which words that are not part
// of a comparison are texts to search for. An empty search returns nil.
func ParseSearch(text string) (*Query, error) { return parse(text, true) }

func parse(text string, search bool) (*Query, error) {
	if len(text) > maxQuery {
		return nil, &Error{text, 0, fmt.Sprintf("the query has %d bytes; at most %d are allowed", len(text), maxQuery)}
	}
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	p := &parser{text: text, search: search}
	root := p.parseOr()
	p.space()
	if p.err == nil && p.rest() != "" {
		p.fail(p.at, "`and` or `or` is expected, not %s", p.describeNext())
	}
	if p.err != nil {
		return nil, p.err
	}
	return &Query{text, root, 0, len(text)}, nil
}

// parser reads a query from left to right. It stops at the first error.
type parser struct {
	text   string
	at     int // everything before it was read
	search bool
	depth  int
	open   int // parentheses around conditions
	err    error
}

func (p *parser) rest() string { return p.text[p.at:] }

func (p *parser) space() {
	p.at = len(p.text) - len(strings.TrimLeftFunc(p.rest(), unicode.IsSpace))
}

func (p *parser) fail(pos int, format string, args ...any) {
	if p.err == nil {
		p.err = &Error{p.text, pos, fmt.Sprintf(format, args...)}
		p.at = len(p.text)
	}
}

// describeNext describes what comes next, for an error.
func (p *parser) describeNext() string {
	p.space()
	rest := p.rest()
	if rest == "" {
		return "the end"
	}
	_, n := utf8.DecodeRuneInString(rest)
	if w := len(firstWord(rest)); w > 0 {
		n = w
	}
	return quote(rest[:n])
}

func quote(s string) string { return fmt.Sprintf("%q", text.Clean(s, 40)) }

// firstWord returns the word at the beginning of a text. Signs for arithmetic are part of it.
func firstWord(s string) string {
	n := strings.IndexFunc(s, func(r rune) bool {
		return unicode.IsSpace(r) || strings.ContainsRune(`(),&|=<>!~"'`, r)
	})
	if n < 0 {
		return s
	}
	return s[:n]
}

// accept reads one of these words or signs if it comes next.
func (p *parser) accept(options ...string) bool {
	p.space()
	next := firstWord(p.rest())
	for _, o := range options {
		if strings.EqualFold(next, o) || next == "" && strings.HasPrefix(p.rest(), o) {
			p.at += len(o)
			return true
		}
	}
	return false
}

func (p *parser) parseOr() *node {
	parts := []*node{p.parseAnd()}
	for p.accept("or", "||") {
		parts = append(parts, p.parseAnd())
	}
	return list(orNode, parts)
}

// parseAnd reads conditions that must all hold. The word "and" between them may be omitted.
func (p *parser) parseAnd() *node {
	p.space()
	ends := []int{p.at}
	parts := []*node{p.parseNot()}
	for p.err == nil {
		ends = append(ends, p.at)
		if !p.accept("and", "&&", ",") {
			at, rest := p.at, p.rest()
			if rest == "" || rest[0] == ')' && (p.open > 0 || !p.search) || p.accept("or", "||") {
				p.at = at
				break
			}
		}
		p.refuseDecimalComma()
		ends = append(ends, p.at)
		parts = append(parts, p.parseNot())
	}
	n := list(andNode, parts)
	if len(parts) > 1 {
		n.ends = ends
	}
	return n
}

// refuseDecimalComma fails if what was read ends in a comma between two digits: in acc>0,5 it may be
// a decimal comma or an and.
func (p *parser) refuseDecimalComma() {
	isDigit := func(i int) bool { return i >= 0 && i < len(p.text) && p.text[i] >= '0' && p.text[i] <= '9' }
	if comma := p.at - 1; comma > 0 && p.text[comma] == ',' && isDigit(comma-1) && isDigit(comma+1) {
		p.fail(comma, "a decimal comma is written as a point, such as 0.5; a space follows a comma that means `and`")
	}
}

func list(k kind, parts []*node) *node {
	if len(parts) == 1 {
		return parts[0]
	}
	return &node{kind: k, parts: parts}
}

// parseNested bounds the nesting depth of a query.
func (p *parser) parseNested(read func() *node) *node {
	p.depth++
	if p.depth > maxDepth {
		p.fail(p.at, "the query is nested more than %d levels deep", maxDepth)
		return nil
	}
	defer func() { p.depth-- }()
	return read()
}

func (p *parser) parseNot() *node {
	p.space()
	rest := p.rest()
	switch {
	case p.accept("not"), !strings.HasPrefix(rest, "!=") && !strings.HasPrefix(rest, "!~") && p.accept("!"):
		return &node{kind: notNode, parts: []*node{p.parseNested(p.parseNot)}}
	case strings.HasPrefix(rest, "(") && !p.isCalculation():
		p.at++
		p.open++
		n := p.parseNested(p.parseOr)
		p.open--
		p.close()
		return n
	}
	return p.parseComparison()
}

func (p *parser) close() {
	p.space()
	if strings.HasPrefix(p.rest(), ")") {
		p.at++
	} else {
		p.fail(p.at, "a ) is expected, not %s", p.describeNext())
	}
}

// isCalculation reports whether the parenthesis that comes next is part of a comparison:
// arithmetic or a comparison follows it.
func (p *parser) isCalculation() bool {
	deep, rest := 0, p.rest()
	for i := 0; i < len(rest); i++ {
		switch c := rest[i]; c {
		case '"', '\'':
			n := strings.IndexByte(rest[i+1:], c)
			if n < 0 {
				return false
			}
			i += n + 1
		case '(':
			deep++
		case ')':
			deep--
			if deep == 0 {
				after := *p
				after.at += i + 1
				return after.operator("+-*/%") != "" || after.comparator() != ""
			}
		}
	}
	return false
}

// Conditions returns the conditions that must all hold.
func (q *Query) Conditions() []*Query {
	if q.root.kind != andNode {
		return []*Query{q}
	}
	var all []*Query
	for i, n := range q.root.parts {
		// For a < b < c, the text is that of both comparisons.
		part := &Query{q.text, n, q.from, q.to}
		if ends := q.root.ends; ends != nil {
			part.from, part.to = ends[2*i], ends[2*i+1]
		}
		all = append(all, part.Conditions()...)
	}
	return all
}

// Names returns the names of fields in the query. If possible is true, it also returns words that
// are fields only if fields of that name exist.
func (q *Query) Names(possible bool) []string { return q.root.names(nil, true, possible) }

func (n *node) names(names []string, left, possible bool) []string {
	switch n.kind {
	case fieldNode:
		return append(names, n.text)
	case wordNode:
		if (left || possible) && !startsLikeNumber(n.text) {
			return append(names, n.text)
		}
	}
	for i, part := range n.parts {
		names = part.names(names, n.kind != compareNode || i == 0 || n.parts[0].isLiteral(), possible)
	}
	return names
}

// isLiteral reports whether n is a text in quotes, or a number that may have a unit.
func (n *node) isLiteral() bool {
	return n.kind == quotedNode || n.kind == wordNode && startsLikeNumber(n.text)
}

// startsLikeNumber reports whether a word is a number, a duration, a size, or a time.
func startsLikeNumber(word string) bool {
	digits := strings.TrimLeft(word, "+-.")
	return digits != "" && digits[0] >= '0' && digits[0] <= '9' || isNumeric(word)
}
