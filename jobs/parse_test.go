package jobs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

// TestSuggestedKeysCanBeSet checks that the keys that an error suggests are those that can be set.
func TestSuggestedKeysCanBeSet(t *testing.T) {
	want := append(slices.Collect(maps.Keys(scalarOptions)), append([]string{"env.NAME"}, listKeys...)...)
	got := slices.Sorted(slices.Values(optionKeys))
	if slices.Sort(want); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func parseText(t *testing.T, text string) []*Spec {
	t.Helper()
	specs, err := Parse(strings.NewReader(text), "j.txt", false, 1)
	if err != nil {
		t.Fatal(err)
	}
	return specs
}

func commands(specs []*Spec) (list []string) {
	for _, s := range specs {
		list = append(list, s.Command)
	}
	return list
}

// TestParseLines checks that a job is a line of shell and a file is a list of them (K1).
func TestParseLines(t *testing.T) {
	long := "echo " + strings.Repeat("x", 1<<20)
	for _, c := range []struct {
		name, text string
		want       []string
		lines      []int
	}{
		{"plain", "echo 1\necho 2\n", []string{"echo 1", "echo 2"}, []int{1, 2}},
		{"no last newline", "echo 1", []string{"echo 1"}, []int{1}},
		{"blank and comment", "\n# c \\\necho 1\n  \t\n  # d\n\techo 2\n#\n", []string{"echo 1", "echo 2"},
			[]int{3, 6}},
		{"CRLF", "# c\r\necho 1\r\n\r\necho \\\r\n 2\r\n", []string{"echo 1", "echo  2"}, []int{2, 4}},
		{"byte order mark", "\ufeffecho 1\n", []string{"echo 1"}, []int{1}},
		{"continued", "a \\\n b \\\n\\\nc\nd\n", []string{"a  b c", "d"}, []int{1, 5}},
		{"blank line ends a continued one", "a \\\n\nb\n", []string{"a ", "b"}, []int{1, 3}},
		{"an escaped backslash does not continue", "echo a\\\\\necho b\n", []string{`echo a\\`, "echo b"}, []int{1, 2}},
		{"three backslashes continue", "echo a\\\\\\\nb\n", []string{`echo a\\b`}, []int{1}},
		{"# inside", "echo a # b\n", []string{"echo a # b"}, []int{1}},
		{"not UTF-8", "cat \xff\xfe\n", []string{"cat \xff\xfe"}, []int{1}},
		{"1 MB", long + "\n" + long, []string{long, long}, []int{1, 2}},
	} {
		t.Run(c.name, func(t *testing.T) {
			specs := parseText(t, c.text)
			var lines []int
			for i, s := range specs {
				lines = append(lines, s.Line)
				if s.ID != ID(i+1) {
					t.Errorf("job %d has the number %d", i+1, s.ID)
				}
			}
			if got := commands(specs); !reflect.DeepEqual(got, c.want) || !reflect.DeepEqual(lines, c.lines) {
				t.Errorf("got %.200q %v, want %.200q %v", got, lines, c.want, c.lines)
			}
		})
	}
}

// TestParseRetryDelay checks that 0 is a valid delay, and that an empty value selects the run's
// default.
func TestParseRetryDelay(t *testing.T) {
	specs := parseText(t, "#DCS default retry_delay=0\na\n#DCS retry_delay=\nb\n")
	if d := specs[0].RetryDelay; d == nil || *d != 0 {
		t.Errorf("got %v, want 0", d)
	}
	if d := specs[1].RetryDelay; d != nil {
		t.Errorf("got %v, want none", *d)
	}
}

// TestParseOptions checks the value of each option of a #DCS line, and how long it applies.
func TestParseOptions(t *testing.T) {
	specs := parseText(t, `#DCS default queue=sweep tries=5 env.A=1 tags=big,fast
#DCS name='first one' retry_delay=2m priority=-2 timeout=1d12h est=90 deadline=2026-11-20T18:00Z
#DCS	gpus=2 mem=8G slots=4 env.B="two \"2\" \\n" env.A= cwd='/a b' on_lost=wait hardness=10,x
#DCS setup="source ~/v/bin/activate" tags=gpu,a,a
one
#DCS after=1 tries=
two
#DCS default queue= tags=
three
#DCS \
  name=four
four
`)
	want := Options{
		File:       "j.txt",
		Queue:      "sweep",
		Tries:      5,
		RetryDelay: new(2 * time.Minute),
		Priority:   -2,
		Timeout:    36 * time.Hour,
		Estimate:   90 * time.Second,
		Deadline:   time.Date(2026, 11, 20, 18, 0, 0, 0, time.UTC),
		GPUs:       2 * WholeGPU,
		MemBytes:   8 << 30,
		Slots:      4,
		Env:        []EnvVar{{"A", ""}, {"B", `two "2" \n`}},
		Cwd:        "/a b",
		OnLost:     OnLostWait,
		Hardness:   []string{"10", "x"},
		Setup:      "source ~/v/bin/activate",
		Tags:       []string{"a", "gpu"},
	}
	if !reflect.DeepEqual(*specs[0].Options, want) || specs[0].Name != "first one" || specs[0].Line != 5 {
		t.Errorf("one: %q %+v", specs[0].Name, specs[0].Options)
	}
	env := []EnvVar{{"A", "1"}}
	want = Options{File: "j.txt", Queue: "sweep", Env: env, Tags: []string{"big", "fast"}}
	if !reflect.DeepEqual(*specs[1].Options, want) || specs[1].Name != "" || specs[1].After().String() != "1" {
		t.Errorf("two: %+v after %s", specs[1].Options, specs[1].After())
	}
	want = Options{File: "j.txt", Tries: 5, Env: env}
	if !reflect.DeepEqual(*specs[2].Options, want) {
		t.Errorf("three: %+v", specs[2].Options)
	}
	if specs[3].Name != "four" || specs[3].Options != specs[2].Options {
		t.Errorf("four: %q %+v", specs[3].Name, specs[3].Options)
	}
}

// TestValuesOfGPUsAndTokens checks the values of gpus= and tokens=, and that jobs.jsonl keeps them
// (T3, T7).
func TestValuesOfGPUsAndTokens(t *testing.T) {
	for says, want := range map[string][]OptionText{
		"gpus=0.5":              {{"gpus", "0.5"}},
		"gpus=0":                nil,
		"gpus=1024":             {{"gpus", "1024"}},
		"tokens=matlab:2":       {{"tokens", "matlab:2"}},
		"tokens=matlab,ansys:3": {{"tokens", "ansys:3,matlab:1"}},
		"tokens=":               nil,
	} {
		t.Run(says, func(t *testing.T) {
			s := parseText(t, "#DCS "+says+"\ntrue\n")[0]
			again, err := new(SpecReader).Read(AppendSpecJSON(nil, s))
			if err != nil || !slices.Equal(s.OptionTexts(), want) || !slices.Equal(again.OptionTexts(), want) ||
				!again.Equal(s) {
				t.Errorf("%s: got %v, stored as %v, %v", says, s.OptionTexts(), again, err)
			}
		})
	}
}

// TestParseQueuePriority checks that a queue_priority of 0 is a setting and that a missing one is
// not (K3).
func TestParseQueuePriority(t *testing.T) {
	s := parseText(t, "#DCS default queue_priority=-1\na\n#DCS queue_priority=0\nb\n#DCS queue_priority=\nc\n")
	if p, q := s[0].QueuePriority, s[1].QueuePriority; p == nil || *p != -1 || q == nil || *q != 0 ||
		s[2].QueuePriority != nil {
		t.Errorf("queue_priority: got %v, %v, %v; want -1, 0, none", p, q, s[2].QueuePriority)
	}
}

// TestNameBeforeADefaultIsKept checks that a name before a new default still belongs to the next
// job, in addition to the default.
func TestNameBeforeADefaultIsKept(t *testing.T) {
	s := parseText(t, "#DCS tries=1\n#DCS default tries=2 slots=3\na\nb\n")
	if s[0].Tries != 1 || s[0].Slots != 3 || s[1].Tries != 2 {
		t.Errorf("options: got %+v, %+v; want 1 try and 3 slots, then 2 tries", s[0].Options, s[1].Options)
	}
}

// TestParseSharesOptions checks that a million jobs do not hold a million Options.
func TestParseSharesOptions(t *testing.T) {
	s := parseText(t, "a\n#DCS tries=2\nb\nc\n#DCS tries=2\nd\n")
	if s[0].Options != s[2].Options || s[1].Options != s[3].Options || s[0].Options == s[1].Options {
		t.Error("equal options are not one value")
	}
}

// TestIDsContinueFromTheFirst checks that jobs that are added to a run have the next ids and may
// depend on its earlier jobs.
func TestIDsContinueFromTheFirst(t *testing.T) {
	s, err := Parse(strings.NewReader("#DCS after=40,1-2\na\n"), "-", false, 41)
	if err != nil || s[0].ID != 41 || s[0].After().String() != "40,1-2" || len(s[0].After()) != 2 {
		t.Errorf("Parse: got %+v, %v; want job 41 after 40 and the range 1-2", s, err)
	}
}

// TestParseErrorsSayWhatToDo checks that every error has file and line and tells the user what to
// do.
func TestParseErrorsSayWhatToDo(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", "j.txt: there is no job"},
		{"# only\n\n", "there is no job"},
		{"a\nb\x00c\n", "j.txt:2: this is not a text file"},
		{"\x7fELF\x02\x01\x01\x00\x00", "j.txt:1: this is not a text file"},
		{"\xff\xfea\x00\n\x00", "UTF-16"},
		{"a\n#DCS name=x\n", "j.txt:2: no job follows this #DCS line"},
		{"a\n#DCS default tries=1\n", "j.txt:2: no job follows this #DCS default line"},
		{"a \\\nb \\\n", "j.txt:1: the file ends inside this command"},
		{"a \\\n#DCS name=x\nb\n", "j.txt:2: a #DCS line inside a command"},
		{"#DCS\na\n", "no option follows"},
		{"#DCS default\na\n", "no option follows"},
		{"#DCS: name=x\na\n", "a space must follow #DCS"},
		{"#dcs name=x\na\n", "they begin with #DCS"},
		{"# DCS default tries=2\na\n", "they begin with #DCS"},
		{"#DCS defualt tries=2\na\n", `unknown directive "defualt"`},
		{"#DCS tries = 2\na\n", "write tries=value without spaces"},
		{"#DCS timeuot=2h\na\n", "did you mean timeout?"},
		{"#DCS colour=red\na\n", "the options are name, queue"},
		{"#DCS env.NAME=1 env.2X=1\na\n", "does not begin with a digit"},
		{"#DCS env.DCS_JOB_ID=1\na\n", "set by dcs-tui itself"},
		{"#!/bin/bash\nset -e\n", "is a script, not a jobs file"},
		{"#DCS env.X=" + strings.Repeat("x", 128<<10) + "\na\n", "env.X is longer than 127 KiB"},
		{"#DCS tries=1 tries=2\na\n", "tries is given twice"},
		{"\n#DCS tries=1\n#DCS tries=2\na\n", "j.txt:3: tries is given twice for one job; line 2 has it too"},
		{"#DCS name='x\na\n", "the closing ' is missing"},
		{"#DCS name='x'y\na\n", "a space must follow the closing quote"},
		{"#DCS name=it's\na\n", "put the whole value in quotes"},
		{"#DCS timeout=soon\na\n", `timeout: "soon" is not a duration`},
		{"#DCS timeout=0\na\n", "greater than zero"},
		{"#DCS est=-5m\na\n", "is not a duration"},
		{"#DCS mem=8X\na\n", `mem: "8X" is not a size`},
		{"#DCS retry_delay=-1s\na\n", "retry_delay: \"-1s\" is not a duration"},
		{"#DCS tries=0\na\n", "tries: 0 is not between 1"},
		{"#DCS tries=many\na\n", `"many" is not a whole number`},
		{"#DCS slots=1,5\na\n", "j.txt:1: slots: \"1,5\" is not a whole number"},
		{"#DCS gpus=0,5\na\n", `"0,5" is neither a whole number nor a part of a device from 0.001 to 0.999; a decimal`},
		{"#DCS gpus=many\na\n", `"many" is neither a whole number nor a part of a device`},
		{"#DCS priority=3000000000\na\n", "is not between"},
		{"#DCS slots=99999999999999999999\na\n", "is not between"},
		{"#DCS deadline=tomorrow\na\n", "is not a point in time"},
		{"#DCS deadline=1066-10-14\na\n", "out of range"},
		{"#DCS gpus=1.5\na\n", "gpus: \"1.5\" is neither a whole number nor a part"},
		{"#DCS gpus=0.0\na\n", "a part of a device from 0.001 to 0.999"},
		{"#DCS gpus=0.3333\na\n", "a part of a device from 0.001 to 0.999"},
		{"#DCS gpus=0.-5\na\n", "a part of a device from 0.001 to 0.999"},
		{"#DCS gpus=.5\na\n", "is neither a whole number nor a part"},
		{"#DCS gpus=1025\na\n", "is not between 0 and 1024"},
		{"#DCS gpus=-1\na\n", "is not between 0 and 1024"},
		{"#DCS tokens=matlab:0\na\n", "j.txt:1: tokens: 0 is not between 1 and 1000000"},
		{"#DCS tokens=matlab:many\na\n", `tokens: "many" is not a whole number`},
		{"#DCS tokens=:1\na\n", `tokens: "" is not a name of tokens`},
		{"#DCS tokens='a b:1'\na\n", `tokens: "a b" is not a name of tokens`},
		{"#DCS tokens=a,a:2\na\n", "tokens: a is given twice"},
		{"#DCS queue_slots=0\na\n", "queue_slots: 0 is not between 1 and 4096"},
		{"#DCS tags=a,,b\na\n", "empty item"},
		{"#DCS tags='a b'\na\n", "space or a comma"},
		{"#DCS on_lost=cry\na\n", "neither requeue nor wait"},
		{"#DCS after=x\na\n", "neither the number of a job"},
		{"#DCS after=1\na\n", "job 1 does not come before this one"},
		{"a\n#DCS after=1-99999999999\nb\n", "does not come before"},
		{"#DCS name=" + strings.Repeat("x", 201) + "\na\n", "longer than 200"},
		{"#DCS name='a\x1b[2Jb'\na\n", "control characters"},
		{strings.Repeat("x", maxLine+100<<10) + "\n", "longer than 4 MiB"},
		{strings.Repeat(strings.Repeat("x", 1<<20)+"\\\n", 18), "longer than 4 MiB"},
	} {
		t.Run(c.text, func(t *testing.T) {
			specs, err := Parse(strings.NewReader(c.text), "j.txt", false, 1)
			if err == nil || !strings.Contains(err.Error(), c.want) || specs != nil {
				t.Errorf("%.80q: %d jobs, error %v; want %q", c.text, len(specs), err, c.want)
			} else if !strings.HasPrefix(err.Error(), "j.txt:") || strings.Contains(err.Error(), "\n") {
				t.Errorf("%.80q: the error is not one line that begins with the file: %v", c.text, err)
			}
		})
	}
}

