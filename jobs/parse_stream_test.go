package jobs

import (
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

// say returns a description of each line of a stream.
func say(t *testing.T, r io.Reader, earlier ...*Spec) (said []string, end error) {
	t.Helper()
	s := NewScanner(r, "in", false, 1).Stream(slices.Values(earlier))
	for {
		l, err := s.NextLine()
		switch {
		case err != nil:
			return said, err
		case l.Spec != nil:
			said = append(said, fmt.Sprintf("%d %s id=%s after=[%s]", l.Spec.ID, l.Spec.Command,
				l.Spec.Key(), l.Spec.After()))
		case l.Ask.Err != nil:
			said = append(said, fmt.Sprintf("line %d id=%s: %v", l.Ask.Line, l.Ask.ID, l.Ask.Err))
		default:
			said = append(said, fmt.Sprintf("line %d id=%s: %s named=%v jobs=%s all=%v repeats=%d", l.Ask.Line,
				l.Ask.ID, l.Ask.Do, l.Ask.Named, l.Ask.Jobs, l.Ask.All, l.Ask.Repeats))
		}
		if len(said) > 100 {
			t.Fatal("the stream does not end")
		}
	}
}

// TestStreamAcceptsLinesAndObjects checks that a stream accepts shell lines and objects (D1). A
// wrong line costs only itself and the job whose options it holds.
func TestStreamAcceptsLinesAndObjects(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"echo 1\n{ echo 2; }\n{\"command\":\"echo 3\",\"id\":\"c\"}\n",
			"1 echo 1 id= after=[]|2 { echo 2; } id= after=[]|3 echo 3 id=c after=[]"},
		{`{"v":1,"command":"a","id":7}` + "\n" + `{"command":"b","after":["any:7",1]}`,
			"1 a id=7 after=[]|line 2 id=: in:2: after: job 7 does not come before"},
		{`{"command":"a","id":"x"}` + "\n" + `{"command":"b","after":["x"]}`, "1 a id=x after=[]|2 b id= after=[1]"},
		{`{"command":"a","id":"x"}` + "\n" + `{"command":"a","id":"x"}` + "\nc",
			"1 a id=x after=[]|line 2 id=x:  named=[] jobs= all=false repeats=1|2 c"},
		{`{"command":"a","id":"x"}` + "\n" + `{"cancel":["x",3],"id":"q"}` + "\n" + `{"requeue":"x"}` + "\n" +
			`{"cancel":true}`,
			"1 a id=x after=[]|line 2 id=q: cancel named=[1] jobs=3 all=false repeats=0|line 3 id=: " +
				"requeue named=[1] jobs= all=false repeats=0|line 4 id=: cancel named=[] jobs= all=true repeats=0"},
		{`{"cancel":"x"}` + "\n" + `{"requeue":true}` + "\n" + `{"cancel":1,"requeue":1}` + "\n" +
			`{"cancel":1,"command":"a"}` + "\nb",
			`line 1 id=: in:1: cancel: no earlier line has the id "x"|` +
				`line 2 id=: in:2: requeue: expected a text or a number|line 3 id=: in:3: cancel and requeue|` +
				`line 4 id=: in:4: a line with cancel has no other key|1 b`},
		{`{"comand":"a","id":"x"}` + "\n" + `{"command":"a"` + "\n" + "b\x00\nc",
			"line 1 id=x: in:1: unknown option|line 2 id=: in:2: the line is not valid JSON at byte 15|line 3 id=: " +
				"in:3: this is not a text file|1 c"},
		{"#DCS timeout=x\na\nb", "line 1 id=: in:1: timeout|line 2 id=: in:2: the job is not taken|1 b"},
		{"#DCS tries=2\n#dcs mem=1G\na\nb",
			"line 2 id=: in:2: this comment looks like options|line 3 id=: in:3: the job is not taken|1 b"},
		{"#DCS tries=2\na \\ \nb\nc", "line 2 id=: in:2:4: a space follows|1 b id=|2 c"},
		{"a\\\n#DCS tries=2\nb\nc", "line 2 id=: in:2: a #DCS line inside|line 3 id=: in:3: the job is not taken|1 c"},
		{"a\n#DCS tries=2", "1 a|line 2 id=: in:2: no job follows"},
		{strings.Repeat("x", maxLine+100_000) + "\nb", "line 1 id=: in:1: the line is longer|1 b"},
		{"a\n#DCS default timeout=x\nb", "1 a|end in:2: timeout"},
		{"#!/bin/bash\na", "end in:1: this is a script"},
	} {
		said, end := say(t, strings.NewReader(c.text))
		if end != io.EOF {
			said = append(said, "end "+end.Error())
		}
		want := strings.Split(c.want, "|")
		for i := range max(len(said), len(want)) {
			if i >= len(said) || i >= len(want) || !strings.HasPrefix(said[i], want[i]) {
				t.Errorf("%.200q:\n%q, want\n%q", c.text, said, want)
				break
			}
		}
	}
}

