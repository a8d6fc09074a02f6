package jobs

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
)

// say returns what the lines of a stream say, one text each.
func say(t *testing.T, r io.Reader, earlier ...*Spec) (said []string, end error) {
	t.Helper()
	s := NewScanner(r, "in", false, 1).Stream(earlier)
	for {
		l, err := s.NextLine()
		switch {
		case err != nil:
			return said, err
		case l.Spec != nil:
			said = append(said, fmt.Sprintf("%d %s id=%s after=%v", l.Spec.ID, l.Spec.Command, l.Spec.Key, l.Spec.After))
		case l.Ask.Err != nil:
			said = append(said, fmt.Sprintf("line %d id=%s: %v", l.Ask.Line, l.Ask.ID, l.Ask.Err))
		default:
			said = append(said, fmt.Sprintf("line %d id=%s: %s named=%v jobs=%s all=%v repeats=%d", l.Ask.Line, l.Ask.ID, l.Ask.Do, l.Ask.Named, l.Ask.Jobs, l.Ask.All, l.Ask.Repeats))
		}
		if len(said) > 100 {
			t.Fatal("the stream does not end")
		}
	}
}

// D1: a stream has shell lines and objects; a wrong line costs itself and the job whose
// options it has, and nothing else.
func TestStream(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"echo 1\n{ echo 2; }\n{\"command\":\"echo 3\",\"id\":\"c\"}\n", "1 echo 1 id= after=[]|2 { echo 2; } id= after=[]|3 echo 3 id=c after=[]"},
		{`{"v":1,"command":"a","id":7}` + "\n" + `{"command":"b","after":["any:7",1]}`, "1 a id=7 after=[]|line 2 id=: in:2: after: job 7 does not come before"},
		{`{"command":"a","id":"x"}` + "\n" + `{"command":"b","after":["x"]}`, "1 a id=x after=[]|2 b id= after=[1]"},
		{`{"command":"a","id":"x"}` + "\n" + `{"command":"a","id":"x"}` + "\nc", "1 a id=x after=[]|line 2 id=x:  named=[] jobs= all=false repeats=1|2 c"},
		{`{"command":"a","id":"x"}` + "\n" + `{"cancel":["x",3],"id":"q"}` + "\n" + `{"requeue":"x"}` + "\n" + `{"cancel":true}`,
			"1 a id=x after=[]|line 2 id=q: cancel named=[1] jobs=3 all=false repeats=0|line 3 id=: requeue named=[1] jobs= all=false repeats=0|line 4 id=: cancel named=[] jobs= all=true repeats=0"},
		{`{"cancel":"x"}` + "\n" + `{"requeue":true}` + "\n" + `{"cancel":1,"requeue":1}` + "\n" + `{"cancel":1,"command":"a"}` + "\nb",
			`line 1 id=: in:1: cancel: no earlier line has the id "x"|line 2 id=: in:2: requeue: expected a text or a number|line 3 id=: in:3: cancel and requeue|line 4 id=: in:4: a line with cancel has no other key|1 b`},
		{`{"comand":"a","id":"x"}` + "\n" + `{"command":"a"` + "\n" + "b\x00\nc", "line 1 id=x: in:1: unknown option|line 2 id=: in:2: the JSON text ends|line 3 id=: in:3: this is not a text file|1 c"},
		{"#DCS timeout=x\na\nb", "line 1 id=: in:1: timeout|line 2 id=: in:2: the job is not taken|1 b"},
		{"#DCS tries=2\n#dcs mem=1G\na\nb", "line 2 id=: in:2: this comment looks like options|line 3 id=: in:3: the job is not taken|1 b"},
		{"#DCS tries=2\na \\ \nb\nc", "line 2 id=: in:2:4: a blank follows|1 b id=|2 c"},
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

// A stream that goes on after a resume knows the jobs that the run has.
func TestStreamOfMoreJobs(t *testing.T) {
	had := []*Spec{{ID: 1, Key: "a"}, nil, {ID: 3, Name: "prepare"}}
	said, end := say(t, strings.NewReader(`{"command":"x","id":"a"}
{"command":"y","id":"b","after":["a","prepare",2]}
{"cancel":"b"}`), had...)
	want := []string{"line 1 id=a:  named=[] jobs= all=false repeats=1", "4 y id=b after=[1 3 2]", "line 3 id=: cancel named=[4] jobs= all=false repeats=0"}
	if fmt.Sprintf("%q", said) != fmt.Sprintf("%q", want) || end != io.EOF {
		t.Errorf("%q, %v, want %q", said, end, want)
	}
}

// A reader that fails ends the stream.
func TestStreamThatBreaks(t *testing.T) {
	broken := errors.New("broken")
	said, end := say(t, io.MultiReader(strings.NewReader("a\n"), iotestErr{broken}))
	if len(said) != 1 || !errors.Is(end, broken) {
		t.Errorf("%q, %v", said, end)
	}
}

type iotestErr struct{ error }

func (e iotestErr) Read([]byte) (int, error) { return 0, e.error }

// No stream makes the scanner panic or loop, and its jobs are numbered one after another.
func FuzzStream(f *testing.F) {
	for _, s := range []string{"a\n{\"command\":\"b\",\"id\":\"x\"}\n{\"cancel\":[\"x\",1]}", "#DCS tries=2\n{\"requeue\":\"1-3\"}\\", "{\"command\":\"a\",\"after\":[\"x\"]}"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s := NewScanner(strings.NewReader(text), "in", false, 1).Stream(nil)
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
