package outputs

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"dcs-tui/jobs"
	"dcs-tui/jobs/results"
)

// troubles counts what could not be read, with an example of each kind: the one of
// the lowest job, so that a message does not depend on who was faster.
type troubles struct {
	unread, absent, long, old example
	hosts                     map[string]*example
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

func (t *troubles) remote(r *results.Result) {
	if t.hosts == nil {
		t.hosts = map[string]*example{}
	}
	if t.hosts[r.Host] == nil {
		t.hosts[r.Host] = &example{}
	}
	t.hosts[r.Host].add(r.Job, r.Stdout)
}

func (t *troubles) merge(o *troubles) {
	t.unread.merge(&o.unread)
	t.absent.merge(&o.absent)
	t.long.merge(&o.long)
	t.old.merge(&o.old)
	t.hosts = merged(t.hosts, o.hosts)
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

// notes are sentences for people.
func (t *troubles) notes() (notes []string) {
	for _, host := range slices.Sorted(maps.Keys(t.hosts)) {
		e := t.hosts[host]
		notes = append(notes, fmt.Sprintf("only %s has what %s wrote, such as %s: the figures are empty", host, jobs.Plural(e.count, "job"), e.text))
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
		notes = append(notes, fmt.Sprintf("only the end of what %s wrote is searched, and a figure is not in it (job %d)", jobs.Plural(e.count, "job"), e.job))
	}
	if e := t.unread; e.count > 0 {
		notes = append(notes, fmt.Sprintf("what %s wrote cannot be read: %s (job %d)", jobs.Plural(e.count, "job"), e.text, e.job))
	}
	return notes
}