// TestParseCollectsErrors checks that several errors are shown at once, but not thousands, and that
// each is one line.
func TestParseCollectsErrors(t *testing.T) {
	text := "#DCS timeout=x\na\n#DCS tries=x\n#DCS slots=x\nb\n"
	_, err := Parse(strings.NewReader(text), "j", false, 1)
	if err == nil || strings.Count(err.Error(), "\n") != 2 {
		t.Errorf("want three lines: %v", err)
	}
	_, err = Parse(strings.NewReader(strings.Repeat("#DCS x=1\na\n", 1000)), "j", false, 1)
	if err == nil || strings.Count(err.Error(), "\n") != maxParseErrors {
		t.Errorf("want %d lines: %v", maxParseErrors+1, err)
	}
}

// TestFormatIsThatOfTheName checks that the name of a jobs file decides its format.
func TestFormatIsThatOfTheName(t *testing.T) {
	for name, text := range map[string]string{"j.txt": "echo 1\n", "j.jsonl": `{"command":"echo 1"}`} {
		t.Run(name, func(t *testing.T) {
			s, err := Parse(strings.NewReader(text), name, IsJSONLines(name), 1)
			if err != nil || len(s) != 1 || s[0].Command != "echo 1" || s[0].File != name {
				t.Errorf("%s: %+v, %v", name, s, err)
			}
		})
	}
}

