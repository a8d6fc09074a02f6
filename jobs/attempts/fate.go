package attempts

import (
	"bytes"

	"dcs-tui/jobs"
	"dcs-tui/jobs/rundir"
)

// State is the state of an attempt as its files show it.
type State uint8

// The states. Only NeverStarts and Finished are final.
const (
	Nothing State = iota // no status file is listed, which proves nothing
	Claimed              // it was started, or was about to be started
	// There is a status file, but neither a whole claim nor a whole sentinel in it.
	Unreadable
	NeverStarts // a tombstone
	Finished    // a whole sentinel
)

// Fate is what is known of an attempt from its files alone.
type Fate struct {
	Attempt jobs.AttemptID
	State   State
	Claim   Claim  // zero unless a whole claim of this run and attempt is there
	Host    string // according to its sentinel or else its claim; "" if neither is whole
	Damaged bool   // the second block is neither a whole sentinel nor the reserved zeros
	Slot    int    // Finished
	Outcome jobs.Outcome
}

// EachFate calls each for every attempt that has a status file below dir, shard by shard, in order.
// This is enough to rebuild the outcome of a run whose journal is lost. If host is not empty, only
// attempts of that host are reported. If only is not empty, only attempts of these jobs are
// reported: no files of other jobs are opened, and shards without one of these jobs are not listed.
// If a call returns an error, EachFate stops and returns that error. Any other error says why
// attempts may have been missed.
func EachFate(d rundir.Disk, dir, run, host string, only jobs.Ranges, each func(Fate) error) error {
	l := list(d, dir)
	for _, shard := range l.allShards() {
		if len(only) > 0 && !mayHold(only, shard) {
			continue
		}
		for _, id := range l.startedAttempts(shard) {
			if len(only) > 0 && !only.Has(id.Job) {
				continue
			}
			f := l.readFate(run, id)
			if host != "" && f.Host != host {
				continue
			}
			if err := each(f); err != nil {
				return err
			}
		}
		delete(l.shards, shard) // a run may have a thousand of them
	}
	return l.errs.err()
}

// readFate reads the status file of an attempt if it was listed, and the last line of stderr
// of an attempt that has failed.
func (l *listing) readFate(run string, id jobs.AttemptID) Fate {
	if !l.isListed(id, jobs.FileStatus) {
		return Fate{Attempt: id}
	}
	// One byte more, to detect a longer file.
	f := Decode(l.read(jobs.AttemptFile(l.dir, id, jobs.FileStatus), 0, StatusBytes+1), run, id)
	if f.State == Finished && !f.Outcome.OK() && l.isListed(id, jobs.FileErr) {
		f.Outcome.LastLine = LastLine(l.read(jobs.AttemptFile(l.dir, id, jobs.FileErr), -LastBytes, LastBytes))
	}
	return f
}

const (
	LastBytes   = 4096 // maximum number of bytes of stderr that are read
	MaxLastLine = 200  // maximum length of the last line, in bytes
)

// LastLine returns the beginning of the last line that is not blank.
func LastLine(b []byte) string {
	b = bytes.TrimRight(b, " \t\r\n\x00")
	b = b[bytes.LastIndexByte(b, '\n')+1:]
	return string(b[:min(len(b), MaxLastLine)])
}
