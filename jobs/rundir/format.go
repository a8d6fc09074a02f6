package rundir

import (
	"bytes"
	"fmt"
	"strconv"

	"dcs-tui/internal/text"
	"dcs-tui/jobs"
)

// FormatFile holds the version of jobs.FormatRun that a program must know to use the run, and the
// program that wrote the file: "1 v0.1.0". A run without it is of version 0, which every
// program reads.
const FormatFile = "format"

func formatText(program string) []byte {
	return fmt.Appendf(nil, "%d %s\n", jobs.FormatRun.Version, text.Clean(program, 200))
}

// CheckFormat returns an error if a newer program has made or resumed the run. Nothing else of such
// a run may be read or written.
func (r *Run) CheckFormat() error {
	_, err := r.readFormat()
	return err
}

// UpgradeFormat is CheckFormat for a program that is about to dispatch the run. Older programs
// refuse the run from then on.
func (r *Run) UpgradeFormat(program string) error {
	v, err := r.readFormat()
	if err == nil && v < jobs.FormatRun.Version {
		err = Replace(r.Disk, r.Path(FormatFile), formatText(program))
	}
	return err
}

func (r *Run) readFormat() (version int, err error) {
	b, err := r.ReadListed(FormatFile)
	if b == nil || err != nil {
		return 0, err
	}
	word, program, _ := bytes.Cut(bytes.TrimSpace(b), []byte(" "))
	version, err = strconv.Atoi(string(word))
	switch {
	case err != nil || version < 1:
		return 0, fmt.Errorf("%s: it is damaged; if no newer dcs-tui has used the run, write %q into it",
			r.Path(FormatFile), strconv.Itoa(jobs.FormatRun.Version))
	case version > jobs.FormatRun.Version:
		return 0, &formatError{
			r.Path(FormatFile),
			text.Line(string(program)),
			jobs.VersionError{Format: jobs.FormatRun, Found: version},
		}
	}
	return version, nil
}

// formatError reports a run of a newer program.
type formatError struct {
	path, program string
	cause         jobs.VersionError
}

func (e *formatError) Error() string {
	program := "a newer dcs-tui" + text.If(e.program != "", " ("+e.program+")")
	return fmt.Sprintf("%s: %s uses the run: it has version %d, and this dcs-tui knows version %d: "+
		"use the newer one; nothing was changed",
		e.path, program, e.cause.Found, e.cause.Format.Version)
}

func (e *formatError) Unwrap() error { return &e.cause }
