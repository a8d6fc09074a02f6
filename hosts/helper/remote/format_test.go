//go:build linux

package remote

import (
	"reflect"
	"testing"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// FuzzSpec checks that every spec that can be parsed is stored and read back unchanged.
func FuzzSpec(f *testing.F) {
	full := hosts.LaunchJob{Attempt: jobs.AttemptID{Job: 17, N: 2}, Command: "echo \xff\x00", Cwd: "/x", Setup: "s",
		Env: []jobs.EnvVar{{Name: "A", Value: "b"}}, Params: []jobs.Param{{Name: "p",
			Value: ""}}, Timeout: time.Second, Slots: 3, Mem: 1 << 33, GPUs: []int{0, 5}, GPUShare: 250}
	f.Add(appendSpec(nil, &full))
	f.Add(append(appendSpec(nil, &hosts.LaunchJob{Attempt: jobs.AttemptID{Job: 1, N: 1}}),
		"what stood there before"...))
	f.Add([]byte(specMagic.String()))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		j, err := parseSpec(b)
		if err != nil {
			return
		}
		again, err := parseSpec(appendSpec(nil, j))
		if err != nil || !reflect.DeepEqual(j, again) {
			t.Errorf("%+v became %+v, %v", j, again, err)
		}
	})
}

// FuzzReport checks that every report that can be parsed fits into a line and can be parsed again.
func FuzzReport(f *testing.F) {
	id, by := jobs.AttemptID{Job: 17, N: 2}, holder{3, 4711, 99}
	for _, r := range []report{
		{Kind: repStarted, Attempt: id, By: by, Job: 4712, At: 5},
		{Kind: repExited, Attempt: id, By: by, Outcome: jobs.Outcome{
			Exit:         -1,
			Signal:       "SIGKILL",
			Started:      1,
			Ended:        2,
			CPU:          3,
			MaxRSSBytes:  4,
			TimedOut:     true,
			Stopped:      true,
			LeftChildren: 5,
			Error:        "a \"b\"\n",
			LastLine:     "\xff\x00 c",
		}},
		{Kind: repRefused, Attempt: id, By: by, Why: "no space left on device"},
		{Kind: repExited, Attempt: id, By: by,
			Outcome: jobs.Outcome{Exit: 2, ProcessLimit: jobs.ProcessLimit{Kind: jobs.LimitPids, Max: 40,
				Path: "/box"}}},
		{Kind: repRefused, Attempt: id, By: by, Why: "limit", Limit: jobs.ProcessLimit{Kind: jobs.LimitUser, Max: 40}},
		{Kind: repRefused, Attempt: id, By: by, Why: "GPU 1 is in use", GPUs: []int{1, 3}},
	} {
		line := r.append(nil)
		got, err := parseReport(line[:len(line)-1])
		if err != nil || !reflect.DeepEqual(got, r) {
			f.Fatalf("%+v became %+v, %v", r, got, err)
		}
		f.Add(line[:len(line)-1])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := parseReport(b)
		if err != nil {
			return
		}
		line := r.append(nil)
		if len(line) > maxReport {
			t.Errorf("a line of %d bytes", len(line))
		}
		if _, err := parseReport(line[:len(line)-1]); err != nil {
			t.Errorf("%q: %v", line, err)
		}
	})
}

// FuzzStat checks that no text of /proc/PID/stat causes a panic.
func FuzzStat(f *testing.F) {
	f.Add([]byte("1234 (a) b) (c) S 1 1234 1230 0 -1 4194560 1 2 3 4 10 20 30 40 20 0 1 0 777 8 2"))
	f.Add([]byte("1 ()"))
	f.Fuzz(func(t *testing.T, b []byte) { parseStat(1, b) })
}

// TestCommandNameCannotFalsifyTheStartTime checks that a command's own name cannot falsify its
// start time.
func TestCommandNameCannotFalsifyTheStartTime(t *testing.T) {
	p, ok := parseStat(1234, []byte("1234 (a) b) (c) S 7 1230 99 0 -1 4194560 1 2 3 4 10 20 30 40 20 0 1 0 777 8 2"))
	if want := (proc{pid: 1234, ppid: 7, group: 1230, state: 'S', threads: 1, start: 777, ticks: 100,
		rss: 2 * int64(pageSize)}); !ok || p != want {
		t.Errorf("%+v, want %+v", p, want)
	}
}

// TestSpoolNamesAreParsedBack checks that the names of files in the spool, and the tokens of the
// pipe, are read back unchanged, and that other names are refused.
func TestSpoolNamesAreParsedBack(t *testing.T) {
	id, by := jobs.AttemptID{Job: 17, N: 2}, holder{3, 4711, 99}
	if got, h, ok := parseTakenName(takenName(id, by)); !ok || got != id || h != by {
		t.Errorf("taken: %v %v %v", got, h, ok)
	}
	if got, ok := parseSpecName(specName(7, id)); !ok || got != id {
		t.Errorf("spec: %v %v", got, ok)
	}
	for _, bad := range []string{"", "17.2", "17.2@", "17.2@1.2", "x@1.2.3", "17.2@1.-2.3"} {
		if _, _, ok := parseTakenName(bad); ok {
			t.Errorf("%q taken for a taken spec", bad)
		}
	}
	gen, got := parseToken(appendToken(nil, 7, id))
	if gen != 7 || got != id || len(appendToken(nil, 7, id)) != tokenBytes {
		t.Errorf("token: %d %v", gen, got)
	}
}

// TestMemoryIsNotKnown checks that memory that cannot be read counts as unknown, not as zero. Zero
// would hold back a host with min_mem_free forever.
func TestMemoryIsNotKnown(t *testing.T) {
	for text, want := range map[string]memInfo{
		"":                                      {0, -1},
		"MemTotal:  8 kB\nMemFree: 4 kB\n":      {8 << 10, -1}, // a kernel older than 3.14
		"MemTotal:  8 kB\nMemAvailable: 0 kB\n": {8 << 10, 0},
	} {
		if got := parseMemory([]byte(text)); got != want {
			t.Errorf("%q: %+v, want %+v", text, got, want)
		}
	}
	if m := readMemory(); m.total <= 0 || m.available <= 0 {
		t.Errorf("this machine has %+v", m)
	}
}
