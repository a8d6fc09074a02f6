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

	"dcs-tui/jobs"
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
	root := p.or()
	if p.space(); p.err == nil && p.rest() != "" {
		p.fail(p.at, "`and` or `or` is expected, not %s", p.found())
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

// found describes what comes next, for an error.
func (p *parser) found() string {
	p.space()
	rest := p.rest()
	if rest == "" {
		return "the end"
	}
	_, n := utf8.DecodeRuneInString(rest)
	if w := len(word(rest)); w > 0 {
		n = w
	}
	return quote(rest[:n])
}

func quote(s string) string { return fmt.Sprintf("%q", jobs.Clean(s, 40)) }

// word returns the word at the beginning of a text. Signs for arithmetic are part of it.
func word(s string) string {
	n := strings.IndexFunc(s, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(`(),&|=<>!~"'`, r) })
	if n < 0 {
		return s
	}
	return s[:n]
}

// take reads one of these words or signs if it comes next.
func (p *parser) take(options ...string) bool {
	p.space()
	next := word(p.rest())
	for _, o := range options {
		if strings.EqualFold(next, o) || next == "" && strings.HasPrefix(p.rest(), o) {
			p.at += len(o)
			return true
		}
	}
	return false
}

func (p *parser) or() *node {
	parts := []*node{p.and()}
	for p.take("or", "||") {
		parts = append(parts, p.and())
	}
	return list(orNode, parts)
}

// and reads conditions that must all hold. The word "and" between them may be omitted.
func (p *parser) and() *node {
	p.space()
	ends := []int{p.at}
	parts := []*node{p.not()}
	for p.err == nil {
		ends = append(ends, p.at)
		if !p.take("and", "&&", ",") {
			at, rest := p.at, p.rest()
			if rest == "" || rest[0] == ')' && (p.open > 0 || !p.search) || p.take("or", "||") {
				p.at = at
				break
			}
		}
		ends = append(ends, p.at)
		parts = append(parts, p.not())
	}
	n := list(andNode, parts)
	if len(parts) > 1 {
		n.ends = ends
	}
	return n
}

func list(k kind, parts []*node) *node {
	if len(parts) == 1 {
		return parts[0]
	}
	return &node{kind: k, parts: parts}
}

// deeper bounds the nesting depth of a query.
func (p *parser) deeper(read func() *node) *node {
	if p.depth++; p.depth > maxDepth {
		p.fail(p.at, "the query is nested more than %d deep", maxDepth)
		return nil
	}
	defer func() { p.depth-- }()
	return read()
}

func (p *parser) not() *node {
	p.space()
	rest := p.rest()
	switch {
	case p.take("not"), !strings.HasPrefix(rest, "!=") && !strings.HasPrefix(rest, "!~") && p.take("!"):
		return &node{kind: notNode, parts: []*node{p.deeper(p.not)}}
	case strings.HasPrefix(rest, "(") && !p.calculation():
		p.at++
		p.open++
		n := p.deeper(p.or)
		p.open--
		p.close()
		return n
	}
	return p.comparison()
}

func (p *parser) close() {
	if p.space(); strings.HasPrefix(p.rest(), ")") {
		p.at++
	} else {
		p.fail(p.at, "a ) is expected, not %s", p.found())
	}
}

// calculation reports whether the parenthesis that comes next is part of a comparison:
// arithmetic or a comparison follows it.
func (p *parser) calculation() bool {
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
			if deep--; deep == 0 {
				after := *p
				after.at += i + 1
				return after.operator("+-*/%") != "" || after.comparator() != ""
			}
		}
	}
	return false
}

// comparators lists the longer of two that begin alike first.
var comparators = []string{"==", "!=", "<>", "<=", ">=", "!~", "=", "<", ">", "~"}

// comparator reads the sign of a comparison; "" if there is none.
func (p *parser) comparator() string {
	p.space()
	for _, op := range comparators {
		if strings.HasPrefix(p.rest(), op) {
			p.at += len(op)
			switch op {
			case "==":
				op = "="
			case "<>":
				op = "!="
			}
			return op
		}
	}
	return ""
}

// comparison reads a < b, or a < b < c, which means a < b and b < c. In a search it may
// also be a word to search for.
func (p *parser) comparison() *node {
	start := *p
	left := p.sum()
	pos := p.at
	op := p.comparator()
	if p.search && (op == "" || plainText(start.rest())) {
		*p = start
		return p.searchWord()
	}
	if op == "" {
		p.fail(p.at, "a comparison such as = or > is expected after %s, not %s%s", quote(strings.TrimSpace(p.text[start.at:pos])), p.found(), calculationHint(p.rest()))
	}
	var all []*node
	for p.err == nil && op != "" {
		n := &node{kind: compareNode, op: op, pos: pos}
		if op == "~" || op == "!~" {
			n.expr = p.pattern()
			n.parts = []*node{left}
			all = append(all, n)
			break
		}
		right := p.sum()
		n.parts = []*node{left, right}
		all = append(all, n)
		left, pos = right, p.at
		op = p.comparator()
	}
	return list(andNode, all)
}

// plainText reports whether a search that looks like a comparison is a text: an option of
// a command, or an address.
func plainText(s string) bool {
	return strings.HasPrefix(s, "--") || strings.Contains(word(s), ":")
}

