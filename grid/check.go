package grid

import (
	"fmt"
	"strconv"

	"dcs-tui/jobs"
)

// what a part of a filter is.
type what byte

const (
	condition what = iota
	number
	text
	mixed // of a parameter some of whose values are numbers
)

// checker finds what makes no sense in a filter, once the values are known.
type checker struct {
	t     *Template
	line  *line
	wrong *faults
	doubt *faults
}

// whole checks a filter.
func (c *checker) whole(n *node) {
	if c.part(n) != condition {
		c.wrong.at(c.line, n.offset, "a condition is missing: compare it with something, for example %s > 0", c.describe(n))
	}
}

func (c *checker) describe(n *node) string {
	if n.op == "param" {
		return c.t.Params[n.param].Name
	}
	return "…"
}

func (c *checker) part(n *node) what {
	switch n.op {
	case "param":
		return c.t.Params[n.param].kind
	case "number":
		return number
	case "text":
		return text
	case "and", "or", "not":
		for _, x := range []*node{n.a, n.b} {
			if x != nil && c.part(x) != condition {
				c.wrong.at(c.line, x.offset, "%s joins conditions: compare this with something, for example %s > 0", n.op, c.describe(x))
			}
		}
		return condition
	case "=", "!=", "<", "<=", ">", ">=":
		c.comparison(n)
		return condition
	}
	for _, x := range []*node{n.a, n.b} {
		if x != nil {
			c.countable(x)
		}
	}
	return number
}

// countable refuses to count with what is not always a number.
func (c *checker) countable(n *node) {
	switch kind := c.part(n); {
	case kind == condition:
		c.wrong.at(c.line, n.offset, "a condition cannot be counted with; put the comparison around the whole")
	case kind == number:
	case n.op == "param":
		c.wrong.at(c.line, n.offset, "%s cannot be counted with: its value %s is not a number", c.describe(n), quoteText(c.t.Params[n.param].example))
	default:
		c.wrong.at(c.line, n.offset, "the text %s cannot be counted with", quoteText(n.text))
	}
}

func (c *checker) comparison(n *node) {
	a, b := c.part(n.a), c.part(n.b)
	switch {
	case a == condition || b == condition:
		c.wrong.at(c.line, n.offset, "a condition cannot be compared: join conditions by and, or")
	case a == number && b == text || a == text && b == number:
		if n.op == "=" || n.op == "!=" {
			c.doubt.at(c.line, n.offset, "a number and a text are never equal%s", quotedNumber(n))
		} else {
			c.wrong.at(c.line, n.offset, "a number and a text have no order%s", quotedNumber(n))
		}
	case n.op == "=" || n.op == "!=":
		c.literal(n.a, n.b)
		c.literal(n.b, n.a)
	}
}

// quotedNumber is a hint where a number stands in quotes.
func quotedNumber(n *node) string {
	for _, x := range []*node{n.a, n.b} {
		if x.op == "text" && isNumber(x.text) {
			return fmt.Sprintf(": write %s without quotes", x.text)
		}
	}
	return ""
}

// maxLooked is how many values of a parameter are looked through for one.
const maxLooked = 10_000

// literal doubts a value that the parameter it is compared with does not have.
func (c *checker) literal(p, v *node) {
	if p.op != "param" || v.op != "text" && v.op != "number" {
		return
	}
	param := c.t.Params[p.param]
	if param.Len() > maxLooked {
		return
	}
	var some []string
	for k := range param.Len() {
		o := param.operand(k)
		if o.isNum == (v.op == "number") && (o.isNum && o.num.compare(v.num) == 0 || !o.isNum && o.text == v.text) {
			return
		}
		some = append(some, param.Value(k))
	}
	hint := ""
	if near := jobs.Nearest(v.text, some); near != "" && v.op == "text" {
		hint = "; did you mean " + quoteText(near) + "?"
	}
	c.doubt.at(c.line, v.offset, "%s never is %s%s", param.Name, v.text, hint)
}

func quoteText(s string) string { return strconv.Quote(jobs.Clean(s, 40)) }
