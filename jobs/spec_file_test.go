package jobs

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// stored is the content of a file with specifications.
type stored struct {
	Specs   []*Spec
	Damage  []string
	Good    int64 // length of the valid part
	Unended bool
}

// decodeSpecs parses a whole jobs.jsonl.
func decodeSpecs(data []byte) (out stored, err error) {
	d := NewSpecDecoder("jobs.jsonl", 0)
	take := func(after int, add []*Spec, e error) { out.Specs, err = append(out.Specs[:after], add...), e }
	for err == nil {
		line, _, whole := bytes.Cut(data[out.Good:], []byte{'\n'})
		if !whole {
			after, add, used, e := d.End(line)
			take(after, add, e)
			out.Good, out.Unended, out.Damage = out.Good+int64(used), used > 0, d.Damage
			return out, err
		}
		take(d.Line(line))
		out.Good += int64(len(line)) + 1
	}
	return out, err
}

// fullSpec returns a specification with every field set, so that a forgotten field fails the round
// trip.
func fullSpec() *Spec {
	return &Spec{
		ID: 1, Line: 7, Command: "printf 'a\\tb' \"$X\"\t\x01\u2028é", Name: "näme",
		Labels: NewLabels("k\"1", []Param{{"x", "0.1"}, {"y", ""}}, Dependency{Range{3, 3}, AfterFailure},
			Dependency{Range{5, 7}, AfterEnd}),
		Options: &Options{
			Queue: "q", Priority: -3, Tries: 5, Timeout: 90*time.Second + 1, Estimate: 36 * time.Hour,
			Deadline: time.Date(2026, 11, 20, 18, 0, 0, 5, time.UTC), Tags: []string{"a", "gpu"}, GPUs: 250,
			MemBytes: 8 << 30, Slots: 4, Env: []EnvVar{{"A", "1\n2"}, {"B", ""}},
			Cwd: "/w d", Setup: "source ~/v/bin/activate", OnLost: OnLostWait, NoCopies: true, Hardness: []string{"10",
				"x"},
			Send: []string{"a b\n", "c:d"}, Return: []string{"out/*"},
			Tokens: []Token{{"a", 2}, {"b",
				1}}, QueueSlots: 9, Share: 2, QueuePriority: new(-3), RetryDelay: new(3 * time.Second),
			Request: "20260314T150200.000000Z-abcdefgh",
			File:    "dir/jobs.txt",
		},
	}
}

// TestFullSpecSetsEveryField checks that no field is left out of the tests that use fullSpec.
func TestFullSpecSetsEveryField(t *testing.T) {
	s := fullSpec()
	for _, v := range []reflect.Value{reflect.ValueOf(*s), reflect.ValueOf(*s.Labels), reflect.ValueOf(*s.Options)} {
		for i := range v.NumField() {
			name := v.Type().Field(i).Name
			notInMemory := name == "After" || name == "AfterOn"          // Labels hold them
			if v.Field(i).IsZero() && name != "Damage" && !notInMemory { // Damage is never stored
				t.Errorf("%s.%s is not covered by the round-trip test", v.Type(), name)
			}
		}
	}
}

