package jobs

import (
	"reflect"
	"testing"
)

// TestUsualObjectsAreReadFast checks that the most frequent records and specifications are read the
// fast way, and right.
func TestUsualObjectsAreReadFast(t *testing.T) {
	for _, r := range []Record{
		{Kind: KindLaunching, At: 5, Job: 7, N: 1, Host: "ws1"},
		{Kind: KindRunning, At: 6, Job: 7, N: 1, Slot: 3, Started: 6},
		{Kind: KindExited, At: 9, Job: 7, N: 1, Slot: 3, Next: Succeeded, Seq: 2,
			Outcome: &Outcome{Started: 6, Ended: 9, CPU: 1, MaxRSSBytes: 1 << 20}},
		{Kind: KindExited, At: 9, Job: 7, N: 1, Slot: 3, Next: Failed, Seq: 2,
			Outcome: &Outcome{Exit: 1, Started: 6, Ended: 9, LastLine: "no \"x\"\n"}},
	} {
		var got Record
		if b := AppendRecord(nil, &r); !new(RecordReader).readUsual(b, &got) || !reflect.DeepEqual(got, r) {
			t.Errorf("%s was read as %+v", b, got)
		}
	}
	for _, s := range []*Spec{
		{ID: 1, Line: 2, Command: "a < b & c", Options: NoOptions},
		{ID: 1, Line: 2, Command: "a", Name: "n", Labels: NewLabels("key", nil),
			Options: &Options{Queue: "q", Slots: 2}},
		{ID: 1, Command: "a", Labels: NewLabels("", []Param{{"x", "1"}, {"y", "\"a\nb\""}}), Options: NoOptions},
	} {
		b := AppendSpecJSON(nil, s)
		if got := new(SpecReader).readUsual(b); !reflect.DeepEqual(got, s) {
			t.Errorf("%s was read as %+v", b, got)
		}
	}
}

