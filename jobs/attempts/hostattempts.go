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
	Machine   string // content of the host's machine file; "" if none is listed
}

// ReadHostAttempts returns the state of attempts of one host. dir is the directory that holds
// attempts/. What another host wrote does not count. Attempts may have been missed if there is an
// error; those that were found are returned with it.
func ReadHostAttempts(d rundir.Disk, dir, run, host string, ids []jobs.AttemptID) (HostAttempts, error) {
	l := list(d, dir)
	s := HostAttempts{Heartbeat: l.readHostFile(HeartbeatFile(dir, host)),
		Machine: l.readHostFile(MachineFile(dir, host))}
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

// MachineFile returns the path of the file with the id of a host's machine, which its helper writes.
// Only who can read the directory that holds attempts/ knows it, besides the dispatcher.
func MachineFile(dir, host string) string { return filepath.Join(dir, "attempts", "machine."+host) }

// maxHostFile is the maximum number of bytes of these files that are read.
const maxHostFile = 128

// readHostFile returns the content of one of these files.
func (l *listing) readHostFile(path string) string {
	if !l.top[filepath.Base(path)] {
		return ""
	}
	return strings.TrimSuffix(string(l.read(path, 0, maxHostFile)), "\n")
}
