package cli

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"dcs-tui/jobs"
	"dcs-tui/jobs/rundir"
	"dcs-tui/jobs/runview"
)

// K2: a relative priority asked of a run that nobody dispatches comes to the same
// however often it is carried out, and adds to what was asked before it.
func TestAbsolutePriorities(t *testing.T) {
	table := &jobs.Table{}
	for _, p := range []int32{0, 0, 5, math.MinInt32, 0} {
		table.Jobs = append(table.Jobs, jobs.Job{Priority: p, State: jobs.Queued})
	}
	table.Jobs[4].State = jobs.Succeeded
	ask := func(by int, waiting []*rundir.Request) ([]*rundir.Request, string) {
		list := absolute(table, waiting, &runview.Action{Do: runview.Priority, Jobs: jobs.Ranges{{First: 1, Last: 9}}, Number: by, Relative: true})
		var said []string
		for _, q := range list {
			said = append(said, fmt.Sprintf("%s: %d", q.Jobs, q.Priority))
		}
		return list, strings.Join(said, "; ")
	}
	first, said := ask(-1, nil)
	if want := "4: -2147483648; 1-2: -1; 3: 4"; said != want {
		t.Errorf("got %s, want %s", said, want)
	}
	second, said := ask(-1, first)
	if want := "4: -2147483648; 1-2: -2; 3: 3"; said != want {
		t.Errorf("once more: got %s, want %s", said, want)
	}
	if _, said = ask(1, append(first, second...)); said != "4: -2147483647; 1-2: -1; 3: 4" {
		t.Errorf("and back: %s", said)
	}
}
