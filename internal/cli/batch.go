package cli

import (
	"bufio"
	"bytes"
	"cmp"
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

// batch holds the jobs of several files or templates.
type batch struct {
	specs   []*jobs.Spec // numbered 1, 2, 3 …
	columns []string     // the @result lines of the templates
	queues  []string     // of the jobs, in the order of their first jobs
}

// parameterLine matches a line with the values of a parameter. It tells a template from
// a list of commands.
var parameterLine = regexp.MustCompile(`(?m)^[ \t]*\[[A-Za-z0-9_]+\][ \t]+[^ \t\r\n]`)

// maxPeek is the number of bytes that are searched for such a line.
const maxPeek = 1 << 20

// isTemplate reports whether a file is a template. It returns false for a file that it
// cannot read; the error is reported when the file is parsed.
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
	return parameterLine.MatchReader(bufio.NewReaderSize(io.LimitReader(text, maxPeek), 64<<10))
}

// readBatch reads files of jobs and templates. If named is set, the jobs of each file
// without a queue of their own are in a queue that is named after the file.
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
		jobs.ChangeOptions(specs, func(o *jobs.Options) {
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
	b.queues = jobs.QueuesOf(b.specs)
	return b, nil
}

// addColumns adds the @result lines of a template. It refuses two different ones of the
// same name.
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

// readFile reads one file. The numbers of its jobs begin at 1.
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
	specs, err := allJobs(t)
	return specs, columnsOf(t), err
}

// queueNames returns the names of queues for files: the base name without its extension,
// or the path where two names would be the same. Standard input has no name.
func queueNames(files []string) []string {
	names := make([]string, len(files))
	count := map[string]int{}
	for i, file := range files {
		if file != stdinFile {
			base := filepath.Base(file)
			names[i] = console.CleanLine(cmp.Or(strings.TrimSuffix(base, filepath.Ext(base)), base))
			count[names[i]]++
		}
	}
	for i, file := range files {
		if count[names[i]] > 1 {
			names[i] = console.CleanLine(file)
		}
	}
	return names
}