// TestStreamKnowsTheJobsOfTheRun checks that a stream that continues after a resume knows the
// existing jobs of the run.
func TestStreamKnowsTheJobsOfTheRun(t *testing.T) {
	had := []*Spec{{ID: 1, Labels: NewLabels("a", nil)}, nil, {ID: 3, Name: "prepare"}}
	said, end := say(t, strings.NewReader(`{"command":"x","id":"a"}
{"command":"y","id":"b","after":["a","prepare",2]}
{"cancel":"b"}`), had...)
	want := []string{"line 1 id=a:  named=[] jobs= all=false repeats=1", "4 y id=b after=[1,3,2]",
		"line 3 id=: cancel named=[4] jobs= all=false repeats=0"}
	if fmt.Sprintf("%q", said) != fmt.Sprintf("%q", want) || end != io.EOF {
		t.Errorf("%q, %v, want %q", said, end, want)
	}
}

// TestFailedReaderEndsTheStream checks that a reader that fails ends the stream.
func TestFailedReaderEndsTheStream(t *testing.T) {
	broken := errors.New("broken")
	said, end := say(t, io.MultiReader(strings.NewReader("a\n"), iotest.ErrReader(broken)))
	if len(said) != 1 || !errors.Is(end, broken) {
		t.Errorf("got %q, %v; want one job and then the reader's error", said, end)
	}
}

// FuzzStream checks that no stream makes the scanner panic or loop, and that its jobs have
// consecutive numbers.
func FuzzStream(f *testing.F) {
	for _, s := range []string{"a\n{\"command\":\"b\",\"id\":\"x\"}\n{\"cancel\":[\"x\",1]}",
		"#DCS tries=2\n{\"requeue\":\"1-3\"}\\", "{\"command\":\"a\",\"after\":[\"x\"]}"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s := NewScanner(strings.NewReader(text), "in", false, 1).Stream(slices.Values[[]*Spec](nil))
		last := ID(0)
		for range 2*strings.Count(text, "\n") + 5 {
			l, err := s.NextLine()
			if err != nil {
				return
			}
			if l.Spec != nil {
				if last++; l.Spec.ID != last {
					t.Fatalf("job %d after %d", l.Spec.ID, last-1)
				}
			}
		}
		t.Fatal("it does not end")
	})
}

