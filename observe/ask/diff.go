package ask

import (
	"cmp"
	"fmt"
	"hash/maphash"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"dcs-tui/internal/text"
	"dcs-tui/jobs"
	"dcs-tui/jobs/action"
)

// Diff is the difference between a changed jobs file and the run that was created from it. Two jobs
// are the same if their commands, parameters, and occurrences are equal: the second of two equal
// jobs in the file is the second of them in the run. Blanks that mean nothing to a shell make no
// difference.
type Diff struct {
	Total     int // jobs in the file
	Succeeded int
	Open      int       // queued or running
	Rounds    []jobs.ID // finished without success: they run again
	New       []*jobs.Spec
	Gone      []jobs.ID         // not in the file any more
	Queued    []jobs.ID         // of Gone, those that can be canceled
	Changes   []Change          // of queued jobs and jobs that run again
	Ranked    map[int][]jobs.ID // the same jobs, by new priority
	Changed   int               // jobs in Changes and Ranked
	Kept      map[string]int    // number of jobs by option that differs and cannot be changed
	// Former name of the file in the run; "": the name has not changed.
	Renamed string
	// Jobs of other files of the run that are not in this file; they stay.
	Others  map[string][]jobs.ID
	Running int // running jobs whose options have changed

	again []jobs.ID // jobs of Rounds whose options have not changed
	inRun []jobs.ID // job in the run by position in the file; 0: a new job
}

// Change is a change of the options of some jobs.
type Change struct {
	jobs.Change
	IDs []jobs.ID
}

// Compare compares the jobs of a file with those of a run. New jobs are ready to be submitted: they
// are in the queue of their file, and their dependencies are numbers of new jobs.
func Compare(t *jobs.Table, specs []*jobs.Spec) (*Diff, error) {
	m := &Diff{Total: len(specs), Ranked: map[int][]jobs.ID{}, Kept: map[string]int{}, Others: map[string][]jobs.ID{}}
	found := make([]bool, t.NumJobs()+1) // by job
	m.inRun = make([]jobs.ID, len(specs))
	m.match(t, specs, found, func(command string) string { return command })
	m.match(t, specs, found, withoutBlanks)
	files := map[string]bool{}
	byText := map[string]int{} // index in changes
	var rows jobs.RowReader
	for i, s := range specs {
		files[filepath.Base(s.File)] = true
		if id := m.inRun[i]; id != 0 {
			m.addMatch(rows.Job(t, id), id, s, byText)
		} else {
			m.New = append(m.New, s)
		}
	}
	slices.Sort(m.Rounds)
	m.findMissing(t, files, found)
	if err := m.remapDependencies(t); err != nil {
		return nil, err
	}
	m.setQueues(t)
	return m, nil
}

// match finds the jobs of the file that are in the run, of those that were not found before. form
// returns the same text for commands that are the same.
func (m *Diff) match(t *jobs.Table, specs []*jobs.Spec, found []bool, form func(string) string) {
	if !slices.Contains(m.inRun, 0) || !slices.Contains(found[1:], false) {
		return
	}
	seed := maphash.MakeSeed()
	hash := func(s *jobs.Spec) uint64 {
		h := maphash.String(seed, form(s.Command))
		for _, p := range s.Params() {
			h = h*31 + maphash.Comparable(seed, p)
		}
		return h
	}
	// Jobs that were not found before: the first one with each hash, and by job the next one with its hash.
	first, next := map[uint64]jobs.ID{}, make([]jobs.ID, len(found))
	var rows jobs.RowReader
	for id := jobs.ID(t.NumJobs()); id > 0; id-- {
		if !found[id] {
			h := hash(rows.Job(t, id).Spec)
			next[id], first[h] = first[h], id
		}
	}
	for i, s := range specs {
		if m.inRun[i] != 0 {
			continue
		}
		h, before := hash(s), jobs.ID(0)
		for id := first[h]; id != 0; before, id = id, next[id] {
			old := rows.Job(t, id).Spec
			if form(old.Command) != form(s.Command) || !slices.Equal(old.Params(), s.Params()) {
				continue
			}
			m.inRun[i], found[id] = id, true
			if before == 0 {
				first[h] = next[id]
			} else {
				next[before] = next[id]
			}
			break
		}
	}
}

