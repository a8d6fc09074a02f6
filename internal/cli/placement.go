package cli

import (
	"os"
	"strings"
	"sync"

	"dcs-tui/dispatch"
	"dcs-tui/jobs"
	"dcs-tui/jobs/results"
	"dcs-tui/jobs/rundir"
)

// dirSuffix ends the name of a file hosts/<host>.dir: it holds the directory of
// a host that does not share the run directory, for those who look at the run
// when nobody is connected to the host.
const dirSuffix = ".dir"

// places remembers where hosts keep their attempts. note is safe for concurrent
// use.
type places struct {
	run  *rundir.Run
	mu   sync.Mutex
	said map[string]bool // hosts that do not share the run directory
	kept map[string]bool // of them, those that are written down
}

// note writes down the place of each host that has said hello since.
func (p *places) note(s *dispatch.Snapshot) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, h := range s.Hosts {
		if h.Hello == nil || h.Hello.Shared || p.kept[h.Name] {
			continue
		}
		if p.said == nil {
			p.said, p.kept = map[string]bool{}, map[string]bool{}
		}
		p.said[h.Name] = true
		// Without it only the paths shown later lack the host: no reason to stop, or to say more than the journal's trouble.
		p.kept[h.Name] = rundir.Replace(p.run.Disk, p.run.Path(rundir.HostsDir, h.Name+dirSuffix), []byte(h.Name+":"+h.Hello.Dir+"\n")) == nil
	}
}

// readPlaces returns what note has written, by host.
func readPlaces(run *rundir.Run) map[string]string {
	found := map[string]string{}
	names, err := run.Disk.Names(run.Path(rundir.HostsDir))
	if err != nil {
		return found
	}
	for _, name := range names {
		if host, ok := strings.CutSuffix(name, dirSuffix); ok {
			if b, err := os.ReadFile(run.Path(rundir.HostsDir, name)); err == nil {
				found[host] = strings.TrimSuffix(string(b), "\n")
			}
		}
	}
	return found
}

// resultOf makes the result of a terminal job with paths that are right for the
// host it ran on.
func resultOf(run *rundir.Run, places map[string]string, j *jobs.Job) results.Result {
	dir := run.Dir
	if a := results.Counted(j); a != nil && places[a.Host] != "" {
		dir = places[a.Host]
	}
	return results.FromJob(run.UID(), run.Name(), jobs.StampOf(run.Asked.Created), dir, j)
}
