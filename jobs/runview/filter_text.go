package runview

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"dcs-tui/jobs"
)

// textMatch finds a text in name, command and parameters, in capitals or not.
func textMatch(s string) match {
	n := newNeedle(s)
	return func(l *list, id uint32, _ *row) bool {
		x := l.spec(id)
		if n.in(x.Command) || x.Name != "" && n.in(x.Name) {
			return true
		}
		for i := range x.Params {
			if p := &x.Params[i]; n.in(p.Value) || n.in(p.Name) || n.inPair(p) {
				return true
			}
		}
		return false
	}
}

// needle is a text to look for.
type needle struct {
	lower string
	ascii bool
}

func newNeedle(s string) *needle {
	n := &needle{lower: strings.ToLower(s), ascii: true}
	for i := range len(s) {
		n.ascii = n.ascii && s[i] < utf8.RuneSelf
	}
	return n
}

func (n *needle) in(s string) bool {
	if !n.ascii {
		return strings.Contains(strings.ToLower(s), n.lower)
	}
	k := len(n.lower)
	if k == 0 {
		return true
	}
	first := n.lower[0]
	capital := first
	if 'a' <= first && first <= 'z' {
		capital -= 'a' - 'A'
	}
	for i := 0; i+k <= len(s); i++ {
		if c := s[i]; c != first && c != capital {
			continue
		}
		j := 1
		for j < k && lowered(s[i+j]) == n.lower[j] {
			j++
		}
		if j == k {
			return true
		}
	}
	return false
}

// inPair finds "C=0.1".
func (n *needle) inPair(p *jobs.Param) bool {
	return strings.IndexByte(n.lower, '=') >= 0 && n.in(p.Name+"="+p.Value)
}

func lowered(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

func compares(a float64, op string, b float64) bool {
	switch op {
	case "=":
		return a == b
	case "!=":
		return a != b
	case "<":
		return a < b
	case "<=":
		return a <= b
	case ">":
		return a > b
	}
	return a >= b
}

// number is "5", "<5", ">=5", "!=5".
type number struct {
	op string
	n  float64
}

func numbers(key, v string) (number, error) {
	op, text := "=", v
	for _, o := range []string{"!=", "<=", ">=", "=", "<", ">", "!"} {
		if rest, ok := strings.CutPrefix(v, o); ok {
			op, text = o, rest
			break
		}
	}
	if op == "!" {
		op = "!="
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		return number{}, fmt.Errorf("%s:%s: a number is wanted, such as %s:5 or %s:>5", key, jobs.Clean(v, 40), key, key)
	}
	return number{op, float64(n)}, nil
}

func (n number) fits(x float64) bool { return compares(x, n.op, n.n) }
