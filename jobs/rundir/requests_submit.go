package rundir

import (
	"fmt"
	"strings"

	"dcs-tui/jobs"
)

// MaxSubmit bounds the jobs of one request, in bytes of JobsText: what it becomes in
// the file, quoted once more, stays below MaxRequest.
const MaxSubmit = 6 << 20

// JobsText writes the jobs of a request to submit them: a line each as in jobs.jsonl,
// without checksum. Their numbers are 1, 2, 3 …; those that they come after are among
// them.
func JobsText(specs []*jobs.Spec) string {
	var b []byte
	for _, s := range specs {
		b = append(jobs.AppendSpecJSON(b, s), '\n')
	}
	return string(b)
}

// NewJobs returns the jobs to submit.
func (q *Request) NewJobs() ([]*jobs.Spec, error) {
	var reader jobs.SpecReader
	var specs []*jobs.Spec
	for line := range strings.Lines(q.Specs) {
		s, err := reader.Read([]byte(strings.TrimSuffix(line, "\n")))
		n := jobs.ID(len(specs) + 1)
		switch {
		case err != nil:
			return nil, fmt.Errorf("its job %d cannot be read: %w", n, err)
		case s.ID != n:
			return nil, fmt.Errorf("its job %d has the number %d", n, s.ID)
		case strings.TrimSpace(s.Command) == "" || strings.IndexByte(s.Command, 0) >= 0:
			return nil, fmt.Errorf("its job %d has no command that a shell can be given", n)
		case s.Damage != "":
			return nil, fmt.Errorf("its job %d is damaged", n)
		}
		for _, dep := range s.After {
			if dep < 1 || dep >= n {
				return nil, fmt.Errorf("its job %d comes after job %d, which is not before it in the request", n, dep)
			}
		}
		specs = append(specs, s)
	}
	return specs, nil
}

// checkSubmit returns why no dispatcher could submit the jobs.
func checkSubmit(q *Request) string {
	specs, err := q.NewJobs()
	switch {
	case err != nil:
		return shorten(err.Error())
	case len(specs) == 0:
		return "it has no jobs"
	}
	return ""
}
