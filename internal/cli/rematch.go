package cli

import (
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"dcs-tui/internal/cli/standing"
	"dcs-tui/jobs"
)

// rematch is a jobs file that was changed, beside the run that was made of it: which of
// its jobs the run has, by command, parameters and occurrence (the second of two equal
// ones is the second), and what has to be done.
type rematch struct {
	total     int // jobs in the file
	succeeded int
	open      int       // queued or running
	again     []jobs.ID // over without success: a new round
	fresh     []*jobs.Spec
	gone      []jobs.ID         // not in the file any more
	queued    []jobs.ID         // … of those, what can be cancelled
	changes   []changed         // of queued jobs and those that run again
	ranked    map[int][]jobs.ID // the same: their priorities from now on
	kept      map[string]int
	renamed   string    // former name of the file in the run; "": the name has not changed
	others    []jobs.ID // jobs of other files of the run that are not in this file; they stay
	// otherFiles holds the names of those files.
	otherFiles []string
	running    int // running jobs whose options have changed
	left       int // jobs that the requests left alone, because their state had changed
}

// changed are jobs that get the same change.
type changed struct {
	jobs.Change
	ids []jobs.ID
}

// matchJobs compares the jobs of a file with those of a run.
func matchJobs(t *jobs.Table, specs []*jobs.Spec) *rematch {
	m := &rematch{total: len(specs), ranked: map[int][]jobs.ID{}, kept: map[string]int{}}
	have := map[string][]jobs.ID{}
	for i := range t.Jobs {
		key := matchKey(t.Jobs[i].Spec)
		have[key] = append(have[key], jobs.ID(i+1))
	}
	files := map[string]bool{}
	taken := make([]jobs.ID, len(specs)) // by place in the file
	found := map[jobs.ID]bool{}
	byText := map[string]int{} // index into changes
	for i, s := range specs {
		files[filepath.Base(s.File)] = true
		key := matchKey(s)
		ids := have[key]
		if len(ids) == 0 {
			m.fresh = append(m.fresh, s)
			continue
		}
		id := ids[0]
		have[key], taken[i], found[id] = ids[1:], id, true
		m.match(t.Job(id), id, s, byText)
	}
	m.missing(t, files, found)
	return m
}

// match notes what becomes of a job of the run that is in the file.
func (m *rematch) match(j *jobs.Job, id jobs.ID, s *jobs.Spec, byText map[string]int) {
	if j.State == jobs.Succeeded {
		m.succeeded++
		return
	}
	change, kept := optionsChanged(j.Spec, s)
	for _, key := range kept {
		m.kept[key]++
	}
	// What a person has said on the screen since stays, unless the file says otherwise now.
	if s.Priority != j.Spec.Priority && s.Priority != int(j.Priority) && j.State != jobs.Running {
		m.ranked[s.Priority] = append(m.ranked[s.Priority], id)
	}
	over := j.State.Terminal()
	switch {
	case change.Empty():
	case j.State == jobs.Running:
		m.running++
	default:
		text := change.String()
		k, ok := byText[text]
		if !ok {
			k = len(m.changes)
			byText[text] = k
			m.changes = append(m.changes, changed{Change: change})
		}
		m.changes[k].ids = append(m.changes[k].ids, id)
	}
	switch {
	case !over:
		m.open++
	case change.Empty():
		m.again = append(m.again, id)
	}
}

// rounds returns the jobs that get a new round.
func (m *rematch) rounds(t *jobs.Table) []jobs.ID {
	ids := slices.Clone(m.again)
	for _, c := range m.changes {
		for _, id := range c.ids {
			if t.Job(id).State.Terminal() {
				ids = append(ids, id)
			}
		}
	}
	slices.Sort(ids)
	return ids
}

// missing finds the jobs of these files that the files no longer contain, and the jobs
// of the run's other files, which stay. If the run was made of a single file, that file
// may have been renamed. If it was made of several files, nothing shows which of them
// was renamed.
func (m *rematch) missing(t *jobs.Table, files map[string]bool, found map[jobs.ID]bool) {
	of := map[string]bool{}
	known := false
	for i := range t.Jobs {
		name := filepath.Base(t.Jobs[i].Spec.File)
		of[name] = true
		known = known || files[name]
	}
	if !known && len(of) == 1 {
		files = of
		for name := range of {
			m.renamed = name
		}
	}
	others := map[string]bool{}
	for i := range t.Jobs {
		j, id := &t.Jobs[i], jobs.ID(i+1)
		name := filepath.Base(j.Spec.File)
		switch {
		case found[id]:
			continue
		case !files[name]:
			m.others = append(m.others, id)
			others[name] = true
			continue
		}
		m.gone = append(m.gone, id)
		if j.State == jobs.Queued || j.State == jobs.Running && standing.OpenAttempt(j).State == jobs.AttemptLaunching {
			m.queued = append(m.queued, id) // or handed to a host, and not known to have started
		}
	}
	m.otherFiles = slices.Sorted(maps.Keys(others))
}

// matchKey is what makes two jobs the same to a person.
func matchKey(s *jobs.Spec) string {
	var b strings.Builder
	part := func(text string) {
		b.WriteString(strconv.Itoa(len(text)))
		b.WriteByte(':')
		b.WriteString(text)
	}
	part(s.Command)
	for _, p := range s.Params {
		part(p.Name)
		part(p.Value)
	}
	return b.String()
}

// optionsChanged says what the file asks for otherwise than the run: what can be
// changed, and the keys of what stays as it is.
func optionsChanged(old, now *jobs.Spec) (c jobs.Change, kept []string) {
	if old.Damage != "" {
		return c, nil
	}
	differs(&c.Name, old.Name, now.Name)
	differs(&c.Timeout, old.Timeout, now.Timeout)
	differs(&c.MemBytes, old.MemBytes, now.MemBytes)
	differs(&c.Tries, old.Tries, now.Tries)
	differs(&c.Slots, old.Slots, now.Slots)
	differs(&c.GPUs, old.GPUs, now.GPUs)
	if !slices.Equal(old.Tags, now.Tags) {
		tags := slices.Clone(now.Tags)
		if tags == nil {
			tags = []string{}
		}
		c.Tags = &tags
	}
	for _, o := range []struct {
		key  string
		same bool
	}{
		{"retry_delay", old.RetryDelay == now.RetryDelay || old.RetryDelay != nil && now.RetryDelay != nil && *old.RetryDelay == *now.RetryDelay},
		{"deadline", old.Deadline.Equal(now.Deadline)}, {"est", old.Estimate == now.Estimate},
		{"env", slices.Equal(old.Env, now.Env)}, {"cwd", old.Cwd == now.Cwd}, {"setup", old.Setup == now.Setup},
		{"on_lost", old.OnLost == now.OnLost}, {"hardness", slices.Equal(old.Hardness, now.Hardness)},
	} {
		if !o.same {
			kept = append(kept, o.key)
		}
	}
	return c, kept
}

func differs[T comparable](to **T, old, now T) {
	if old != now {
		*to = &now
	}
}
