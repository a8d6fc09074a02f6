package attempts

import (
	"dcs-tui/jobs"
	"dcs-tui/jobs/rundir"
)

// Of returns what is known about one attempt.
func Of(d rundir.Disk, dir, run string, id jobs.AttemptID) (Fate, error) {
	l := list(d, dir)
	return l.fate(run, id), l.errs.err()
}

// Look returns those of the attempts that have a complete sentinel.
func Look(d rundir.Disk, dir, run string, ids []jobs.AttemptID) ([]Fate, error) {
	l := list(d, dir)
	var out []Fate
	for _, id := range ids {
		if f := l.fate(run, id); f.State == Finished {
			out = append(out, f)
		}
	}
	return out, l.errs.err()
}

// Beat returns the content of a host's heartbeat file.
func Beat(d rundir.Disk, dir, host string) (string, error) {
	l := list(d, dir)
	return l.beat(host), l.errs.err()
}
