package attempts

import (
	"path/filepath"
	"strings"

	"dcs-tui/jobs"
	"dcs-tui/jobs/rundir"
)

// Seen is what the directory shows of one host's attempts.
type Seen struct {
	Finished []Fate           // a whole sentinel that this host wrote
	Claimed  []jobs.AttemptID // a claim of this host, and no whole sentinel of anybody
	Never    []jobs.AttemptID // a tombstone that this host made: it will never start there
	Beat     string           // content of the host's heartbeat file without its newline; "" if none is shown
}

// OfHost returns what is shown below dir, the directory that holds attempts/, of
// attempts that are with one host: what another host wrote does not count. The error
// says why something may have been missed; what was found stands beside it.
func OfHost(d rundir.Disk, dir, run, host string, ids []jobs.AttemptID) (Seen, error) {
	l := list(d, dir)
	s := Seen{Beat: l.beat(host)}
	for _, id := range ids {
		switch f := l.fate(run, id); {
		// Nor does another's tombstone: on a directory that only looks like this host's it
		// would say that a running attempt never started.
		case f.Host != host:
		case f.State == NeverStarts:
			s.Never = append(s.Never, id)
		case f.State == Finished:
			s.Finished = append(s.Finished, f)
		case f.State == Claimed:
			s.Claimed = append(s.Claimed, id)
		}
	}
	return s, l.errs.err()
}

// BeatFile is the file that a host's supervisors rewrite every 10 s while they
// run jobs that last: wall clock in nanoseconds, a blank, the boot id. dir is the
// directory that holds attempts/.
func BeatFile(dir, host string) string { return filepath.Join(dir, "attempts", "beat."+host) }

// maxBeat is how much of a heartbeat file is looked at, in bytes.
const maxBeat = 128

// beat returns the content of a host's heartbeat file. That it changes is what counts.
func (l *listing) beat(host string) string {
	path := BeatFile(l.dir, host)
	if !l.top[filepath.Base(path)] {
		return ""
	}
	return strings.TrimSuffix(string(l.read(path, 0, maxBeat)), "\n")
}
