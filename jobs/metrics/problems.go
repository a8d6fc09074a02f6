package metrics

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"dcs-tui/internal/text"
	"dcs-tui/jobs/results"
	"dcs-tui/jobs/rundir"
)

// The kinds of trouble, in the order of their notes.
const (
	outputOnHostOnly = iota // outputs that only their hosts have
	filesOnHostOnly
	olderThanAttempt
	fileAbsent
	outputCutOff
	unreadable
	numProblemKinds
)

// problemNotes are the formats of the sentences. The arguments are [1] the number of jobs, [2] the
// text and [3] the name of an example job, [4] the hosts, and [5] the name of the run for the
// command line.
var problemNotes = [numProblemKinds]string{
	outputOnHostOnly: "what %[1]s printed is only on %[4]s: the metrics are empty; dcs-tui fetch %[5]s copies it",
	filesOnHostOnly: "files that %[1]s wrote are seen only on %[4]s: metrics from them are empty; " +
		"--return of run copies such files here",
	olderThanAttempt: "of %[1]s the file is older than the start of the attempt that counts: " +
		"another round or job wrote it: %[2]s (%[3]s)",
	fileAbsent:   "%[1]s wrote no such file, or it is not visible here: %[2]s (%[3]s)",
	outputCutOff: "only the end of what %[1]s wrote is searched, and a metric is not in it (%[3]s)",
	unreadable:   "what %[1]s wrote cannot be read: %[2]s (%[3]s)",
}

// problems counts what could not be read, with an example of each kind.
type problems struct {
	of    [numProblemKinds]results.Tally
	ref   string                    // name of the run for the command line; set for outputOnHostOnly
	hosts map[string]struct{}       // of outputOnHostOnly and filesOnHostOnly
	files map[string]*results.Tally // files that have the same name for every job
}

func newProblems() problems {
	return problems{hosts: map[string]struct{}{}, files: map[string]*results.Tally{}}
}

func (t *problems) add(kind int, r *results.Result, text string) { t.of[kind].Add(r.Job, text) }

// addSharedFile records the file of a job whose name does not contain {id} or a parameter, so that
// other jobs may have written it, too.
func (t *problems) addSharedFile(r *results.Result, path string) { t.file(path).Add(r.Job, path) }

func (t *problems) file(path string) *results.Tally {
	if t.files[path] == nil {
		t.files[path] = &results.Tally{}
	}
	return t.files[path]
}

// addElsewhere records an output that only the job's host has.
func (t *problems) addElsewhere(kind int, r *results.Result, runDir string) {
	if t.ref == "" {
		t.ref = (&rundir.Run{Dir: runDir, Settings: &rundir.Settings{Name: r.Run}}).Ref()
	}
	t.add(kind, r, "")
	t.hosts[r.Host] = struct{}{}
}

func (t *problems) merge(o *problems) {
	for kind := range t.of {
		t.of[kind].Merge(&o.of[kind])
	}
	t.ref = cmp.Or(t.ref, o.ref)
	maps.Copy(t.hosts, o.hosts)
	for path, e := range o.files {
		t.file(path).Merge(e)
	}
}

// maxNamed is the maximum number of hosts that a sentence names.
const maxNamed = 5

// notes returns the sentences, for people.
func (t *problems) notes() (notes []string) {
	names := text.List(slices.Sorted(maps.Keys(t.hosts)), maxNamed)
	for kind, e := range t.of {
		if e.Count > 0 {
			notes = append(notes, fmt.Sprintf(problemNotes[kind], text.Plural(e.Count, "job"), e.Text, e.Example(),
				names, t.ref))
		}
		if kind != filesOnHostOnly {
			continue
		}
		for _, path := range slices.Sorted(maps.Keys(t.files)) {
			if e := t.files[path]; e.Count > 1 {
				notes = append(notes, fmt.Sprintf("%s name the same file %s, so each shows its present content; "+
					"put [PARAMETER] or {id} into the name to tell them apart", text.Plural(e.Count, "job"), path))
				break // one example is enough
			}
		}
	}
	return notes
}