// TestScannerReturnsJobsAsTheyArrive checks that standard input is parsed as it arrives (D1). A job
// is returned before the next line exists, and the jobs before a later error stay valid.
func TestScannerReturnsJobsAsTheyArrive(t *testing.T) {
	r, w := io.Pipe()
	s := NewScanner(r, "-", false, 1)
	for i := 1; i <= 3; i++ {
		written := make(chan error)
		go func() { _, err := fmt.Fprintf(w, "#DCS tries=%d\necho %d\n", i, i); written <- err }()
		spec, err := s.Next()
		if err != nil || spec.Tries != i || spec.ID != ID(i) || spec.Command != fmt.Sprint("echo ", i) {
			t.Fatalf("Next: got %+v, %v; want the next job with its tries", spec, err)
		}
		if err := <-written; err != nil {
			t.Fatal(err)
		}
	}
	go func() { _, _ = io.WriteString(w, "#DCS tries=x\necho 4\n"); w.Close() }()
	for range 2 {
		if spec, err := s.Next(); err == nil || err == io.EOF || !strings.Contains(err.Error(), "-:7: tries") {
			t.Fatalf("Next: got %+v, %v; want the error of line 7 each time", spec, err)
		}
	}
	r.Close()
}

// TestScannerReturnsReadErrors checks that an error of the reader is returned after the jobs before
// it.
func TestScannerReturnsReadErrors(t *testing.T) {
	s := NewScanner(io.MultiReader(strings.NewReader("a\n"), iotest.ErrReader(os.ErrDeadlineExceeded)), "-", false, 1)
	if spec, err := s.Next(); err != nil || spec.Command != "a" {
		t.Fatal(spec, err)
	}
	if _, err := s.Next(); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatal(err)
	}
	if _, err := NewScanner(strings.NewReader(""), "-", false, 1).Next(); err != io.EOF {
		t.Fatal(err)
	}
}

