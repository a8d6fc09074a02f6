package grid

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"iter"
	"strings"

	"dcs-tui/internal/text"
)

// comparison is an @hardness line whose command compares settings, combinations of the values
// of its parameters. The command compares each pair once, when the template is read. Its
// answers are stored as hardness tuples of the jobs, so that it is not needed again.
type comparison struct {
	line    *line
	command source
	params  []int
	tuples  map[string][]string // by settingKey
}

// maxSettings is the maximum number of settings.
const maxSettings = 1000

// The answers of the command about two settings.
const (
	easier       = "<" // the first is easier
	harder       = ">"
	alike        = "="
	incomparable = "?"
)

const answerForm = "print < when the first setting is easier, > when it is harder, = when both are as hard, " +
	"and ? when they cannot be compared"

// runComparison runs the command and computes the tuples.
func (p *parser) runComparison(ctx context.Context) {
	c := p.t.comparison
	if c == nil {
		return
	}
	fail := func(format string, args ...any) { p.wrong.at(c.line, c.command.offset, format, args...) }
	if most := p.t.MaxJobs(); most > DefaultLimit {
		fail("a command can compare the settings of at most %s jobs, and there may be %s: narrow the values, "+
			"or name parameters without a command", text.Thousands(DefaultLimit), text.Thousands(most))
		return
	}
	keys, settings, err := p.settings(c)
	if err != nil {
		fail("%v", err)
		return
	}
	c.tuples = make(map[string][]string, len(keys))
	var answers []byte
	if len(settings) > 1 {
		r, w := io.Pipe()
		go writeQuestions(w, settings)
		b, err := p.run(ctx, p.Config, c.command.text, r)
		r.Close()
		if err == nil {
			answers, err = readAnswers(b, settings)
		}
		if err != nil {
			fail("%v", err)
			return
		}
	}
	r := newRelation(len(settings), answers)
	if x, y, z, ok := r.contradiction(); !ok {
		say := func(a, b int) string {
			return fmt.Sprintf("%s %s %s", showSetting(settings[a]), r.answer(a, b), showSetting(settings[b]))
		}
		fail("the command contradicts itself: %s and %s, but %s", say(x, y), say(y, z), say(x, z))
		return
	}
	tuples, err := r.tuples(nameOf(append(settings, string(answers))...))
	if err != nil {
		fail("%v", err)
		return
	}
	for i, key := range keys {
		c.tuples[key] = tuples[i]
	}
}

// settings returns the settings of the jobs, in the order of the jobs: as keys, and as the
// command reads them, with tabs between values.
func (p *parser) settings(c *comparison) (keys, settings []string, err error) {
	seen := map[string]bool{}
	for ix, err := range p.t.keptPoints() {
		if err != nil {
			return nil, nil, err
		}
		params := p.t.params(ix)
		key := settingKey(params, c.params)
		if seen[key] {
			continue
		}
		seen[key] = true
		if len(keys) == maxSettings {
			return nil, nil, fmt.Errorf("there are more than %s settings to be compared with each other: "+
				"name only the parameters that count, before the command", text.Thousands(maxSettings))
		}
		var values []string
		for _, i := range c.params {
			v := params[i].Value
			if strings.ContainsAny(v, "\t\r") {
				return nil, nil, fmt.Errorf("the value %s of [%s] holds a tab or a carriage return, "+
					"which the command could not tell from the end of a value", quoteText(v), params[i].Name)
			}
			values = append(values, v)
		}
		keys, settings = append(keys, key), append(settings, strings.Join(values, "\t"))
	}
	return keys, settings, nil
}

// pairs yields all pairs of numbers below n: 0 and 1, 0 and 2, … 1 and 2, …
func pairs(n int) iter.Seq2[int, int] {
	return func(yield func(a, b int) bool) {
		for a := range n {
			for b := a + 1; b < n; b++ {
				if !yield(a, b) {
					return
				}
			}
		}
	}
}

// writeQuestions writes a line for each pair of settings, the earlier one first, until w is
// closed.
func writeQuestions(w *io.PipeWriter, settings []string) {
	defer w.Close()
	lines := bufio.NewWriter(w)
	for a, b := range pairs(len(settings)) {
		if _, err := lines.WriteString(settings[a] + "\t" + settings[b] + "\n"); err != nil {
			return // the command reads no more
		}
	}
	_ = lines.Flush()
}

// readAnswers returns the answers that a command printed, one byte for each pair of settings.
func readAnswers(b []byte, settings []string) ([]byte, error) {
	next, stop := iter.Pull2(pairs(len(settings)))
	defer stop()
	nPairs := len(settings) * (len(settings) - 1) / 2
	answers, nLines := make([]byte, 0, nPairs), 0
	for l := range strings.Lines(strings.TrimRight(string(b), blanks+"\n")) {
		nLines++
		first, second, ok := next()
		if !ok {
			continue
		}
		l = strings.Trim(l, blanks+"\n")
		switch l {
		case easier, harder, alike, incomparable:
			answers = append(answers, l[0])
		default:
			return nil, fmt.Errorf("the command answered %s to its line %d, %s and %s: it should %s", quoteText(l),
				nLines, showSetting(settings[first]), showSetting(settings[second]), answerForm)
		}
	}
	if nLines != nPairs {
		return nil, fmt.Errorf("the command gave %d answers to %d lines: for each line that it reads it should %s",
			nLines, nPairs, answerForm)
	}
	return answers, nil
}

// showSetting formats a setting for a message: (brute 4 2).
func showSetting(s string) string { return "(" + text.Clean(s, maxShown) + ")" }
