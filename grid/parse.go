package grid

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// Config says how a template is read; the zero value is good.
type Config struct {
	Dir        string        // paths and commands that give values are relative to it; "": where we are
	Limit      int           // jobs that a template may have without a filter; 0: DefaultLimit
	Timeout    time.Duration // for each command that gives values; 0: 30 s
	OtherShell bool          // the jobs' shell has quotes of its own: those of commands are not checked

	// CheckResult says what is wrong with an @result line; nil: only its kind is looked at.
	CheckResult func(name, from string) error

	read func(source, context.Context, Config) (texts, error) // in place of source.read, for tests
}

// DefaultLimit is how many jobs a template may have when it does not say itself,
// by a filter or a sample, that there are many to choose from.
const DefaultLimit = 1_000_000

const defaultTimeout = 30 * time.Second

// Bounds of what is read, in bytes, and of the points that can be counted.
const (
	maxTemplate = 64 << 20
	maxPoints   = 1 << 60
)

// Parse reads a template; the name stands in messages. See Config.Parse.
func Parse(r io.Reader, name string) (*Template, error) {
	return Config{}.Parse(context.Background(), r, name)
}

// Parse reads a template, and the files and the output of the commands that it takes
// values from; ctx ends such a command. The error has a line for each of up to ten
// faults, with file, line and column.
func (c Config) Parse(ctx context.Context, r io.Reader, name string) (*Template, error) {
	if c.Limit <= 0 {
		c.Limit = DefaultLimit
	}
	if c.Timeout <= 0 {
		c.Timeout = defaultTimeout
	}
	if c.read == nil {
		c.read = source.read
	}
	b, err := io.ReadAll(io.LimitReader(r, maxTemplate+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if len(b) > maxTemplate {
		return nil, &Fault{File: name, Text: fmt.Sprintf("the template has more than %d MiB: put values into a file and write [name] file: PATH", maxTemplate>>20)}
	}
	p := &parser{Config: c, t: &Template{File: name}, known: map[string]int{}}
	p.wrong.file, p.doubt.file = name, name
	if p.text(string(b)) {
		p.lines()
		p.directives()
		p.commands()
		if len(p.wrong.list) == 0 {
			p.fetch(ctx)
		}
		if len(p.wrong.list) == 0 {
			p.product()
		}
	}
	if err := p.wrong.err(); err != nil {
		return nil, err
	}
	p.t.Warnings = p.doubt.sorted()
	p.t.text = p.frozen()
	return p.t, nil
}

// parser reads one template.
type parser struct {
	Config
	t     *Template
	wrong faults
	doubt faults

	all     []*line
	params  []*line // of t.Params
	sources []*source
	calls   []*line // the commands
	at      []*line // that begin with @
	known   map[string]int
	names   []string
	zips    [][]int // parameters that go together
	zipped  map[int]*line
	filters []filter
	sampled *line
	unnamed bool // no command names a parameter
}

type filter struct {
	line *line
	node *node
}

// text refuses what is no text, and cuts it into lines.
func (p *parser) text(s string) bool {
	switch {
	case strings.HasPrefix(s, "\xff\xfe") || strings.HasPrefix(s, "\xfe\xff"):
		p.wrong.add(1, 1, "this is UTF-16 text: save it as UTF-8")
		return false
	case strings.IndexByte(s, 0) >= 0:
		head := s[:strings.IndexByte(s, 0)]
		p.wrong.add(strings.Count(head, "\n")+1, 0, "this is not a text file: it holds a NUL byte")
		return false
	}
	p.all = splitLines(strings.TrimPrefix(s, "\ufeff"))
	return true
}

// lines tells apart parameters, directives and commands, and reads the former.
func (p *parser) lines() {
	for _, l := range p.all {
		switch {
		case l.text == "" || l.text[0] == '#':
		case l.text[0] == '@':
			p.at = append(p.at, l)
		case p.isParam(l):
			p.param(l)
		default:
			p.calls = append(p.calls, l)
		}
		if l.open && l.text != "" && (l.text[0] == '@' || l.text[0] == '[') {
			p.wrong.add(l.no+len(l.raw)-1, 0, `the file ends inside this line: it ends in \`)
		}
	}
}

// isParam says whether a line gives a parameter's values: [name] and then a blank.
// What looks like one and is wrong is a fault, and counts as one.
func (p *parser) isParam(l *line) bool {
	if l.text[0] != '[' || strings.HasPrefix(l.text, "[[") {
		return false
	}
	first := l.text
	if end := strings.IndexAny(first, blanks); end >= 0 {
		first = first[:end]
	}
	if first == "[" {
		return false // test
	}
	end := strings.IndexByte(first, ']')
	name := first[1:max(end, 1)]
	behind := first[max(end, 0):]
	switch {
	case end < 0:
		p.wrong.at(l, 0, "a parameter's line begins with its name in brackets, [name], but the ] is missing; a name has no blanks or commas, @zip a, b ties two together")
	case (behind == "]:" || behind == "]=") && validName(name):
		p.wrong.at(l, end+1, "a blank must follow [%s], not %s: write [%s] and then the values", name, behind[1:], name)
	case behind != "]" || isReference(first):
		return false // a command that begins with a parameter: [prog]/bin/run
	case !validName(name):
		p.wrong.at(l, 0, "%q cannot be the name of a parameter: write a number, or letters, digits and _ (the job sees it as DCS_PARAM_<name>)", name)
	default:
		return true
	}
	return false
}

// param reads the line of a parameter.
func (p *parser) param(l *line) {
	end := strings.IndexByte(l.text, ']')
	name := l.text[1:end]
	no, column := l.place(0)
	if i, ok := p.known[name]; ok {
		p.wrong.at(l, 0, "[%s] has values already, in line %d; a command that begins with it is written [%s:q] …", name, p.t.Params[i].Line, name)
		return
	}
	param := &Param{Name: name, Line: no, Column: column}
	p.known[name] = len(p.t.Params)
	p.names = append(p.names, name)
	p.t.Params = append(p.t.Params, param)
	p.params = append(p.params, l)
	p.sources = append(p.sources, nil)
	if s, ok := cutSource(l.text, len(l.text)-len(strings.TrimLeft(l.text[end+1:], blanks))); ok {
		if s.text == "" {
			p.wrong.at(l, min(s.offset, len(l.text)), "what gives the values of [%s]? Write [%s] file: PATH or [%s] command: ls *.csv", name, name, name)
		}
		p.sources[len(p.sources)-1] = &s
		return
	}
	words, at, err := splitWords(l.text, end+1)
	if err == nil {
		param.values, at, err = readValues(words, func(w word, format string, args ...any) {
			p.doubt.at(l, w.offset, format, args...)
		})
	}
	switch {
	case err != nil:
		p.wrong.at(l, at, "%v", err)
	case len(words) == 0:
		p.wrong.at(l, end+1, "[%s] has no values: write them behind it, [%s] 0.1, 1, 10", name, name)
	default:
		p.values(param, l)
	}
}

// maxValue keeps NAME=value under what Linux hands to a program, 128 KiB.
const maxValue = 127 << 10

// values looks at the values of a parameter, once they are there.
func (p *parser) values(param *Param, l *line) {
	seen := map[string]bool{}
	for _, part := range param.values.parts {
		list, _ := part.(texts)
		for _, v := range list {
			switch {
			case len(v) > maxValue:
				p.wrong.at(l, 0, "a value of [%s] is longer than %d KiB, more than Linux hands to a program", param.Name, maxValue>>10)
				return
			case seen[v]:
				p.doubt.at(l, 0, "[%s] has the value %s more than once; its jobs will run as often", param.Name, quoteText(v))
				seen = map[string]bool{} // said once
				list = nil
			default:
				seen[v] = true
			}
		}
	}
	param.look()
}

// fetch gets the values that come from files and commands.
func (p *parser) fetch(ctx context.Context) {
	for i, s := range p.sources {
		if s == nil {
			continue
		}
		list, err := p.read(*s, ctx, p.Config)
		if err != nil {
			p.wrong.at(p.params[i], s.offset, "[%s] %v", p.t.Params[i].Name, err)
			continue
		}
		param := p.t.Params[i]
		param.values.add(list)
		p.values(param, p.params[i])
		p.unquoted(i, list)
	}
}

// frozen is the template with the values that came from files and commands written
// into it, so that reading it again gives the same jobs.
func (p *parser) frozen() string {
	from := map[*line]int{}
	for i, s := range p.sources {
		if s != nil {
			from[p.params[i]] = i
		}
	}
	var b strings.Builder
	for _, l := range p.all {
		i, ok := from[l]
		for n, raw := range l.raw {
			if ok {
				raw = ""
			}
			if ok && n == 0 {
				param := p.t.Params[i]
				b.WriteString("[" + param.Name + "]")
				for k := range param.Len() {
					b.WriteString(" " + quoteValue(param.Value(k)))
				}
			}
			writeLine(&b, raw)
		}
	}
	return b.String()
}

// unquoted doubts a reference that makes shell text of what a file or a command gave.
func (p *parser) unquoted(i int, list texts) {
	n := slices.IndexFunc(list, meansSomething)
	if n < 0 {
		return
	}
	for _, l := range p.calls {
		for _, r := range references(l.text) {
			if r.name == p.t.Params[i].Name && r.form == "" && !r.escaped() {
				p.doubt.at(l, r.from, "the value %s of [%s] means something to the shell: write [%s:q] to have it quoted", quoteText(list[n]), r.name, r.name)
				return
			}
		}
	}
}

// product puts the parameters on axes, and checks what needs their values.
func (p *parser) product() {
	t := p.t
	p.makeAxes()
	for _, h := range t.Hardness {
		p.order(h)
	}
	t.filter = make([][]*node, len(t.axes))
	if len(p.filters) > 0 && len(t.axes) == 0 {
		p.wrong.at(p.filters[0].line, 0, "there is no parameter to filter by: add a line such as [C] 0.1, 1, 10")
		return
	}
	if len(p.filters) == 0 {
		t.filter = nil
	}
	for _, f := range p.filters {
		c := checker{t: t, line: f.line, wrong: &p.wrong, doubt: &p.doubt}
		c.whole(f.node)
		for _, n := range f.node.conjuncts() {
			axis := max(0, n.lastAxis(t))
			t.filter[axis] = append(t.filter[axis], n)
		}
	}
	if len(p.wrong.list) > 0 {
		return
	}
	t.points = 1
	for _, n := range t.axes {
		if n > maxPoints/t.points/len(t.commands) {
			p.wrong.add(0, 0, "the product of all values has more than 10^18 jobs: narrow the ranges")
			return
		}
		t.points *= n
	}
	p.draw()
	n, what := t.points, "the product of all values"
	if t.sample != nil {
		n, what = t.sample.n, "the sample"
	}
	if n > p.Limit/len(t.commands) && !t.Filtered() {
		p.wrong.add(0, 0, "%s gives %s jobs, more than %s: take fewer values, keep some with @where, draw some with @sample 1000, or raise --limit",
			what, thousands(n*len(t.commands)), thousands(p.Limit))
	}
}

// makeAxes gives each parameter an axis; zipped ones share that of the first of them.
func (p *parser) makeAxes() {
	together := map[int][]int{}
	for _, z := range p.zips {
		for _, i := range z {
			together[i] = z
		}
	}
	placed := map[int]bool{}
	for i, param := range p.t.Params {
		if placed[i] {
			continue
		}
		axis := len(p.t.axes)
		p.t.axes = append(p.t.axes, param.Len())
		param.axis = axis
		for _, k := range together[i] {
			other := p.t.Params[k]
			placed[k], other.axis = true, axis
			if other.Len() != param.Len() {
				p.wrong.at(p.zipped[k], 0, "@zip needs equally many values: [%s] has %d and [%s] has %d", param.Name, param.Len(), other.Name, other.Len())
			}
		}
	}
}

// draw prepares the sample.
func (p *parser) draw() {
	s := p.t.sample
	if s == nil {
		return
	}
	if s.latin && s.n > p.Limit {
		return // is refused anyway
	}
	if s.n > p.t.points {
		if s.latin {
			p.wrong.at(p.sampled, 0, "@sample %d latin: there are only %d points", s.n, p.t.points)
			return
		}
		p.doubt.at(p.sampled, 0, "@sample %d: there are only %d points; all are taken", s.n, p.t.points)
		s.n = p.t.points
	}
	if s.latin {
		var err error
		if s.table, err = hypercube(p.t.axes, s.n, s.seed); err != nil {
			p.wrong.at(p.sampled, 0, "%v", err)
		}
	}
}

func thousands(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