// TestScannerReadsSingleBytes checks that it does not matter in which pieces a text arrives.
func TestScannerReadsSingleBytes(t *testing.T) {
	text := "#DCS name=x\n a \\\r\n b\r\n\n#c\nd"
	s, err := Parse(iotest.OneByteReader(strings.NewReader(text)), "j.txt", false, 1)
	if err != nil || !reflect.DeepEqual(s, parseText(t, text)) {
		t.Fatalf("Parse: got %+v, %v; want the same jobs as from one text", s, err)
	}
}

// TestBlankAfterAContinuationIsAnError checks that a blank after a continuation \ is an error with
// line and column on every kind of line. Otherwise it would silently split one job into two.
func TestBlankAfterAContinuationIsAnError(t *testing.T) {
	const what = `: a space follows the \ at the end of this line`
	for text, at := range map[string]string{
		"python3 train.py 1 \\ \n  --epochs 3\n": ":1:21",
		"true\n\n  café \\\n  -x \\ \t\n -y\n":   ":4:7",
		"#DCS default tries=2\ntrue\\ ":          ":2:6",
		"true \\ \r\n  -y\r\n":                   ":1:7",
		"echo \\\\\\ \n":                         ":1:9",
	} {
		t.Run(text, func(t *testing.T) {
			s, err := Parse(strings.NewReader(text), "f", false, 1)
			if err == nil || s != nil || !strings.HasPrefix(err.Error(), "f"+at+what) {
				t.Errorf("%q: %v, want f%s%s", text, err, at, what)
			}
			if s, err := ParseAgain(strings.NewReader(text), "f", 1); err != nil || len(s) == 0 {
				t.Errorf("%q was accepted once, and now: %v", text, err)
			}
		})
	}
	for _, text := range []string{"echo \\\\ \n", "echo '\\' \n", "echo \\\n 1 \n", "# a comment \\ \ntrue\n",
		"printf 'a\\\nb' \n"} {
		t.Run(text, func(t *testing.T) {
			if _, err := Parse(strings.NewReader(text), "f", false, 1); err != nil {
				t.Errorf("%q: %v", text, err)
			}
		})
	}
	// Each error is one line, and the jobs after it have the right numbers.
	_, err := Parse(strings.NewReader("true\ntrue \\ \n#DCS after=2\ntrue\nx \\ \n"), "f", false, 1)
	if err == nil || strings.Count(err.Error(), "\n") != 1 || !strings.Contains(err.Error(), "f:5:4: ") {
		t.Errorf("got error %v, want two lines, one of them for f:5:4", err)
	}
}

