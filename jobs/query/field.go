package query

import (
	"fmt"
	"path"
	"strings"
	"time"

	"dcs-tui/internal/text"
	"dcs-tui/jobs"
)

// Fields returns the field with a name. An error means that there is none; Unknown creates one.
type Fields[R any] func(name string) (*Field[R], error)

// Field is a field of rows.
type Field[R any] struct {
	Name string
	Type Type
	// Fact marks a field that the program defines. A word that is compared with a fact is a
	// text, and a word to the right of a comparison never names a fact.
	Fact  bool
	Value func(R) Value
	// Text returns the value as written; nil: that of Value is complete.
	Text func(R) string
	// Word returns the match function of = for a word; nil: rows with this text. An error means
	// that no row can match.
	Word func(word string) (func(R) bool, error)
	// Check returns an error if no row can have this value; nil: there is no such check.
	Check func(Literal) error
	// Mismatch is called for each row that < or > could not compare, because only one of the two is
	// a number; nil: no call.
	Mismatch func(R, Value)
	// NotNumber is a value of the field that is not a number. Arithmetic refuses such a field.
	NotNumber string
}

// Type is how to parse the value that a field is compared with.
type Type uint8

// The types.
const (
	AnyType Type = iota // numbers and texts
	NumberType
	TextType
	DurationType // a number of seconds, also written as 90s or 2h
	SizeType     // a number of bytes, also written as 1.5G
	TimeType     // a text such as 2026-03-14T15:02:00Z, also written as 2026-03-14
)

// Literal is a value that a query compares a field with.
type Literal struct {
	Value  Value
	Op     string // of the comparison
	Quoted bool
	Pos    int // offset in the query
}

// Unknown returns the error for a name that is not known. noun is the kind of name: column,
// parameter.
func Unknown(noun, name string, known []string) error {
	msg := fmt.Sprintf("there is no %s %s", noun, quote(name))
	if near := text.Nearest(name, known); near != "" {
		return fmt.Errorf("%s (did you mean %s?)", msg, quote(near))
	}
	const most = 30
	if len(known) == 0 {
		return fmt.Errorf("%s", msg)
	}
	return fmt.Errorf("%s; there are %s", msg, text.Clean(text.List(known, most), 1000))
}

var typeNames = [...]string{NumberType: "a number", DurationType: "a duration such as 90s or 2h",
	SizeType: "a size such as 512M or 1.5G",
	TimeType: "a time such as 2026-03-14 or 2026-03-14T15:02"}

// literal parses the value that a field is compared with.
func (f *Field[R]) literal(n *node, op string) (Literal, error) {
	l := Literal{Value: TextValue(n.text), Op: op, Quoted: n.kind == quotedNode, Pos: n.pos}
	if l.Quoted {
		return l, nil
	}
	var ok bool
	if number, isNumber := ParseNumber(n.text); isNumber && f.Type != TimeType {
		l.Value.Number, l.Value.Kind = number, Number
		return l, nil
	}
	ok = f.Type == AnyType || f.Type == TextType
	switch f.Type {
	case DurationType:
		if d, err := jobs.ParseDuration(n.text); err == nil {
			l.Value, ok = NumberValue(d.Seconds()), true
		}
	case SizeType:
		if size, err := jobs.ParseSize(n.text); err == nil {
			l.Value, ok = NumberValue(float64(size)), true
		}
	case TimeType:
		for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02"} {
			if t, err := time.Parse(layout, n.text); err == nil {
				l.Value, ok = TextValue(t.UTC().Format(time.RFC3339)), true
				break
			}
		}
	}
	if !ok {
		return l, fmt.Errorf("%s is %s, and %s is not", f.Name, typeNames[f.Type], quote(n.text))
	}
	return l, nil
}

// text returns the function for the value as written.
func (f *Field[R]) text() func(R) string {
	if f.Text != nil {
		return f.Text
	}
	value := f.Value
	return func(r R) string { return value(r).String() }
}

// compileGlob returns the function that matches texts with a word that has * ? or [a-z], or nil if
// it has none of them. Unlike in path.Match, wildcards also match slashes.
func compileGlob(word string) (func(text string) bool, error) {
	if !strings.ContainsAny(word, "*?[") {
		return nil, nil
	}
	flat := func(s string) string { return strings.ReplaceAll(s, "/", "\x00") }
	pattern := flat(word)
	if _, err := path.Match(pattern, ""); err != nil {
		return nil, fmt.Errorf("the pattern %s is incomplete: a ] is missing; in quotes it is a text", quote(word))
	}
	return func(text string) bool {
		ok, _ := path.Match(pattern, flat(text))
		return ok && text != ""
	}, nil
}
