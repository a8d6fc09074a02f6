package query

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"strings"

	"dcs-tui/internal/text"
)

// Search returns the function that finds a word of a search.
type Search[R any] func(text string) func(R) bool

// Compile returns the function that reports whether a row matches a query. search is nil
// for queries of Parse. An error is an *Error.
func Compile[R any](q *Query, fields Fields[R], search Search[R]) (func(R) bool, error) {
	c := compiler[R]{q, fields, search}
	return c.compileCondition(q.root)
}

type compiler[R any] struct {
	q      *Query
	fields Fields[R]
	search Search[R]
}

func (c *compiler[R]) fail(pos int, err error) error {
	return &Error{c.q.text, pos, err.Error()}
}

func (c *compiler[R]) compileCondition(n *node) (func(R) bool, error) {
	switch n.kind {
	case searchNode:
		if c.search == nil {
			return nil, c.fail(n.pos, errors.New("words cannot be searched for here"))
		}
		if key, value, ok := strings.Cut(n.text, ":"); ok && !n.quoted && !strings.HasPrefix(value, "/") {
			if f, err := c.fields(key); err == nil && f.Fact {
				return nil, c.fail(n.pos, fmt.Errorf("a comparison has no colon: write %s=%s; quotes make it a text",
					key, text.Clean(value, 40)))
			}
		}
		return c.search(n.text), nil
	case compareNode:
		return c.compileComparison(n)
	}
	var parts []func(R) bool
	for _, part := range n.parts {
		f, err := c.compileCondition(part)
		if err != nil {
			return nil, err
		}
		parts = append(parts, f)
	}
	if n.kind == notNode {
		return func(r R) bool { return !parts[0](r) }, nil
	}
	// The first part that does not hold decides a conjunction, the first one that holds the others.
	every := n.kind == andNode
	return func(r R) bool {
		for _, f := range parts {
			if f(r) != every {
				return !every
			}
		}
		return every
	}, nil
}

// operand is one side of a comparison: a field, a literal, or a calculation.
type operand[R any] struct {
	node  *node
	field *Field[R]
	calc  *calculation[R]
}

// calculation is a number that is calculated, or that is to be calculated with.
type calculation[R any] struct {
	value func(R) (Value, estimate) // the kind of the value tells whether there is a number
	exact func(R) exact             // of a number
}

func (o *operand[R]) isLiteral() bool { return o.field == nil && o.calc == nil }

// compileComparison compiles a comparison of two operands, or of one and an expression.
func (c *compiler[R]) compileComparison(n *node) (func(R) bool, error) {
	a, err := c.compileOperand(n.parts[0], nil)
	if err != nil {
		return nil, err
	}
	if n.expr != nil {
		if a.field == nil {
			return nil, c.fail(n.parts[0].pos, fmt.Errorf("%s compares a field with a regular expression", n.op))
		}
		text, expr, not := a.field.text(), n.expr, n.op == "!~"
		return func(r R) bool { return expr.MatchString(text(r)) != not }, nil
	}
	b, err := c.compileOperand(n.parts[1], &a)
	if err != nil {
		return nil, err
	}
	op := n.op
	if a.isLiteral() && b.field != nil {
		a, b, op = b, a, mirrorSign(op)
	}
	if a.field != nil && b.isLiteral() {
		match, err := a.field.compileComparison(op, b.node)
		if err != nil {
			if b.node.kind == wordNode {
				err = fmt.Errorf("%w%s", err, calculationHint(b.node.text))
			}
			return nil, c.fail(b.node.pos, err)
		}
		return match, nil
	}
	x, err := c.number(a, b)
	if err != nil {
		return nil, err
	}
	y, err := c.number(b, a)
	if err != nil {
		return nil, err
	}
	return func(r R) bool {
		v, a := x.value(r)
		w, b := y.value(r)
		switch {
		case v.Kind != Number || w.Kind != Number:
			return compareValues(op, v, w)
		case isDecided(a, b):
			return ordered(op, compareFloats(a.v, b.v))
		}
		return ordered(op, x.exact(r).compare(y.exact(r)))
	}, nil
}

// mirrorSign returns the sign of a comparison with its sides exchanged.
func mirrorSign(op string) string {
	return strings.Map(func(r rune) rune {
		switch r {
		case '<':
			return '>'
		case '>':
			return '<'
		}
		return r
	}, op)
}

// compileOperand finds out what one side of a comparison is. left is the other side, nil for the
// left one.
func (c *compiler[R]) compileOperand(n *node, left *operand[R]) (operand[R], error) {
	o := operand[R]{node: n}
	switch {
	case n.isLiteral():
		return o, nil
	case n.kind == calcNode || n.kind == negNode:
		var err error
		o.calc, err = c.compileCalculation(n)
		return o, err
	case n.kind == wordNode && left != nil && left.field != nil && left.field.Fact:
		return o, nil
	}
	f, err := c.fields(n.text)
	if n.kind == wordNode && left != nil && !left.isLiteral() && (err != nil || f.Fact || f.Name != n.text) {
		return o, nil // a text
	}
	if err != nil {
		return o, c.fail(n.pos, fmt.Errorf("%w%s", err, calculationHint(n.text)))
	}
	o.field = f
	return o, nil
}