// TestSpecsRoundTrip checks that a run directory returns exactly what was accepted (promise 1),
// including bytes that are not UTF-8.
func TestSpecsRoundTrip(t *testing.T) {
	full := fullSpec()
	bytesSpec := &Spec{ID: 2, Command: "cat \xff\xfe'\x80", Name: "\xc3", Options: &Options{
		QueuePriority: new(0), // differs from nil
		Cwd:           "\xe9t\xe9", Env: []EnvVar{{"A", "\xff"}}, Tags: []string{"\xfe"}}}
	plain := &Spec{ID: 3, Command: "echo 3", Options: NoOptions}
	empty := &Spec{ID: 4, Options: NoOptions}
	in := []*Spec{full, bytesSpec, plain, empty}
	data := []byte(SpecsHeader(0))
	for _, s := range in {
		data = AppendSpec(data, s)
	}
	stored, err := decodeSpecs(data)
	out := stored.Specs
	if err != nil || stored.Good != int64(len(data)) || len(stored.Damage) > 0 || stored.Unended {
		t.Fatalf("%d of %d bytes, %q, %v", stored.Good, len(data), stored.Damage, err)
	}
	if !reflect.DeepEqual(in, out) {
		for i := range out {
			t.Errorf("read back: %+v %+v", out[i], out[i].Options)
		}
		t.Fatal("the specs changed")
	}
	for _, line := range strings.SplitAfter(strings.TrimSuffix(string(data), "\n"), "\n") {
		if !utf8.ValidString(line) || !json.Valid([]byte(line)) {
			t.Errorf("other tools cannot read %q", line)
		}
	}
}

// TestDecodeSpecsSharesOptions checks that equal options are one value.
func TestDecodeSpecsSharesOptions(t *testing.T) {
	data := []byte(SpecsHeader(0))
	for id := ID(1); id <= 4; id++ {
		data = AppendSpec(data, &Spec{ID: id, Command: "x", Options: &Options{Tries: int(id % 2)}})
	}
	stored, err := decodeSpecs(data)
	s := stored.Specs
	if err != nil || s[0].Options != s[2].Options || s[1].Options != NoOptions || s[3].Options != NoOptions {
		t.Fatalf("equal options are not one value (%v)", err)
	}
}

// TestCompleteLinesBeforeACutCount checks that wherever a write is cut off, the complete lines
// before it count and the rest does not (promise 3 for the program's own files).
func TestCompleteLinesBeforeACutCount(t *testing.T) {
	data := []byte(SpecsHeader(0))
	ends := map[int64]int{0: 0, int64(len(data)): 0}
	for id := ID(1); id <= 3; id++ {
		s := fullSpec()
		s.ID = id
		data = AppendSpec(data, s)
		ends[int64(len(data))] = int(id)
	}
	for cut := range data {
		stored, err := decodeSpecs(data[:cut])
		specs, good := stored.Specs, stored.Good
		n, whole := ends[good]
		if err != nil || !whole || len(specs) != n || good > int64(cut) || len(stored.Damage) > 0 {
			t.Fatalf("cut at %d: %d specs, good %d, %q, %v", cut, len(specs), good, stored.Damage, err)
		}
		if _, isEnd := ends[int64(cut)]; isEnd && good != int64(cut) {
			t.Fatalf("cut at %d, a line's end: good %d", cut, good)
		}
	}
}

// TestDecodeSpecsRefuses checks that content that damage does not explain is an error, because
// nothing may run on a guess.
func TestDecodeSpecsRefuses(t *testing.T) {
	line := func(id ID) string { return string(AppendSpec(nil, &Spec{ID: id, Command: "x", Options: NoOptions})) }
	three := string(AppendLineSum([]byte(`{"v":3,"holds":"jobs"`), 0)) + "\n"
	for _, c := range []struct{ data, want string }{
		{"echo 1\n", "jobs.jsonl:1: it does not start"},
		{"echo 1\n" + `{"id":1,"command":"x"`, "jobs.jsonl:1: it does not start"},
		{three + line(1), "version 3"},
		{SpecsHeader(0) + line(1) + line(1), "jobs.jsonl:3: job 1 stands where job 2 should"},
		{SpecsHeader(0) + line(1<<40), "jobs.jsonl:2"},
		{SpecsHeader(0) + line(-1), "jobs.jsonl:2"},
	} {
		t.Run(c.data, func(t *testing.T) {
			stored, err := decodeSpecs([]byte(c.data))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%q: error %v, want %q (%d specs)", c.data, err, c.want, len(stored.Specs))
			}
		})
	}
}

