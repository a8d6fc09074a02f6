package results

import "dcs-tui/jobs"

// Place is what the results of a run have in common.
type Place struct {
	UID, Name string
	Created   jobs.Stamp
	Dir       string            // the run directory
	HostDirs  map[string]string // of hosts that do not share it, where their attempts live: host:path
	// Here says of an attempt of such a host that its files have been brought into the run
	// directory; nil: of none.
	Here func(jobs.AttemptID) bool
}

// FilesDir returns the directory that holds attempts/ of an attempt, and whether its host
// keeps its files to itself.
func (p *Place) FilesDir(a *jobs.Attempt) (dir string, apart bool) {
	there := p.HostDirs[a.Host]
	if there == "" || p.Here != nil && p.Here(a.ID) {
		return p.Dir, there != ""
	}
	return there, true
}

// Result makes the result of a terminal job, with paths that are right for the host
// that it ran on.
func (p *Place) Result(j *jobs.Job) Result {
	dir, apart := p.Dir, false
	if a := Counted(j); a != nil {
		dir, apart = p.FilesDir(a)
	}
	r := FromJob(p.UID, p.Name, p.Created, dir, j)
	r.Apart = apart
	return r
}

// Since returns the results with a number above after, in the order of the jobs: all of
// them with 0. Whoever keeps a table of results asks for those that are new, and may
// keep them: they share nothing with t that changes. A job that was requeued has none
// until it is over again, see Unfinished.
func (p *Place) Since(t *jobs.Table, after int64) []Result {
	var list []Result
	for i := range t.Jobs {
		if j := &t.Jobs[i]; j.State.Terminal() && j.Seq > after {
			list = append(list, p.Result(j))
		}
	}
	return list
}

// Unfinished returns the jobs that are not over as results that say nothing yet: what
// they are, and where they run, or may.
func (p *Place) Unfinished(t *jobs.Table) []Result {
	var list []Result
	for i := range t.Jobs {
		j := &t.Jobs[i]
		if j.State.Terminal() {
			continue
		}
		r := Result{Run: p.Name, Job: j.Spec.ID, Round: int(j.Round), Name: j.Spec.Name, Command: j.Spec.Command,
			Params: j.Spec.Params, State: j.State, Attempts: j.Ran(), Failures: int(j.Failures), Created: p.Created}
		if j.Spec.Options != nil {
			r.Queue = j.Spec.Queue
		}
		for _, a := range j.Open() {
			if j.State != jobs.Running {
				break // an attempt of an earlier round
			}
			if r.Host == "" || a.State == jobs.AttemptRunning {
				r.Host, r.Slot = a.Host, int(a.Slot)
			}
		}
		list = append(list, r)
	}
	return list
}
