package places

import (
	"context"
	"os"
	"strings"
	"sync"

	"dcs-tui/dispatch"
	"dcs-tui/hosts"
	"dcs-tui/jobs"
	"dcs-tui/jobs/attempts"
	"dcs-tui/jobs/results"
	"dcs-tui/jobs/rundir"
)

// Suffix ends the name of a file hosts/<host>.dir: it holds the directory of
// a host that does not share the run directory, for those who look at the run
// when nobody is connected to the host.
const Suffix = ".dir"

// Known remembers where hosts keep their attempts. Note is safe for concurrent
// use.
type Known struct {
	Run  *rundir.Run
	mu   sync.Mutex
	said map[string]bool // hosts that do not share the run directory
	kept map[string]bool // of them, those that are written down
}

// Connector is a hosts.Connector that writes down the place of each host that says hello,
// before anything is started there: whoever dies right afterwards leaves it known.
type Connector struct {
	hosts.Connector
	Known *Known
}

func (c Connector) Connect(ctx context.Context, h *hosts.Host, open *hosts.Open) (hosts.Worker, error) {
	w, err := c.Connector.Connect(ctx, h, open)
	if err == nil {
		c.Known.keep(h.Name, w.Hello())
	}
	return w, err
}

// Note tries again to write down what could not be.
func (p *Known) Note(s *dispatch.Snapshot) {
	for _, h := range s.Hosts {
		p.keep(h.Name, h.Hello)
	}
}

func (p *Known) keep(host string, h *hosts.Hello) {
	if h == nil || h.Shared || h.Error != "" || h.Dir == "" || !p.begin(host) {
		return
	}
	// Nobody waits for mu behind a run directory that hangs. Two who write at once write the same.
	// Without it only the paths shown later lack the host: no reason to stop, or to say more than the journal's trouble.
	err := rundir.Replace(p.Run.Disk, p.Run.Path(rundir.HostsDir, host+Suffix), []byte(host+":"+h.Dir+"\n"))
	p.mu.Lock()
	defer p.mu.Unlock()
	p.kept[host] = p.kept[host] || err == nil
}

// begin notes that a host has said hello, and says whether its place is still to be
// written down.
func (p *Known) begin(host string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.said == nil {
		p.said, p.kept = map[string]bool{}, map[string]bool{}
	}
	p.said[host] = true
	return !p.kept[host]
}

// Names are the hosts that do not share the run directory.
func (p *Known) Names() (names []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for name := range p.said {
		names = append(names, name)
	}
	return names
}

// Read returns what Note has written, by host.
func Read(run *rundir.Run) map[string]string {
	found := map[string]string{}
	names, err := run.Disk.Names(run.Path(rundir.HostsDir))
	if err != nil {
		return found
	}
	for _, name := range names {
		if host, ok := strings.CutSuffix(name, Suffix); ok {
			if b, err := os.ReadFile(run.Path(rundir.HostsDir, name)); err == nil {
				found[host] = strings.TrimSuffix(string(b), "\n")
			}
		}
	}
	return found
}

// Of is what the results of a run have in common, with the places of its hosts and of what
// was brought from them.
func Of(run *rundir.Run) *results.Place {
	return &results.Place{UID: run.UID(), Name: run.Name(), Created: jobs.StampOf(run.Asked.Created), Dir: run.Dir,
		HostDirs: Read(run), Here: attempts.NewHere(run.Disk, run.Dir).Has}
}
