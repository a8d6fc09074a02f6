package ask

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"dcs-tui/jobs"
	"dcs-tui/jobs/action"
)

// TestComparisonTakesLittleMemory checks how many bytes for each job the comparison of a run with its
// jobs file allocates.
func TestComparisonTakesLittleMemory(t *testing.T) {
	const n, maxBytes = 50_000, 200
	table, specs := jobs.NewPacked(), make([]*jobs.Spec, n)
	for i := range specs {
		specs[i] = &jobs.Spec{ID: jobs.ID(i + 1), Command: fmt.Sprintf("python train.py --seed %d", i),
			Options: jobs.NoOptions}
		table.AddSpec(specs[i])
	}
	must(t, jobs.Fold(table, &jobs.Record{Kind: jobs.KindAccepted, Job: 1, Count: n}))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	m, err := Compare(table, specs)
	must(t, err)
	runtime.ReadMemStats(&after)
	if each := (after.TotalAlloc - before.TotalAlloc) / n; each > maxBytes {
		t.Errorf("%d bytes for each job, want at most %d", each, maxBytes)
	}
	if m.Open != n {
		t.Errorf("%d open jobs, want %d", m.Open, n)
	}
}

// TestJobsAreMatchedByCommandAndParameters checks that jobs are matched by command, parameters, and
// occurrence.
func TestJobsAreMatchedByCommandAndParameters(t *testing.T) {
	of := func(t *testing.T, table *jobs.Table, specs ...*jobs.Spec) *Diff {
		t.Helper()
		m, err := Compare(table, specs)
		must(t, err)
		return m
	}
	spec := func(command, file string, o jobs.Options, params ...jobs.Param) *jobs.Spec {
		o.File = file
		return &jobs.Spec{Command: command, Labels: jobs.NewLabels("", params), Options: &o}
	}
	p := func(v string) jobs.Param { return jobs.Param{Name: "C", Value: v} }
	t1 := &jobs.Table{}
	have := func(s *jobs.Spec, st jobs.JobState) {
		t1.Jobs = append(t1.Jobs, jobs.Job{Spec: s, State: st})
	}
	have(spec("a", "f", jobs.Options{}), jobs.Succeeded)
	have(spec("a", "f", jobs.Options{}), jobs.Failed)
	have(spec("b", "f", jobs.Options{}, p("1")), jobs.Succeeded)
	have(spec("b", "f", jobs.Options{}, p("2")), jobs.TimedOut)
	have(spec("c", "f", jobs.Options{Tries: 1}), jobs.Queued)
	have(spec("gone", "f", jobs.Options{}), jobs.Queued)
	have(spec("other", "g", jobs.Options{}), jobs.Queued)
	m := of(t, t1,
		spec("a", "dir/f", jobs.Options{}), spec("a", "dir/f", jobs.Options{Timeout: time.Hour}), spec("a", "dir/f",
			jobs.Options{}),
		spec("b", "dir/f", jobs.Options{}, p("2")), spec("b", "dir/f", jobs.Options{}, p("3")), spec("c", "dir/f",
			jobs.Options{Tries: 2, Setup: "x"}))
	if m.Succeeded != 1 || len(m.New) != 2 || m.Open != 1 || !slices.Equal(m.again, []jobs.ID{4}) ||
		!slices.Equal(m.Rounds, []jobs.ID{2, 4}) || m.Kept["setup"] != 1 {
		t.Errorf("the difference: got %+v, want 2 new jobs, one that has succeeded, one that is open, and job 4 again",
			m)
	}
	if !slices.Equal(m.Gone, []jobs.ID{3, 6}) || !slices.Equal(m.Queued, []jobs.ID{6}) {
		t.Errorf("gone %v, of those queued %v", m.Gone, m.Queued)
	}
	var asks []string
	for _, q := range m.Requests() {
		asks = append(asks, string(q.Do)+" "+q.Jobs.String()+" spares "+string(q.Spare))
	}
	want := []string{"cancel 6 spares started", "edit 2 spares succeeded", "edit 5 spares succeeded",
		"requeue 4 spares succeeded"}
	if !slices.Equal(asks, want) { // valid whatever happens to the jobs meanwhile (promise 1)
		t.Errorf("asked for: %q", asks)
	}
	t1.Jobs[4].Priority = 7 // set by the user on the screen
	for p, want := range map[int]int{0: 0, 7: 0, 3: 1} {
		m := of(t, t1, spec("c", "f", jobs.Options{Tries: 1, Priority: p}))
		if len(m.Ranked) != want || want > 0 && !slices.Equal(m.Ranked[p], []jobs.ID{5}) {
			t.Errorf("priority %d in the file: %v", p, m.Ranked)
		}
	}
	if m := of(t, t1, spec("a", "renamed", jobs.Options{})); len(m.Gone) > 0 ||
		!slices.Equal(m.Others["f"], []jobs.ID{2, 3, 4, 5, 6}) || !slices.Equal(m.Others["g"], []jobs.ID{7}) {
		t.Errorf("of a run of two files the jobs %v of another one are gone, %v are said to stay", m.Gone, m.Others)
	}
	t1.Jobs = t1.Jobs[:6]
	if m := of(t, t1, spec("a", "renamed", jobs.Options{})); !slices.Equal(m.Gone, []jobs.ID{2, 3, 4, 5, 6}) {
		t.Errorf("of the one file of the run, renamed, the jobs %v are gone", m.Gone)
	}
	if len(m.Changes) != 2 || m.Changes[0].String() != "timeout 1h0m0s" ||
		!slices.Equal(m.Changes[0].IDs, []jobs.ID{2}) || m.Changes[1].String() != "tries 2" {
		t.Errorf("changes %+v", m.Changes)
	}
}