// TestDecodeSpecsDamagedLine checks that an unreadable line costs only its own job, which is marked
// as damaged and cannot be run (promise 5).
func TestDecodeSpecsDamagedLine(t *testing.T) {
	sum := func(text string) string { return string(AppendLineSum([]byte(text), 0)) }
	one, three := sum(`{"id":1,"command":"a"`), sum(`{"id":3,"command":"c"`)
	for _, c := range []struct {
		name, line, want string // line "": the line is missing
	}{
		{"empty", "", "checksum does not fit"},
		{"no checksum", `{"id":2,"command":"a"}`, "checksum does not fit"},
		{"wrong checksum", `{"id":2,"command":"a","crc":"00000000"}`, "checksum does not fit"},
		{"cut off", `{"id":2,"command":"x","options":`, "checksum does not fit"},
		{"missing", "-", "missing"},
		{"no command", sum(`{"id":2`), "no command"},
		{"wrong option", sum(`{"id":2,"command":"x","options":{"on_lost":"x"}`), "neither requeue nor wait"},
		{"no base64", sum(`{"id":2,"command":{"b64":"!"}`), "base64"},
		{"huge", sum(`{"id":99999999999999999999,"command":"x"`), "out of range"},
		{"surrogate", sum(`{"id":2,"command":"x\ud800"`), "surrogate"},
	} {
		t.Run(c.name, func(t *testing.T) {
			data := SpecsHeader(0) + one + "\n" + c.line + "\n" + three + "\n"
			line := "jobs.jsonl:3"
			if c.line == "-" {
				data = SpecsHeader(0) + one + "\n" + three + "\n"
			}
			stored, err := decodeSpecs([]byte(data))
			if err != nil || len(stored.Specs) != 3 || stored.Good != int64(len(data)) || len(stored.Damage) == 0 {
				t.Fatalf("%d specs, %d of %d bytes, %q, %v", len(stored.Specs), stored.Good, len(data),
					stored.Damage, err)
			}
			s := stored.Specs[1]
			if !strings.Contains(s.Damage, c.want) || !strings.Contains(s.Damage, line) ||
				!strings.Contains(s.Damage, "job 2") || s.Command != "false" {
				t.Errorf("job 2 is %q, damage %q; want %q at %s", s.Command, s.Damage, c.want, line)
			}
			for i, want := range map[int]string{0: "a", 2: "c"} {
				if s := stored.Specs[i]; s.Damage != "" || s.Command != want {
					t.Errorf("job %d is %q, damage %q; want %q", s.ID, s.Command, s.Damage, want)
				}
			}
		})
	}
}

// TestSpecsOfANewerProgramAreNotDamage checks that a line with an unknown field whose checksum
// matches is an error. A run whose job counted as damaged would end with a failed job.
func TestSpecsOfANewerProgramAreNotDamage(t *testing.T) {
	for _, object := range []string{`{"id":1,"command":"x","colour":"red"`,
		`{"id":1,"command":"x","options":{"colour":1}`} {
		data := SpecsHeader(0) + string(AppendLineSum([]byte(object), 0)) + "\n"
		_, err := decodeSpecs([]byte(data))
		if err == nil || !strings.Contains(err.Error(), `jobs.jsonl:2: a newer dcs-tui wrote the field "colour"`) {
			t.Errorf("%s: got %v, want an error that names the field", object, err)
		}
	}
}

