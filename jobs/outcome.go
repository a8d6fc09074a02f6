package jobs

import "time"

// Stamp is an instant: nanoseconds since the Unix epoch, 0 when unknown. It is
// half the size of a time.Time and compares exactly after a round trip.
type Stamp int64

// StampOf converts t; the zero time gives 0.
func StampOf(t time.Time) Stamp {
	if t.IsZero() {
		return 0
	}
	return Stamp(t.UnixNano())
}

// Time converts back; 0 gives the zero time.
func (s Stamp) Time() time.Time {
	if s == 0 {
		return time.Time{}
	}
	return time.Unix(0, int64(s))
}

// Sub returns s - t.
func (s Stamp) Sub(t Stamp) time.Duration { return time.Duration(s - t) }

// Outcome is how one execution ended, as its supervisor saw it: exact exit or
// signal, times of the host's wall clock, and what it used (X4).
type Outcome struct {
	Exit         int           `json:"exit"`             // meaningful when Signal is ""
	Signal       string        `json:"signal,omitempty"` // "SIGKILL"; "" when it exited by itself
	Started      Stamp         `json:"started"`
	Ended        Stamp         `json:"ended"`
	CPU          time.Duration `json:"cpu_ns,omitempty"`        // user and system, the job and the children it waited for
	Suspended    time.Duration `json:"suspended_ns,omitempty"`  // for how long we had suspended it, because an owner of its host wanted that
	MaxRSSBytes  int64         `json:"max_rss,omitempty"`       // of the largest process; at most MemoryFloor: see there
	TimedOut     bool          `json:"timed_out,omitempty"`     // we ended it because its timeout had passed
	Stopped      bool          `json:"stopped,omitempty"`       // we ended it because the dispatcher asked
	DiskFull     bool          `json:"disk_full,omitempty"`     // it failed, and the disk of its files or of its directory was full: at first that uses up no try
	Memory       string        `json:"memory,omitempty"`        // MemoryLimit or OutOfMemory; "": not ended for its memory
	Unreturned   bool          `json:"unreturned,omitempty"`    // it made no file that it returns, or one could not be brought here; Error says which
	Files        int           `json:"files,omitempty"`         // how many files it returns
	LeftChildren int           `json:"left_children,omitempty"` // descendants alive when its shell had exited
	Error        string        `json:"error,omitempty"`         // it could not be started (cwd missing, shell missing …)
	LastLine     string        `json:"last_line,omitempty"`     // the last line of stderr of a job that failed, at most 200 bytes, unsanitised
}

// Why a job was ended for its memory (Outcome.Memory).
const (
	MemoryLimit = "limit" // it used more than it asked for (Options.MemBytes); MaxRSSBytes is then of all its processes
	OutOfMemory = "oom"   // the kernel ended it because the machine had no memory left
)

// MemoryFloor is a size that Outcome.MaxRSSBytes does not go below by much, however small
// the job: the kernel begins to count a process at the size that our supervisor had when
// it started it, 12 to 15 MB as seen. A value up to it says only that the job needed
// no more, and is to be shown as "<16M".
const MemoryFloor = 16 << 20

// OK says whether the command itself succeeded.
func (o *Outcome) OK() bool {
	return o.Exit == 0 && o.Signal == "" && o.Error == "" && !o.TimedOut && !o.Stopped && o.Memory == ""
}

// Elapsed returns the run time on the host's clock, less the time that it was suspended. It is
// never negative.
func (o *Outcome) Elapsed() time.Duration { return max(0, o.Ended.Sub(o.Started)-o.Suspended) }
