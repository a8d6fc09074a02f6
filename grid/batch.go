package grid

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"dcs-tui/internal/text"
	"dcs-tui/jobs"
)

// Batch holds the jobs of several files or templates.
type Batch struct {
	Specs   []*jobs.Spec // numbered 1, 2, 3 …
	Columns []string     // the @result lines of the templates
	Queues  []string     // of the jobs, in the order of their first jobs
}

// Stdin is the name of standard input among files.
const Stdin = "-"

// parameterLine matches a line with the values of a parameter, which distinguishes a template from
// a list of commands.
var parameterLine = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?m)^[ \t]*\[[A-Za-z0-9_]+\][ \t]+[^ \t\r\n]`)
})

// MaxPeek is the number of bytes that HasParameterLine reads.
const MaxPeek = 1 << 20

// IsTemplate reports whether a file is a template. It returns false for a file that it
// cannot read; the error is reported when the file is parsed.
func IsTemplate(file string) bool {
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
	return HasParameterLine(f)
}

// IsParameterLine reports whether a line gives the values of a parameter.
func IsParameterLine(line string) bool { return parameterLine().MatchString(line) }

// HasParameterLine reports whether the beginning of a text has a line with the values of a
// parameter. If so, it is a template and not a list of commands.
func HasParameterLine(text io.Reader) bool {
	return parameterLine().MatchReader(bufio.NewReaderSize(io.LimitReader(text, MaxPeek), 64<<10))
}

// ReadBatch reads files of jobs and templates. read returns the jobs of a file, numbered from 1,
// and its @result lines. If named is set, the jobs of each file that do not name a queue are put in
// one that is named after the file.
func ReadBatch(files []string, named bool, read func(file string) ([]*jobs.Spec, []string, error)) (*Batch, error) {
	b := &Batch{}
	names := queueNames(files)
	var faults []error
	for i, file := range files {
		specs, columns, err := read(file)
		if err != nil {
			faults = append(faults, err)
			continue
		}
		base := jobs.ID(len(b.Specs))
		jobs.ChangeOptions(specs, func(o *jobs.Options) {
			if named && o.Queue == "" {
				o.Queue = names[i]
			}
		})
		for k, s := range specs {
			s.ID = base + jobs.ID(k+1)
			s.ShiftAfter(base)
		}
		if len(b.Specs) == 0 {
			b.Specs = specs // the only ones of most batches, and perhaps a million
		} else {
			b.Specs = append(b.Specs, specs...)
		}
		if err := b.addColumns(file, columns); err != nil {
			faults = append(faults, err)
		}
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	b.Queues = jobs.QueuesOf(b.Specs)
	return b, nil
}

// addColumns adds the @result lines of a template. Two different ones of the same name are an
// error.
func (b *Batch) addColumns(file string, columns []string) error {
	for _, c := range columns {
		if slices.Contains(b.Columns, c) {
			continue
		}
		name, _, _ := strings.Cut(c, "=")
		for _, had := range b.Columns {
			if other, _, _ := strings.Cut(had, "="); other == name {
				return fmt.Errorf("%s: @result %s is another one than that of a file before it (%s): "+
					"give it another name", file, c, had)
			}
		}
		b.Columns = append(b.Columns, c)
	}
	return nil
}

// queueNames returns the names of queues for files: the base name without its extension, or the
// path if two names would be the same. Standard input has no name.
func queueNames(files []string) []string {
	names := make([]string, len(files))
	count := map[string]int{}
	for i, file := range files {
		if file != Stdin {
			base := filepath.Base(file)
			names[i] = clean(cmp.Or(strings.TrimSuffix(base, filepath.Ext(base)), base))
			count[names[i]]++
		}
	}
	for i, file := range files {
		if count[names[i]] > 1 {
			names[i] = clean(file)
		}
	}
	return names
}

// clean makes the name of a file safe to print.
func clean(s string) string { return text.Clean(strings.ReplaceAll(s, "\n", "; "), 0) }
