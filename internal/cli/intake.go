package cli

import (
	"context"
	"strconv"
	"strings"
	"time"

	"dcs-tui/internal/cli/console"
	"dcs-tui/jobs"
	"dcs-tui/jobs/rundir"
)

// inputFile lies in the directory of a run whose jobs come one after another, as
// those from standard input do.
// Its first word is an intake, a fault of the input stands behind it. Without it
// a run whose input was cut off would look like one that is done.
const inputFile = "input"

// intake says how far standard input was read.
type intake string

const (
	intakeOpen intake = "open" // more may have been to come
	intakeDone intake = "done" // read to its end and every job submitted, or cancelled with the run
	intakeBad  intake = "bad"  // read no further than a fault in it
)

// input is how far the standard input of a run was read; the zero value is that of
// a run which has none.
type input struct {
	state intake
	fault string // of intakeBad
	again bool   // resume goes on where it stopped
}

// cut says that jobs may be missing from the run.
func (i input) cut() bool { return i.state == intakeOpen || i.state == intakeBad }

// maxFault is how much of a fault is repeated after it was said.
const maxFault = 60

// text says what is missing of the input of a run that had so many jobs.
func (i input) text(t *jobs.Table) string {
	why := "its input was not read to its end"
	if i.state == intakeBad {
		why = "its input was read no further than " + console.ShortenTo(console.CleanLine(i.fault), maxFault)
	}
	if i.again && i.state == intakeOpen {
		return "not all of its jobs were made yet: " + cameText(t) + "; resume makes the rest"
	}
	return why + ": " + cameText(t) + "; feed the rest to a new run"
}

// cameText says how many jobs of a stream are part of the run.
func cameText(t *jobs.Table) string {
	n := len(t.Specs)
	switch n {
	case 0:
		return "no job had come"
	case 1:
		return "1 job had come"
	}
	text := strconv.Itoa(n) + " jobs had come"
	if last := t.Specs[n-1]; last != nil && last.Line > 0 {
		text += ", the last in line " + strconv.Itoa(last.Line)
	}
	return text
}

// writeInput keeps the mark, durably.
func writeInput(run *rundir.Run, i input) error {
	text := string(i.state)
	if i.fault != "" {
		text += " " + console.CleanLine(i.fault)
	}
	return rundir.Replace(run.Disk, run.Path(inputFile), []byte(text+"\n"))
}

// readInput reads the mark. The directory is listed first: over NFS a name that
// another machine made may stay hidden from open.
func readInput(run *rundir.Run) (input, error) {
	names, err := run.Disk.Names(run.Dir)
	if err != nil {
		return input{}, err
	}
	for _, name := range names {
		if name != inputFile {
			continue
		}
		b, err := rundir.ReadFile(run.Disk, run.Path(inputFile))
		if err != nil {
			return input{}, err
		}
		state, fault, _ := strings.Cut(strings.TrimSpace(string(b)), " ")
		again := run.Asked.Options[optionSource] != nil
		switch i := (input{intake(state), fault, again}); i.state {
		case intakeDone, intakeOpen, intakeBad:
			return i, nil
		}
		return input{state: intakeOpen, again: again}, nil // not a word of ours: it proves no end
	}
	return input{}, nil
}

// mark keeps how far the input was read, and tries until it can or the run is over.
// One that cannot be kept says less than was read, never more.
func (s *session) mark(ctx context.Context, i input) {
	s.intake = i
	for said := false; ; said = true {
		err := writeInput(s.run, i)
		if err == nil {
			return
		}
		if !said {
			s.say(func() string {
				return "the file " + inputFile + " of the run cannot be written: " + console.CleanLine(err.Error())
			})
		}
		select {
		case <-ctx.Done():
			_ = writeInput(s.run, i) // was said
			return
		case <-time.After(retryEvery):
		}
	}
}