// pattern reads a regular expression.
func (p *parser) pattern() *regexp.Regexp {
	p.space()
	at, text := p.at, p.rest()
	if text != "" && (text[0] == '"' || text[0] == '\'') {
		text = p.quoted().text
	} else {
		if n := strings.IndexFunc(text, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune("(),&|", r) }); n >= 0 {
			text = text[:n]
		}
		if p.at += len(text); text == "" {
			p.fail(at, "a regular expression is expected, not %s; quotes allow every character in it", p.found())
		}
	}
	expr, err := regexp.Compile(text)
	if err != nil {
		p.fail(at, "%s", jobs.Clean(strings.TrimPrefix(err.Error(), "error parsing regexp: "), 100))
	}
	return expr
}

// chain reads operands joined by arithmetic, from left to right.
func (p *parser) chain(operand func() *node, ops string) *node {
	n := operand()
	for p.err == nil {
		pos := p.at
		op := p.operator(ops)
		if op == "" {
			break
		}
		n = &node{kind: calcNode, op: op, pos: pos, parts: []*node{n, operand()}}
	}
	return n
}

func (p *parser) sum() *node  { return p.chain(p.term, "+-") }
func (p *parser) term() *node { return p.chain(p.unary, "*/%") }

// operator reads a sign for arithmetic, or returns "" if none comes next. Blanks must surround the
// sign, because words may contain it. They are not required next to a bracket.
func (p *parser) operator(ops string) string {
	start := p.at
	p.space()
	rest := p.rest()
	if rest != "" && strings.IndexByte(ops, rest[0]) >= 0 {
		after, _ := utf8.DecodeRuneInString(rest[1:])
		bracket := p.at == start && start > 0 && strings.IndexByte(")]", p.text[start-1]) >= 0
		if bracket || p.at > start && (len(rest) == 1 || unicode.IsSpace(after) || after == '[' || after == '(') {
			p.at++
			return rest[:1]
		}
	}
	p.at = start
	return ""
}

func (p *parser) unary() *node {
	p.space()
	rest := p.rest()
	if len(rest) > 1 && (rest[0] == '-' || rest[0] == '+') {
		if after, _ := utf8.DecodeRuneInString(rest[1:]); (unicode.IsLetter(after) || strings.ContainsRune("_[(-+", after)) && !isNumeric(word(rest)) {
			pos := p.at
			p.at++
			n := p.deeper(p.unary)
			if rest[0] == '-' {
				n = &node{kind: negNode, pos: pos, text: word(rest), parts: []*node{n}}
			}
			return n
		}
	}
	return p.operand()
}

func isNumeric(text string) bool {
	_, ok := ParseNumber(text)
	return ok
}

func (p *parser) operand() *node {
	pos, rest := p.at, p.rest()
	switch {
	case rest == "":
	case rest[0] == '"' || rest[0] == '\'':
		return p.quoted()
	case rest[0] == '[':
		n := strings.IndexByte(rest, ']')
		if n < 0 {
			p.fail(pos, "the [ is not closed")
			return nil
		}
		p.at += n + 1
		return &node{kind: fieldNode, pos: pos, text: rest[1:n]}
	case rest[0] == '(':
		p.at++
		n := p.deeper(p.sum)
		p.close()
		return n
	default:
		if w := word(rest); w != "" {
			p.at += len(w)
			return &node{kind: wordNode, pos: pos, text: w}
		}
	}
	p.fail(pos, "a name, a number, or a text is expected, not %s", p.found())
	return nil
}

// quoted reads a text in quotes; see jobs.CutQuoted.
func (p *parser) quoted() *node {
	pos := p.at
	text, rest, ok := jobs.CutQuoted(p.rest())
	if !ok {
		p.fail(pos, "the quote is not closed: %s", quote(p.rest()))
		return &node{}
	}
	p.at = len(p.text) - len(rest)
	return &node{kind: quotedNode, pos: pos, text: text}
}

// searchWord reads a word to search for. It ends at a blank, at a comma before one, and at
// the parenthesis that closes one of the query. Quotes keep blanks together.
func (p *parser) searchWord() *node {
	p.space()
	pos, rest := p.at, p.rest()
	var b strings.Builder
	quotes, deep, i := false, 0, 0
	for ; i < len(rest); i++ {
		c := rest[i]
		if !quotes {
			if r, _ := utf8.DecodeRuneInString(rest[i:]); unicode.IsSpace(r) || c == ')' && deep == 0 && p.open > 0 || c == ',' && i > 0 && endOfWord(rest[i+1:]) {
				break
			}
			deep += strings.Count(rest[i:i+1], "(") - strings.Count(rest[i:i+1], ")")
		}
		switch {
		case c == '"':
			quotes = !quotes
		case quotes && c == '\\' && i+1 < len(rest) && strings.IndexByte(`"\`, rest[i+1]) >= 0:
			i++
			b.WriteByte(rest[i])
		default:
			b.WriteByte(c)
		}
	}
	switch {
	case quotes:
		p.fail(pos, "the quote is not closed: %s", quote(rest))
	case i == 0:
		p.fail(pos, "a comparison or a word is expected, not %s", p.found())
	}
	if p.err == nil {
		p.at += i
	}
	return &node{kind: searchNode, pos: pos, text: b.String(), quoted: strings.HasPrefix(rest, `"`)}
}

func endOfWord(rest string) bool {
	r, _ := utf8.DecodeRuneInString(rest)
	return rest == "" || unicode.IsSpace(r)
}

// calculationHint explains how to write arithmetic if a word contains a sign for it.
func calculationHint(s string) string {
	if strings.ContainsAny(word(s), "+-*/%") {
		return "; write spaces around + - * / % to calculate"
	}
	return ""
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
