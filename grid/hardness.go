package grid

import (
	"slices"
	"strconv"

	"dcs-tui/jobs"
)

// tuples gives jobs the hardness that their parameters make; those of a command that
// are equally hard share their options. It is for one goroutine.
type tuples struct {
	t      *Template
	params []int // of the components
	shared map[tupleKey]*jobs.Options
}

type tupleKey struct {
	c  *command
	at string
}

func newTuples(t *Template) *tuples {
	h := &tuples{t: t, shared: map[tupleKey]*jobs.Options{}}
	for _, part := range t.Hardness {
		h.params = append(h.params, slices.IndexFunc(t.Params, func(p *Param) bool { return p.Name == part.Param }))
	}
	return h
}

// options are those of a command for a point.
func (h *tuples) options(c *command, params []jobs.Param) *jobs.Options {
	if len(h.params) == 0 {
		return c.options
	}
	var key []byte
	for _, i := range h.params {
		key = append(append(key, params[i].Value...), 0) // no value holds a NUL
	}
	k := tupleKey{c, string(key)}
	o := h.shared[k]
	if o == nil {
		made := *c.options
		made.Hardness = make([]string, len(h.params))
		for n, i := range h.params {
			made.Hardness[n] = h.t.Hardness[n].component(params[i].Value)
		}
		o = &made
		h.shared[k] = o
	}
	return o
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
