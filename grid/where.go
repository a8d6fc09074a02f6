package grid

import (
	"fmt"
	"strings"

	"dcs-tui/jobs"
)

// A filter: `@where C * gamma < 10 and not (kernel = "rbf" and degree > 2)`.

// node is a part of a filter.
type node struct {
	op     string // and or not, = != < <= > >=, + - * / % neg, param number text
	offset int    // in the line
	a, b   *node
	param  int    // op param
	text   string // op text
	num    num    // op number
}

// whereReader reads a filter. It stops at the first error.
type whereReader struct {
	text  string
	at    int // of tok
	end   int
	tok   string // the present token; "" at the end
	kind  byte   // of it: n number, w word, p [parameter], s text in quotes, o operator, 0 the end
	value string // of n, w, p, s
	known map[string]int
	names []string
	depth int
	parts int   // operators so far
	err   error // the first
	errAt int
}

// Bounds of a filter: how deep it is nested, and how many operators it has.
const (
	maxDepth     = 100
	maxOperators = 10_000
)

// readWhere reads the filter that begins at an offset of a line.
func readWhere(text string, from int, known map[string]int, names []string) (n *node, at int, err error) {
	r := &whereReader{text: text, end: from, known: known, names: names}
	r.next()
	if r.err == nil && r.kind == 0 {
		return nil, from, fmt.Errorf("a condition must follow @where: @where C * gamma < 10")
	}
	n = r.or()
	if r.err == nil && r.kind != 0 {
		r.fail(r.at, "%s is not expected here: conditions are joined by and, or", r.tok)
	}
	return n, r.errAt, r.err
}

func (r *whereReader) fail(at int, format string, args ...any) {
	if r.err == nil {
		r.err, r.errAt = fmt.Errorf(format, args...), at
		r.kind, r.tok, r.end = 0, "", len(r.text)
	}
}

// next reads a token.
func (r *whereReader) next() {
	if r.err != nil {
		return
	}
	for r.end < len(r.text) && strings.IndexByte(blanks, r.text[r.end]) >= 0 {
		r.end++
	}
	r.at, r.kind, r.value = r.end, 0, ""
	rest := r.text[r.at:]
	take := func(kind byte, n int) { r.kind, r.tok, r.end = kind, rest[:n], r.at+n }
	if rest == "" {
		r.tok = ""
		return
	}
	switch c := rest[0]; {
	case c >= '0' && c <= '9' || c == '.':
		take('n', numberLength(rest))
		if r.value = r.tok; !isNumber(r.tok) {
			r.fail(r.at, "%s is not a number", r.tok)
		}
	case wordByte(c):
		take('w', len(rest)-len(strings.TrimLeft(rest, wordBytes)))
		r.value = r.tok
		if word := strings.ToLower(r.tok); word == "and" || word == "or" || word == "not" {
			r.kind, r.tok = 'o', word
		}
	case c == '[':
		refs := references(rest)
		if len(refs) == 0 || refs[0].from != 0 || refs[0].form != "" {
			r.fail(r.at, "a parameter is written as [name] or as its name alone")
			return
		}
		take('p', refs[0].to)
		r.value = refs[0].name
	case c == '"' || c == '\'':
		text, n := unquote(rest)
		if n == 0 {
			r.fail(r.at, "the closing %c is missing", c)
			return
		}
		take('s', n)
		r.value = text
	default:
		r.operator(rest, take)
	}
}

// operators, longer ones first, and how they are called inside.
var operators = []struct{ written, op string }{
	{"==", "="}, {"!=", "!="}, {"<=", "<="}, {">=", ">="}, {"<>", "!="}, {"&&", "and"}, {"||", "or"}, {"!", "not"},
	{"=", "="}, {"<", "<"}, {">", ">"}, {"+", "+"}, {"-", "-"}, {"*", "*"}, {"/", "/"}, {"%", "%"}, {"(", "("}, {")", ")"},
}

func (r *whereReader) operator(rest string, take func(byte, int)) {
	for _, o := range operators {
		if strings.HasPrefix(rest, o.written) {
			take('o', len(o.written))
			r.tok = o.op
			return
		}
	}
	char := string([]rune(rest)[:1])
	r.fail(r.at, "%q is not expected here: a filter has parameters, numbers, \"texts\", = != < <= > >=, + - * / %%, and, or, not, ( )", char)
}

