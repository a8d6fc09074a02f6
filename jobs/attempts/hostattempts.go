package attempts

import (
	"path/filepath"
	"strings"

	"dcs-tui/jobs"
	"dcs-tui/jobs/rundir"
)

// HostAttempts is the state of the attempts of one host as the directory shows it.
type HostAttempts struct {
	Finished []Fate           // with a whole sentinel of this host
	Claimed  []jobs.AttemptID // with a claim of this host, and no whole sentinel
	Never    []jobs.AttemptID // with a tombstone of this host: they will never start there
	// Content of the host's heartbeat file without its newline; "" if none is listed.
	Heartbeat string
}

// ReadHostAttempts returns the state of attempts of one host. dir is the directory that holds
// attempts/. What another host wrote does not count. Attempts may have been missed if there is an
// error; those that were found are returned with it.
func ReadHostAttempts(d rundir.Disk, dir, run, host string, ids []jobs.AttemptID) (HostAttempts, error) {
	l := list(d, dir)
	s := HostAttempts{Heartbeat: l.readHeartbeat(host)}
	for _, id := range ids {
		switch f := l.readFate(run, id); {
		// Nor does a tombstone of another host: in a directory that only looks like this
		// host's, it would mean that a running attempt never started.
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

// HeartbeatFile returns the path of the file that a host's supervisors rewrite every 10 s while
// they run jobs. It holds the wall clock in nanoseconds, a blank, and the boot id. dir is the
// directory that holds attempts/.
func HeartbeatFile(dir, host string) string { return filepath.Join(dir, "attempts", "heartbeat."+host) }

// maxHeartbeat is the maximum number of bytes of a heartbeat file that are read.
const maxHeartbeat = 128

// readHeartbeat returns the content of a host's heartbeat file. Callers only check whether it
// changes.
func (l *listing) readHeartbeat(host string) string {
	path := HeartbeatFile(l.dir, host)
	if !l.top[filepath.Base(path)] {
		return ""
	}
	return strings.TrimSuffix(string(l.read(path, 0, maxHeartbeat)), "\n")
}
