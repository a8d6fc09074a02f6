package grid

import (
	"errors"
	"fmt"
	"strconv"

	"dcs-tui/internal/text"
	"dcs-tui/jobs/query"
)

// filter is an @where line: `@where C * gamma < 10 and not (kernel=rbf and degree>2)`.
type filter struct {
	line  *line
	from  int // offset of the query in the line
	query *query.Query
}

// condition reports whether a point passes a part of a filter.
type condition = func(ix []int) bool

// parseWhere parses the filter that begins at an offset of a line. It checks names before values
// are read, which may take long.
func (p *parser) parseWhere(l *line, from int) {
	q, err := query.Parse(l.text[from:])
	if err == nil {
		_, err = query.Compile(q, p.fields(func(param *Param) *query.Field[[]int] {
			return &query.Field[[]int]{Name: param.Name}
		}), nil)
	}
	if err != nil {
		p.addFilterError(filter{line: l, from: from}, err)
		return
	}
	p.filters = append(p.filters, filter{l, from, q})
}

func (p *parser) addFilterError(f filter, err error) {
	if e, ok := errors.AsType[*query.Error](err); ok {
		p.wrong.at(f.line, f.from+e.Pos, "%s", e.Message)
	}
}

// fields returns the lookup of the fields that of makes for parameters.
func (p *parser) fields(of func(*Param) *query.Field[[]int]) query.Fields[[]int] {
	return func(name string) (*query.Field[[]int], error) {
		if i, ok := p.known[name]; ok {
			return of(p.t.Params[i]), nil
		}
		return nil, query.Unknown("parameter", name, p.names)
	}
}

// compile adds the conditions of a filter to those of the fastest axis that each needs.
// The values of all parameters are known.
func (p *parser) compile(f filter) {
	t := p.t
	for _, q := range f.query.Conditions() {
		last := 0
		condition, err := query.Compile(q, p.fields(func(param *Param) *query.Field[[]int] {
			last = max(last, param.axis)
			p.checkLatinFilter(f, param)
			return p.field(f, param)
		}), nil)
		if err != nil {
			p.addFilterError(f, err)
			return
		}
		t.filter[last] = append(t.filter[last], condition)
	}
}

// field returns the field of a filter for a parameter.
func (p *parser) field(f filter, param *Param) *query.Field[[]int] {
	param.cacheValues()
	field := &query.Field[[]int]{
		Name:      param.Name,
		NotNumber: param.example,
		Value:     func(ix []int) query.Value { return param.value(ix[param.axis]) },
		Text:      func(ix []int) string { return param.Value(ix[param.axis]) },
	}
	if param.kind == allNumbers {
		field.Type = query.NumberType
	}
	field.Check = func(l query.Literal) error {
		switch {
		case l.Op == "=" || l.Op == "!=":
			p.checkLiteral(f, param, l)
		case param.kind == allTexts && l.Value.Kind == query.Number:
			return fmt.Errorf("a number and a text have no order: no value of %s is a number", param.Name)
		case param.kind == allNumbers && l.Quoted:
			return fmt.Errorf("a number and a text have no order: all values of %s are numbers", param.Name)
		}
		return nil
	}
	return field
}

// maxCheckedValues is the maximum number of a parameter's values that literal searches.
const maxCheckedValues = 10_000

// checkLiteral adds a warning for a value that the parameter never has.
func (p *parser) checkLiteral(f filter, param *Param, l query.Literal) {
	if param.Len() > maxCheckedValues {
		return
	}
	var some []string
	for k := range param.Len() {
		v, text := param.value(k), param.Value(k)
		if text == l.Value.Text || !l.Quoted && v.Kind == query.Number && l.Value.Kind == query.Number &&
			query.Compare(v, l.Value, false) == 0 {
			return
		}
		some = append(some, text)
	}
	hint := ""
	if near := text.Nearest(l.Value.Text, some); near != "" && l.Value.Kind == query.Text {
		hint = " (did you mean " + quoteText(near) + "?)"
	}
	p.doubt.at(f.line, f.from+l.Pos, "%s is never %s%s", param.Name, quoteText(l.Value.String()), hint)
}

func quoteText(s string) string { return strconv.Quote(text.Clean(s, 40)) }