// numberLength is how far a number reaches at the beginning of s.
func numberLength(s string) int {
	n := 0
	for n < len(s) && (wordByte(s[n]) || s[n] == '.' || (s[n] == '+' || s[n] == '-') && (s[n-1] == 'e' || s[n-1] == 'E')) {
		n++
	}
	return n
}

func (r *whereReader) is(ops ...string) bool {
	if r.kind != 'o' {
		return false
	}
	for _, op := range ops {
		if r.tok == op {
			return true
		}
	}
	return false
}

// chain reads operands joined by some operators, from left to right.
func (r *whereReader) chain(operand func() *node, ops ...string) *node {
	n := operand()
	for r.err == nil && r.is(ops...) {
		at, op := r.at, r.tok
		r.another()
		r.next()
		n = &node{op: op, offset: at, a: n, b: operand()}
	}
	return n
}

// another counts one more operator.
func (r *whereReader) another() {
	if r.parts++; r.parts > maxOperators {
		r.fail(r.at, "the filter has more than %d operators: write what it lists into a file, and that as a parameter", maxOperators)
	}
}

func (r *whereReader) or() *node   { return r.chain(r.and, "or") }
func (r *whereReader) and() *node  { return r.chain(r.not, "and") }
func (r *whereReader) sum() *node  { return r.chain(r.term, "+", "-") }
func (r *whereReader) term() *node { return r.chain(r.factor, "*", "/", "%") }

// deeper guards against a filter that is nested without end.
func (r *whereReader) deeper(read func() *node) *node {
	if r.depth++; r.depth > maxDepth {
		r.fail(r.at, "the filter is nested more than %d deep", maxDepth)
		return nil
	}
	defer func() { r.depth-- }()
	return read()
}

func (r *whereReader) not() *node {
	if !r.is("not") {
		return r.comparison()
	}
	at := r.at
	r.next()
	return &node{op: "not", offset: at, a: r.deeper(r.not)}
}

// comparison reads a < b, and a < b < c as a < b and b < c.
func (r *whereReader) comparison() *node {
	left := r.sum()
	var all *node
	for r.err == nil && r.is("=", "!=", "<", "<=", ">", ">=") {
		at, op := r.at, r.tok
		r.another()
		r.next()
		right := r.sum()
		one := &node{op: op, offset: at, a: left, b: right}
		if all == nil {
			all = one
		} else {
			all = &node{op: "and", offset: at, a: all, b: one}
		}
		left = right
	}
	if all == nil {
		return left
	}
	return all
}

func (r *whereReader) factor() *node {
	at := r.at
	switch {
	case r.err != nil:
	case r.is("-"):
		r.next()
		return &node{op: "neg", offset: at, a: r.deeper(r.factor)}
	case r.is("+"):
		r.next()
		return r.deeper(r.factor)
	case r.is("("):
		r.next()
		n := r.deeper(r.or)
		if r.err == nil && !r.is(")") {
			r.fail(at, "the ) for this ( is missing")
		}
		r.next()
		return n
	case r.kind == 'n':
		n := &node{op: "number", offset: at, num: written(r.value), text: r.value}
		r.next()
		return n
	case r.kind == 's':
		n := &node{op: "text", offset: at, text: r.value}
		r.next()
		return n
	case r.kind == 'w' || r.kind == 'p':
		p, ok := r.known[r.value]
		if !ok {
			r.fail(at, "%s", r.unknown(r.value))
		}
		r.next()
		return &node{op: "param", offset: at, param: p}
	case r.kind == 0:
		r.fail(at, "the filter ends where a parameter, a number or a text should follow")
	default:
		r.fail(at, "a parameter, a number or a text should stand here, not %s", r.tok)
	}
	return nil
}

func (r *whereReader) unknown(name string) string {
	if near := jobs.Nearest(name, r.names); near != "" {
		return fmt.Sprintf("there is no parameter %s: did you mean %s? A text is put in quotes", name, near)
	}
	return fmt.Sprintf("there is no parameter %s; a text is put in quotes: %q", name, name)
}
