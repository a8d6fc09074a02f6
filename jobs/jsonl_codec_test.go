package jobs

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// fullSpec sets every field, so that a forgotten one fails the round trip.
func fullSpec() *Spec {
	return &Spec{
		ID: 1, Line: 7, Command: "printf 'a\\tb' \"$X\"\t\x01\u2028é", Name: "näme", Key: "k\"1",
		Params: []Param{{"x", "0.1"}, {"y", ""}},
		Options: &Options{
			Queue: "q", Priority: -3, Tries: 5, Timeout: 90*time.Second + 1, Estimate: 36 * time.Hour,
			Deadline: time.Date(2026, 11, 20, 18, 0, 0, 5, time.UTC), Tags: []string{"a", "gpu"}, GPUs: 2,
			MemBytes: 8 << 30, Slots: 4, After: []ID{3, 5}, AfterOn: []Condition{AfterFailure, AfterEnd}, Env: []EnvVar{{"A", "1\n2"}, {"B", ""}},
			Cwd: "/w d", Setup: "source ~/v/bin/activate", OnLost: OnLostWait, NoCopies: true, Hardness: []string{"10", "x"},
			Send: []string{"a b\n", "c:d"}, Return: []string{"out/*"},
			Tokens: []Token{{"a", 2}, {"b", 1}}, QueueSlots: 9, Share: 2, QueuePriority: new(-3), RetryDelay: new(3 * time.Second), Request: "20260314T150200.000000Z-abcdefgh",
			File: "dir/jobs.txt",
		},
	}
}

func TestFullSpecSetsEveryField(t *testing.T) {
	s := fullSpec()
	for _, v := range []reflect.Value{reflect.ValueOf(*s), reflect.ValueOf(*s.Options)} {
		for i := range v.NumField() {
			if v.Field(i).IsZero() && v.Type().Field(i).Name != "Damage" { // that is never stored
				t.Errorf("%s.%s is not covered by the round-trip test", v.Type(), v.Type().Field(i).Name)
			}
		}
	}
}

// A run directory gives back exactly what was accepted (promise 1), bytes that
// are no UTF-8 included.
func TestSpecsRoundTrip(t *testing.T) {
	full := fullSpec()
	bytesSpec := &Spec{ID: 2, Command: "cat \xff\xfe'\x80", Name: "\xc3", Options: &Options{
		QueuePriority: new(0), // is not the same as none
		Cwd:           "\xe9t\xe9", Env: []EnvVar{{"A", "\xff"}}, Tags: []string{"\xfe"}}}
	plain := &Spec{ID: 3, Command: "echo 3", Options: NoOptions}
	empty := &Spec{ID: 4, Options: NoOptions}
	in := []*Spec{full, bytesSpec, plain, empty}
	data := []byte(SpecsHeader)
	for _, s := range in {
		data = AppendSpec(data, s)
	}
	stored, err := DecodeSpecs(data)
	out := stored.Specs
	if err != nil || stored.Good != int64(len(data)) || len(stored.Damage) > 0 || stored.Unended {
		t.Fatalf("%d of %d bytes, %q, %v", stored.Good, len(data), stored.Damage, err)
	}
	if !reflect.DeepEqual(in, out) {
		for i := range out {
			t.Errorf("%+v %+v", out[i], out[i].Options)
		}
		t.Fatal("the specs changed")
	}
	for _, line := range strings.SplitAfter(strings.TrimSuffix(string(data), "\n"), "\n") {
		if !utf8.ValidString(line) || !json.Valid([]byte(line)) {
			t.Errorf("other tools cannot read %q", line)
		}
	}
}

func TestDecodeSpecsSharesOptions(t *testing.T) {
	data := []byte(SpecsHeader)
	for id := ID(1); id <= 4; id++ {
		data = AppendSpec(data, &Spec{ID: id, Command: "x", Options: &Options{Tries: int(id % 2)}})
	}
	stored, err := DecodeSpecs(data)
	s := stored.Specs
	if err != nil || s[0].Options != s[2].Options || s[1].Options != NoOptions || s[3].Options != NoOptions {
		t.Fatalf("equal options are not one value (%v)", err)
	}
}

