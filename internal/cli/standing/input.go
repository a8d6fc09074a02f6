package standing

import (
	"strconv"
	"strings"

	"dcs-tui/internal/cli/console"
	"dcs-tui/jobs"
	"dcs-tui/jobs/rundir"
)

// InputFile lies in the directory of a run whose jobs come one after another, as
// those from standard input do.
// Its first word is an InputState, a fault of the input stands behind it. Without it
// a run whose input was cut off would look like one that is done.
const InputFile = "input"

// InputState says how far standard input was read.
type InputState string

const (
	InputOpen InputState = "open" // more may have been to come
	InputDone InputState = "done" // read to its end and every job submitted, or cancelled with the run
	InputBad  InputState = "bad"  // read no further than a fault in it
)

// Input is how far the standard input of a run was read; the zero value is that of
// a run which has none.
type Input struct {
	State InputState
	Fault string // of InputBad
	Again bool   // resume goes on where it stopped
}

// Cut says that jobs may be missing from the run.
func (i Input) Cut() bool { return i.State == InputOpen || i.State == InputBad }

// MaxFault is how much of a fault is repeated after it was said.
const MaxFault = 60

// Text says what is missing of the input of a run that had so many jobs.
func (i Input) Text(t *jobs.Table) string {
	why := "its input was not read to its end"
	if i.State == InputBad {
		why = "its input was read no further than " + console.ShortenTo(console.CleanLine(i.Fault), MaxFault)
	}
	if i.Again && i.State == InputOpen {
		return "not all of its jobs were made yet: " + Came(t) + "; resume makes the rest"
	}
	return why + ": " + Came(t) + "; feed the rest to a new run"
}

// Came says how many jobs of a stream are part of the run.
func Came(t *jobs.Table) string {
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

// WriteInput keeps the mark, durably.
func WriteInput(run *rundir.Run, i Input) error {
	text := string(i.State)
	if i.Fault != "" {
		text += " " + console.CleanLine(i.Fault)
	}
	return rundir.Replace(run.Disk, run.Path(InputFile), []byte(text+"\n"))
}

// ReadInput reads the mark. The directory is listed first: over NFS a name that
// another machine made may stay hidden from open.
func ReadInput(run *rundir.Run) (Input, error) {
	names, err := run.Disk.Names(run.Dir)
	if err != nil {
		return Input{}, err
	}
	for _, name := range names {
		if name != InputFile {
			continue
		}
		b, err := rundir.ReadFile(run.Disk, run.Path(InputFile))
		if err != nil {
			return Input{}, err
		}
		state, fault, _ := strings.Cut(strings.TrimSpace(string(b)), " ")
		again := run.Asked.Options[OptionSource] != nil
		switch i := (Input{InputState(state), fault, again}); i.State {
		case InputDone, InputOpen, InputBad:
			return i, nil
		}
		return Input{State: InputOpen, Again: again}, nil // not a word of ours: it proves no end
	}
	return Input{}, nil
}

// OptionSource names in run.toml what the jobs that were not made yet can be made from.
const OptionSource = "source"
