package jobs_test

import (
	"reflect"
	"testing"

	"dcs-tui/jobs"
)

// TestFoldInstance checks that an instance is created once and that the table records its times. A
// record that does not fit changes nothing.
func TestFoldInstance(t *testing.T) {
	type step struct {
		how string
		ok  bool
	}
	for _, c := range []struct {
		name  string
		steps []step
		want  jobs.Instance
	}{
		{"life", []step{{"creating", true}, {"up", true}, {"terminating", true}, {"gone", true}},
			jobs.Instance{Provider: "cloud", State: "gone", Created: 1, Up: 2, Gone: 4}},
		{"never answered", []step{{"creating", true}, {"terminating", true}, {"terminating", true}, {"gone", true}},
			jobs.Instance{Provider: "cloud", State: "gone", Created: 1, Gone: 4}},
		{"creation failed", []step{{"creating", true}, {"gone", true}}, jobs.Instance{Provider: "cloud", State: "gone", Created: 1, Gone: 2}},
		{"found again", []step{{"creating", true}, {"gone", true}, {"terminating", true}}, jobs.Instance{Provider: "cloud", State: "terminating", Created: 1}},
		{"found again and used up", []step{{"creating", true}, {"up", true}, {"gone", true}, {"up", true}}, jobs.Instance{Provider: "cloud", State: "up", Created: 1, Up: 2}},
		{"created twice", []step{{"creating", true}, {"creating", false}}, jobs.Instance{Provider: "cloud", State: "creating", Created: 1}},
		{"up twice", []step{{"creating", true}, {"up", true}, {"up", false}}, jobs.Instance{Provider: "cloud", State: "up", Created: 1, Up: 2}},
		{"gone twice", []step{{"creating", true}, {"gone", true}, {"gone", false}}, jobs.Instance{Provider: "cloud", State: "gone", Created: 1, Gone: 2}},
		{"never created", []step{{"up", false}, {"terminating", false}, {"gone", false}, {"", false}}, jobs.Instance{}},
		{"unknown state", []step{{"creating", true}, {"resting", false}}, jobs.Instance{Provider: "cloud", State: "creating", Created: 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var table jobs.Table
			for i, s := range c.steps {
				before := table.Instances["dcs-a-1"]
				err := jobs.Fold(&table, &jobs.Record{Kind: jobs.KindInstance, At: jobs.Stamp(i + 1), Host: "dcs-a-1", How: s.how, Reason: "cloud"})
				if (err == nil) != s.ok {
					t.Errorf("%s: got %v, want ok %v", s.how, err, s.ok)
				}
				if err != nil && !reflect.DeepEqual(before, table.Instances["dcs-a-1"]) {
					t.Errorf("%s was refused and has changed the table", s.how)
				}
			}
			if got := table.Instances["dcs-a-1"]; got != c.want {
				t.Errorf("got  %+v\nwant %+v", got, c.want)
			}
		})
	}
}
