package journal

import (
	"bytes"
	"encoding/json"
	"math"
	"reflect"
	"testing"
	"time"
	"unicode/utf8"
	"unsafe"

	"dcs-tui/jobs"
	"dcs-tui/jobs/jobstest"
)

// TestTornOrDamaged checks that every prefix of a line is a line that was never completed, and no
// damage. Lines that lost their newlines together with their text are damage (promises 1 and 2).
func TestTornOrDamaged(t *testing.T) {
	line := appendLine(nil, &jobs.Record{Kind: jobs.KindExited, At: 12, Job: 3, N: 1, Host: "a", Reason: "é \\ \" {",
		Next:    jobs.Running,
		Outcome: &jobs.Outcome{Started: 5, Ended: 9}})
	line = line[:len(line)-1]
	for n := range line {
		if !isLineBeginning(line[:n]) || !isLineBeginning(append(line[:n:n], 0, 0, 0)) {
			t.Errorf("the beginning %q is taken for damaged", line[:n])
		}
	}
	whole := append(line[:len(line):len(line)], '\n')
	for bit := range 8 * len(line) { // a bit of the line, and one of its newline
		if b := flipped(flipped(whole, bit), 8*len(line)); isLineBeginning(b) {
			t.Errorf("bit %d: %q is taken for the beginning of a line", bit, b)
		}
	}
	for from := range line { // everything that follows
		b := bytes.Clone(whole)
		for i := from; i < len(b); i++ {
			b[i] ^= 0x80
		}
		if isLineBeginning(b) {
			t.Errorf("from byte %d on: %q is taken for the beginning of a line", from, b)
		}
	}
}

// full is a record with every field set.
var full = jobs.Record{
	Kind:     jobs.KindExited,
	At:       math.MaxInt64,
	Job:      17,
	N:        2,
	Host:     "melon4",
	Slot:     3,
	Count:    9,
	Next:     jobs.Failed,
	Charged:  true,
	Retry:    5,
	Seq:      11,
	Reason:   "why \"not\" \\ \n\t\x00\x1f <&> ü \u2028 😀",
	Priority: -7,
	Started:  math.MinInt64,
	Epoch:    4,
	Owner:    "me",
	Files:    []jobs.FileMark{{Name: "000001.jsonl", Length: 1 << 40, CRC: math.MaxUint32}, {}},
	Spec: &jobs.Spec{ID: 17, Line: 2, Command: "a <b> \x00\xff",
		Labels:  jobs.NewLabels("", nil, jobstest.After(3)...),
		Options: &jobs.Options{Queue: "q", Slots: 2}},
	Outcome: &jobs.Outcome{Exit: -1, Signal: "SIGKILL", Started: 1, Ended: 2, CPU: time.Hour, MaxRSSBytes: 1 << 50,
		Memory: jobs.MemoryLimit, TimedOut: true,
		Stopped: true, DiskFull: true, LeftChildren: 3, Error: "no\nsuch", LastLine: "the \"end\"",
		ProcessLimit: jobs.ProcessLimit{Kind: jobs.LimitPids, Max: math.MaxInt64, Path: "/sys/fs"}},
}

// edited returns a record of an edited job.
func edited(command string) jobs.Record {
	o := &jobs.Options{Queue: "q", Timeout: time.Hour, Tags: []string{"a", "\xfe"},
		Env: []jobs.EnvVar{{Name: "A", Value: "<"}}}
	return jobs.Record{Kind: jobs.KindEdited, At: 5, Job: 7, Reason: "by a person",
		Spec: &jobs.Spec{ID: 7, Line: 3, Command: command, Name: "n",
			Labels: jobs.NewLabels("", []jobs.Param{{Name: "x", Value: "1"}}), Options: o}}
}

