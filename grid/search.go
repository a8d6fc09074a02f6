package grid

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"dcs-tui/grid/search"
	"dcs-tui/internal/text"
	"dcs-tui/jobs"
)

// Search is an @search line: trials instead of all combinations.
type Search struct {
	Method   string // a method of package search, or Ask
	Trials   int
	Metric   string // "": none
	Maximize bool
	Seed     uint64
	First    int    // the first rung of halving
	Factor   int    // of halving
	Command  string // of the optimizer
}

// Ask is the method that asks the user's optimizer.
const Ask = "ask"

// SearchMethods holds the methods of --search.
var SearchMethods = []string{search.Random, search.Latin, search.Halton, search.Halving, search.TPE}

// searchForm describes how a search is written, as a line of a template and with flags.
const searchForm = "write @search tpe trials 100 minimize loss seed 7, or --search tpe --trials 100 --minimize loss"

// The limits of a search.
const (
	maxTrials      = 1_000_000
	maxCoordinates = 10_000_000 // of all trials
)

// Learns reports whether proposals depend on results.
func (s *Search) Learns() bool { return s.Method == search.TPE || s.Method == Ask }

// Best returns the order of results for results.ParseBest, or "" if there is no metric.
func (s *Search) Best() string {
	switch {
	case s.Metric == "":
		return ""
	case s.Maximize:
		return s.Metric + ":max"
	}
	return s.Metric + ":min"
}

// Line returns the @search line. It has no number of trials and no metric if they are not given.
func (s *Search) Line() string {
	b := "@search " + s.Method + text.If(s.Trials != 0, fmt.Sprintf(" trials %d", s.Trials))
	if s.Metric != "" {
		goal := " minimize "
		if s.Maximize {
			goal = " maximize "
		}
		b += goal + quoteValue(s.Metric)
	}
	b += fmt.Sprintf(" seed %d", cmp.Or(s.Seed, 1))
	b += text.If(s.Method == search.Halving, fmt.Sprintf(" from %d factor %d", cmp.Or(s.First, 1), cmp.Or(s.Factor, 3)))
	return b + text.If(s.Command != "", " command: "+s.Command)
}

// isSearch reports whether a line is an @search line.
func isSearch(l *line) bool {
	word, _ := cutAny(l.text, blanks)
	return word == "@search"
}

// parseSearch parses `@search METHOD trials N [minimize|maximize METRIC] [seed S] [from STEP]
// [factor F] [command: COMMAND]`.
func (p *parser) parseSearch(l *line, from int) {
	if p.t.Search != nil {
		p.wrong.at(l, 0, "there are two searches: keep one @search line, or --search")
		return
	}
	s := &Search{Seed: 1, First: 1, Factor: 3}
	p.t.Search, p.searched = s, l
	head, command, asks := strings.Cut(l.text[from:], "command:")
	s.Command = strings.TrimSpace(command)
	words, ok := p.words(l, l.text[:from+len(head)], from)
	if !ok {
		return
	}
	if len(words) == 0 {
		p.wrong.at(l, from, "the method is missing: %s", searchForm)
		return
	}
	s.Method = words[0].text
	if !slices.Contains(SearchMethods, s.Method) && s.Method != Ask {
		p.wrong.at(l, words[0].offset, "there is no method %s: the methods are %s, and ask", quoteText(s.Method),
			strings.Join(SearchMethods, ", "))
		return
	}
	for i := 1; i < len(words); i += 2 {
		w := words[i]
		if i+1 == len(words) {
			p.wrong.at(l, w.offset, "something must follow %s: %s", quoteText(w.text), searchForm)
			return
		}
		if err := s.set(w.text, words[i+1].text); err != nil {
			p.wrong.at(l, words[i+1].offset, "%v", err)
			return
		}
	}
	if err := s.check(asks); err != nil {
		p.wrong.at(l, 0, "%v", err)
	}
}

// set sets the field that a word of an @search line names.
func (s *Search) set(word, value string) (err error) {
	count := func(n *int, least, most int) {
		if *n, err = strconv.Atoi(value); err != nil || *n < least || *n > most {
			err = fmt.Errorf("%s %s: write a whole number from %d to %d", word, quoteText(value), least, most)
		}
	}
	switch word {
	case "trials":
		count(&s.Trials, 1, maxTrials)
	case "from":
		count(&s.First, 1, 1<<40)
	case "factor":
		count(&s.Factor, 2, 1000)
	case "minimize", "maximize":
		if s.Metric != "" {
			return errors.New("only one metric can be minimized or maximized")
		}
		s.Metric, s.Maximize = value, word == "maximize"
	case "seed":
		if s.Seed, err = strconv.ParseUint(value, 10, 63); err != nil {
			err = fmt.Errorf("%s is not a seed: write a whole number of at least 0", quoteText(value))
		}
	default:
		err = fmt.Errorf("%s is not expected here: %s", quoteText(word), searchForm)
	}
	return err
}