// TestBlanksThatMeanNothingMakeNoDifference checks that jobs are found whose commands differ only in
// blanks that a shell ignores, and that an equal command is preferred.
func TestBlanksThatMeanNothingMakeNoDifference(t *testing.T) {
	spec := func(command string) *jobs.Spec {
		return &jobs.Spec{Command: command, Options: &jobs.Options{File: "f"}}
	}
	for _, c := range []struct {
		old, now string
		same     bool
	}{
		{"echo 1", "echo 1 ", true}, {"echo 1", " \techo 1\t", true}, {"a  b", "a \t b", true}, {"a 'x  y'  b",
			"a 'x  y' b", true},
		{"a 'x  y'", "a 'x y'", false}, {`a "x  y"`, `a "x y"`, false}, {`a x\  y`, `a x\ y`, false}, {`a \"x  y`,
			`a \"x y`, true},
		{`a "$(b "x  y")"`, `a "$(b "x y")"`, false}, {`a "$(b)" `, `a "$(b)"`, true}, {"cat <<E\nx\nE",
			"cat <<E\nx\nE ", false},
		{"a\nb", "a b", false}, {`echo a\ `, `echo a\`, false}, {"a $'x\\'  y'", "a $'x\\' y'", false}, {"ab", "a b",
			false},
	} {
		t.Run(c.old, func(t *testing.T) {
			table := &jobs.Table{Jobs: []jobs.Job{{Spec: spec(c.old), State: jobs.Succeeded}}}
			m, err := Compare(table, []*jobs.Spec{spec(c.now)})
			must(t, err)
			if (m.Succeeded == 1) != c.same || (len(m.New) == 0) != c.same {
				t.Errorf("%q and %q: got %d found and %d new; the same: %v", c.old, c.now, m.Succeeded,
					len(m.New), c.same)
			}
		})
	}
	table := &jobs.Table{Jobs: []jobs.Job{{Spec: spec("a  b"), State: jobs.Succeeded},
		{Spec: spec("a b"), State: jobs.Failed}}}
	m, err := Compare(table, []*jobs.Spec{spec("a b"), spec("a   b")})
	must(t, err)
	if !slices.Equal(m.inRun, []jobs.ID{2, 1}) {
		t.Errorf("jobs %v were found, want 2, which is equal, and 1", m.inRun)
	}
}

// TestManyJobsMakeSeveralRequests checks that many jobs make several requests, in order, each
// numbered from 1.
func TestManyJobsMakeSeveralRequests(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	var specs []*jobs.Spec
	for i := range 20 {
		specs = append(specs, &jobs.Spec{ID: jobs.ID(i + 1), Command: fmt.Sprint(i, long), Options: jobs.NoOptions})
	}
	n := 0
	for _, b := range submitBlocks(specs) {
		q := action.Request{Do: action.Submit, Specs: action.SpecsText(b)}
		if len(q.Specs) > action.MaxSubmit {
			t.Errorf("%d bytes", len(q.Specs))
		}
		if got, err := q.NewJobs(); err != nil || len(got) != len(b) {
			t.Fatal(err)
		}
		for _, s := range b {
			if !strings.HasPrefix(s.Command, fmt.Sprint(n, "x")) {
				t.Errorf("job %d is out of order", n)
			}
			n++
		}
	}
	if n != 20 {
		t.Errorf("%d jobs", n)
	}
}
