package results

import (
	"encoding/json"
	"regexp"
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
	return &jobs.Outcome{Exit: exit, Started: 1795165911102 * 1e6, Ended: 1795165914144 * 1e6,
		CPU: 1500 * time.Millisecond, MaxRSSBytes: 4 << 20}
}

// row returns a job whose newest attempt counts.
func row(state jobs.JobState, attempts ...*jobs.Attempt) *jobs.Job {
	return &jobs.Job{
		Spec:  &jobs.Spec{ID: 17, Command: "./sim 17", Name: "seventeen", Options: &jobs.Options{Queue: "q"}},
		State: state, Round: 1, Seq: 5, Failures: 1, Attempts: attempts, Counted: int32(len(attempts)),
	}
}

// resultOf returns the result of a job of a run in /d.
func resultOf(j *jobs.Job) Result { return (&RunInfo{UID: "u", Name: "r", Dir: "/d"}).Result(j) }

// TestJSONHasEachKey checks that a result has each key, and no others.
func TestJSONHasEachKey(t *testing.T) {
	job := row(jobs.Succeeded, attempt(1, "melon4", jobs.AttemptLost, nil),
		attempt(2, "melon4", jobs.AttemptExited, ended(0)))
	job.Spec.Labels = jobs.NewLabels("", []jobs.Param{{Name: "x", Value: "0.1"}, {Name: "a", Value: "b\"c"}})
	r := (&RunInfo{UID: "u1", Name: "sweep", Created: 1795165900 * second, Dir: "/d"}).Result(job)
	want := `{"v":1,"run":"sweep","job":17,"uid":"u1.17.1","name":"seventeen","queue":"q","command":"./sim 17",` +
		`"params":{"x":"0.1","a":"b\"c"},"state":"succeeded","exit":0,"signal":null,"attempts":2,"failures":1,` +
		`"attempt":"17.2","host":"melon4","slot":3,` +
		`"created":"2026-11-20T09:11:40.000000Z","started":"2026-11-20T09:11:51.102000Z",` +
		`"ended":"2026-11-20T09:11:54.144000Z","elapsed_seconds":3.042,"cpu_seconds":1.5,"max_rss_bytes":4194304,` +
		`"stdout":"/d/attempts/000/17.2.out","stderr":"/d/attempts/000/17.2.err","reason":null,"round":1,"seq":5}` +
		"\n"
	same(t, "the line", string(r.AppendJSON(nil)), want)
}

// TestUnknownValuesAreNull checks that what is not known about a job is null in JSON.
func TestUnknownValuesAreNull(t *testing.T) {
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
		{"never ran", row(jobs.Skipped), map[string]string{"exit": "null", "signal": "null", "attempt": "null",
			"host": "null", "slot": "null", "started": "null",
			"ended": "null", "elapsed_seconds": "null", "cpu_seconds": "null", "max_rss_bytes": "null",
			"stdout": "null", "stderr": "null", "reason": "null", "state": `"skipped"`}},
		{"skipped", skipped, map[string]string{"state": `"skipped"`, "reason": `"as hard as job 3, which timed out"`}},
		{"signal", row(jobs.Failed, attempt(1, "h", jobs.AttemptExited, killed)),
			map[string]string{"exit": "null", "signal": `"SIGKILL"`, "elapsed_seconds": "3.042"}},
		{"lost", row(jobs.Failed, attempt(1, "h", jobs.AttemptLost, nil)),
			map[string]string{"exit": "null", "host": `"h"`, "started": "null", "stdout": "null"}},
		{"not started", row(jobs.Failed, attempt(1, "h", jobs.AttemptExited, broken)),
			map[string]string{"exit": "null", "started": "null", "elapsed_seconds": "null"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := resultOf(c.job)
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
		})
	}
}

