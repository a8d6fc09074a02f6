package attempts

import (
	"dcs-tui/jobs"
	"dcs-tui/jobs/rundir"
)

// State is what the files of an attempt say of it.
type State uint8

// The states. Only NeverStarts and Finished are for ever: another look may show
// more than Nothing, Claimed or Unreadable did.
const (
	Nothing     State = iota // neither claim nor sentinel is shown: it proves nothing
	Claimed                  // it was started, or was about to be
	Unreadable               // there is a claim, but it says nothing, and no sentinel does
	NeverStarts              // a tombstone
	Finished                 // a whole sentinel
)

// Fate is what is known of an attempt from its files alone.
type Fate struct {
	Attempt jobs.AttemptID
	State   State
	Claim   Claim  // zero unless a whole claim of this run and attempt is there
	Host    string // whose it is, by its sentinel or else its claim; "" if neither says it
	Slot    int    // Finished
	Outcome jobs.Outcome
}

// Each calls each for every attempt that has a claim or a sentinel below dir, shard by
// shard, in order. That is enough to rebuild the outcome of a run whose journal is
// lost. If host is not empty, only attempts of that host are reported; claims of other
// hosts are not read further. If only is not empty, only attempts of these jobs are
// reported: no files of other jobs are opened, and shards without one of these jobs are
// not listed. Each stops at the first error of each and returns it. Otherwise the error
// says why attempts may have been missed.
func Each(d rundir.Disk, dir, run, host string, only jobs.Ranges, each func(Fate) error) error {
	l := list(d, dir)
	for _, shard := range l.allShards() {
		if len(only) > 0 && !touches(only, shard) {
			continue
		}
		for _, id := range l.with(shard, jobs.FileClaim, jobs.FileExit) {
			if len(only) > 0 && !only.Has(id.Job) {
				continue
			}
			f := Fate{Attempt: id}
			if l.shows(id, jobs.FileClaim) {
				f = l.claim(run, id)
			}
			if host != "" && f.Host != "" && f.Host != host {
				continue
			}
			f = l.withSentinel(run, f)
			if f.State == Nothing || host != "" && f.Host != host {
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

func (l *listing) fate(run string, id jobs.AttemptID) Fate {
	f := Fate{Attempt: id}
	if l.shows(id, jobs.FileClaim) {
		f = l.claim(run, id)
	}
	return l.withSentinel(run, f)
}

// withSentinel adds the outcome, if there is a whole one. It outweighs any claim:
// it is checksummed, and jobs can damage both.
func (l *listing) withSentinel(run string, f Fate) Fate {
	if found, ok := l.sentinel(run, f.Attempt); ok {
		f.State, f.Host, f.Slot, f.Outcome = Finished, found.Host, found.Slot, found.Outcome
	}
	return f
}

// claim reads a claim that was listed. One of another run or attempt is as good
// as none that can be read.
func (l *listing) claim(run string, id jobs.AttemptID) Fate {
	f := Fate{Attempt: id, State: Unreadable}
	c, err := ParseClaim(l.read(jobs.AttemptFile(l.dir, id, jobs.FileClaim), maxClaim, false))
	if err != nil || c.Run != run || c.Attempt != id {
		return f
	}
	f.State, f.Claim, f.Host = Claimed, c, c.Host
	if c.Tombstone {
		f.State = NeverStarts
	}
	return f
}