// TestCodecAgreesWithJSON checks that the record form is plain JSON. encoding/json reads it, and
// the decoder reads what encoding/json writes. A specification survives byte for byte, including
// what JSON cannot encode. Each host name, and equal options, are stored only once.
func TestCodecAgreesWithJSON(t *testing.T) {
	_, records := jobstest.History(7, 20, 1000)
	records = append(records, full, jobs.Record{}, edited("echo <&> ü \u2028 \"x\" \\"), edited("printf '\xff\n\x01'"),
		edited(""))
	var d jobs.RecordReader
	hosts := map[string]*byte{}
	var options *jobs.Options // of the edited records
	for _, r := range records {
		ours := jobs.AppendRecord(nil, &r)
		var a, b, c jobs.Record
		if err := json.Unmarshal(ours, &a); err != nil || !reflect.DeepEqual(a, r) {
			t.Fatalf("%v\nwrote %+v as %s\nread  %+v", err, r, ours, a)
		}
		theirs, err := json.Marshal(r)
		must(t, err)
		if err := d.Read(theirs, &b); err != nil || !reflect.DeepEqual(b, r) {
			t.Fatalf("%v\n%s\nread  %+v", err, theirs, b)
		}
		if err := d.Read(ours, &c); err != nil || !reflect.DeepEqual(c, r) {
			t.Fatalf("%v\n%s\nread  %+v", err, ours, c)
		}
		if bytes.ContainsAny(ours, "\n") {
			t.Fatalf("a record of two lines: %q", ours)
		}
		if p := hosts[b.Host]; p != nil && p != unsafe.StringData(b.Host) {
			t.Fatalf("the host name %q is held twice", b.Host)
		}
		hosts[b.Host] = unsafe.StringData(b.Host)
		if r.Job != 7 || r.Kind != jobs.KindEdited || r.Reason != "by a person" {
			continue
		}
		if b.Spec.Options != c.Spec.Options || options != nil && b.Spec.Options != options {
			t.Errorf("equal options are held twice")
		}
		options = b.Spec.Options
	}
}

// TestInvalidRecordsAreRefused checks that a record that is not exactly one valid object is
// refused.
func TestInvalidRecordsAreRefused(t *testing.T) {
	var d jobs.RecordReader
	for _, s := range []string{
		"", "{", "null0", "[]", `{"k":1}`, `{"k":"exited","t":1}x`, `{"k":"exited","t":1} {}`,
		`{"k":"exited","unknown":1}`,
		`{"k":"exited","t":1.5}`,
		`{"k":"exited","t":9223372036854775808}`,
		`{"k":"exited","j":"1"}`,
		`{"k":"job","next":"perhaps"}`,
		`{"k":"exited","o":{"exit":01}}`,
		`{"k":"exited","o":{"exit":}}`,
		`{"k":"x","t":1,}`,
		`{"k":"x" "t":1}`,
		`{"charged":tru}`,
		`{"k":"edited","spec":{"id":1}}`, `{"k":"edited","spec":[]}`, `{"k":"edited","spec":`, `{"k":"edited","spec":}`,
		`{"k":"edited","spec":{"id":1,"command":"a"},"spec":5}`,
	} {
		t.Run(s, func(t *testing.T) {
			var r jobs.Record
			if err := d.Read([]byte(s), &r); err == nil {
				t.Errorf("%q was read as %+v", s, r)
			}
		})
	}
}

