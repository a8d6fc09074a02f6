package files

import (
	"maps"
	"slices"

	"dcs-tui/internal/text"
	"dcs-tui/jobs"
)

// FetchPlan describes where the outputs of some jobs are.
type FetchPlan struct {
	Hosts []HostPlan // that have files which are not here, by name
	Here  int        // attempts whose files are in the run directory
	// Copied holds those attempts of Here whose files were copied from their hosts, sorted.
	Copied []jobs.AttemptID
	Open   int // attempts that may still run
}

// HostPlan lists attempts whose files only their host has.
type HostPlan struct {
	Host     string
	Attempts []jobs.AttemptID // sorted
}

// Attempts returns the number of attempts whose files are not here.
func (p *FetchPlan) Attempts() (n int) {
	for i := range p.Hosts {
		n += len(p.Hosts[i].Attempts)
	}
	return n
}

// Names returns the names of the hosts.
func (p *FetchPlan) Names() []string {
	return text.Each(p.Hosts, func(h HostPlan) string { return h.Host })
}

// PlanFetch plans for all attempts of the given jobs. apart reports whether a host shares no
// directory with this machine, and here whether the files of an attempt of such a host have
// been copied.
func PlanFetch(t *jobs.Table, ids []jobs.ID, apart func(host string) bool, here func(jobs.AttemptID) bool) *FetchPlan {
	p := &FetchPlan{}
	of := map[string][]jobs.AttemptID{}
	for _, id := range ids {
		j := t.Job(id)
		if j == nil {
			continue
		}
		for _, a := range j.Attempts {
			switch {
			case a.State.Open():
				p.Open++
			case a.Started == 0 && a.Outcome == nil: // it is not known to have started
			case !apart(a.Host):
				p.Here++
			case here(a.ID):
				p.Here++
				p.Copied = append(p.Copied, a.ID)
			default:
				of[a.Host] = append(of[a.Host], a.ID)
			}
		}
	}
	slices.SortFunc(p.Copied, jobs.AttemptID.Compare)
	for _, host := range slices.Sorted(maps.Keys(of)) {
		list := of[host]
		slices.SortFunc(list, jobs.AttemptID.Compare)
		p.Hosts = append(p.Hosts, HostPlan{host, list})
	}
	return p
}