// FuzzUsualObjects checks that what is read the fast way is what json.Unmarshal reads. In particular,
// it checks that json.Unmarshal refuses nothing of it.
func FuzzUsualObjects(f *testing.F) {
	for _, text := range []string{
		`{"k":"launching","t":5,"j":7,"n":1,"h":"ws1"}`,
		`{"k":"launching","t":5,"j":7,"n":1,"n":2,"h":"ws1"}`,
		`{"k":"launching","k":"exited","t":5}`, `{"t":5,"k":"launching"}`, `{"k":"launching","t":5,}`, `{,}`, `{}`,
		`{"k":"launching","t":25000000000000000000}`, `{"k":"launching","t":-9223372036854775808,"j":-0}`,
		`{"k":"launching","t":5.0}`, `{"k":"launching","t":1e3}`, `{"k":"launching","t":05}`,
		`{"k":"launching","t":"5"}`,
		`{"k":"launching","t":5} `, `{"k":"launching","t":5}}`,
		` { "k" : "launching" , "t" : 5 } `, `{"k":"launching","t":5`,
		`{"k":"launching","t":null}`, `{"k":null,"t":5}`, `null`, `{"\u006b":"launching","t":5}`,
		`{"k":"exited","t":9,"j":7,"n":1,"slot":3,"next":"failed","seq":2,"o":{"exit":1,"started":6,"ended":9,` +
			`"last_line":"no \"x\"\n"}}`,
		`{"k":"exited","t":9,"o":{"exit":1,"exit":2,"started":6,"ended":9}}`, `{"k":"exited","t":9,"o":{"exit":1}`,
		`{"k":"exited","t":9,"o":{"exit":1,"new":2}}`, `{"k":"exited","t":9,"o":{},"o":{}}`, `{"k":"exited","o":{}}`,
		`{"k":"running","t":6,"j":7,"n":1,"slot":3,"started":6}`, `{"k":"running","next":"unknown"}`,
		"{\"k\":\"a\x01\",\"t\":5}", "{\"k\":\"a\xff\",\"t\":5}", `{"k":"\ud800","t":5}`,
		`{"k":"\u00e9\x","t":5}`,
		`{"id":1,"line":2,"command":"a < b & c"}`, `{"id":1,"command":"a","command":"b"}`, `{"id":1}`,
		`{"id":1,"line":2,"command":"a","name":"n","key":"key","options":{"queue":"q","slots":2}}`,
		`{"id":1,"command":"a","options":{"queue":"q","queue":"q"}}`, `{"id":1,"command":"a","options":{"new":1}}`,
		`{"id":1,"command":"a","options":{"after":[1],"after":[1]}}`,
		`{"id":5,"command":"a","options":{"after":[1,2]}}`,
		`{"id":1,"command":"a","key":"k","params":[{"name":"x","value":"1"},{"name":"y","value":"\"a\nb\""}]}`,
		`{"id":1,"command":"a","params":[{"name":"x","name":"y"}]}`, `{"id":1,"command":"a","params":[{"value":"x"}]}`,
		`{"id":1,"command":"a","key":"k","params":[]}`, `{"id":1,"command":"a","params":[{},]}`,
		`{"id":1,"command":"a","options":{}}`, `{"id":1,"command":"a","options":null}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var r, want Record
		if new(RecordReader).readUsual(b, &r) {
			if err := new(RecordReader).readAny(b, &want); err != nil || !reflect.DeepEqual(r, want) {
				t.Errorf("%q was read as %+v instead of %+v, %v", b, r, want, err)
			}
		}
		if s := new(SpecReader).readUsual(b); s != nil {
			if want, err := new(SpecReader).readAny(b); err != nil || !reflect.DeepEqual(s, want) {
				t.Errorf("%q was read as %+v instead of %+v, %v", b, s, want, err)
			}
		}
	})
}

// TestParametersAreCheckedWithoutBeingRead checks that a reader without parameters finds the same damage
// as one with them.
func TestParametersAreCheckedWithoutBeingRead(t *testing.T) {
	for _, params := range []string{`[]`, `[{"name":"x","value":"1"},{"name":"y","value":"\"a\nb\""}]`,
		`[{"name":"x"}]`, `[{"value":"1","name":"x"}]`, `[{"name":"x","name":"y"}]`, `[{"name":1}]`,
		`[{"name":"x","new":1}]`, `[1]`, `[{},]`, `[[]]`, `["x"]`, `{}`, `null`} {
		t.Run(params, func(t *testing.T) {
			line := []byte(`{"id":1,"command":"a","params":` + params + `}`)
			_, want := new(SpecReader).Read(line)
			got, err := (&SpecReader{withoutParams: true}).Read(line)
			if (err == nil) != (want == nil) || err == nil && got.Command != "a" {
				t.Errorf("without parameters: %v; with them: %v", err, want)
			}
		})
	}
}

// TestRepeatedMemberIsRefused checks that a repeated member is refused, in a usual record too.
func TestRepeatedMemberIsRefused(t *testing.T) {
	var r Record
	if b := `{"k":"launching","t":5,"j":7,"n":1,"n":2,"h":"ws1"}`; new(RecordReader).Read([]byte(b), &r) == nil {
		t.Errorf("%s was read as %+v", b, r)
	}
}

// TestReasonsOfEarlierVersionsAreRead checks that records of earlier versions, which gave only the
// text of a reason, are read with its kind, and that a kind that was recorded counts.
func TestReasonsOfEarlierVersionsAreRead(t *testing.T) {
	for _, c := range []struct {
		line string
		want ReasonKind
	}{
		{`{"k":"event","t":5,"h":"ws1","why":"ws1 is up"}`, ReasonHostUp},
		{`{"k":"event","t":5,"h":"ws1","why":"ws11 is up"}`, ""},
		{`{"k":"event","t":5,"j":3,"why":"job 3 reported 0.25 at step 9"}`, "reported:9,0.25"},
		{`{"k":"job","t":5,"j":1,"next":"skipped","why":"it is at least as hard as job 3, which timed out after 1s"}`,
			ReasonTooHard},
		{`{"k":"job","t":5,"j":1,"next":"canceled","why":"it is at least as hard as job 3, which timed out after 1s"}`,
			""},
		{`{"k":"canceling","t":5,"j":1,"why":"halving: poor at step 1"}`, ReasonPoorValues},
		{`{"k":"canceled","t":5,"j":1,"n":1,"next":"canceled","why":"halving: poor at step 1"}`, ReasonPoorValues},
		{`{"k":"canceling","t":5,"j":1,"why":"halving: poor at step 1","how":"requeue"}`, ThenRequeue},
		{`{"k":"lost","t":5,"j":1,"n":1,"why":"halving: poor at step 1"}`, ""},
	} {
		t.Run(c.line, func(t *testing.T) {
			var r Record
			if err := new(RecordReader).Read([]byte(c.line), &r); err != nil || r.How != string(c.want) {
				t.Errorf("%s: got %q, %v, want %q", c.line, r.How, err, c.want)
			}
		})
	}
}

// TestReportsOfJobsAreReadBack checks that the journal keeps what a job has reported exactly.
func TestReportsOfJobsAreReadBack(t *testing.T) {
	for _, v := range []Reported{{3, 0.1}, {1e9, -1e-300}, {0, 1.0 / 3}} {
		r := v.Event(5, 7)
		var got Record
		if err := new(RecordReader).Read(AppendRecord(nil, &r), &got); err != nil || !reflect.DeepEqual(got, r) {
			t.Fatalf("got %+v, %v, want %+v", got, err, r)
		}
		if back, ok := got.Reported(); !ok || back != v {
			t.Errorf("got %v, %v, want %v", back, ok, v)
		}
	}
}