// Wherever a write is cut off, the whole lines before it count and the rest is
// known not to (promise 3 for our own files).
func TestDecodeSpecsTornTail(t *testing.T) {
	data := []byte(SpecsHeader)
	ends := map[int64]int{0: 0, int64(len(data)): 0}
	for id := ID(1); id <= 3; id++ {
		s := fullSpec()
		s.ID = id
		data = AppendSpec(data, s)
		ends[int64(len(data))] = int(id)
	}
	for cut := range data {
		stored, err := DecodeSpecs(data[:cut])
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

// What no damage explains stops everything: nothing may run on a guess.
func TestDecodeSpecsRefuses(t *testing.T) {
	line := func(id ID) string { return string(AppendSpec(nil, &Spec{ID: id, Command: "x", Options: NoOptions})) }
	three := string(AppendLineSum([]byte(`{"v":3,"holds":"jobs"`), 0)) + "\n"
	for _, c := range []struct{ data, want string }{
		{"echo 1\n", "jobs.jsonl:1: it does not start"},
		{"echo 1\n" + `{"id":1,"command":"x"`, "jobs.jsonl:1: it does not start"},
		{three + line(1), "version 3"},
		{SpecsHeader + line(1) + line(1), "jobs.jsonl:3: job 1 stands where job 2 should"},
		{SpecsHeader + line(1<<40), "jobs.jsonl:2"},
		{SpecsHeader + line(-1), "jobs.jsonl:2"},
	} {
		stored, err := DecodeSpecs([]byte(c.data))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: error %v, want %q (%d specs)", c.data, err, c.want, len(stored.Specs))
		}
	}
}

// A line that cannot be read costs its own job, which says why and cannot be
// run: today's lines, and those from before there were checksums (promise 5).
func TestDecodeSpecsDamagedLine(t *testing.T) {
	v1 := func(texts ...string) string { return specsHeader1 + "\n" + strings.Join(texts, "\n") + "\n" }
	one, three := `{"id":1,"command":"a"}`, `{"id":3,"command":"c"}`
	sum := func(text string) string { return string(AppendLineSum([]byte(text), 0)) }
	v2 := func(texts ...string) string { return SpecsHeader + strings.Join(texts, "\n") + "\n" }
	for _, c := range []struct{ data, want string }{
		{v1(one, "", three), "not whole"},
		{v1(one, `{"id":2}`, three), "too early"},
		{v1(one, `{"id":2,"command":"x","colour":"red"}`, three), "the end of the line"},
		{v1(one, `{"id":2,"command":"x","options":{}}`, three), "an option"},
		{v1(one, `{"id":2,"command":"x","options":{"tries":1,"queue":"q"}}`, three), "an option"},
		{v1(one, `{"id":2,"command":"x","options":{"on_lost":9}}`, three), "on_lost 9"},
		{v1(one, `{"id":2,"command":{"b64":"!"}}`, three), "base64"},
		{v1(one, `{"id":99999999999999999999,"command":"x"}`, three), "64 bits"},
		{v1(one, `{"id":2,"command":"x\ud800"}`, three), "surrogate"},
		{v1(one, `{"id":2,"command":"x","options":`, three), "not whole"},
		{v1(one, `{"id":9,"command":"x"}`, three), "job 9 stands where job 2 should"},
		{v1(one, `{"id":2,"command":"x"}!{"id":3,"command":"c"}`, `{"id":4,"command":"d"}`), "the end of the line"},
		{v2(sum(`{"id":1,"command":"a"`), one, sum(`{"id":3,"command":"c"`)), "no checksum"},
		{v2(sum(`{"id":1,"command":"a"`), sum(`{"id":3,"command":"c"`)), "missing"},
		{v2(sum(`{"id":1,"command":"a"`), `{"id":2,"command":"a","crc":"00000000"}`, sum(`{"id":3,"command":"c"`)), "checksum does not fit"},
	} {
		stored, err := DecodeSpecs([]byte(c.data))
		if err != nil || len(stored.Specs) < 3 || stored.Good != int64(len(c.data)) {
			t.Errorf("%q: %d specs, %d bytes, %v", c.data, len(stored.Specs), stored.Good, err)
			continue
		}
		s := stored.Specs[1]
		if len(stored.Damage) == 0 || !strings.Contains(s.Damage, c.want) || !strings.Contains(s.Damage, "jobs.jsonl:3") ||
			!strings.Contains(s.Damage, "job 2") || s.Command != "false" {
			t.Errorf("%q: job 2 is %q, %q; want %q; %q", c.data, s.Command, s.Damage, c.want, stored.Damage)
		}
		if stored.Specs[0].Damage != "" || stored.Specs[0].Command != "a" {
			t.Errorf("%q: job 1 pays for it", c.data)
		}
		if last := stored.Specs[len(stored.Specs)-1]; last.Damage != "" || last.Command != string(rune('a'+last.ID-1)) {
			t.Errorf("%q: the last job pays for it", c.data)
		}
	}
}

// A deadline that RFC 3339 cannot write must not make the file unreadable.
func TestSpecDeadlineFarAway(t *testing.T) {
	for _, year := range []int{-5, 0, 1, 9999, 12345} {
		s := &Spec{ID: 1, Options: &Options{Deadline: time.Date(year, 1, 1, 0, 0, 0, 7, time.UTC)}}
		out, err := DecodeSpecs(AppendSpec([]byte(SpecsHeader), s))
		if err != nil || out.Specs[0].Deadline.IsZero() {
			t.Errorf("year %d: %v", year, err)
		}
	}
}

func FuzzSpecRoundTrip(f *testing.F) {
	f.Add("echo 1", "", "x", "1", "A", "b", int64(5), -1)
	f.Add("a\\\"\n\x00\x7f\u2028", "\xff", "\xc3", "{\"b64\":\"\"}", "]", "\\u0000", int64(-1), 1<<40)
	f.Fuzz(func(t *testing.T, command, name, pn, pv, en, ev string, ns int64, n int) {
		in := &Spec{ID: 1, Line: n, Command: command, Name: name, Params: []Param{{pn, pv}}, Options: &Options{
			Timeout: time.Duration(ns), Priority: n, MemBytes: ns, Env: []EnvVar{{en, ev}},
			Tags: []string{pn, pv}, Queue: ev, After: []ID{ID(n)}, File: en, Deadline: StampOf(time.Unix(0, ns)).Time().UTC(),
		}}
		line := AppendSpec(nil, in)
		if !json.Valid(line) || strings.Count(string(line), "\n") != 1 {
			t.Fatalf("not one JSON line: %q", line)
		}
		stored, err := DecodeSpecs(append([]byte(SpecsHeader), line...))
		out := stored.Specs
		if err != nil || len(out) != 1 || !reflect.DeepEqual(in, out[0]) {
			t.Fatalf("%v\n%+v %+v\n%q", err, in, in.Options, line)
		}
	})
}

// What the decoder takes, the encoder writes again with the same meaning; and
// nothing makes it panic.
func FuzzDecodeSpecs(f *testing.F) {
	f.Add([]byte(SpecsHeader + string(AppendSpec(nil, fullSpec()))))
	f.Add([]byte(SpecsHeader + `{"id":1,"command":"\ud83d\ude00\u00e9"}` + "\n" + `{"id":2,"comm`))
	f.Add([]byte(SpecsHeader + `{"id":1,"command":{"b64":"/w=="},"options":{"on_lost":0}}` + "\n"))
	f.Add([]byte(specsHeader1 + "\n" + `{"id":1,"command":"a"}` + "\n\n" + `{"id":3,"command":"c"}` + "\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		stored, err := DecodeSpecs(data)
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
		again := []byte(SpecsHeader)
		for _, s := range stored.Specs {
			again = AppendSpec(again, s)
		}
		out, err := DecodeSpecs(again)
		if err != nil || len(out.Specs) != len(stored.Specs) || len(out.Damage) > 0 {
			t.Fatalf("%d specs, then %d, %v", len(stored.Specs), len(out.Specs), err)
		}
		third := []byte(SpecsHeader)
		for _, s := range out.Specs {
			third = AppendSpec(third, s)
		}
		if string(third) != string(again) {
			t.Fatalf("not stable:\n%s\n%s", again, third)
		}
	})
}

// benchmarkSpecs are jobs as a sweep has them: short, one option shared.
func benchmarkSpecs(n int) []byte {
	data := []byte(SpecsHeader)
	o := &Options{File: "sweep.txt", Estimate: 5 * time.Minute}
	for i := range n {
		data = AppendSpec(data, &Spec{ID: ID(i + 1), Line: i + 2, Command: `./sim --seed 12345 --out "r/12345.csv"`, Options: o})
	}
	return data
}

func BenchmarkAppendSpec(b *testing.B) {
	s := fullSpec()
	s.Options = &Options{File: "sweep.txt", Estimate: 5 * time.Minute}
	buf := make([]byte, 0, 1<<10)
	b.ReportAllocs()
	for b.Loop() {
		buf = AppendSpec(buf[:0], s)
	}
}

func BenchmarkDecodeSpecs(b *testing.B) {
	const n = 20_000
	data := benchmarkSpecs(n)
	b.ReportAllocs()
	for b.Loop() {
		if s, err := DecodeSpecs(data); err != nil || len(s.Specs) != n {
			b.Fatal(len(s.Specs), err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/job")
}