// FuzzRecord checks that every record becomes one line and is read back unchanged, as by
// encoding/json.
func FuzzRecord(f *testing.F) {
	f.Add("launching", int64(1), 17, 2, "melon4", 3, uint8(2), int64(9), "", int64(5), "", int64(0))
	f.Add("exited", int64(-1), math.MinInt, 0, "ü\n\"\\", -3, uint8(6), int64(math.MinInt64), "why\x00\xff",
		int64(math.MaxInt64), "SIGKILL", int64(1))
	f.Fuzz(func(
		t *testing.T, kind string, at int64, job, n int, host string, slot int, next uint8, seq int64, why string,
		ended int64, signal string, rss int64,
	) {
		r := jobs.Record{Kind: jobs.Kind(kind), At: jobs.Stamp(at), Job: jobs.ID(job), N: n, Host: host, Slot: slot,
			Next: jobs.JobState(next % 7), Seq: seq, Reason: why, Charged: rss%2 == 0}
		if rss != 0 {
			r.Outcome = &jobs.Outcome{Exit: slot, Signal: signal, Ended: jobs.Stamp(ended), MaxRSSBytes: rss,
				LastLine: why}
		}
		line := appendLine(nil, &r)
		body, ok := lineBody(line[:len(line)-1])
		if !ok || bytes.IndexByte(line, '\n') != len(line)-1 {
			t.Fatalf("not a line: %q", line)
		}
		var d jobs.RecordReader
		var got, std jobs.Record
		if err := d.Read(body, &got); err != nil {
			t.Fatalf("%q: %v", body, err)
		}
		if err := json.Unmarshal(body, &std); err != nil || !reflect.DeepEqual(got, std) {
			t.Fatalf("%q: %v\nours %+v\nstd  %+v", body, err, got, std)
		}
		for _, s := range []string{kind, host, why, signal} {
			if !utf8.ValidString(s) {
				return // U+FFFD replaces what JSON cannot encode
			}
		}
		if !reflect.DeepEqual(got, r) {
			t.Fatalf("%+v\nbecame %+v", r, got)
		}
	})
}

// FuzzDecode checks that no bytes make the decoder panic, and that it decodes the same as
// encoding/json.
func FuzzDecode(f *testing.F) {
	f.Add(jobs.AppendRecord(nil, &full))
	for _, r := range pair(10) {
		f.Add(jobs.AppendRecord(nil, &r))
	}
	f.Add([]byte(`{"k":"a","k":"b","o":{"exit":-0,"started":1,"ended":2},"t":-0}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		var d jobs.RecordReader
		var got, std jobs.Record
		if err := d.Read(b, &got); err != nil {
			return
		}
		if err := json.Unmarshal(b, &std); err != nil {
			t.Fatalf("encoding/json refuses %q: %v", b, err)
		}
		// A repeated object: encoding/json merges it.
		if bytes.Count(b, []byte(`"o"`)) < 2 && !reflect.DeepEqual(got, std) {
			t.Fatalf("%q\nours %+v\nstd  %+v", b, got, std)
		}
		again := jobs.AppendRecord(nil, &got)
		var back jobs.Record
		if err := d.Read(again, &back); err != nil || !reflect.DeepEqual(back, got) && len(got.Files) > 0 {
			t.Fatalf("%q, then %q: %v", b, again, err)
		}
	})
}

// TestEditCountsAfterLostRecords checks that an edit still counts after damage. The attempts that
// must have ended before it are treated as ended, and the job never runs by its old specification.
func TestEditCountsAfterLostRecords(t *testing.T) {
	spec := func(command string) *jobs.Spec {
		return &jobs.Spec{ID: 1, Line: 1, Command: command, Options: jobs.NoOptions}
	}
	table := &jobs.Table{Specs: []*jobs.Spec{spec("old")}, Damaged: true}
	p := &Follower{table: table, report: &Report{Damaged: true}}
	for _, r := range []jobs.Record{
		{Kind: jobs.KindLaunching, Job: 1, N: 1, Host: "a"}, // its acceptance and its exit are lost
		{Kind: jobs.KindEdited, Job: 1, Spec: spec("new")},
		{Kind: jobs.KindLaunching, Job: 1, N: 2, Host: "a"},
	} {
		must(t, p.fold(&r))
	}
	j := table.Job(1)
	if j.Spec.Command != "new" || j.State != jobs.Running || j.Attempts[0].State != jobs.AttemptLost ||
		j.Attempts[0].Round != 0 || j.Attempts[1].Round != 1 {
		t.Errorf("got job %+v, want the new command, and a lost and a running attempt", j)
	}
}