// TestAnyHistoryHasItsResults checks that in any history each job has either a result that matches
// its state (promise 1) or a row without an outcome, and that the summary counts every attempt that
// ran once.
func TestAnyHistoryHasItsResults(t *testing.T) {
	p := &RunInfo{UID: "u", Name: "r", Created: 7, Dir: "/d", HostDirs: map[string]string{"melon1": "melon1:/kept"}}
	for seed := range uint64(100) {
		specs, records := jobstest.History(seed, 12, 400)
		table := &jobs.Table{Specs: specs}
		for i := range records {
			if err := jobs.Fold(table, &records[i]); err != nil {
				t.Fatal(err)
			}
			if i%20 > 0 {
				continue
			}
			over, open := p.Rows(table, jobs.JobState.Terminal).All(),
				p.Rows(table, func(s jobs.JobState) bool { return !s.Terminal() }).All()
			if len(over)+len(open) != len(table.Jobs) || len(open) != table.Unfinished() {
				t.Fatalf("seed %d: %d and %d of %d jobs", seed, len(over), len(open), len(table.Jobs))
			}
			for _, r := range open {
				if r.State.Terminal() || r.Outcome != nil || r.Stdout != "" ||
					(r.State == jobs.Running) != (r.Host != "") {
					t.Fatalf("seed %d: %+v", seed, r)
				}
			}
			failed, attempts := 0, 0
			for _, r := range over {
				wasOK, hasFailed := r.Outcome != nil && r.Outcome.OK(), r.State == jobs.Failed ||
					r.State == jobs.TimedOut
				if !r.State.Terminal() || r.Created != 7 || r.State == jobs.Succeeded && (!wasOK || r.Stdout == "") ||
					hasFailed && wasOK {
					t.Fatalf("seed %d: job %d is %s with %+v", seed, r.Job, r.State, r.Outcome)
				}
				want := "/d/"
				if r.Host == "melon1" {
					want = "melon1:/kept/"
				}
				if r.Stdout != "" && !strings.HasPrefix(r.Stdout, want) {
					t.Fatalf("seed %d: %s is at %s", seed, r.Host, r.Stdout)
				}
				if hasFailed {
					failed++
				}
				log := string(AppendJobLog(nil, &r))
				if good := strings.Contains(log, "\t0\t0\t0\t0\t"); good != (r.State == jobs.Succeeded) ||
					strings.Count(log, "\n") > 1 {
					t.Fatalf("seed %d: job %d is %s, its log %q", seed, r.Job, r.State, log)
				}
			}
			for j := range table.Rows() {
				attempts += j.Ran()
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
}

// TestWhereFilesOfAJobAre checks that fetched files of a host that does not share the run directory
// are on this machine, and that all other files of its jobs are only on the host (X2).
func TestWhereFilesOfAJobAre(t *testing.T) {
	p := &RunInfo{UID: "u", Name: "r", Dir: "/d", HostDirs: map[string]string{"far": "far:/kept"},
		Here: func(id jobs.AttemptID) bool { return id.Job == 2 }}
	for id, c := range map[int]struct {
		host, dir string
		apart     bool
	}{1: {"far", "far:/kept", true}, 2: {"far", "/d", true}, 3: {"ws", "/d", false}} {
		j := row(jobs.Succeeded, attempt(1, c.host, jobs.AttemptExited, ended(0)))
		j.Attempts[0].ID.Job = jobs.ID(id)
		if r := p.Result(j); r.Apart != c.apart || r.Stdout != jobs.AttemptFile(c.dir, j.Attempts[0].ID, jobs.FileOut) {
			t.Errorf("%d on %s: %q, %v", id, c.host, r.Stdout, r.Apart)
		}
	}
	p.Here = nil
	if r := p.Result(row(jobs.Succeeded,
		attempt(1, "far", jobs.AttemptExited, ended(0)))); r.Stdout != "far:/kept/attempts/000/17.1.out" || !r.Apart {
		t.Errorf("without Here: %q, %v", r.Stdout, r.Apart)
	}
}

// TestJobLogEqualsThatOfParallel checks that the columns equal those of GNU parallel 20221122's own
// log (X9).
func TestJobLogEqualsThatOfParallel(t *testing.T) {
	with := func(change func(*jobs.Outcome)) *jobs.Outcome { o := ended(0); change(o); return o }
	for _, c := range []struct {
		name  string
		state jobs.JobState
		o     *jobs.Outcome
		want  string
	}{
		{"success", jobs.Succeeded, ended(0), "17\tmelon4\t1795165911.102\t     3.042\t0\t0\t0\t0\t./sim 17\n"},
		{"exit 3", jobs.Failed, ended(3), "17\tmelon4\t1795165911.102\t     3.042\t0\t0\t3\t0\t./sim 17\n"},
		{"signal", jobs.Failed, with(func(o *jobs.Outcome) { o.Signal = "SIGKILL" }),
			"17\tmelon4\t1795165911.102\t     3.042\t0\t0\t0\t9\t./sim 17\n"},
		{"timeout", jobs.TimedOut, with(func(o *jobs.Outcome) { o.TimedOut, o.Signal = true, "SIGTERM" }),
			"17\tmelon4\t1795165911.102\t     3.042\t0\t0\t-1\t15\t./sim 17\n"},
		{"stopped, exit 0", jobs.Canceled, with(func(o *jobs.Outcome) { o.Stopped = true }),
			"17\tmelon4\t1795165911.102\t     3.042\t0\t0\t-1\t0\t./sim 17\n"},
		{"not started", jobs.Failed, &jobs.Outcome{Error: "no cwd"},
			"17\tmelon4\t0.000\t     0.000\t0\t0\t-1\t0\t./sim 17\n"},
		{"long", jobs.Succeeded, with(func(o *jobs.Outcome) {
			o.Ended = o.Started + 12345678*second + second/1000*9 - 1
		}), "17\tmelon4\t1795165911.102\t12345678.008\t0\t0\t0\t0\t./sim 17\n"},
		{"clock set back", jobs.Succeeded, with(func(o *jobs.Outcome) { o.Ended = o.Started - second }),
			"17\tmelon4\t1795165911.102\t     0.000\t0\t0\t0\t0\t./sim 17\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := resultOf(row(c.state, attempt(1, "melon4", jobs.AttemptExited, c.o)))
			r.Outcome = c.o
			same(t, c.name, string(AppendJobLog(nil, &r)), c.want)
		})
	}
	r := resultOf(row(jobs.Succeeded, attempt(1, "h", jobs.AttemptExited, ended(0))))
	r.Command = "for i in 1 2\ndo\techo $i\ndone"
	got := string(AppendJobLog(nil, &r))
	if !strings.HasSuffix(got, "\tfor i in 1 2\x00do\techo $i\x00done\n") || strings.Count(got, "\n") != 1 {
		t.Errorf("got %q, want one line", got)
	}
	// These are the patterns by which `parallel --retry-failed` recognizes the line of a job that
	// succeeded, and any line.
	if !regexp.MustCompile(`^(\d+)(?:\t[^\t]+){5}\t0\t0\t`).MatchString(got) ||
		!regexp.MustCompile(`(?m)(\d+)\s+\S+(\s+[-0-9.]+){6}\s+(.*)$`).MatchString(got) {
		t.Errorf("GNU parallel cannot read %q", got)
	}
	if never := resultOf(row(jobs.Canceled)); AppendJobLog(nil, &never) != nil {
		t.Error("a job that never ran has a line")
	}
	if strings.Join(strings.Fields(JobLogHeader),
		" ") != "Seq Host Starttime JobRuntime Send Receive Exitval Signal Command" {
		t.Error(JobLogHeader)
	}
}
