package grid

import (
	"strings"

	"dcs-tui/internal/text"
)

// product assigns the parameters to axes and makes the checks that depend on their values.
func (p *parser) product() {
	t := p.t
	p.warnNested()
	if t.Search != nil {
		p.makeSpace()
		t.points = t.Search.Trials
		return
	}
	p.makeAxes()
	for _, h := range t.Hardness {
		p.checkOrder(h)
	}
	t.filter = make([][]condition, len(t.axes))
	if len(p.filters) > 0 && len(t.axes) == 0 {
		p.wrong.at(p.filters[0].line, 0, "there is no parameter to filter by: add a line such as [C] 0.1, 1, 10")
		return
	}
	if len(p.filters) == 0 {
		t.filter = nil
	}
	for _, f := range p.filters {
		p.compile(f)
	}
	if len(p.wrong.list) > 0 {
		return
	}
	t.points = 1
	for _, n := range t.axes {
		if n > maxPoints/t.points/len(t.commands) {
			p.tooLarge("the product of all values has more than 10^18 jobs: narrow the ranges")
			return
		}
		t.points *= n
	}
	p.prepareSample()
	switch n := t.MaxJobs(); {
	case n <= p.Limit:
	case t.sample != nil && (!t.HasFilter() || t.sample.n > p.Limit/len(t.commands)):
		p.wrong.at(p.sampled, 0, "the sample gives %s jobs, more than %s: take a smaller one, or raise --limit",
			text.Thousands(n), text.Thousands(p.Limit))
	case !t.HasFilter():
		p.tooLarge("the product of all values gives %s jobs, more than %s: take fewer values, "+
			"keep some with @where, draw some with @sample 1000, or raise --limit",
			text.Thousands(n), text.Thousands(p.Limit))
	}
}

// tooLarge adds an error about the size of the product, at the position of the longest list of
// values.
func (p *parser) tooLarge(format string, args ...any) {
	var longest Param
	for _, param := range p.t.Params {
		if param.Len() > longest.Len() {
			longest = *param
		}
	}
	p.wrong.add(longest.Line, longest.Column, format, args...)
}

// warnNested adds a warning for values that refer to parameters, because such references are not
// replaced.
func (p *parser) warnNested() {
	for _, param := range p.t.Params {
		for v := range param.values.written() {
			if strings.Contains(v, "[") && p.namesParam(references(v)) {
				p.doubt.at(param.line, 0,
					"the value %s of [%s] stays as it is: parameters are replaced in commands alone",
					quoteText(v),
					param.Name)
				return
			}
		}
	}
}

// makeAxes assigns each parameter to an axis. Zipped parameters share one. Those of sampled
// parameters come first.
func (p *parser) makeAxes() {
	together := map[int][]int{}
	for _, z := range p.zips {
		for _, i := range z {
			together[i] = z
		}
	}
	placed := map[int]bool{}
	place := func(i int) {
		if placed[i] {
			return
		}
		param, axis := p.t.Params[i], len(p.t.axes)
		p.t.axes = append(p.t.axes, param.Len())
		placed[i], param.axis = true, axis
		for _, k := range together[i] {
			other := p.t.Params[k]
			placed[k], other.axis = true, axis
			if other.Len() != param.Len() {
				p.wrong.at(p.zipped[k], 0, "@zip needs equally many values: [%s] has %d and [%s] has %d", param.Name,
					param.Len(), other.Name, other.Len())
			}
		}
	}
	s := p.t.sample
	if s != nil {
		for _, i := range s.of {
			place(i)
		}
		s.axes = len(p.t.axes)
	}
	for i := range p.t.Params {
		place(i)
	}
	if s != nil && s.of == nil {
		s.axes = len(p.t.axes)
	}
}

// prepareSample checks the sample and prepares a Latin hypercube.
func (p *parser) prepareSample() {
	s := p.t.sample
	if s == nil {
		return
	}
	s.points = 1
	for _, n := range p.t.axes[:s.axes] {
		s.points *= n
	}
	switch {
	case s.n > s.points && s.latin:
		p.wrong.at(p.sampled, 0, "@sample %d latin: there are only %d points", s.n, s.points)
		s.n = s.points
	case s.n > s.points:
		p.doubt.at(p.sampled, 0, "@sample %d: there are only %d points; all are taken", s.n, s.points)
		s.n = s.points
	case s.latin && s.n <= p.Limit: // larger ones are refused
		var err error
		if s.table, err = hypercube(p.t.axes[:s.axes], s.n, s.seed); err != nil {
			p.wrong.at(p.sampled, 0, "%v", err)
		}
	}
}

// checkLatinFilter adds an error for a filter by a parameter of a Latin hypercube.
func (p *parser) checkLatinFilter(f filter, param *Param) {
	if s := p.t.sample; s != nil && s.latin && param.axis < s.axes {
		p.wrong.at(p.sampled, 0, "a Latin hypercube cannot be combined with a filter of its parameters, "+
			"which would leave strata empty: leave out latin, or the @where in line %d", f.line.no)
	}
}