// withoutBlanks returns a command without the blanks at its ends, and with one space for each run of
// other blanks outside of quotes. If only a shell could tell what is quoted, the blanks inside are
// left as they are.
func withoutBlanks(command string) string {
	if strings.Contains(command, "<<") || strings.HasSuffix(strings.TrimRight(command, jobs.Blanks), `\`) {
		return command
	}
	command = strings.Trim(command, jobs.Blanks)
	if strings.ContainsAny(command, "`\n#") || strings.Contains(command, "$(") || strings.Contains(command, "${") ||
		strings.Contains(command, "$'") {
		return command
	}
	var b strings.Builder
	var quote byte
	for i := 0; i < len(command); i++ {
		c := command[i]
		switch {
		case c == '\\' && quote != '\'' && i+1 < len(command):
			b.WriteByte(c)
			i++
			c = command[i]
		case quote == 0 && (c == '\'' || c == '"'):
			quote = c
		case c == quote:
			quote = 0
		case quote == 0 && (c == ' ' || c == '\t'):
			if next := command[i+1]; next == ' ' || next == '\t' {
				continue
			}
			c = ' '
		}
		b.WriteByte(c)
	}
	return b.String()
}

// addMatch adds a job that is in the run and in the file.
func (m *Diff) addMatch(j *jobs.Job, id jobs.ID, s *jobs.Spec, byText map[string]int) {
	if j.State == jobs.Succeeded {
		m.Succeeded++
		return
	}
	change, kept := optionsChanged(j.Spec, s)
	for _, key := range kept {
		m.Kept[key]++
	}
	// A priority that was set on the screen stays, unless the file has changed its own.
	ranked := s.Priority != j.Spec.Priority && s.Priority != int(j.Priority) && j.State != jobs.Running
	if ranked {
		m.Ranked[s.Priority] = append(m.Ranked[s.Priority], id)
	}
	edited := !change.Empty() && j.State != jobs.Running
	if edited {
		text := change.String()
		k, ok := byText[text]
		if !ok {
			k = len(m.Changes)
			byText[text] = k
			m.Changes = append(m.Changes, Change{Change: change})
		}
		m.Changes[k].IDs = append(m.Changes[k].IDs, id)
	} else if !change.Empty() {
		m.Running++
	}
	if edited || ranked {
		m.Changed++
	}
	switch {
	case !j.State.Terminal():
		m.Open++
		return
	case !edited:
		m.again = append(m.again, id)
	}
	m.Rounds = append(m.Rounds, id)
}

// findMissing finds the jobs of these files that the files no longer contain, and the jobs
// of the run's other files, which stay. If the run was made of a single file, that file
// may have been renamed. If it was made of several files, nothing shows which of them
// was renamed.
func (m *Diff) findMissing(t *jobs.Table, files map[string]bool, found []bool) {
	of := map[string]bool{}
	known := false
	for j := range t.Rows() {
		name := filepath.Base(j.Spec.File)
		of[name] = true
		known = known || files[name]
	}
	if !known && len(of) == 1 {
		files = of
		for name := range of {
			m.Renamed = name
		}
	}
	id := jobs.ID(0)
	for j := range t.Rows() {
		id++
		name := filepath.Base(j.Spec.File)
		switch {
		case found[id]:
			continue
		case !files[name]:
			m.Others[name] = append(m.Others[name], id)
			continue
		}
		m.Gone = append(m.Gone, id)
		started := slices.ContainsFunc(j.Open(), func(a *jobs.Attempt) bool { return a.State == jobs.AttemptRunning })
		// Sent to a host, and not known to have started.
		if j.State == jobs.Queued || j.State == jobs.Running && !started {
			m.Queued = append(m.Queued, id)
		}
	}
}

// optionsChanged returns the options that differ between the run and the file: those that can be
// changed, and the keys of those that cannot.
func optionsChanged(old, now *jobs.Spec) (c jobs.Change, kept []string) {
	if old.Damage != "" {
		return c, nil
	}
	setIfChanged(&c.Name, old.Name, now.Name)
	setIfChanged(&c.Timeout, old.Timeout, now.Timeout)
	setIfChanged(&c.MemBytes, old.MemBytes, now.MemBytes)
	setIfChanged(&c.Tries, old.Tries, now.Tries)
	setIfChanged(&c.Slots, old.Slots, now.Slots)
	setIfChanged(&c.GPUs, old.GPUs, now.GPUs)
	if !slices.Equal(old.Tags, now.Tags) {
		c.Tags = new(append([]string{}, now.Tags...))
	}
	was, is := optionTexts(old), optionTexts(now)
	for _, key := range []string{"retry_delay", "tokens", "deadline", "est", "env", "cwd", "setup", "on_lost",
		"hardness", "send", "return"} {
		if was[key] != is[key] {
			kept = append(kept, key)
		}
	}
	return c, kept
}

// optionTexts returns the options of a job by key. The environment is one option.
func optionTexts(s *jobs.Spec) map[string]string {
	texts := map[string]string{}
	for _, o := range s.OptionTexts() {
		if name, ok := strings.CutPrefix(o.Key, "env."); ok {
			texts["env"] += fmt.Sprintf("%s=%q ", name, o.Value)
			continue
		}
		texts[o.Key] = o.Value
	}
	return texts
}

func setIfChanged[T comparable](to **T, old, now T) {
	if old != now {
		*to = new(now)
	}
}

// remapDependencies changes the numbers in after of new jobs to their numbers among the
// new jobs. It drops dependencies on jobs that have succeeded.
func (m *Diff) remapDependencies(t *jobs.Table) error {
	number := map[jobs.ID]jobs.ID{} // in the file, among the new jobs
	for i, s := range m.New {
		number[s.ID] = jobs.ID(i + 1)
	}
	for i, s := range m.New {
		if len(s.After()) == 0 {
			continue
		}
		var after jobs.Dependencies
		for dep, on := range s.After().All() {
			switch {
			case number[dep] > 0:
				after.Add(number[dep], on)
			case !on.IsMet(t.Job(m.inRun[dep-1]).State):
				return text.Errorf("%s:%d: this new job depends on job %d of the file, which has not ended in "+
					"the required state", s.File, s.Line, dep).
					WithAdvice("requeue that job first, then compare again")
			}
		}
		spec := *s
		spec.SetAfter(after)
		m.New[i] = &spec
	}
	return nil
}

// setQueues puts new jobs without a queue into that of the other jobs of their file.
func (m *Diff) setQueues(t *jobs.Table) {
	queue := map[string]string{}
	for j := range t.Rows() { // the first job of a file counts
		if _, known := queue[j.Spec.File]; !known {
			queue[j.Spec.File] = j.Spec.Queue
		}
	}
	jobs.ChangeOptions(m.New, func(o *jobs.Options) { o.Queue = cmp.Or(o.Queue, queue[o.File]) })
}

// Requests returns the requests that update the run, in the order in which they must be sent, so
// that no removed job starts meanwhile. The requests leave alone jobs whose state has changed since
// the comparison: jobs that have succeeded do not run again, and removed jobs that run continue.
func (m *Diff) Requests() []*action.Request {
	var list []*action.Request
	if len(m.Queued) > 0 {
		list = append(list, &action.Request{Do: action.Cancel, Jobs: jobs.RangesOf(m.Queued),
			Spare: action.SpareStarted, Why: "not in the jobs file any more"})
	}
	for _, c := range m.Changes {
		list = append(list, &action.Request{Do: action.Edit, Jobs: jobs.RangesOf(c.IDs), Spare: action.SpareSucceeded,
			Edit: &c.Change})
	}
	if len(m.again) > 0 {
		list = append(list, &action.Request{Do: action.Requeue, Jobs: jobs.RangesOf(m.again),
			Spare: action.SpareSucceeded})
	}
	// Last: finished jobs must be queued again before.
	for _, p := range slices.Sorted(maps.Keys(m.Ranked)) {
		list = append(list, &action.Request{Do: action.Priority, Jobs: jobs.RangesOf(m.Ranked[p]), Priority: p})
	}
	return list
}
