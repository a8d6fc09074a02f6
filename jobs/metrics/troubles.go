package metrics

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"dcs-tui/jobs"
	"dcs-tui/jobs/results"
	"dcs-tui/jobs/rundir"
)

// The kinds of troubles, in the order in which they are told.
const (
	onlyThere = iota // outputs that only their hosts have
	filesThere
	older
	absent
	cutOff
	unread
	kindsOfTrouble
)

// troubleNotes are the sentences: of [1] jobs, of which one has the number [3] and the text [2],
// on the hosts [4]; [5] is how a person names the run.
var troubleNotes = [kindsOfTrouble]string{
	onlyThere:  "what %[1]s printed is only on %[4]s: the metrics are empty; dcs-tui fetch %[5]s brings it",
	filesThere: "files that %[1]s wrote are seen only on %[4]s: metrics from them are empty",
	older:      "of %[1]s the file is older than the start of the attempt that counts: another round or job wrote it: %[2]s (job %[3]d)",
	absent:     "%[1]s wrote no such file, or it is not visible here: %[2]s (job %[3]d)",
	cutOff:     "only the end of what %[1]s wrote is searched, and a metric is not in it (job %[3]d)",
	unread:     "what %[1]s wrote cannot be read: %[2]s (job %[3]d)",
}

// troubles counts what could not be read, with an example of each kind: the one of
// the lowest job, so that a message does not depend on who was faster.
type troubles struct {
	of    [kindsOfTrouble]example
	ref   string              // how a person names the run, of onlyThere
	hosts map[string]struct{} // of onlyThere and filesThere
	files map[string]*example // that bear the same name for every job
}

type example struct {
	count int
	job   jobs.ID
	last  jobs.ID // counted last: one job counts once
	text  string
}

func (e *example) add(job jobs.ID, text string) {
	if e.count == 0 || job < e.job {
		e.job, e.text = job, text
	}
	if e.last != job {
		e.count, e.last = e.count+1, job
	}
}

func (e *example) merge(o *example) {
	if e.count == 0 || o.count > 0 && o.job < e.job {
		e.job, e.text = o.job, o.text
	}
	e.count += o.count
}

func (t *troubles) add(kind int, r *results.Result, text string) { t.of[kind].add(r.Job, text) }

// sharedFile records that a job is said to have written path, which others may be, too.
func (t *troubles) sharedFile(r *results.Result, path string) {
	if t.files == nil {
		t.files = map[string]*example{}
	}
	t.files[path] = cmp.Or(t.files[path], &example{})
	t.files[path].add(r.Job, path)
}

// elsewhere records what is only on the host of a job.
func (t *troubles) elsewhere(kind int, r *results.Result, runDir string) {
	if t.hosts == nil {
		t.hosts = map[string]struct{}{}
		t.ref = (&rundir.Run{Dir: runDir, Asked: &rundir.Asked{Name: r.Run}}).Ref()
	}
	t.add(kind, r, "")
	t.hosts[r.Host] = struct{}{}
}

func (t *troubles) merge(o *troubles) {
	for kind := range t.of {
		t.of[kind].merge(&o.of[kind])
	}
	if t.ref = cmp.Or(t.ref, o.ref); t.hosts == nil {
		t.hosts, t.files = map[string]struct{}{}, map[string]*example{}
	}
	maps.Copy(t.hosts, o.hosts)
	for path, e := range o.files {
		t.files[path] = cmp.Or(t.files[path], &example{})
		t.files[path].merge(e)
	}
}

// maxNamed is how many hosts a sentence names.
const maxNamed = 5

// notes are sentences for people.
func (t *troubles) notes() (notes []string) {
	names := slices.Sorted(maps.Keys(t.hosts))
	if more := len(names) - maxNamed; more > 0 {
		names = append(names[:maxNamed], fmt.Sprintf("%d more", more))
	}
	for kind, e := range t.of {
		if e.count > 0 {
			notes = append(notes, fmt.Sprintf(troubleNotes[kind], jobs.Plural(e.count, "job"), e.text, e.job, strings.Join(names, ", "), t.ref))
		}
		if kind != filesThere {
			continue
		}
		for _, path := range slices.Sorted(maps.Keys(t.files)) {
			if e := t.files[path]; e.count > 1 {
				notes = append(notes, fmt.Sprintf("%s name the same file %s, so each shows its present content; put [PARAMETER] or {id} into the name to tell them apart", jobs.Plural(e.count, "job"), path))
				break // one says it
			}
		}
	}
	return notes
}
