package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"dcs-tui/grid"
	"dcs-tui/internal/cli/standing"
	"dcs-tui/jobs"
	"dcs-tui/jobs/rundir"
)

// keptTemplate is a template in run.toml (standing.OptionSource), with the values that files
// and commands gave, so that resume makes the same jobs on any machine, and its
// @result and @hardness lines stay known.
type keptTemplate struct {
	V     int    `json:"v"`
	File  string `json:"file"`
	Limit int    `json:"limit"`
	Text  string `json:"text,omitempty"`
	Bytes []byte `json:"bytes,omitempty"` // in its place, if it is not UTF-8
}

// maxKeptTemplate is how large, in bytes, a template may be to be kept though its
// jobs are all stored.
const maxKeptTemplate = 1 << 20

// templateOf returns the template of a run, nil if it has none that is kept.
func templateOf(run *rundir.Run) (*grid.Template, error) {
	source, _ := run.Asked.Options[standing.OptionSource].(string)
	if source == "" {
		return nil, nil
	}
	return readSource(source)
}

func sourceText(t *grid.Template, limit int) string {
	k := keptTemplate{V: 1, File: t.File, Limit: limit, Text: t.Text()}
	if !utf8.ValidString(k.Text) {
		k.Text, k.Bytes = "", []byte(t.Text())
	}
	b, _ := json.Marshal(k) // texts and numbers: it cannot fail
	return string(b)
}

// readSource gives the template that sourceText has kept.
func readSource(source string) (*grid.Template, error) {
	var k keptTemplate
	if err := json.Unmarshal([]byte(source), &k); err != nil || k.V != 1 {
		return nil, fmt.Errorf("run.toml holds no template that this version of dcs-tui reads")
	}
	if k.Bytes != nil {
		k.Text = string(k.Bytes)
	}
	// With the quotes of its shell, whichever that was.
	return grid.Config{Limit: k.Limit, OtherShell: true, Again: true}.Parse(context.Background(), strings.NewReader(k.Text), k.File)
}

func init() {
	restJobs = func(source string, have int) (func() (*jobs.Spec, error), error) {
		t, err := readSource(source)
		if err != nil {
			return nil, err
		}
		next := pulling(t.Jobs())
		return func() (*jobs.Spec, error) {
			for ; have > 0; have-- {
				if _, err := next(); err != nil {
					return nil, err
				}
			}
			return next()
		}, nil
	}
}