// compileCalculation compiles arithmetic. Its function returns nothing for rows without a number.
func (c *compiler[R]) compileCalculation(n *node) (*calculation[R], error) {
	if n.kind != calcNode && n.kind != negNode {
		o, err := c.compileOperand(n, nil)
		if err != nil {
			return nil, err
		}
		switch {
		case o.field != nil && (o.field.Type == TextType || o.field.Type == TimeType):
			return nil, c.fail(n.pos, fmt.Errorf("%s is a text and cannot be calculated with", o.field.Name))
		case o.field != nil && o.field.NotNumber != "":
			return nil, c.fail(n.pos, fmt.Errorf("%s cannot be calculated with: its value %s is not a number",
				o.field.Name, quote(o.field.NotNumber)))
		case o.isLiteral() && (n.kind == quotedNode || !isNumeric(n.text)):
			return nil, c.fail(n.pos, fmt.Errorf("the text %s cannot be calculated with", quote(n.text)))
		}
		return c.number(o, operand[R]{})
	}
	a, err := c.compileCalculation(n.parts[0])
	if err != nil {
		return nil, err
	}
	if n.kind == negNode {
		return &calculation[R]{func(r R) (Value, estimate) {
			v, e := a.value(r)
			return Value{Kind: v.Kind}, estimate{-e.v, e.off}
		}, func(r R) exact {
			e := a.exact(r)
			if e.rat == nil {
				return exact{inf: -e.inf}
			}
			return exact{rat: new(big.Rat).Neg(e.rat)}
		}}, nil
	}
	b, err := c.compileCalculation(n.parts[1])
	if err != nil {
		return nil, err
	}
	op := n.op
	return &calculation[R]{func(r R) (Value, estimate) {
		v, x := a.value(r)
		w, y := b.value(r)
		if v.Kind != Number || w.Kind != Number {
			return Value{}, estimate{}
		}
		return Value{Kind: Number}, calculateEstimate(op, x, y)
	}, func(r R) exact { return calculateExact(op, a.exact(r), b.exact(r)) }}, nil
}

// number returns the number of an operand. other is what it is compared with.
func (c *compiler[R]) number(o, other operand[R]) (*calculation[R], error) {
	switch {
	case o.calc != nil:
		return o.calc, nil
	case o.field != nil:
		value := o.field.Value
		return &calculation[R]{func(r R) (Value, estimate) {
			v := value(r)
			return v, estimateOf(&v)
		}, func(r R) exact {
			v := value(r)
			return exactOf(&v)
		}}, nil
	}
	v := TextValue(o.node.text)
	if o.node.kind != quotedNode {
		v = ValueOf(o.node.text)
	}
	if v.Kind != Number && other.calc != nil {
		return nil, c.fail(o.node.pos, fmt.Errorf("a number is expected, not %s%s", quote(o.node.text),
			calculationHint(o.node.text)))
	}
	e, x := estimateOf(&v), exact{}
	if v.Kind == Number {
		x = exactOf(&v)
	}
	return &calculation[R]{func(R) (Value, estimate) { return v, e }, func(R) exact { return x }}, nil
}

// compileComparison compiles the comparison of the field with a literal.
func (f *Field[R]) compileComparison(op string, n *node) (func(R) bool, error) {
	equality, quoted := op == "=" || op == "!=", n.kind == quotedNode
	not := op == "!="
	if equality && !quoted {
		matches, err := compileGlob(n.text)
		if err != nil {
			return nil, err
		}
		if matches != nil {
			text := f.text()
			return func(r R) bool { return matches(text(r)) != not }, nil
		}
		if f.Word != nil {
			find, err := f.Word(n.text)
			if err != nil {
				return nil, err
			}
			return func(r R) bool { return find(r) != not }, nil
		}
	}
	l, err := f.literal(n, op)
	if err == nil && f.Check != nil && n.text != "" {
		err = f.Check(l)
	}
	if err != nil {
		return nil, err
	}
	v, value := l.Value, f.Value
	switch {
	case quoted && equality, equality && v.Kind == Text:
		text := f.text()
		return func(r R) bool { return (text(r) == v.Text) != not }, nil
	case quoted:
		text := f.text()
		return func(r R) bool {
			t := text(r)
			return t != "" && ordered(op, strings.Compare(t, v.Text))
		}, nil
	}
	return func(r R) bool {
		w := value(r)
		if !equality && w.Kind != Absent && w.Kind != v.Kind && f.Mismatch != nil {
			f.Mismatch(r, w)
		}
		return compareValues(op, w, v)
	}, nil
}

// compareValues compares two values: numbers as numbers, and others as texts. A number and a text
// have no order, and nothing has no order with any value.
func compareValues(op string, v, w Value) bool {
	switch {
	case v.Kind == Number && w.Kind == Number:
		if math.IsNaN(v.Number) || math.IsNaN(w.Number) {
			return ordered(op, compareFloats(v.Number, w.Number))
		}
		return ordered(op, compareNumbers(&v, &w))
	case op == "=":
		return v.String() == w.String()
	case op == "!=":
		return v.String() != w.String()
	}
	return v.Kind == Text && w.Kind == Text && ordered(op, strings.Compare(v.Text, w.Text))
}

func ordered(op string, c int) bool {
	switch op {
	case "=":
		return c == 0
	case "!=":
		return c != 0
	case "<":
		return c == -1
	case "<=":
		return c == -1 || c == 0
	case ">":
		return c == 1
	}
	return c == 1 || c == 0
}