// TestParseAfter checks dependencies on earlier jobs, by number or name, with a condition.
func TestParseAfter(t *testing.T) {
	for _, tt := range []struct{ after, want string }{
		{"1", "1"},
		{"1-2,any:3", "1-2,any:3"},
		{"ok:1", "1"},
		{"failed:prepare-*", "failed:1-2"},
		{"prepare-b,any:a/b", "2,any:3"},
		{"any:*", "any:1-3"},
		{"4", `error: job 4 does not come before this one`},
		{"prepar", `error: "prepar" is neither the number of a job`},
		{"any:", `error: "" is neither`},
		{"[", `error: "[" is neither`},
		{"self", `error: "self" is neither`},
	} {
		t.Run(tt.after, func(t *testing.T) {
			text := "#DCS name=prepare-a\ntrue\n#DCS name=prepare-b\ntrue\n#DCS name=a/b\ntrue\n#DCS name=self after=" +
				tt.after + "\ntrue\n"
			specs, err := Parse(strings.NewReader(text), "j.txt", false, 1)
			got := ""
			if err != nil {
				got = "error: " + strings.TrimPrefix(strings.TrimPrefix(err.Error(), "j.txt:7: "), "after: ")
			} else {
				got = specs[3].After().String()
			}
			if got != tt.want && !(err != nil && strings.HasPrefix(got, tt.want)) {
				t.Errorf("after=%s: got %s, want %s", tt.after, got, tt.want)
			}
		})
	}
}

