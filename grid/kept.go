package grid

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"strings"
	"unicode/utf8"

	"dcs-tui/jobs"
)

// Pull returns a function that yields the jobs of a template, and then io.EOF.
func (t *Template) Pull() func() (*jobs.Spec, error) {
	next, _ := iter.Pull2(t.Jobs()) // not stopped when the run ends before it
	return func() (*jobs.Spec, error) {
		s, err, ok := next()
		if !ok {
			return nil, io.EOF
		}
		return s, err
	}
}

// keptTemplate is a template in run.toml (rundir.OptionSource). It includes the values
// that files and commands gave, so that resume makes the same jobs on any machine, and
// the @result and @hardness lines.
type keptTemplate struct {
	V     int    `json:"v"`
	File  string `json:"file"`
	Limit int    `json:"limit"`
	Text  string `json:"text,omitempty"`
	Bytes []byte `json:"bytes,omitempty"` // in the place of Text if that is not UTF-8
}

// Source returns a template as run.toml keeps it (rundir.OptionSource). limit is that of its
// Config.
func (t *Template) Source(limit int) string {
	k := keptTemplate{V: 1, File: t.File, Limit: limit, Text: t.Text()}
	if !utf8.ValidString(k.Text) {
		k.Text, k.Bytes = "", []byte(t.Text())
	}
	b, _ := json.Marshal(k) // texts and numbers: it cannot fail
	return string(b)
}

// ReadSource reads what Source has returned.
func ReadSource(source string) (*Template, error) {
	var k keptTemplate
	if err := json.Unmarshal([]byte(source), &k); err != nil || k.V != 1 {
		return nil, fmt.Errorf("run.toml holds no template that this version of dcs-tui reads")
	}
	if k.Bytes != nil {
		k.Text = string(k.Bytes)
	}
	// The shell is not known here, so its quotes are not checked again.
	return Config{Limit: k.Limit, OtherShell: true, Again: true}.Parse(context.Background(), strings.NewReader(k.Text), k.File)
}

// Rest returns a function that yields the jobs of a source, without the first have ones, and
// then io.EOF.
func Rest(source string, have int) (func() (*jobs.Spec, error), error) {
	t, err := ReadSource(source)
	if err != nil {
		return nil, err
	}
	next := t.Pull()
	return func() (*jobs.Spec, error) {
		for ; have > 0; have-- {
			if _, err := next(); err != nil {
				return nil, err
			}
		}
		return next()
	}, nil
}
