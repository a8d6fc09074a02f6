package journal

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"dcs-tui/jobs"
)

// An edited specification comes back byte for byte, also with what JSON cannot hold, by
// the fast decoder and by encoding/json; equal options are one value.
func TestEditedRecords(t *testing.T) {
	var d Decoder
	var shared *jobs.Options
	for i, command := range []string{"echo <&> ü \u2028 \"x\" \\", "printf '\xff\n\x01'", ""} {
		o := &jobs.Options{Queue: "q", Timeout: time.Hour, Tags: []string{"a", "\xfe"}, Env: []jobs.EnvVar{{Name: "A", Value: "<"}}}
		r := jobs.Record{Kind: jobs.KindEdited, At: 5, Job: 7, Reason: "by a person",
			Spec: &jobs.Spec{ID: 7, Line: 3, Command: command, Name: "n", Params: []jobs.Param{{Name: "x", Value: "1"}}, Options: o}}
		line := AppendRecord(nil, &r)
		var fast, slow, std jobs.Record
		if s := (scan{b: line, d: &d}); !s.record(&fast) || s.i != len(line) || !reflect.DeepEqual(fast, r) {
			t.Errorf("%d: the fast decoder makes %+v of %s", i, fast.Spec, line)
		}
		theirs, err := json.Marshal(&r)
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Decode(theirs, &slow); err != nil || !reflect.DeepEqual(slow, r) {
			t.Errorf("%d: %v, %+v from %s", i, err, slow.Spec, theirs)
		}
		if err := json.Unmarshal(line, &std); err != nil || !reflect.DeepEqual(std, r) {
			t.Errorf("%d: %v, %+v from %s", i, err, std.Spec, line)
		}
		if shared != nil && fast.Spec.Options != shared {
			t.Errorf("%d: equal options are held twice", i)
		}
		shared = fast.Spec.Options
	}
	for _, bad := range []string{`{"k":"edited","spec":{"id":1}}`, `{"k":"edited","spec":[]}`, `{"k":"edited","spec":{"id":1,"command":"a","options":{}}}`,
		`{"k":"edited","spec":{"id":1,"command":"a"},"spec":5}`, `{"k":"edited","spec":`, `{"k":"edited","spec":}`} {
		var r jobs.Record
		if err := d.Decode([]byte(bad), &r); err == nil {
			t.Errorf("%s was read as %+v", bad, r.Spec)
		}
	}
}

// After damage an edit still counts: what must have ended before it is taken to have
// ended, and the job never runs by what it was before.
func TestEditAfterLostRecords(t *testing.T) {
	spec := func(command string) *jobs.Spec {
		return &jobs.Spec{ID: 1, Line: 1, Command: command, Options: jobs.NoOptions}
	}
	table := &jobs.Table{Specs: []*jobs.Spec{spec("old")}, Damaged: true}
	p := &Follower{table: table, report: &Report{Damaged: true}}
	for _, r := range []jobs.Record{
		{Kind: jobs.KindLaunching, Job: 1, N: 1, Host: "a"}, // its acceptance and its end are lost
		{Kind: jobs.KindEdited, Job: 1, Spec: spec("new")},
		{Kind: jobs.KindLaunching, Job: 1, N: 2, Host: "a"},
	} {
		if err := p.fold(&r); err != nil {
			t.Fatal(err)
		}
	}
	j := table.Job(1)
	if j.Spec.Command != "new" || j.State != jobs.Running || j.Attempts[0].State != jobs.AttemptLost || j.Attempts[0].Round != 0 || j.Attempts[1].Round != 1 {
		t.Errorf("%+v", j)
	}
}
