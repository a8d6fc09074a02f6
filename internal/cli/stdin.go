package cli

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"dcs-tui/internal/cli/console"
	"dcs-tui/internal/cli/exit"
	"dcs-tui/jobs"
)

// readingJobs yields the jobs of standard input.
func readingJobs(in io.Reader) func() (*jobs.Spec, error) {
	scan := jobs.NewScanner(in, "standard input", false, 1)
	return func() (*jobs.Spec, error) {
		spec, err := scan.Next()
		if err == nil && parameterLine.MatchString(spec.Command) {
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
