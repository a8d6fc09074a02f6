package rundir

import (
	"strings"

	"dcs-tui/jobs"
)

// InputFile exists in a run whose jobs come one after another, such as those from
// standard input. Its first word is an InputState; after InputBad the fault follows.
// Without the file, a run whose input was cut off would look like a finished one.
const InputFile = "input"

// OptionSource is the option in run.toml that says what the jobs that were not made yet
// can be made from.
const OptionSource = "source"

// OptionJobs is the option in run.toml that says how many jobs the files of a run held. A
// run directory with fewer was cut off before anything was started.
const OptionJobs = "stored_jobs" // --jobs is another option

// InputState is how far the input of a run was read.
type InputState string

const (
	InputOpen InputState = "open" // more jobs may have been to come
	InputDone InputState = "done" // read to its end and every job submitted, or canceled with the run
	InputBad  InputState = "bad"  // read as far as a fault in it
)

// Input is how far the input of a run was read. The zero value stands for a run without
// an input.
type Input struct {
	State InputState
	Fault string // of InputBad
	Again bool   // resume continues where it stopped
}

// Cut reports whether jobs may be missing from the run.
func (i Input) Cut() bool { return i.State == InputOpen || i.State == InputBad }

// WriteInput stores durably how far the input was read.
func (r *Run) WriteInput(i Input) error {
	text := string(i.State)
	if i.Fault != "" {
		text += " " + jobs.Clean(strings.ReplaceAll(i.Fault, "\n", "; "), 0)
	}
	return Replace(r.Disk, r.Path(InputFile), []byte(text+"\n"))
}

// ReadInput returns how far the input was read. It lists the directory first: over NFS,
// open may not find a file that another machine has created.
func (r *Run) ReadInput() (Input, error) {
	names, err := r.Disk.Names(r.Dir)
	if err != nil {
		return Input{}, err
	}
	for _, name := range names {
		if name != InputFile {
			continue
		}
		b, err := ReadFile(r.Disk, r.Path(InputFile))
		if err != nil {
			return Input{}, err
		}
		state, fault, _ := strings.Cut(strings.TrimSpace(string(b)), " ")
		again := r.Asked.Options[OptionSource] != nil
		switch i := (Input{InputState(state), fault, again}); i.State {
		case InputDone, InputOpen, InputBad:
			return i, nil
		}
		return Input{State: InputOpen, Again: again}, nil // an unknown state proves no end
	}
	return Input{}, nil
}
