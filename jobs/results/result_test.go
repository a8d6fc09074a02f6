package results

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"dcs-tui/jobs"
	"dcs-tui/jobs/jobstest"
)

const second = jobs.Stamp(time.Second)

func attempt(n int, host string, state jobs.AttemptState, o *jobs.Outcome) *jobs.Attempt {
	a := &jobs.Attempt{ID: jobs.AttemptID{Job: 17, N: n}, Host: host, Slot: 3, Round: 1, State: state, Outcome: o}
	if o != nil {
		a.Started = o.Started
	}
	return a
}

func ended(exit int) *jobs.Outcome {
	return &jobs.Outcome{Exit: exit, Started: 1795165911102 * 1e6, Ended: 1795165914144 * 1e6, CPU: 1500 * time.Millisecond, MaxRSSBytes: 4 << 20}
}

func row(state jobs.JobState, attempts ...*jobs.Attempt) *jobs.Job {
	return &jobs.Job{
		Spec:  &jobs.Spec{ID: 17, Command: "./sim 17", Name: "seventeen", Options: &jobs.Options{Queue: "q"}},
		State: state, Round: 1, Seq: 5, Failures: 1, Attempts: attempts,
	}
}

func TestCounted(t *testing.T) {
	exit1, lost := attempt(1, "a", jobs.AttemptExited, ended(1)), attempt(2, "b", jobs.AttemptLost, nil)
	ok, late := attempt(3, "c", jobs.AttemptExited, ended(0)), attempt(4, "d", jobs.AttemptSuperseded, ended(0))
	slow := attempt(5, "e", jobs.AttemptExited, ended(0))
	slow.Outcome.Ended += second
	canceled := attempt(6, "f", jobs.AttemptCanceled, nil)
	old := attempt(1, "a", jobs.AttemptExited, ended(1))
	old.Round = 0
	for _, c := range []struct {
		name string
		job  *jobs.Job
		want *jobs.Attempt
	}{
		{"never ran", row(jobs.Canceled), nil},
		{"success", row(jobs.Succeeded, exit1, lost, ok), ok},
		{"copies: the first", row(jobs.Succeeded, slow, ok), ok},
		{"superseded copy", row(jobs.Succeeded, ok, late), ok},
		{"lost at last", row(jobs.Failed, exit1, lost), lost},
		{"late success of a failed job", row(jobs.Failed, exit1, ok), exit1},
		{"canceled before its start", row(jobs.Canceled, exit1, canceled), canceled},
		{"only an earlier round ran", row(jobs.Canceled, old), nil},
		{"superseded alone", row(jobs.Failed, late), nil},
	} {
		if got := Counted(c.job); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

// TestJSON checks that a result has each key, and no others.
func TestJSON(t *testing.T) {
	job := row(jobs.Succeeded, attempt(1, "melon4", jobs.AttemptLost, nil), attempt(2, "melon4", jobs.AttemptExited, ended(0)))
	job.Spec.Params = []jobs.Param{{Name: "x", Value: "0.1"}, {Name: "a", Value: "b\"c"}}
	r := FromJob("u1", "sweep", 1795165900*second, "/d", job)
	want := `{"v":1,"run":"sweep","job":17,"uid":"u1.17.1","name":"seventeen","queue":"q","command":"./sim 17",` +
		`"params":{"x":"0.1","a":"b\"c"},"state":"succeeded","exit":0,"signal":null,"attempts":2,"failures":1,` +
		`"attempt":"17.2","host":"melon4","slot":3,"created":"2026-11-20T09:11:40.000000Z","started":"2026-11-20T09:11:51.102000Z",` +
		`"ended":"2026-11-20T09:11:54.144000Z","elapsed_seconds":3.042,"cpu_seconds":1.5,"max_rss_bytes":4194304,` +
		`"stdout":"/d/attempts/000/17.2.out","stderr":"/d/attempts/000/17.2.err","reason":null,"round":1,"seq":5}` + "\n"
	if got := string(r.AppendJSON(nil)); got != want {
		t.Errorf("got  %swant %s", got, want)
	}
}

func TestJSONNulls(t *testing.T) {
	killed := ended(0)
	killed.Signal = "SIGKILL"
	broken := &jobs.Outcome{Error: "no such directory"}
	skipped := row(jobs.Skipped)
	skipped.Reason = "as hard as job 3, which timed out"
	for _, c := range []struct {
		name string
		job  *jobs.Job
		want map[string]string
	}{
		{"never ran", row(jobs.Skipped), map[string]string{"exit": "null", "signal": "null", "attempt": "null", "host": "null", "slot": "null", "started": "null",
			"ended": "null", "elapsed_seconds": "null", "cpu_seconds": "null", "max_rss_bytes": "null", "stdout": "null", "stderr": "null", "reason": "null", "state": `"skipped"`}},
		{"skipped", skipped, map[string]string{"state": `"skipped"`, "reason": `"as hard as job 3, which timed out"`}},
		{"signal", row(jobs.Failed, attempt(1, "h", jobs.AttemptExited, killed)), map[string]string{"exit": "null", "signal": `"SIGKILL"`, "elapsed_seconds": "3.042"}},
		{"lost", row(jobs.Failed, attempt(1, "h", jobs.AttemptLost, nil)), map[string]string{"exit": "null", "host": `"h"`, "started": "null", "stdout": "null"}},
		{"not started", row(jobs.Failed, attempt(1, "h", jobs.AttemptExited, broken)), map[string]string{"exit": "null", "started": "null", "elapsed_seconds": "null"}},
	} {
		r := FromJob("u", "r", 0, "/d", c.job)
		var m map[string]json.RawMessage
		if err := json.Unmarshal(r.AppendJSON(nil), &m); err != nil {
			t.Fatal(err)
		}
		if len(m) != 27 {
			t.Errorf("%s: %d keys", c.name, len(m))
		}
		for k, want := range c.want {
			if string(m[k]) != want {
				t.Errorf("%s: %s is %s, want %s", c.name, k, m[k], want)
			}
		}
	}
}

// FuzzJSONText checks that a result line is valid JSON and safe to print on a terminal.
func FuzzJSONText(f *testing.F) {
	f.Add("a\x1b\u009b\u202e\xff\n\t\"\\\U0001F600\U000E0001", "n\x00")
	f.Fuzz(func(t *testing.T, command, name string) {
		r := Result{Command: command, Name: name, Params: []jobs.Param{{Name: name, Value: command}}}
		line := r.AppendJSON(nil)
		var m struct{ Command, Name string }
		if err := json.Unmarshal(line, &m); err != nil {
			t.Fatalf("%v: %q", err, line)
		}
		if m.Command != strings.ToValidUTF8(command, "\ufffd") && !strings.Contains(m.Command, "\ufffd") || strings.ToValidUTF8(command, "") == command && m.Command != command {
			t.Fatalf("%q became %q", command, m.Command)
		}
		if clean := jobs.Clean(strings.TrimSuffix(string(line), "\n"), 0); strings.ContainsFunc(string(line[:len(line)-1]), func(r rune) bool { return r < ' ' }) {
			t.Fatalf("not fit for a terminal: %q", clean)
		}
	})
}

// TestResultsOfHistories checks that a terminal job has a result that matches its state in any
// history (promise 1), and that the summary counts every attempt that ran once.
func TestResultsOfHistories(t *testing.T) {
	for seed := range uint64(200) {
		specs, records := jobstest.History(seed, 12, 150)
		table := &jobs.Table{Specs: specs}
		for i := range records {
			if err := jobs.Fold(table, &records[i]); err != nil {
				t.Fatal(err)
			}
		}
		attempts, failed := 0, 0
		for i := range table.Jobs {
			j := &table.Jobs[i]
			attempts += j.Ran()
			if !j.State.Terminal() {
				continue
			}
			r := FromJob("u", "r", 1, "/d", j)
			if j.State == jobs.Succeeded && (r.Outcome == nil || !r.Outcome.OK() || r.Stdout == "") ||
				(j.State == jobs.Failed || j.State == jobs.TimedOut) && r.Outcome != nil && r.Outcome.OK() {
				t.Fatalf("seed %d: job %d is %s with %+v", seed, i+1, j.State, r.Outcome)
			}
			if j.State == jobs.Failed || j.State == jobs.TimedOut {
				failed++
			}
			log := string(AppendJobLog(nil, &r))
			if good := strings.Contains(log, "\t0\t0\t0\t0\t"); good != (j.State == jobs.Succeeded) || strings.Count(log, "\n") > 1 {
				t.Fatalf("seed %d: job %d is %s, its log %q", seed, i+1, j.State, log)
			}
		}
		s := Summarize(table)
		for _, g := range s.Failures {
			failed -= g.Count
		}
		if s.Attempts != attempts || failed != 0 {
			t.Fatalf("seed %d: %d attempts of %d, %d failures unaccounted for", seed, s.Attempts, attempts, failed)
		}
	}
}

// TestASuccessOfThisRoundCounts checks that a requeued job shows the result of its new round, not
// the old success.
func TestASuccessOfThisRoundCounts(t *testing.T) {
	ok := func(n int, round int32, ended jobs.Stamp) *jobs.Attempt {
		return &jobs.Attempt{ID: jobs.AttemptID{Job: 1, N: n}, Round: round, State: jobs.AttemptExited,
			Outcome: &jobs.Outcome{Started: 1, Ended: ended}}
	}
	j := &jobs.Job{Spec: &jobs.Spec{ID: 1}, State: jobs.Succeeded, Round: 2,
		Attempts: []*jobs.Attempt{ok(1, 1, 10), ok(2, 2, 30), ok(3, 2, 20)}}
	if got := Counted(j); got == nil || got.ID.N != 3 {
		t.Errorf("attempt %v counts, want 1.3", got)
	}
}
