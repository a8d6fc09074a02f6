package query

import (
	"regexp"
	"strings"
	"unicode"

	"dcs-tui/internal/text"
)

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

// parseComparison reads a < b, or a < b < c, which means a < b and b < c. In a search it may
// also be a word to search for.
func (p *parser) parseComparison() *node {
	start := *p
	left := p.parseSum()
	pos := p.at
	op := p.comparator()
	if p.search && (op == "" || plainText(start.rest())) {
		*p = start
		return p.searchWord()
	}
	if op == "" {
		p.fail(p.at, "a comparison such as = or > is expected after %s, not %s%s",
			quote(strings.TrimSpace(p.text[start.at:pos])), p.describeNext(), calculationHint(p.rest()))
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
		right := p.parseSum()
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
	return strings.HasPrefix(s, "--") || strings.Contains(firstWord(s), ":")
}

// pattern reads a regular expression.
func (p *parser) pattern() *regexp.Regexp {
	p.space()
	at, msg := p.at, p.rest()
	if msg != "" && (msg[0] == '"' || msg[0] == '\'') {
		msg = p.parseQuoted().text
	} else {
		if n := strings.IndexFunc(msg, func(r rune) bool {
			return unicode.IsSpace(r) || strings.ContainsRune("(),&|", r)
		}); n >= 0 {
			msg = msg[:n]
		}
		p.at += len(msg)
		if msg == "" {
			p.fail(at, "a regular expression is expected, not %s; quotes allow every character in it", p.describeNext())
		}
	}
	expr, err := regexp.Compile(msg)
	if err != nil {
		p.fail(at, "%s", text.Clean(strings.TrimPrefix(err.Error(), "error parsing regexp: "), 100))
	}
	return expr
}
