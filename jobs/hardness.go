package jobs

import (
	"fmt"
	"strings"
	"time"
)

// tooHard begins the reason of every job that a timeout has avoided.
const tooHard = "it is at least as hard as job "

// TooHard is the reason of a job that is skipped because another one, which is no
// harder, has timed out after so long (E2).
func TooHard(by *Spec, after time.Duration) string {
	why := fmt.Sprintf("%s%d, which timed out after %s", tooHard, by.ID, after.Round(time.Millisecond))
	if by.Name != "" {
		why += ": " + Clean(by.Name, 80)
	}
	return why
}

// Avoided says that the job was not run, or not to its end, because one that is no
// harder had timed out.
func (j *Job) Avoided() bool { return j.State == Skipped && strings.HasPrefix(j.Reason, tooHard) }
