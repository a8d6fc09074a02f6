package attempts

import (
	"bytes"

	"dcs-tui/jobs"
)

// Found is an attempt that is over: its whole sentinel is there.
type Found struct {
	Attempt jobs.AttemptID
	Host    string // that wrote the sentinel
	Slot    int
	Outcome jobs.Outcome
}

// sentinel returns how an attempt ended if a whole sentinel of this run is shown.
// Neither a missing nor a damaged one proves anything.
func (l *listing) sentinel(run string, id jobs.AttemptID) (f Found, ok bool) {
	if !l.shows(id, jobs.FileExit) {
		return f, false
	}
	// A byte more, so that a longer file is not taken for a whole one.
	b := l.read(jobs.AttemptFile(l.dir, id, jobs.FileExit), jobs.SentinelBytes+1, false)
	o, host, slot, err := jobs.DecodeSentinel(b, run, id)
	if err != nil {
		return f, false
	}
	if !o.OK() && l.shows(id, jobs.FileErr) {
		o.LastLine = lastLine(l.read(jobs.AttemptFile(l.dir, id, jobs.FileErr), lastBytes, true))
	}
	return Found{id, host, slot, o}, true
}

const (
	lastBytes   = 4096 // of an error output are looked at
	maxLastLine = 200  // bytes of its last line are kept
)

// lastLine returns the beginning of the last line that is not blank.
func lastLine(b []byte) string {
	b = bytes.TrimRight(b, " \t\r\n\x00")
	b = b[bytes.LastIndexByte(b, '\n')+1:]
	return string(b[:min(len(b), maxLastLine)])
}
