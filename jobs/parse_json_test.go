package jobs

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

// Issue 2: a file ending in .jsonl holds one spec object a line, same keys.
func TestParseJSONLines(t *testing.T) {
	text := `{"command": "echo \"1\"", "timeout": "2h", "mem": 1073741824, "priority": -1, "tags": "b,a", "name": "n"}` + "\r\n\n" +
		`{"after":[1],"hardness":["a,b", 2.50],"tags":["b","a"],"env":{"A":"x","B":3},"env.C":"z","params":{"p":0.10,"a":"\ud83d\ude00"},"command":"two\nlines","est":null}` + "\n" +
		`  { "command" : "cat` + "\xff" + `" , "tags" : [ ] , "timeout":"" }`
	s, err := Parse(strings.NewReader(text), "j.jsonl", true, 1)
	if err != nil {
		t.Fatal(err)
	}
	want := []*Spec{
		{ID: 1, Line: 1, Command: `echo "1"`, Name: "n", Options: &Options{
			File: "j.jsonl", Timeout: 2 * time.Hour, MemBytes: 1 << 30, Priority: -1, Tags: []string{"a", "b"}}},
		{ID: 2, Line: 3, Command: "two\nlines", Params: []Param{{"p", "0.10"}, {"a", "😀"}}, Options: &Options{
			File: "j.jsonl", After: []ID{1}, Hardness: []string{"a,b", "2.50"}, Tags: []string{"a", "b"},
			Env: []EnvVar{{"A", "x"}, {"B", "3"}, {"C", "z"}}}},
		{ID: 3, Line: 4, Command: "cat\xff", Options: &Options{File: "j.jsonl"}},
	}
	for i := range want {
		if !reflect.DeepEqual(s[i], want[i]) {
			t.Errorf("got  %+v %+v\nwant %+v %+v", s[i], s[i].Options, want[i], want[i].Options)
		}
	}
}

func TestParseJSONLinesErrors(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{`echo 1`, "is an object such as"},
		{`#DCS name=x`, "is an object such as"},
		{`{}`, "no command"},
		{`{"command":" "}`, "no command"},
		{`{"command":1}`, "command: expected a string"},
		{`{"command":"a","colour":1}`, `unknown option "colour"`},
		{`{"command":"a","id":""}`, "id: it must be a text"},
		{`{"command":"a","cancel":1}`, `unknown option "cancel"`},
		{`{"command":"a","v":2}`, `knows version 1, not "2"`},
		{"{\"command\":\"a\",\"id\":1}\n{\"command\":\"b\",\"id\":\"1\"}", `job 1 has the id "1", too`},
		{`{"command":"a","Timeout":1}`, "did you mean timeout?"},
		{`{"command":"a","command":"b"}`, "there twice"},
		{`{"command":"a\u0000"}`, "NUL"},
		{`{"command":"a","cwd":"a\u0000"}`, "cwd holds a NUL"},
		{`{"command":"a","params":{"x":"a\u0000"}}`, "params.x holds a NUL"},
		{`{"command":"a","env":{"X":"a\u0000"}}`, "env.X holds a NUL"},
		{`{"command":"a","env":{"X":"a","X":"b"}}`, `env: "X" is there twice`},
		{`{"command":"a","params":{"x y":1}}`, "DCS_PARAM_"},
		{`{"command":"a","env":[1]}`, "an object"},
		{`{"command":"a","timeout":true}`, "timeout: expected a text or a number"},
		{`{"command":"a","timeout":["2h"]}`, "a list is not one of its values"},
		{`{"command":"a","timeout":"x"}`, "not a duration"},
		{`{"command":"a","tags":["a",["b"]]}`, "a text or a number"},
		{`{"command":"a","tags":["a" "b"]}`, "a comma or ]"},
		{`{"command":"a","after":[1]}`, "does not come before"},
		{`{"command":"a","priority":01}`, "expected a number"},
		{`{"command":"a","priority":1.}`, "a number"},
		{`{"command":"a"`, "too early"},
		{`{"command":"a`, "too early"},
		{`{"command":"a\`, "too early"},
		{`{"command":"a\q"}`, "unknown escape"},
		{`{"command":"a\u12"}`, "four hexadecimal"},
		{`{"command":"a\ud800x"}`, "surrogate"},
		{"{\"command\":\"a\tb\"}", `control character (byte 0x09)`},
		{`{"command":"a"} x`, "the end of the line"},
		{`{"command":"a",}`, "a string"},
		{`{"command" "a"}`, "a colon"},
		{"", "there is no job"},
	} {
		s, err := Parse(strings.NewReader(c.text), "j.jsonl", true, 1)
		if err == nil || s != nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "j.jsonl:") {
			t.Errorf("%q: %v, want %q", c.text, err, c.want)
		}
	}
}
