package outputs

import (
	"fmt"
	"slices"
	"strings"
	"syscall"

	"dcs-tui/jobs"
	"dcs-tui/jobs/results"
	"dcs-tui/jobs/results/column"
)

const (
	maxSamples = 5    // outputs that are looked at for a hint
	maxNames   = 10   // that it tells
	mostNames  = 1000 // that it looks at
)

// Hints says of each column that was found in no output what was seen instead, a sentence
// each, not cleaned: most such are names that the jobs write otherwise, or elsewhere. A
// few outputs are looked at. list and values are those of Read.
func (r *Reader) Hints(list []results.Result, values [][]string) (hints []string) {
	var empty []*column.Column
	for k, c := range r.columns {
		if c.File == "" && !slices.ContainsFunc(values, func(v []string) bool { return k < len(v) && v[k] != "" }) {
			empty = append(empty, c)
		}
	}
	if len(empty) == 0 {
		return nil
	}
	s := r.sample(list, values)
	if s.outputs == 0 {
		return nil
	}
	for _, c := range empty {
		hints = append(hints, s.hint(c))
	}
	return hints
}

// samples are the ends of a few outputs, and what has a name in them.
type samples struct {
	outputs     int
	names       []string
	errors      []*column.Text // of standard error
	errorsOf    []jobs.ID
	errorsNames []string
}

// sample looks at outputs that were searched, those of jobs that succeeded first.
func (r *Reader) sample(list []results.Result, values [][]string) *samples {
	s := &samples{}
	seen := &names{disk: r.disk}
	end := func(path string) *column.Text {
		if shown, err := seen.shows(path); err != nil || !shown {
			return nil
		}
		f, err := openFile(r.disk, path, syscall.O_NOFOLLOW)
		if err != nil {
			return nil // Read has told
		}
		defer f.Close() // it was only read
		var buf []byte
		data, err := f.end(&buf, firstRead)
		if err != nil {
			return nil
		}
		return column.NewText(data, int64(len(data)) == f.size)
	}
	add := func(to *[]string, t *column.Text) {
		for _, name := range column.Names(t) {
			if len(*to) < mostNames && !slices.Contains(*to, name) {
				*to = append(*to, name)
			}
		}
	}
	for _, succeeded := range []bool{true, false} {
		for i := 0; i < len(list) && s.outputs < maxSamples; i++ {
			res := &list[i]
			if (res.State == jobs.Succeeded) != succeeded || i >= len(values) || values[i] == nil || r.remote(res) {
				continue
			}
			out := end(res.Stdout)
			if out == nil {
				continue
			}
			s.outputs++
			add(&s.names, out)
			if err := end(res.Stderr); err != nil {
				s.errors, s.errorsOf = append(s.errors, err), append(s.errorsOf, res.Job)
				add(&s.errorsNames, err)
			}
		}
	}
	return s
}

// hint says what was seen in place of a column.
func (s *samples) hint(c *column.Column) string {
	text := "no job printed " + c.Wants()
	for i, t := range s.errors {
		if _, ok := c.Find(t); ok {
			return text + fmt.Sprintf("; it stands in the standard error (job %d), which is not searched: 2>&1 in the command adds it", s.errorsOf[i])
		}
	}
	where := ""
	like := otherCapitals(c.Key(), s.names)
	if like == "" {
		if like = otherCapitals(c.Key(), s.errorsNames); like != "" {
			where = " in the standard error"
		}
	}
	if like != "" {
		text += fmt.Sprintf("; there is %s%s, in other capitals: %s=key:%s", like, where, c.Name, like)
	}
	list, more := s.names, ""
	if n := len(list); n > maxNames {
		list, more = list[:maxNames], fmt.Sprintf(" and %d more", n-maxNames)
	}
	if len(list) == 0 {
		return text + "; no NAME=VALUE was seen in " + jobs.Plural(s.outputs, "output")
	}
	return text + "; seen: " + strings.Join(list, ", ") + more
}

func otherCapitals(name string, names []string) string {
	for _, n := range names {
		if name != "" && n != name && strings.EqualFold(n, name) {
			return n
		}
	}
	return ""
}
