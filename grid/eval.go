package grid

import "math"

// num is a number of a filter and how far it may be off by rounding, so that
// 0.1 + 0.2 = 0.3 holds, as everybody expects of numbers they have written.
type num struct{ v, off float64 }

// unit is the rounding error of one operation.
const unit = 0x1p-52

// written is a number as it was written. Whole numbers are exact.
func written(s string) num { return inexact(toFloat(s)) }

// inexact is the nearest number to a decimal.
func inexact(v float64) num {
	if v == math.Trunc(v) && math.Abs(v) < 1<<53 {
		return num{v, 0}
	}
	return num{v, math.Abs(v) * unit / 2}
}

func calculate(op string, a, b num) num {
	var r num
	switch op {
	case "+":
		r = num{a.v + b.v, a.off + b.off}
	case "-":
		r = num{a.v - b.v, a.off + b.off}
	case "*":
		r = num{a.v * b.v, math.Abs(a.v)*b.off + math.Abs(b.v)*a.off}
	case "/":
		r.v = a.v / b.v
		r.off = (a.off + math.Abs(r.v)*b.off) / math.Abs(b.v)
	case "%":
		q := math.Trunc(a.v / b.v)
		r = num{math.Mod(a.v, b.v), a.off + math.Abs(q)*b.off}
		if math.Abs(b.v)-math.Abs(r.v) <= r.off {
			r.v = 0 // 0.3 % 0.1
		}
	}
	if r.v != math.Trunc(r.v) || math.Abs(r.v) >= 1<<53 {
		r.off += math.Abs(r.v) * unit
	}
	return r
}

// compare is -1, 0, or 1; 2 when one is no number at all, as 0/0.
func (a num) compare(b num) int {
	switch {
	case math.IsNaN(a.v) || math.IsNaN(b.v):
		return 2
	case a.v == b.v || math.Abs(a.v-b.v) <= a.off+b.off:
		return 0
	case a.v < b.v:
		return -1
	}
	return 1
}

// operand is a value of a filter at one point.
type operand struct {
	num   num
	isNum bool
	text  string // of what is no number
}

// value evaluates what is no condition.
func (n *node) value(t *Template, ix []int) operand {
	switch n.op {
	case "param":
		p := t.Params[n.param]
		return p.operand(ix[p.axis])
	case "number":
		return operand{num: n.num, isNum: true}
	case "text":
		return operand{text: n.text}
	case "neg":
		x := n.a.value(t, ix).num
		return operand{num: num{-x.v, x.off}, isNum: true}
	}
	return operand{num: calculate(n.op, n.a.value(t, ix).num, n.b.value(t, ix).num), isNum: true}
}

// holds evaluates a condition.
func (n *node) holds(t *Template, ix []int) bool {
	switch n.op {
	case "and":
		return n.a.holds(t, ix) && n.b.holds(t, ix)
	case "or":
		return n.a.holds(t, ix) || n.b.holds(t, ix)
	case "not":
		return !n.a.holds(t, ix)
	}
	a, b := n.a.value(t, ix), n.b.value(t, ix)
	order := 0
	switch {
	case a.isNum && b.isNum:
		order = a.num.compare(b.num)
	case a.isNum != b.isNum: // a number and a text: they differ, and have no order
		return n.op == "!="
	case a.text < b.text:
		order = -1
	case a.text > b.text:
		order = 1
	}
	switch n.op {
	case "=":
		return order == 0
	case "!=":
		return order != 0
	case "<":
		return order == -1
	case "<=":
		return order == -1 || order == 0
	case ">":
		return order == 1
	}
	return order == 1 || order == 0
}

// lastAxis is the fastest axis that a condition depends on, -1 for none.
func (n *node) lastAxis(t *Template) int {
	last := -1
	n.eachAxis(t, func(axis int) { last = max(last, axis) })
	return last
}

// eachAxis calls f with the axes that a condition depends on.
func (n *node) eachAxis(t *Template, f func(axis int)) {
	if n == nil {
		return
	}
	if n.op == "param" {
		f(t.Params[n.param].axis)
	}
	n.a.eachAxis(t, f)
	n.b.eachAxis(t, f)
}

// know prepares the parameters of a filter.
func (n *node) know(t *Template) {
	if n == nil {
		return
	}
	if n.op == "param" {
		t.Params[n.param].know()
	}
	n.a.know(t)
	n.b.know(t)
}

// conjuncts are the conditions that and joins.
func (n *node) conjuncts() []*node {
	if n.op == "and" {
		return append(n.a.conjuncts(), n.b.conjuncts()...)
	}
	return []*node{n}
}