// TestStoredDependenciesKeepTheirForm checks that dependencies are stored among the options as
// numbers and conditions, which programs of other versions read, and that jobs with different ones
// share their options when they are read.
func TestStoredDependenciesKeepTheirForm(t *testing.T) {
	var reader SpecReader
	var options *Options
	for _, c := range []struct{ stored, after string }{
		{`"tokens":["a:2"],"after":[1,2,3,9],"after_on":["ok","ok","failed","any"],"cwd":"/w"`,
			"1-2,failed:3,any:9"},
		{`"tokens":["a:2"],"after":[5,4],"cwd":"/w"`, "5,4"},
	} {
		t.Run(c.after, func(t *testing.T) {
			text := `{"id":10,"command":"true","options":{` + c.stored + `}}`
			s, err := reader.Read([]byte(text))
			if err != nil {
				t.Fatal(err)
			}
			if got := s.After().String(); got != c.after {
				t.Errorf("it comes after %s, want %s", got, c.after)
			}
			if got := string(AppendSpecJSON(nil, s)); got != text {
				t.Errorf("got %s, want %s", got, text)
			}
			if options != nil && s.Options != options {
				t.Error("its options are not shared")
			}
			options = s.Options
		})
	}
	s, err := reader.Read([]byte(`{"id":1,"command":"a","options":{"\u0061fter":[7]}}`))
	if err != nil || s.After().String() != "7" || s.Options != NoOptions {
		t.Errorf("a name with escapes: got %+v, %v, want a job after 7", s, err)
	}
}

// FuzzSpecRoundTrip checks that every specification becomes one line and is read back unchanged.
func FuzzSpecRoundTrip(f *testing.F) {
	f.Add("echo 1", "", "x", "1", "A", "b", int64(5), -1)
	f.Add("a\\\"\n\x00\x7f\u2028", "\xff", "\xc3", "{\"b64\":\"\"}", "]", "\\u0000", int64(-1), 1<<40)
	f.Fuzz(func(t *testing.T, command, name, pn, pv, en, ev string, ns int64, n int) {
		in := &Spec{ID: 1, Line: n, Command: command, Name: name,
			Labels: NewLabels("", []Param{{pn, pv}}, Dependency{Range: Range{ID(n), ID(n)}}),
			Options: &Options{
				Timeout: time.Duration(ns), Priority: n, MemBytes: ns, Env: []EnvVar{{en, ev}},
				Tags: []string{pn, pv}, Queue: ev, File: en,
				Deadline: StampOf(time.Unix(0, ns)).Time().UTC(),
			}}
		line := AppendSpec(nil, in)
		if !json.Valid(line) || strings.Count(string(line), "\n") != 1 {
			t.Fatalf("not one JSON line: %q", line)
		}
		stored, err := decodeSpecs(append([]byte(SpecsHeader(0)), line...))
		out := stored.Specs
		if err != nil || len(out) != 1 || !reflect.DeepEqual(in, out[0]) {
			t.Fatalf("read back: got error %v\n%+v %+v, want it unchanged, from\n%q", err, in, in.Options, line)
		}
	})
}

// FuzzDecodeSpecs checks that the encoder writes whatever the decoder accepts with the same
// meaning, and that nothing makes the decoder panic.
func FuzzDecodeSpecs(f *testing.F) {
	f.Add([]byte(SpecsHeader(0) + string(AppendSpec(nil, fullSpec()))))
	f.Add([]byte(SpecsHeader(0) + `{"id":1,"command":"\ud83d\ude00\u00e9"}` + "\n" + `{"id":2,"comm`))
	f.Add([]byte(SpecsHeader(0) + `{"id":1,"command":{"b64":"/w=="},"options":{"on_lost":0}}` + "\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		stored, err := decodeSpecs(data)
		if stored.Good < 0 || stored.Good > int64(len(data)) {
			t.Fatalf("%d bytes are good", stored.Good)
		}
		for i, s := range stored.Specs {
			if s.ID != ID(i+1) || s.Damage != "" && (s.Command != "false" || len(stored.Damage) == 0) {
				t.Fatalf("job %d stands in place %d, and is %q for %q", s.ID, i, s.Command, s.Damage)
			}
		}
		if err != nil {
			return
		}
		again := []byte(SpecsHeader(0))
		for _, s := range stored.Specs {
			again = AppendSpec(again, s)
		}
		out, err := decodeSpecs(again)
		if err != nil || len(out.Specs) != len(stored.Specs) || len(out.Damage) > 0 {
			t.Fatalf("%d specs, then %d, %v", len(stored.Specs), len(out.Specs), err)
		}
		third := []byte(SpecsHeader(0))
		for _, s := range out.Specs {
			third = AppendSpec(third, s)
		}
		if string(third) != string(again) {
			t.Fatalf("not stable:\n%s\n%s", again, third)
		}
	})
}