// check returns the error of a search, or nil.
func (s *Search) check(asks bool) error {
	switch {
	case s.Trials == 0:
		return fmt.Errorf("the number of trials is missing: %s", searchForm)
	case s.Metric == "" && (s.Learns() || s.Method == search.Halving):
		return fmt.Errorf("%s learns from results and needs a metric: %s", s.Method, searchForm)
	case asks != (s.Method == Ask) || asks && s.Command == "":
		return errors.New("ask takes a command at the end of the line, and no other method does: " +
			"@search ask trials 100 minimize loss command: ./optimizer")
	}
	return nil
}

// checkSearch adds errors for lines that cannot be combined with a search. The lines were parsed.
func (p *parser) checkSearch() {
	if p.t.Search == nil || len(p.wrong.list) > 0 {
		return
	}
	for _, l := range p.at {
		if word, _ := cutAny(l.text, blanks); slices.Contains([]string{"@where", "@sample", "@zip", "@hardness"},
			word) {
			p.wrong.at(l, 0, "%s and @search do not go together: a search chooses the combinations itself", word)
		}
	}
	switch {
	case len(p.calls) > 1:
		p.wrong.at(p.calls[1], 0, "a search has one command: join several with &&")
	case len(p.t.Params) > 0 && p.t.Search.Trials > maxCoordinates/len(p.t.Params):
		p.wrong.at(p.searched, 0, "%d trials of %d parameters are too many: take fewer", p.t.Search.Trials,
			len(p.t.Params))
	case len(p.t.Params) == 0:
		p.wrong.at(p.searched, 0, "there is no parameter to search: add a line such as [x] -2..2")
	case slices.ContainsFunc(p.t.Params, func(o *Param) bool { return o.Name == p.t.Search.Metric }):
		p.wrong.at(p.searched, 0,
			"%s is a parameter: the metric to minimize or maximize is found in the output", p.t.Search.Metric)
	}
}

// maxChoices bounds the number of values of a parameter of a search that has no continuous range.
const maxChoices = 100_000

// makeSpace sets the space of the search. The values of all parameters are known.
func (p *parser) makeSpace() {
	for _, param := range p.t.Params {
		s := search.Param{Name: param.Name}
		first := param.values.parts[0]
		r, continuous := first.(interval)
		switch {
		case continuous && len(param.values.parts) == 1:
			s.Low, s.High, s.Log = r.low, r.high, r.log
		case slices.ContainsFunc(param.values.parts, func(o part) bool { _, ok := o.(interval); return ok }):
			p.wrong.at(param.line, 0,
				"[%s] has a range and other values: under a search a range without a step stands alone", param.Name)
		case param.Len() > maxChoices:
			p.wrong.at(param.line, 0, "[%s] has more than %d values: leave out the step, and the range is continuous",
				param.Name, maxChoices)
		default:
			for k := range param.Len() {
				s.Values = append(s.Values, param.Value(k))
			}
			s.Ordered = len(param.values.parts) == 1 && isRange(first)
		}
		p.t.Space = append(p.t.Space, s)
	}
}

// Trial returns the job of a point of the space.
func (t *Template) Trial(id jobs.ID, at []float64) *jobs.Spec {
	params := make([]jobs.Param, len(t.Space))
	for d := range params {
		params[d] = jobs.Param{Name: t.Space[d].Name, Value: t.Space[d].Text(at[d])}
	}
	return t.spec(t.commands[0], id, id, params, newTuples(t))
}

// Coordinates returns the point of a job. ok is false if it is not a trial of this search.
func (t *Template) Coordinates(params []jobs.Param) (at []float64, ok bool) {
	if len(params) != len(t.Space) {
		return nil, false
	}
	at = make([]float64, len(params))
	for d := range params {
		if at[d], ok = t.Space[d].Coordinate(params[d].Value); !ok || params[d].Name != t.Space[d].Name {
			return nil, false
		}
	}
	return at, true
}

// Proposer returns the proposer of a search that learns. Commands run in dir.
func (t *Template) Proposer(dir string) search.Proposer {
	if t.Search.Method == Ask {
		return &optimizer{search: t.Search, params: t.Space, dir: dir}
	}
	return search.NewTPE(t.Space, t.Search.Seed)
}

// checkTrial checks the commands of a search with some values, which are numbers or listed texts. Jobs
// checks those of other templates.
func (p *parser) checkTrial() {
	if p.t.Search == nil || p.CheckCommand == nil {
		return
	}
	params := make([]jobs.Param, len(p.t.Params))
	for i, param := range p.t.Params {
		params[i] = jobs.Param{Name: param.Name, Value: param.Value(0)}
	}
	for _, c := range p.t.commands {
		if err := p.CheckCommand(fill(c.text, params, nil)); err != nil {
			p.wrong.add(c.line, 0, "%w", err)
		}
	}
}

// errLearns is what Jobs yields for a search that learns.
var errLearns = errors.New("the trials of this search depend on results: they are not known before it runs")

func (t *Template) yieldTrials(yield func(*jobs.Spec, error) bool) {
	s := t.Search
	if s.Learns() {
		yield(nil, errLearns)
		return
	}
	for k, at := range search.Design(s.Method, s.Trials, len(t.Space), s.Seed) {
		if !yield(t.Trial(jobs.ID(k+1), at), nil) {
			return
		}
	}
}
