package grid

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"dcs-tui/jobs"
)

// Config holds the settings of the parser. The zero value is usable.
type Config struct {
	// Directory of the files and commands that give values; "": the working directory.
	Dir     string
	Limit   int           // maximum number of jobs without a filter; 0: DefaultLimit
	Timeout time.Duration // for each command that gives values; 0: 30 s

	// Again reports that the template was accepted before, perhaps by an older program. Probable
	// mistakes are accepted.
	Again bool

	// Search is an additional @search line, or "".
	Search string

	// Return holds the patterns of the files that every job returns. Those that name a parameter
	// become options of the jobs.
	Return []string

	// CheckCommand returns the error of a command with its values. nil: commands are not checked.
	CheckCommand func(command string) error

	// CheckResult returns the error of an @result line. nil: only its kind is checked.
	CheckResult func(name, from string) error

	// Tests replace these; nil: source.read and runCommand.
	read func(source, context.Context, Config) (texts, error)
	run  func(ctx context.Context, c Config, command string, in io.Reader) ([]byte, error)
}

// DefaultLimit is the maximum number of jobs of a template without a filter or a sample.
const DefaultLimit = 1_000_000

const defaultTimeout = 30 * time.Second

const (
	maxTemplate = 64 << 20 // size of a template, in bytes
	maxPoints   = 1 << 60  // points of the product
)

// Parse parses a template, reads the files, and runs the commands that give values. The end of ctx
// kills such a command. The error has a line for each of up to ten faults, with file, line, and
// column.
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
		return nil, &jobs.ParseError{File: name,
			Err: fmt.Errorf("the template has more than %d MiB: put values into a file and write [name] file: PATH",
				maxTemplate>>20)}
	}
	p := &parser{Config: c, t: &Template{File: name}, known: map[string]int{}, zipped: map[int]*line{}}
	p.wrong.file, p.doubt.file = name, name
	if c.Search != "" {
		p.wrong.firstFlag = bytes.Count(b, []byte("\n")) + 2
		p.doubt.firstFlag = p.wrong.firstFlag
		b = append(b, "\n\n"+c.Search+"\n"...) // the blank line ends a line that continues
	}
	if p.text(string(b)) {
		p.continuous = slices.ContainsFunc(p.all, isSearch)
		p.classifyLines()
		p.parseDirectives()
		p.parseCommands()
		p.checkSearch()
		if len(p.wrong.list) == 0 {
			p.fetchValues(ctx)
		}
		if len(p.wrong.list) == 0 {
			p.product()
			p.warnSharedFiles()
			p.checkTrial()
		}
		if len(p.wrong.list) == 0 {
			p.runComparison(ctx)
		}
	}
	if err := p.wrong.err(); err != nil {
		return nil, err
	}
	p.t.Warnings = p.doubt.sorted()
	p.t.text = p.resolvedText
	p.t.checkCommand = p.CheckCommand
	return p.t, nil
}

// parser parses one template.
type parser struct {
	Config
	t     *Template
	wrong faults
	doubt faults

	all     []*line
	calls   []*line // command lines
	at      []*line // lines that begin with @
	known   map[string]int
	names   []string
	zips    [][]int // groups of zipped parameters
	zipped  map[int]*line
	filters []filter
	sampled *line
	hard    *line // the @hardness line
	unnamed bool  // no command names a parameter

	searched   *line // the @search line
	continuous bool  // there is an @search line, so ranges need no steps
}

// text splits the text into lines. It returns false, after an error, if it is not UTF-8 text.
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

// classifyLines sorts the lines into parameters, which it parses, directives, and commands.
func (p *parser) classifyLines() {
	for _, l := range p.all {
		switch {
		case l.text == "" || l.text[0] == '#':
		case l.text[0] == '@':
			if at, why := jobs.Ambiguous(l.text); why != "" && !p.Again {
				p.wrong.at(l, at, "%s", why)
			}
			if !p.hasStrayBlank(l) {
				p.at = append(p.at, l)
			}
		case p.isParam(l):
			if at, why := jobs.Ambiguous(l.text); why != "" && !p.Again {
				p.wrong.at(l, at, "%s", why)
			}
			p.parseParam(l)
			p.hasStrayBlank(l)
		default:
			if at, why := jobs.Ambiguous(l.text); why != "" {
				p.doubt.at(l, at, "in a command, %s", why)
			}
			p.calls = append(p.calls, l)
		}
		if l.open && l.text != "" && (l.text[0] == '@' || l.text[0] == '[') {
			p.wrong.add(l.no+len(l.raw)-1, 0, `the file ends inside this line: it ends in \`)
		}
	}
}
