package cli

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"dcs-tui/grid"
	"dcs-tui/internal/cli/console"
	"dcs-tui/internal/cli/exit"
	"dcs-tui/jobs"
)

// readBatch reads files of jobs and templates; see grid.ReadBatch.
func (a *app) readBatch(f *gridFlags, files []string, named bool) (*grid.Batch, error) {
	b, err := grid.ReadBatch(files, named, func(file string) ([]*jobs.Spec, []string, error) { return a.readFile(f, file) })
	if err != nil {
		return nil, exit.Usagef("%w", err)
	}
	return b, nil
}

// readFile reads one file. The numbers of its jobs begin at 1.
func (a *app) readFile(f *gridFlags, file string) ([]*jobs.Spec, []string, error) {
	switch {
	case file == stdinFile:
		return a.readStdin(f)
	case grid.IsTemplate(file):
		return a.readTemplate(f, file)
	}
	specs, err := jobs.ParseFile(file, 1)
	return specs, nil, err
}

// readStdin reads standard input: a list of commands, or a template.
func (a *app) readStdin(f *gridFlags) ([]*jobs.Spec, []string, error) {
	r := bufio.NewReaderSize(a.stdin, grid.MaxPeek)
	head, err := r.Peek(grid.MaxPeek)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, nil, fmt.Errorf("standard input: %w", err)
	}
	a.stdin = r
	if grid.HasParameterLine(bytes.NewReader(head)) {
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

// readingLines yields the lines of standard input, one after another. earlier are the jobs
// that the run has.
func readingLines(in io.Reader, earlier []*jobs.Spec) func() (jobs.Line, error) {
	return jobs.NewScanner(in, "standard input", false, 1).Stream(earlier).NextLine
}

// readingJobs yields the jobs of standard input.
func readingJobs(in io.Reader) func() (*jobs.Spec, error) {
	scan := jobs.NewScanner(in, "standard input", false, 1)
	return func() (*jobs.Spec, error) {
		spec, err := scan.Next()
		if err == nil && grid.IsParameterLine(spec.Command) {
			err = exit.Usagef("standard input:%d: this is a template, which dcs-tui grid - reads: %s", spec.Line, console.Shorten(console.CleanLine(spec.Command)))
		}
		if f, ok := in.(*os.File); ok && err != nil && !errors.Is(err, io.EOF) && term.IsTerminal(int(f.Fd())) {
			go io.Copy(io.Discard, f) // what is still being pasted is not for the shell
		}
		return spec, err
	}
}

// flushTyped throws away what was typed on the terminal and not read: the shell
// would carry the rest of the jobs out.
func (a *app) flushTyped() {
	if f, ok := a.stdin.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		_ = unix.IoctlSetInt(int(f.Fd()), unix.TCFLSH, unix.TCIFLUSH) // nothing is lost if it cannot be
	}
}
