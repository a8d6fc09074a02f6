package ask

import (
	"fmt"
	"strings"
	"testing"

	"dcs-tui/jobs"
	"dcs-tui/jobs/rundir"
)

// TestSubmitBlocks checks that many jobs make several requests, in order, each numbered from 1.
func TestSubmitBlocks(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	var specs []*jobs.Spec
	for i := range 20 {
		specs = append(specs, &jobs.Spec{ID: jobs.ID(i + 1), Command: fmt.Sprint(i, long), Options: jobs.NoOptions})
	}
	n := 0
	for _, b := range submitBlocks(specs) {
		q := rundir.Request{Do: rundir.DoSubmit, Specs: rundir.JobsText(b)}
		if len(q.Specs) > rundir.MaxSubmit {
			t.Errorf("%d bytes", len(q.Specs))
		}
		if got, err := q.NewJobs(); err != nil || len(got) != len(b) {
			t.Fatal(err)
		}
		for _, s := range b {
			if !strings.HasPrefix(s.Command, fmt.Sprint(n, "x")) {
				t.Errorf("job %d is out of order", n)
			}
			n++
		}
	}
	if n != 20 {
		t.Errorf("%d jobs", n)
	}
}
