package jobs

import "fmt"

// JobState is where a job stands. The zero value is Queued.
type JobState uint8

// The job states. Queued and Running are open; the others are terminal.
const (
	Queued JobState = iota
	Running
	Succeeded
	Failed
	TimedOut
	Cancelled
	Skipped
)

var jobStateNames = [...]string{"queued", "running", "succeeded", "failed", "timed_out", "cancelled", "skipped"}

// String returns the word used in journals, JSON and on the screen.
func (s JobState) String() string { return nameOf(jobStateNames[:], int(s)) }

// Terminal says whether the round is over.
func (s JobState) Terminal() bool { return s >= Succeeded }

// MarshalText writes the word.
func (s JobState) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads the word.
func (s *JobState) UnmarshalText(b []byte) error {
	i, err := indexOf(jobStateNames[:], string(b), "job state")
	*s = JobState(i)
	return err
}

// AttemptState is where one execution stands.
type AttemptState uint8

// The attempt states. Launching means handed (or about to be handed) to a host:
// it may be buffered there, or may never have arrived.
const (
	AttemptLaunching AttemptState = iota
	AttemptRunning
	AttemptExited     // over, with a known outcome
	AttemptLost       // given up or proved dead without an outcome
	AttemptSuperseded // never started, withdrawn, or another attempt's result was accepted
	AttemptCancelled  // ended because a person asked
)

var attemptStateNames = [...]string{"launching", "running", "exited", "lost", "superseded", "cancelled"}

// String returns the word used in journals, JSON and on the screen.
func (s AttemptState) String() string { return nameOf(attemptStateNames[:], int(s)) }

// Open says whether the attempt may still be alive on a host.
func (s AttemptState) Open() bool { return s <= AttemptRunning }

// MarshalText writes the word.
func (s AttemptState) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads the word.
func (s *AttemptState) UnmarshalText(b []byte) error {
	i, err := indexOf(attemptStateNames[:], string(b), "attempt state")
	*s = AttemptState(i)
	return err
}

func nameOf(names []string, i int) string {
	if i < len(names) {
		return names[i]
	}
	return fmt.Sprintf("state(%d)", i)
}

func indexOf(names []string, word, what string) (int, error) {
	for i, n := range names {
		if n == word {
			return i, nil
		}
	}
	return 0, fmt.Errorf("unknown %s %q", what, word)
}