// FuzzParse checks that no jobs file causes a panic. Accepted jobs survive a round trip through
// jobs.jsonl, and errors name the file.
func FuzzParse(f *testing.F) {
	f.Add([]byte("echo 1\n# c\n\n#DCS default tries=2 env.A='b c'\n#DCS name=\"x\\\"\" after=1\na \\\n b\n"), false)
	f.Add([]byte("#DCS timeout=1d12h mem=8G tags=a,b deadline=2026-11-20 hardness=1,2\r\ncat \xff\r\n"), false)
	f.Add([]byte("\ufeff#dcs x=1\n#DCS: \n#DCS a = b\nx\\\n#DCS a=b"), false)
	f.Add([]byte(`{"command":"a\n\ud83d\ude00","env":{"A":1},"params":{"p":"q"},"tags":["x"],"est":null}`), true)
	f.Add([]byte(`{"command":"a","after":[1,"2-3"],"priority":-1.5e+3}`), true)
	f.Add([]byte(`{"\n""`), true)
	f.Add([]byte(`{"m\nd":`), true) // a key with two lines made an error with two lines
	f.Fuzz(func(t *testing.T, data []byte, jsonl bool) {
		specs, err := Parse(bytes.NewReader(data), "f", jsonl, 1)
		if err != nil {
			if specs != nil {
				t.Fatal("a bad file gave jobs")
			}
			for line := range strings.SplitSeq(err.Error(), "\n") {
				if !strings.HasPrefix(line, "f:") {
					t.Fatalf("%q does not name the file", line)
				}
			}
			return
		}
		file := []byte(SpecsHeader(0))
		scanner := NewScanner(bytes.NewReader(data), "f", jsonl, 1)
		for i, s := range specs {
			if s.ID != ID(i+1) || s.Line < 1 || strings.Trim(s.Command, " \t\r\n") == "" ||
				strings.IndexByte(s.Command, 0) >= 0 {
				t.Fatalf("job %d: %+v", i+1, s)
			}
			if one, err := scanner.Next(); err != nil || !reflect.DeepEqual(one, s) {
				t.Fatalf("read one by one: %+v, %v", one, err)
			}
			file = AppendSpec(file, s)
		}
		if _, err := scanner.Next(); err != io.EOF {
			t.Fatal(err)
		}
		stored, err := decodeSpecs(file)
		again := stored.Specs
		if err != nil || !reflect.DeepEqual(specs, again) {
			t.Fatalf("read back: got error %v or other jobs from\n%s", err, file)
		}
	})
}

