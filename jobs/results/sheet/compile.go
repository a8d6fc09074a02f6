package sheet

import (
	"errors"
	"fmt"
)

// Rows are what a filter is asked of: those of a Sheet, or others with columns of the
// same names and meanings, such as the screen's list of jobs.
type Rows[R any] struct {
	Cells func(name string) (Cells[R], error) // an error says that there is no such column
	Word  func(Word) (func(R) bool, error)    // what a word of a search finds; nil: there are none
}

// Cells are a column.
type Cells[R any] struct {
	Column Column
	Value  func(R) Value
	// Odd is told of each row that < or > could not compare, as one of the two is a number
	// and the other none; nil: nobody listens.
	Odd func(R, Value)
}

// Compile turns a filter into a function of the row.
func Compile[R any](f *Filter, rows Rows[R]) (func(R) bool, error) {
	return compile(f.root, f.search, rows)
}

func compile[R any](n *node, search bool, rows Rows[R]) (func(R) bool, error) {
	switch n.kind {
	case opToken:
		match, err := comparing(n.cmp, rows)
		if err != nil {
			return nil, faultAt(search, n.cmp.at, err.Error())
		}
		return match, nil
	case wordToken:
		if rows.Word == nil {
			return nil, fmt.Errorf("%s is no comparison", quote(n.word.Text))
		}
		return rows.Word(n.word)
	}
	left, err := compile(n.left, search, rows)
	if err != nil {
		return nil, err
	}
	if n.kind == notToken {
		return func(r R) bool { return !left(r) }, nil
	}
	right, err := compile(n.right, search, rows)
	if err != nil {
		return nil, err
	}
	if n.kind == andToken {
		return func(r R) bool { return left(r) && right(r) }, nil
	}
	return func(r R) bool { return left(r) || right(r) }, nil
}

func comparing[R any](c *comparison, rows Rows[R]) (func(R) bool, error) {
	cells, err := rows.Cells(c.column)
	if err != nil {
		return nil, err
	}
	c = c.measured(cells.Column.Unit)
	if why := c.impossible(&cells.Column); why != "" {
		return nil, errors.New(why)
	}
	value, odd := cells.Value, cells.Odd
	switch c.op {
	case "=":
		return func(r R) bool { return c.equal(value(r)) }, nil
	case "!=":
		return func(r R) bool { return !c.equal(value(r)) }, nil
	case "~":
		return func(r R) bool { return c.expr.MatchString(value(r).Text) }, nil
	case "!~":
		return func(r R) bool { return !c.expr.MatchString(value(r).Text) }, nil
	}
	if odd == nil && !c.numeric && !c.quoted && cells.Column.Role != Fact {
		return nil, fmt.Errorf("a number is wanted after %s; in quotes %s is compared as a text", c.op, quote(c.value))
	}
	return func(r R) bool {
		v := value(r)
		if odd != nil && c.unlike(v) {
			odd(r, v)
		}
		return c.ordered(v)
	}, nil
}

// unlike says that < and > cannot compare with a value, as one of the two is a number and
// the other none.
func (c *comparison) unlike(v Value) bool {
	return v.Kind != Nothing && !c.quoted && c.numeric != (v.Kind == Number)
}
