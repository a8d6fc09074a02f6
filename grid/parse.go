package grid

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// Config describes how a template is read; the zero value is good.
type Config struct {
	Dir        string        // paths and commands that give values are relative to it; "": where we are
	Limit      int           // jobs that a template may have without a filter; 0: DefaultLimit
	Timeout    time.Duration // for each command that gives values; 0: 30 s
	OtherShell bool          // the jobs' shell has quotes of its own: those of commands are not checked

	// Again reports whether the template was accepted once, perhaps by an older program: what is
	// only probably a slip is not refused any more.
	Again bool

	// Search is a further @search line; "": there is none.
	Search string

	// CheckResult returns what is wrong with an @result line; nil: only its kind is looked at.
	CheckResult func(name, from string) error

	// In place of source.read and runCommand, for tests.
	read func(source, context.Context, Config) (texts, error)
	run  func(ctx context.Context, c Config, command string, in io.Reader) ([]byte, error)
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
	if c.run == nil {
		c.run = runCommand
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
	if c.Search != "" {
		b = append(b, "\n\n"+c.Search+"\n"...) // the blank line ends a line that continues
	}
	if p.text(string(b)) {
		p.continuous = slices.ContainsFunc(p.all, isSearch)
		p.lines()
		p.directives()
		p.commands()
		p.checkSearch()
		if len(p.wrong.list) == 0 {
			p.fetch(ctx)
		}
		if len(p.wrong.list) == 0 {
			p.product()
			p.sharedFiles()
		}
		if len(p.wrong.list) == 0 {
			p.compare(ctx)
		}
	}
	if err := p.wrong.err(); err != nil {
		return nil, err
	}
	p.t.Warnings = p.doubt.sorted()
	p.t.text = p.frozen
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
	hard    *line // @hardness
	unnamed bool  // no command names a parameter

	searched   *line // @search
	continuous bool  // there is one, so ranges need no steps
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
			if !p.strayBlank(l) {
				p.at = append(p.at, l)
			}
		case p.isParam(l):
			p.param(l)
			p.strayBlank(l)
		default:
			p.calls = append(p.calls, l)
		}
		if l.open && l.text != "" && (l.text[0] == '@' || l.text[0] == '[') {
			p.wrong.add(l.no+len(l.raw)-1, 0, `the file ends inside this line: it ends in \`)
		}
	}
}
