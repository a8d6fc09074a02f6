package cli

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"dcs-tui/grid"
	"dcs-tui/internal/cli/console"
	"dcs-tui/internal/cli/exit"
	"dcs-tui/jobs"
)

// batch is what several files of jobs, or templates, give together (K3).
type batch struct {
	specs   []*jobs.Spec // numbered 1, 2, 3 …
	columns []string     // of the templates' @result lines
	queues  []string     // that the jobs are in, in the order in which they come
}

// parameterLine is a line that gives a parameter's values: what tells a template from
// a list of commands, none of which is called [C].
var parameterLine = regexp.MustCompile(`^[ \t]*\[[A-Za-z0-9_]+\][ \t]+[^ \t]`)

// maxPeek is how far, in bytes, a file is looked through for such a line.
const maxPeek = 1 << 20

// isTemplate says whether a file is a template. One that cannot be read is none:
// whoever reads it says why.
func isTemplate(file string) bool {
	if jobs.IsJSONLines(file) {
		return false
	}
	f, err := os.Open(file)
	if err != nil {
		return false
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return false
	}
	return hasParameterLine(f)
}

func hasParameterLine(text io.Reader) bool {
	r := bufio.NewReaderSize(io.LimitReader(text, maxPeek), 64<<10)
	for whole := true; ; {
		line, more, err := r.ReadLine()
		if err != nil {
			return false
		}
		if whole && parameterLine.Match(line) {
			return true
		}
		whole = !more
	}
}

// readBatch reads files of jobs and templates. With named each is a queue of its own,
// named after its file, unless its jobs say otherwise.
func (a *app) readBatch(f *gridFlags, files []string, named bool) (*batch, error) {
	b := &batch{}
	names := queueNames(files)
	var faults []error
	for i, file := range files {
		specs, columns, err := a.readFile(f, file)
		if err != nil {
			faults = append(faults, err)
			continue
		}
		base := jobs.ID(len(b.specs))
		changeOptions(specs, func(o *jobs.Options) {
			if named && o.Queue == "" {
				o.Queue = names[i]
			}
			o.After = slices.Clone(o.After)
			for k := range o.After {
				o.After[k] += base
			}
		})
		for k, s := range specs {
			s.ID = base + jobs.ID(k+1)
		}
		b.specs = append(b.specs, specs...)
		if err := b.addColumns(file, columns); err != nil {
			faults = append(faults, err)
		}
	}
	if len(faults) > 0 {
		return nil, exit.Usagef("%w", errors.Join(faults...))
	}
	b.queues = queuesOf(b.specs)
	return b, nil
}

// addColumns adds the @result lines of a template: several may have the same, but no two
// of a name that say something else.
func (b *batch) addColumns(file string, columns []string) error {
	for _, c := range columns {
		if slices.Contains(b.columns, c) {
			continue
		}
		name, _, _ := strings.Cut(c, "=")
		for _, had := range b.columns {
			if other, _, _ := strings.Cut(had, "="); other == name {
				return fmt.Errorf("%s: @result %s is another one than that of a file before it (%s): give it another name", file, c, had)
			}
		}
		b.columns = append(b.columns, c)
	}
	return nil
}

// readFile reads one of them; its jobs count from 1.
func (a *app) readFile(f *gridFlags, file string) ([]*jobs.Spec, []string, error) {
	switch {
	case file == stdinFile:
		return a.readStdin(f)
	case isTemplate(file):
		return a.readTemplate(f, file)
	}
	specs, err := jobs.ParseFile(file, 1)
	return specs, nil, err
}

// readStdin reads standard input: a list of commands, or a template.
func (a *app) readStdin(f *gridFlags) ([]*jobs.Spec, []string, error) {
	r := bufio.NewReaderSize(a.stdin, maxPeek)
	head, err := r.Peek(maxPeek)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, nil, fmt.Errorf("standard input: %w", err)
	}
	a.stdin = r
	if hasParameterLine(bytes.NewReader(head)) {
		return a.readTemplate(f, stdinFile)
	}
	specs, err := jobs.Parse(a.stdin, "standard input", false, 1)
	return specs, nil, err
}

func (a *app) readTemplate(f *gridFlags, file string) ([]*jobs.Spec, []string, error) {
	t, err := a.template(f, file)
	if err != nil {
		return nil, nil, err
	}
	if t.Most() > grid.DefaultLimit {
		return nil, nil, fmt.Errorf("%s: a template of so many jobs runs alone: dcs-tui grid %s", file, console.ShellWord(file))
	}
	var specs []*jobs.Spec
	for s, err := range t.Jobs() {
		if err != nil {
			return nil, nil, err
		}
		specs = append(specs, s)
	}
	if len(specs) == 0 {
		return nil, nil, noJobs(t, io.EOF)
	}
	return specs, columnsOf(t), nil
}

// queueNames names a queue after each file: its name without what is behind the dot,
// or as it was given where two would be alike.
func queueNames(files []string) []string {
	names := make([]string, len(files))
	count := map[string]int{}
	for i, file := range files {
		if file != stdinFile {
			base := filepath.Base(file)
			names[i] = console.CleanLine(strings.TrimSuffix(base, filepath.Ext(base)))
		}
		if names[i] == "" && file != stdinFile { // .jobs
			names[i] = console.CleanLine(filepath.Base(file))
		}
		count[names[i]]++
	}
	for i, file := range files {
		if count[names[i]] > 1 && file != stdinFile {
			names[i] = console.CleanLine(file)
		}
	}
	return names
}

// changeOptions changes the options of jobs; those that are shared are copied once.
func changeOptions(specs []*jobs.Spec, change func(*jobs.Options)) {
	done := map[*jobs.Options]*jobs.Options{}
	for _, s := range specs {
		o := done[s.Options]
		if o == nil {
			own := *s.Options
			change(&own)
			o = &own
			done[s.Options] = o
		}
		s.Options = o
	}
}

// queuesOf returns the queues of jobs, in the order in which they come.
func queuesOf(specs []*jobs.Spec) []string {
	var names []string
	seen := map[string]bool{}
	var last *jobs.Options
	for _, s := range specs {
		if s.Options == last {
			continue
		}
		if last = s.Options; !seen[s.Queue] {
			seen[s.Queue] = true
			names = append(names, s.Queue)
		}
	}
	return names
}
