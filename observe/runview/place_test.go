package runview

import (
	"fmt"
	"testing"
	"time"

	"dcs-tui/jobs"
)

// TestPlaceIsTheNumberOfEarlierJobs checks that #N of a queued job is the number of jobs that start
// before it, also if the easiest goes first (E2), and that rows are in that order. If several
// queues share the slots (B4), the order is not predictable and no number is shown.
func TestPlaceIsTheNumberOfEarlierJobs(t *testing.T) {
	hard := func(n string) *jobs.Spec {
		return &jobs.Spec{Command: "sleep 60", Options: &jobs.Options{Hardness: []string{n}}}
	}
	of := func(queue string) *jobs.Spec {
		return &jobs.Spec{Command: "sleep 60", Options: &jobs.Options{Queue: queue}}
	}
	in := func(priority int, hours time.Duration) *jobs.Spec {
		s := of("")
		if s.Priority = priority; hours > 0 {
			s.Deadline = time.Now().Add(hours * time.Hour)
		}
		return s
	}
	var many []*jobs.Spec
	for i := range maxHardnesses + 1 {
		many = append(many, hard(fmt.Sprint(i)))
	}
	for _, tt := range []struct {
		name  string
		specs []*jobs.Spec
		want  string // ids and positions of the queued jobs, in the order shown
	}{
		{"in their order", []*jobs.Spec{of("a"), of("a"), of("a"), of("a")}, "3#0 4#1"},
		{"priorities and deadlines", []*jobs.Spec{in(0, 9), in(0, 9), in(0, 9), in(1, 1), in(0, 5), in(-1, 0)},
			"1#0 2#1 3#2 4#3"},
		{"the easiest first", []*jobs.Spec{hard("9"), hard("3"), hard("5"), hard("4"), hard("10"), hard("4")},
			"6#0 3#1 1#2 5#3"},
		{"two queues", []*jobs.Spec{of("a"), of("b"), of("a"), of("b")}, "3#-1 4#-1"},
		{"too many to put in order", many, "3#-1 4#-1 5#-1 6#-1 7#-1 8#-1 9#-1 10#-1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			withLab(t, "a", func(t *testing.T, l *lab) {
				l.submit(tt.specs...)
				time.Sleep(10 * time.Second)
				got := ""
				for _, r := range l.look(Query{Jobs: windowOf(10)}).Jobs.Rows {
					if r.Phase == Queued {
						got += fmt.Sprintf(" %d#%d", r.ID, r.Place)
					}
				}
				if got != " "+tt.want {
					t.Errorf("%s, want %s", got, tt.want)
				}
			})
		})
	}
}

// TestFailedJobsStartFirst checks that a job that has failed in its round is before the others of
// its priority, as it is for the scheduler.
func TestFailedJobsStartFirst(t *testing.T) {
	table := newTab()
	table.add(jobs.Spec{Command: "waits"}, jobs.Queued)
	table.add(jobs.Spec{Command: "failed"}, jobs.Queued, withEnded("ws01", jobs.Outcome{Exit: 1}, time.Second))
	table.add(jobs.Spec{Command: "goes first", Options: &jobs.Options{Priority: -1}}, jobs.Queued)
	v := FromTable(runAt(t.TempDir()), table.Table, Options{})
	defer v.Close()
	got := ""
	for _, r := range lookAt(t, v, Query{Jobs: windowOf(10)}).Jobs.Rows {
		got += fmt.Sprintf(" %d#%d", r.ID, r.Place)
	}
	if got != " 3#0 2#1 1#2" {
		t.Errorf("got%s, want 3#0 2#1 1#2", got)
	}
}
