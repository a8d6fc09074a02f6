package jobs

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Hardness is a component of how hard a job is (Options.Hardness): a number, or a text
// that is neither less nor more than any other.
type Hardness struct {
	Num   float64
	Text  string // if it is no number
	IsNum bool
}

// ParseHardness reads a component.
func ParseHardness(s string) Hardness {
	if x, err := strconv.ParseFloat(s, 64); err == nil && !math.IsNaN(x) {
		return Hardness{Num: x + 0, IsNum: true} // -0 is 0
	}
	return Hardness{Text: s}
}

// AtMost reports whether a is at most as hard as b. It is a partial order: texts compare
// with themselves only.
func (a Hardness) AtMost(b Hardness) bool {
	if a.IsNum && b.IsNum {
		return a.Num <= b.Num
	}
	return a == b
}

// Compare is a total order that includes the partial one: numbers, then texts.
func (a Hardness) Compare(b Hardness) int {
	switch {
	case a.IsNum && b.IsNum:
		return cmp.Compare(a.Num, b.Num)
	case a.IsNum:
		return -1
	case b.IsNum:
		return 1
	}
	return cmp.Compare(a.Text, b.Text)
}

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
