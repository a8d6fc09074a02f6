package grid

import (
	"context"
	"fmt"
	"io"
	"strings"

	"dcs-tui/jobs"
)

// comparison is an @hardness line whose command says which settings are harder: the
// settings are the values that its parameters take together. The command is asked
// about each pair once, when the template is read. Its answers become tuples, so that
// nobody needs the command any more: what is stored of a job says all.
type comparison struct {
	line    *line
	command source
	params  []int
	tuples  map[string][]string // by settingKey
}

// maxSettings bounds the settings, each of which is compared with each other.
const maxSettings = 1000

// What the command answers to two settings.
const (
	easier       = "<" // the first is
	harder       = ">"
	alike        = "="
	incomparable = "?"
)

const answerForm = "print < when the first setting is easier, > when it is harder, = when both are as hard, and ? when they cannot be compared"

// compare asks the command, and makes tuples of what it says.
func (p *parser) compare(ctx context.Context) {
	c := p.t.comparison
	if c == nil {
		return
	}
	fail := func(format string, args ...any) { p.wrong.at(c.line, c.command.offset, format, args...) }
	if most := p.t.Most(); most > DefaultLimit {
		fail("a command can compare the settings of at most %s jobs, and there may be %s: narrow the values, or name parameters without a command", thousands(DefaultLimit), thousands(most))
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
		b, err := p.run(ctx, p.Config, c.command.text, &questions{settings: settings, next: 1})
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

// settings are those of the jobs, in their order: as keys, and as the command reads
// them, a tab between values.
func (p *parser) settings(c *comparison) (keys, settings []string, err error) {
	seen := map[string]bool{}
	for ix, err := range p.t.kept() {
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
			return nil, nil, fmt.Errorf("there are more than %s settings to be compared with each other: name only the parameters that count, before the command", thousands(maxSettings))
		}
		var values []string
		for _, i := range c.params {
			v := params[i].Value
			if strings.ContainsAny(v, "\t\r") {
				return nil, nil, fmt.Errorf("the value %s of [%s] holds a tab or a carriage return, which the command could not tell from the end of a value", quoteText(v), params[i].Name)
			}
			values = append(values, v)
		}
		keys, settings = append(keys, key), append(settings, strings.Join(values, "\t"))
	}
	return keys, settings, nil
}

// questions is what the command reads: a line for each pair of settings, the earlier
// one first.
type questions struct {
	settings    []string
	first, next int // of the next line
	rest        []byte
}

func (q *questions) Read(b []byte) (int, error) {
	for len(q.rest) < len(b) && q.next < len(q.settings) {
		q.rest = append(q.rest, q.settings[q.first]...)
		q.rest = append(q.rest, '\t')
		q.rest = append(q.rest, q.settings[q.next]...)
		q.rest = append(q.rest, '\n')
		if q.next++; q.next == len(q.settings) {
			q.first++
			q.next = q.first + 1
		}
	}
	if len(q.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(b, q.rest)
	q.rest = q.rest[:copy(q.rest, q.rest[n:])]
	return n, nil
}

// readAnswers takes the answers apart: one byte for each pair.
func readAnswers(b []byte, settings []string) ([]byte, error) {
	n := len(settings)
	pairs := n * (n - 1) / 2
	answers := make([]byte, 0, pairs)
	first, second, total := 0, 1, 0
	for l := range strings.Lines(strings.TrimRight(string(b), blanks+"\n")) {
		if total++; total > pairs {
			continue
		}
		switch l = strings.Trim(l, blanks+"\n"); l {
		case easier, harder, alike, incomparable:
			answers = append(answers, l[0])
		default:
			return nil, fmt.Errorf("the command answered %s to its line %d, %s and %s: it should %s", quoteText(l), total, showSetting(settings[first]), showSetting(settings[second]), answerForm)
		}
		if second++; second == n {
			first++
			second = first + 1
		}
	}
	if total != pairs {
		return nil, fmt.Errorf("the command gave %d answers to %d lines: for each line that it reads it should %s", total, pairs, answerForm)
	}
	return answers, nil
}

// showSetting is a setting in a message: (brute 4 2).
func showSetting(s string) string { return "(" + jobs.Clean(s, maxShown) + ")" }