// TestParseJSONLines checks that a file whose name ends in .jsonl holds one JSON object per line,
// with the same keys.
func TestParseJSONLines(t *testing.T) {
	text := `{"command": "echo \"1\"", "timeout": "2h", "mem": 1073741824, "priority": -1, ` +
		`"tags": "b,a", "name": "n"}` + "\r\n\n" +
		`{"after":[1],"hardness":["a,b", 2.50],"tags":["b","a"],"env":{"A":"x","B":3},"env.C":"z",` +
		`"tokens":["b:2","a"],"queue_slots":4,"params":{"p":0.10,"a":"\ud83d\ude00"},` +
		`"command":"two\nlines","est":null}` + "\n" +
		`  { "command" : "cat" , "tags" : [ ] , "timeout":"" }`
	s, err := Parse(strings.NewReader(text), "j.jsonl", true, 1)
	if err != nil {
		t.Fatal(err)
	}
	want := []*Spec{
		{ID: 1, Line: 1, Command: `echo "1"`, Name: "n", Options: &Options{
			File: "j.jsonl", Timeout: 2 * time.Hour, MemBytes: 1 << 30, Priority: -1, Tags: []string{"a", "b"}}},
		{ID: 2, Line: 3, Command: "two\nlines", Labels: NewLabels("", []Param{{"p", "0.10"}, {"a", "😀"}},
			Dependency{Range: Range{1, 1}}),
			Options: &Options{
				File: "j.jsonl", Hardness: []string{"a,b", "2.50"}, Tags: []string{"a", "b"},
				Env: []EnvVar{{"A", "x"}, {"B", "3"}, {"C", "z"}}, Tokens: []Token{{"a", 1}, {"b", 2}}, QueueSlots: 4}},
		{ID: 3, Line: 4, Command: "cat", Options: &Options{File: "j.jsonl"}},
	}
	for i := range want {
		if !reflect.DeepEqual(s[i], want[i]) {
			t.Errorf("got  %+v %+v\nwant %+v %+v", s[i], s[i].Options, want[i], want[i].Options)
		}
	}
}

// TestParseJSONLinesErrors checks that each invalid object has an error that says what is wrong.
func TestParseJSONLinesErrors(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{`echo 1`, "is an object such as"},
		{`#DCS name=x`, "is an object such as"},
		{`{}`, "no command"},
		{`{"command":" "}`, "no command"},
		{`{"command":1}`, "command: expected a text"},
		{`{"command":"a","colour":1}`, `unknown option "colour"`},
		{`{"command":"a","id":""}`, "id: it must be a text"},
		{`{"command":"a","cancel":1}`, `unknown option "cancel"`},
		{`{"command":"a","v":2}`, `knows version 1, not "2"`},
		{"{\"command\":\"a\",\"id\":1}\n{\"command\":\"b\",\"id\":\"1\"}", `job 1 has the id "1", too`},
		{`{"command":"a","Timeout":1}`, "did you mean timeout?"},
		{`{"comand":"a"}`, "did you mean command?"},
		{`{"command":"a","parms":{}}`, "did you mean params?"},
		{`{"command":"a","command":"b"}`, "duplicate object member name"},
		{`{"command":"a\u0000"}`, "NUL"},
		{`{"command":"a","cwd":"a\u0000"}`, "cwd holds a NUL"},
		{`{"command":"a","params":{"x":"a\u0000"}}`, "params.x holds a NUL"},
		{`{"command":"a","env":{"X":"a\u0000"}}`, "env.X holds a NUL"},
		{`{"command":"a","env":{"X":"a","X":"b"}}`, "duplicate object member name"},
		{`{"command":"a","params":{"x y":1}}`, "DCS_PARAM_"},
		{`{"command":"a","env":[1]}`, "an object"},
		{`{"command":"a","timeout":true}`, "timeout: expected a text or a number"},
		{`{"command":"a","timeout":["2h"]}`, "a list is not one of its values"},
		{`{"command":"a","timeout":"x"}`, "not a duration"},
		{`{"command":"a","tags":["a",["b"]]}`, "a text or a number"},
		{`{"command":"a","tags":["a" "b"]}`, `expecting ',' or ']'`},
		{`{"command":"a","after":[1]}`, "does not come before"},
		{`{"command":"a","priority":01}`, "byte 28"},
		{`{"command":"a"`, "unexpected EOF"},
		{`{"command":"a\ud800x"}`, "surrogate"},
		{"{\"command\":\"a\tb\"}", `invalid character '\t'`},
		{`{"command":"a"} x`, "something follows"},
		{"{\"command\":\"a\xff\"}", "invalid UTF-8"},
		{"", "there is no job"},
	} {
		t.Run(c.text, func(t *testing.T) {
			s, err := Parse(strings.NewReader(c.text), "j.jsonl", true, 1)
			if err == nil || s != nil || !strings.Contains(err.Error(), c.want) ||
				!strings.HasPrefix(err.Error(), "j.jsonl:") {
				t.Errorf("%q: %v, want %q", c.text, err, c.want)
			}
		})
	}
}