// TestFirstCommandOfTheREADMEWorks checks that the first command of the README works. The example
// parses, and its last and shortest job computes pi from its command and environment alone.
func TestFirstCommandOfTheREADMEWorks(t *testing.T) {
	text, err := os.ReadFile("../examples/jobs.txt")
	if err != nil {
		t.Fatal(err)
	}
	specs, err := Parse(bytes.NewReader(text), "jobs.txt", false, 1)
	if err != nil || len(specs) != 40 {
		t.Fatalf("%d jobs, %v", len(specs), err)
	}
	for _, s := range specs {
		if s.Estimate == 0 || s.Queue == "" || (s.ID > 32) != (s.Name != "") || !strings.HasPrefix(s.Command, "awk ") {
			t.Errorf("job %d: %q %+v", s.ID, s.Command, s.Options)
		}
	}
	machin := specs[39]
	cmd := exec.Command("/bin/sh", "-c", machin.Command)
	cmd.Env = os.Environ()
	for _, e := range machin.Env {
		cmd.Env = append(cmd.Env, e.Name+"="+e.Value)
	}
	if out, err := cmd.CombinedOutput(); err != nil || !strings.HasPrefix(string(out), "pi=3.14159265359") {
		t.Errorf("the script: got %q, %v; want pi", out, err)
	}
}

// TestRelativeCwdKeepsOptionsShared checks that equal options stay shared when their cwd is made
// absolute, and that other options do not change.
func TestRelativeCwdKeepsOptionsShared(t *testing.T) {
	shared, absolute := &Options{Cwd: "sub", Queue: "q"}, &Options{Cwd: "/data"}
	a, b := &Spec{Options: shared}, &Spec{Options: shared}
	c, d, e := &Spec{Options: absolute}, &Spec{Options: NoOptions}, &Spec{}
	r := AbsoluteCwd{Base: "/home/me"}
	for _, s := range []*Spec{a, b, c, d, e} {
		r.Resolve(s)
	}
	if a.Cwd != "/home/me/sub" || a.Queue != "q" || a.Options != b.Options || shared.Cwd != "sub" ||
		c.Options != absolute || d.Options != NoOptions || e.Options != nil {
		t.Errorf("options: got %+v, %+v; the shared ones are now %+v", a.Options, c.Options, shared)
	}
}
