package grid

import (
	"path/filepath"
	"strconv"
	"strings"

	"dcs-tui/internal/text"
	"dcs-tui/jobs"
)

type command struct {
	line    int
	text    []piece
	name    []piece // pieces of name=; nil: the name is made of the parameters
	label   string  // prefix of the name if there are several command lines
	paths   *paths  // nil: the options are the same for all jobs
	options *jobs.Options
	after   jobs.Dependencies // on the commands of the template, which it numbers from 1
}

func (t *Template) params(ix []int) []jobs.Param {
	if len(t.Params) == 0 {
		return nil
	}
	params := make([]jobs.Param, len(t.Params))
	for i, p := range t.Params {
		params[i] = jobs.Param{Name: p.Name, Value: p.Value(ix[p.axis])}
	}
	return params
}

// spec returns the job of a command. first is the number of the first job of the same point.
func (t *Template) spec(c *command, first, id jobs.ID, params []jobs.Param, hard *tuples) *jobs.Spec {
	return &jobs.Spec{ID: id, Line: c.line, Command: fill(c.text, params, nil), Name: c.title(params),
		Labels:  jobs.NewLabels("", params, c.after.Shift(first-1)...),
		Options: hard.options(c, params)}
}

// fill returns the text of pieces with values in place of the references. quote returns the text of
// a value; nil: it is the value itself, or, if the reference says so, quoted for the shell.
func fill(parts []piece, params []jobs.Param, quote func(string) string) string {
	if len(parts) == 1 && parts[0].param < 0 {
		return parts[0].text
	}
	var b strings.Builder
	n := 0
	for _, p := range parts {
		n += len(p.text)
		if p.param >= 0 {
			n += len(params[p.param].Value)
		}
	}
	b.Grow(n)
	for _, p := range parts {
		b.WriteString(p.text)
		switch {
		case p.param < 0:
		case quote != nil:
			b.WriteString(quote(params[p.param].Value))
		case p.quoted:
			b.WriteString(text.ShellWord(params[p.param].Value))
		default:
			b.WriteString(params[p.param].Value)
		}
	}
	return b.String()
}

// maxTitle bounds a job's name, in characters; maxShown a value in it.
const (
	maxTitle = 120
	maxShown = 40
)

// title returns the name of a job: that of name=, or C=0.1 gamma=0.25.
func (c *command) title(params []jobs.Param) string {
	if c.name != nil {
		return text.Clean(fill(c.name, params, nil), maxTitle)
	}
	if len(params) == 0 {
		return ""
	}
	b := make([]byte, 0, 64)
	b = append(b, c.label...)
	for _, p := range params {
		if len(b) > 0 {
			b = append(b, ' ')
		}
		b = append(append(append(b, p.Name...), '='), text.Clean(p.Value, maxShown)...)
	}
	return text.Clean(string(b), maxTitle)
}

// setLabels sets the labels that distinguish the titles of several command lines: the programs that
// they call, or else their numbers.
func setLabels(commands []*command) {
	if len(commands) < 2 {
		return
	}
	seen := map[string]bool{}
	for _, c := range commands {
		first := ""
		if len(c.text) > 0 {
			first, _, _ = strings.Cut(c.text[0].text, " ")
		}
		c.label = text.Clean(filepath.Base(first), maxShown)
		if first == "" || seen[c.label] || strings.ContainsAny(first, "='\"$") {
			for i, c := range commands {
				c.label = "#" + strconv.Itoa(i+1)
			}
			return
		}
		seen[c.label] = true
	}
}
