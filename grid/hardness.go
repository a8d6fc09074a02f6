package grid

import (
	"fmt"
	"hash/fnv"
	"io"
	"slices"
	"strconv"

	"dcs-tui/jobs"
)

// tuples gives jobs the hardness that their parameters make; those of a command that
// are equally hard share their options. It is for one goroutine.
type tuples struct {
	t      *Template
	params []int  // that count
	name   string // of the order, behind the components
	shared map[tupleKey]*jobs.Options
}

type tupleKey struct {
	c  *command
	at string
}

func newTuples(t *Template) *tuples {
	h := &tuples{t: t, shared: map[tupleKey]*jobs.Options{}}
	var order []string
	for _, part := range t.Hardness {
		h.params = append(h.params, slices.IndexFunc(t.Params, func(p *Param) bool { return p.Name == part.Param }))
		order = append(append(order, part.Param, strconv.FormatBool(part.Down)), part.Order...)
	}
	h.name = nameOf(order...)
	if t.comparison != nil {
		h.params = t.comparison.params
	}
	return h
}

// nameOf names an order. It is a component of its tuples, a text, so that nothing is compared
// with jobs of the same file to which other orders gave their numbers.
func nameOf(order ...string) string {
	sum := fnv.New32a()
	for _, s := range order {
		io.WriteString(sum, s+"\n")
	}
	return fmt.Sprintf("o%x", sum.Sum32())
}

// options are those of a command for a point.
func (h *tuples) options(c *command, params []jobs.Param) *jobs.Options {
	if len(h.params) == 0 {
		return c.options
	}
	k := tupleKey{c, settingKey(params, h.params)}
	o := h.shared[k]
	if o == nil {
		made := *c.options
		made.Hardness = h.hardness(k.at, params)
		o = &made
		h.shared[k] = o
	}
	return o
}

// settingKey is one text of the values that count.
func settingKey(params []jobs.Param, which []int) string {
	var key []byte
	for _, i := range which {
		key = append(append(key, params[i].Value...), 0) // no value holds a NUL
	}
	return string(key)
}

func (h *tuples) hardness(key string, params []jobs.Param) []string {
	if c := h.t.comparison; c != nil {
		return c.tuples[key]
	}
	var tuple []string
	for n, i := range h.params {
		tuple = append(tuple, h.t.Hardness[n].component(params[i].Value))
	}
	return append(tuple, h.name)
}

// component is a value as a number that is the larger the harder: itself, its negative,
// or its place in the order, from 0.
func (h *Hardness) component(value string) string {
	switch {
	case h.Order != nil:
		return strconv.Itoa(slices.Index(h.Order, value))
	case !h.Down:
		return value
	case value[0] == '-':
		return value[1:]
	case value[0] == '+':
		return "-" + value[1:]
	}
	return "-" + value
}
