package query

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"dcs-tui/jobs"
)

// parseChain reads operands joined by arithmetic, from left to right.
func (p *parser) parseChain(operand func() *node, ops string) *node {
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

func (p *parser) parseSum() *node  { return p.parseChain(p.parseTerm, "+-") }
func (p *parser) parseTerm() *node { return p.parseChain(p.parseUnary, "*/%") }

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

func (p *parser) parseUnary() *node {
	p.space()
	rest := p.rest()
	if len(rest) > 1 && (rest[0] == '-' || rest[0] == '+') {
		if after, _ := utf8.DecodeRuneInString(rest[1:]); (unicode.IsLetter(after) ||
			strings.ContainsRune("_[(-+", after)) && !isNumeric(firstWord(rest)) {
			pos := p.at
			p.at++
			n := p.parseNested(p.parseUnary)
			if rest[0] == '-' {
				n = &node{kind: negNode, pos: pos, text: firstWord(rest), parts: []*node{n}}
			}
			return n
		}
	}
	return p.parseOperand()
}

func isNumeric(text string) bool {
	_, ok := ParseNumber(text)
	return ok
}

func (p *parser) parseOperand() *node {
	pos, rest := p.at, p.rest()
	switch {
	case rest == "":
	case rest[0] == '"' || rest[0] == '\'':
		return p.parseQuoted()
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
		n := p.parseNested(p.parseSum)
		p.close()
		return n
	default:
		if w := firstWord(rest); w != "" {
			p.at += len(w)
			return &node{kind: wordNode, pos: pos, text: w}
		}
	}
	p.fail(pos, "a name, a number, or a text is expected, not %s", p.describeNext())
	return nil
}

// parseQuoted reads a text in quotes; see jobs.CutQuoted.
func (p *parser) parseQuoted() *node {
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
			if r, _ := utf8.DecodeRuneInString(rest[i:]); unicode.IsSpace(r) || c == ')' && deep == 0 && p.open > 0 ||
				c == ',' && i > 0 && endOfWord(rest[i+1:]) {
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
		p.fail(pos, "a comparison or a word is expected, not %s", p.describeNext())
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
	if strings.ContainsAny(firstWord(s), "+-*/%") {
		return "; write spaces around + - * / % to calculate"
	}
	return ""
}
