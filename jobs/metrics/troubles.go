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

// troubles counts what could not be read, with an example of each kind: the one of
// the lowest job, so that a message does not depend on who was faster.
type troubles struct {
	unread, absent, long, old example
	far                       example             // outputs that only their hosts have
	ref                       string              // how a person names the run, of far
	apart                     example             // files that are seen only there
	hosts                     map[string]struct{} // whose they are
	files                     map[string]*example // that bear the same name for every job
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

func (t *troubles) failed(r *results.Result, err error)    { t.unread.add(r.Job, err.Error()) }
func (t *troubles) missing(r *results.Result, path string) { t.absent.add(r.Job, path) }
func (t *troubles) older(r *results.Result, path string)   { t.old.add(r.Job, path) }
func (t *troubles) cut(r *results.Result)                  { t.long.add(r.Job, "") }

// one notes that a job is said to have written path, which others may be, too.
func (t *troubles) one(r *results.Result, path string) {
	if t.files == nil {
		t.files = map[string]*example{}
	}
	if t.files[path] == nil {
		t.files[path] = &example{}
	}
	t.files[path].add(r.Job, path)
}

func (t *troubles) remote(r *results.Result, runDir string) {
	if t.ref == "" {
		t.ref = (&rundir.Run{Dir: runDir, Asked: &rundir.Asked{Name: r.Run}}).Ref()
	}
	t.far.add(r.Job, "")
	t.host(r.Host)
}

func (t *troubles) elsewhere(r *results.Result) {
	t.apart.add(r.Job, "")
	t.host(r.Host)
}

func (t *troubles) host(name string) {
	if t.hosts == nil {
		t.hosts = map[string]struct{}{}
	}
	t.hosts[name] = struct{}{}
}

func (t *troubles) merge(o *troubles) {
	t.unread.merge(&o.unread)
	t.absent.merge(&o.absent)
	t.long.merge(&o.long)
	t.old.merge(&o.old)
	t.far.merge(&o.far)
	t.ref = cmp.Or(t.ref, o.ref)
	t.apart.merge(&o.apart)
	for name := range o.hosts {
		t.host(name)
	}
	t.files = merged(t.files, o.files)
}

func merged(to, from map[string]*example) map[string]*example {
	for key, e := range from {
		if to == nil {
			to = map[string]*example{}
		}
		to[key] = cmp.Or(to[key], &example{})
		to[key].merge(e)
	}
	return to
}

// maxNamed is how many hosts a sentence names.
const maxNamed = 5

// notes are sentences for people.
func (t *troubles) notes() (notes []string) {
	names := slices.Sorted(maps.Keys(t.hosts))
	if more := len(names) - maxNamed; more > 0 {
		names = append(names[:maxNamed], fmt.Sprintf("%d more", more))
	}
	hosts := strings.Join(names, ", ")
	if e := t.far; e.count > 0 {
		notes = append(notes, fmt.Sprintf("what %s printed is only on %s: the metrics are empty; dcs-tui fetch %s brings it", jobs.Plural(e.count, "job"), hosts, t.ref))
	}
	if e := t.apart; e.count > 0 {
		notes = append(notes, fmt.Sprintf("files that %s wrote are seen only on %s: metrics from them are empty", jobs.Plural(e.count, "job"), hosts))
	}
	for _, path := range slices.Sorted(maps.Keys(t.files)) {
		if e := t.files[path]; e.count > 1 {
			notes = append(notes, fmt.Sprintf("%s are said to have written the one file %s: each shows what stands in it now; [PARAMETER] or {id} in the name tells them apart", jobs.Plural(e.count, "job"), path))
			break // one says it
		}
	}
	if e := t.old; e.count > 0 {
		notes = append(notes, fmt.Sprintf("of %s the file is older than the start of the attempt that counts: another round or job wrote it: %s (job %d)", jobs.Plural(e.count, "job"), e.text, e.job))
	}
	if e := t.absent; e.count > 0 {
		notes = append(notes, fmt.Sprintf("%s wrote no such file, or it is not seen here: %s (job %d)", jobs.Plural(e.count, "job"), e.text, e.job))
	}
	if e := t.long; e.count > 0 {
		notes = append(notes, fmt.Sprintf("only the end of what %s wrote is searched, and a metric is not in it (job %d)", jobs.Plural(e.count, "job"), e.job))
	}
	if e := t.unread; e.count > 0 {
		notes = append(notes, fmt.Sprintf("what %s wrote cannot be read: %s (job %d)", jobs.Plural(e.count, "job"), e.text, e.job))
	}
	return notes
}
