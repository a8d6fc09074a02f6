package grid

import (
	"strconv"

	"dcs-tui/jobs/query"
)

// Param is a parameter and its values.
type Param struct {
	Name         string
	Line, Column int

	values  values
	axis    int    // zipped parameters share one
	example string // a value that is not a number
	kind    what
	known   []query.Value // of a parameter in a filter that has few enough
}

// what the values of a parameter are.
type what byte

const (
	number what = iota
	text
	mixed
)

// Len is how many values there are, at least 1.
func (p *Param) Len() int { return p.values.count() }

// Value is the value number k, from 0.
func (p *Param) Value(k int) string { return p.values.at(k) }

// maxKnown bounds the values that are kept as numbers beside the texts.
const maxKnown = 1 << 16

// twice finds a value that is there more than once; of a long range alone it is known
// that there is none.
func (p *Param) twice() (string, bool) {
	parts := p.values.parts
	if _, ok := parts[0].(texts); !ok && len(parts) == 1 {
		return "", false
	}
	seen := make(map[string]bool, min(p.Len(), maxKnown))
	for _, part := range parts {
		if _, ok := part.(texts); !ok && part.count() > maxKnown {
			continue
		}
		for k := range part.count() {
			v := part.at(k)
			if seen[v] {
				return v, true
			}
			seen[v] = true
		}
	}
	return "", false
}

// look finds out which values are numbers.
func (p *Param) look() {
	some, all := false, true
	for _, part := range p.values.parts {
		list, ok := part.(texts)
		if !ok {
			some = true // ranges have nothing but numbers
			continue
		}
		for _, v := range list {
			if isNumber(v) {
				some = true
			} else if all {
				all, p.example = false, v
			}
		}
	}
	switch {
	case all:
		p.kind = number
	case some:
		p.kind = mixed
	default:
		p.kind = text
	}
}

// know keeps the values for filters, unless there are too many.
func (p *Param) know() {
	if p.known != nil || p.Len() > maxKnown {
		return
	}
	known := make([]query.Value, p.Len())
	for k := range known {
		known[k] = query.ValueOf(p.Value(k))
	}
	p.known = known
}

// value is the value number k for a filter. A number of a long range has no text.
func (p *Param) value(k int) query.Value {
	if p.known != nil {
		return p.known[k]
	}
	if s, ok := p.values.parts[0].(steps); ok && len(p.values.parts) == 1 {
		return query.NumberValue(s.number(k))
	}
	return query.ValueOf(p.Value(k))
}

func toFloat(s string) float64 {
	f, _ := strconv.ParseFloat(s, 64) // of a text that isNumber; beyond the range it is infinite
	return f
}