// damageFile returns a jobs.jsonl of a few jobs with everything that a line may hold.
func damageFile() ([]*Spec, []byte) {
	shared := &Options{File: "sweep.txt", Tries: 2}
	specs := []*Spec{
		fullSpec(),
		{ID: 2, Command: "rm -r ./J*", Options: NoOptions}, // J and * are one bit away from a newline
		{ID: 3, Line: 9, Command: "cat \xff", Options: shared},
		{ID: 4, Line: 10, Command: `echo ,"crc":"00000000"}`, Options: shared},
	}
	data := []byte(SpecsHeader(0))
	for _, s := range specs {
		data = AppendSpec(data, s)
	}
	return specs, data
}

// checkLostJobs fails the test unless the damaged file yields every job unchanged except for at
// most n, which must be marked as damaged. No job may get another command.
func checkLostJobs(t *testing.T, what string, at, n int, specs []*Spec, data []byte) {
	t.Helper()
	stored, err := decodeSpecs(data)
	if err != nil {
		t.Fatalf("%s at %d: the whole file is refused: %v", what, at, err)
	}
	if len(stored.Specs) != len(specs) {
		t.Fatalf("%s at %d: %d jobs of %d, %q", what, at, len(stored.Specs), len(specs), stored.Damage)
	}
	lost := 0
	for i, s := range stored.Specs {
		switch {
		case s.Damage != "":
			lost++
		case !reflect.DeepEqual(s, specs[i]):
			t.Fatalf("%s at %d: job %d is now %q", what, at, s.ID, s.Command)
		}
	}
	if lost > n || len(stored.Damage) == 0 {
		t.Fatalf("%s at %d: %d jobs are lost; told: %q", what, at, lost, stored.Damage)
	}
}

// TestDamagedByteCostsOneJob checks every single bit flip, byte turned into a newline, and removed
// byte of jobs.jsonl. At most the job of that line is lost and is marked as damaged. No job gets
// another command and none disappears (promises 1 and 5).
func TestDamagedByteCostsOneJob(t *testing.T) {
	specs, data := damageFile()
	for i := range data {
		c := bytes.Clone(data)
		for bit := range 8 {
			c[i] = data[i] ^ 1<<bit
			checkLostJobs(t, "bit flipped in byte", i, 1, specs, c)
		}
		if header := len(SpecsHeader(0)); i >= header {
			if c[i] = '\n'; data[i] != '\n' {
				checkLostJobs(t, "newline in place of the byte", i, 1, specs, c)
			}
			if i != len(data)-1 { // without its last byte it is a line that was cut off
				checkLostJobs(t, "byte missing", i, 1, specs, append(bytes.Clone(data[:i]), data[i+1:]...))
			}
			checkLostJobs(t, "zeros from here to the line's end", i, 1, specs, zeroLine(data, i))
		}
	}
}

func zeroLine(data []byte, from int) []byte {
	c := bytes.Clone(data)
	for i := from; i == from || i < len(c) && c[i] != '\n'; i++ {
		c[i] = 0
	}
	return c
}

// TestDamagedLastNewlineIsReported checks that a file whose last newline is damaged is reported as
// such, because an append needs a newline first.
func TestDamagedLastNewlineIsReported(t *testing.T) {
	specs, data := damageFile()
	data[len(data)-1] = 0x0b
	stored, err := decodeSpecs(data)
	if err != nil || !stored.Unended || stored.Good != int64(len(data)) || !reflect.DeepEqual(stored.Specs, specs) {
		t.Fatalf("%d jobs, %d of %d bytes, unended %v, %v", len(stored.Specs), stored.Good, len(data),
			stored.Unended, err)
	}
}
