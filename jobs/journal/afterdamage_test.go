package journal

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"dcs-tui/jobs"
	"dcs-tui/jobs/jobstest"
	"dcs-tui/jobs/rundir"
	"dcs-tui/jobs/rundir/memdisk"
)

// TestCarriedOnAfterDamage checks that a run whose journal is damaged can be resumed through
// several more dispatchers and more damage. Attempt numbers leave gaps for attempts that may be
// lost, and each dispatcher begins exactly where the last one stopped.
func TestCarriedOnAfterDamage(t *testing.T) {
	seeds := uint64(150)
	if testing.Short() || raceDetector {
		seeds = 30
	}
	gaps := 0
	for seed := range seeds {
		rng := rand.New(rand.NewPCG(seed, 7))
		e := threeEpochs(t)
		hit := rng.IntN(2) + 1 // an older file, or the first two
		for i := range hit {
			if rng.IntN(4) == 0 {
				if err := e.m.Remove(fileOf(i + 1).path(e.r)); err != nil {
					t.Fatal(err)
				}
				continue
			}
			b := bytes.Clone(e.files[i])
			b[rng.IntN(e.fixed[i])] ^= 1 << rng.IntN(8)
			e.set(t, i+1, b)
		}
		var live *jobs.Table
		for epoch := 4; epoch < 8; epoch++ {
			j, table, report := take1(t, e.r, TakeOptions{Force: true, Who: machine("melon1")})
			if !report.Damaged || j.Epoch() != epoch {
				t.Fatalf("seed %d: epoch %d, %+v", seed, j.Epoch(), report)
			}
			if live != nil {
				if live.Epoch = epoch; !same(live, table) {
					t.Fatalf("seed %d: epoch %d begins with another state than the last one left; %q", seed, epoch, report.Warnings)
				}
			}
			live = table
			if len(live.Specs) > 0 {
				record(t, j, jobstest.Continue(seed*10+uint64(epoch), live, 40)...)
			}
			crash(t, j)
			if shown, report := replay1(t, e.r); !same(shown, live) || !report.Damaged {
				t.Fatalf("seed %d: epoch %d is shown as another state; %q", seed, epoch, report.Warnings)
			}
		}
		for i := range live.Jobs {
			for n, a := range live.Jobs[i].Attempts {
				if a.ID != (jobs.AttemptID{Job: jobs.ID(i + 1), N: n + 1}) {
					t.Fatalf("seed %d: attempt %s stands in place %d", seed, a.ID, n+1)
				}
				if a.Host == "" {
					gaps++
				}
			}
		}
	}
	if gaps == 0 {
		t.Error("no number was left out")
	}
}

// TestGapInNumbers checks how a lost launching record affects the next attempt number. A damaged
// live table accepts a number after a gap, and later the host of the skipped attempt. An undamaged
// one accepts only the next number.
func TestGapInNumbers(t *testing.T) {
	for _, damaged := range []bool{false, true} {
		table := &jobs.Table{Specs: jobstest.Specs(1), Damaged: damaged}
		said := ""
		for _, r := range []jobs.Record{
			{Kind: jobs.KindAccepted, Job: 1, Count: 1},
			{Kind: jobs.KindLaunching, Job: 1, N: 1, Host: "a"},
			{Kind: jobs.KindLost, Job: 1, N: 1, Host: "a"},
			{Kind: jobs.KindLaunching, Job: 1, N: 4, Host: "b"},
			{Kind: jobs.KindLaunching, Job: 1, N: 4, Host: "c"},
			{Kind: jobs.KindLaunching, Job: 1, N: 2, Host: "c"},
			{Kind: jobs.KindRunning, Job: 1, N: 2, Host: "c"},
			{Kind: jobs.KindLaunching, Job: 1, N: 2000, Host: "b"},
			{Kind: jobs.KindLaunching, Job: 1, N: 1, Host: "b"},
		} {
			if jobs.Fold(table, &r) == nil {
				said += "y"
			} else {
				said += "n"
			}
		}
		for _, a := range table.Job(1).Attempts {
			said += fmt.Sprintf(" %s@%s:%s", a.ID, a.Host, a.State)
		}
		want := "yyynnyynn 1.1@a:lost 1.2@c:running"
		if damaged {
			want = "yyyynyynn 1.1@a:lost 1.2@c:running 1.3@:lost 1.4@b:launching"
		}
		if said != want {
			t.Errorf("damaged %v: %s, want %s", damaged, said, want)
		}
	}
}

// TestWishesAfterDamage checks that a user's cancel, and the acceptance of a request, survive the
// loss of the records before them.
func TestWishesAfterDamage(t *testing.T) {
	lines := []jobs.Record{
		{Kind: jobs.KindAccepted, Job: 1, Count: 2},
		{Kind: jobs.KindJob, Job: 1, Next: jobs.Skipped, Seq: 1},
		{Kind: jobs.KindRound, Job: 1},
		{Kind: jobs.KindLaunching, Job: 1, N: 1, Host: "a"},
		{Kind: jobs.KindCanceling, Job: 1, Reason: "enough"},
		{Kind: jobs.KindRequest, Request: "requeue-7"},
		{Kind: jobs.KindLaunching, Job: 2, N: 1, Host: "a"},
	}
	for lost := range 4 {
		e := threeEpochs(t)
		b := e.files[0][:bytes.IndexByte(e.files[0], '\n')+1]
		for i := range lines {
			from := len(b)
			if b = appendLine(b, &lines[i]); i == lost {
				b[from] ^= 1
			}
		}
		e.set(t, 1, b)
		for epoch := 2; epoch < 4; epoch++ {
			if err := e.m.Remove(fileOf(epoch).path(e.r)); err != nil {
				t.Fatal(err)
			}
		}
		table, report := replay1(t, e.r)
		if !report.Damaged || table.Cancels[1].Reason != "enough" || !table.Requests["requeue-7"] || table.Job(1).State.Terminal() || table.Job(2).State != jobs.Running {
			t.Errorf("%s lost: %v, %v, job 1 is %s; %q", lines[lost].Kind, table.Cancels, table.Requests, table.Job(1).State, report.Warnings)
		}
	}
}

// TestGoneForGood checks that every later replay reports a missing journal file, even if the
// remaining files are consistent.
func TestGoneForGood(t *testing.T) {
	m := memdisk.New().Mount("a")
	r := simulated(t, m)
	for epoch := 1; epoch < 5; epoch++ {
		j, _, report := take1(t, r, TakeOptions{Force: true, Who: machine("melon1")})
		if report.Damaged != (epoch > 2) {
			t.Errorf("epoch %d: %+v", epoch, report)
		}
		record(t, j, jobs.Record{Kind: jobs.KindEvent, Reason: "said"})
		crash(t, j)
		if epoch == 2 {
			if err := m.Remove(fileOf(1).path(r)); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestMisfitCounts checks that a record that does not fit proves that others are missing and still
// counts itself. No later record is dropped.
func TestMisfitCounts(t *testing.T) {
	m := memdisk.New().Mount("a")
	r := simulated(t, m)
	if err := r.AppendSpecs(jobstest.Specs(2)); err != nil {
		t.Fatal(err)
	}
	j, _, _ := take1(t, r, TakeOptions{Force: true, Who: machine("melon1")})
	record(t, j,
		jobs.Record{Kind: jobs.KindAccepted, Job: 1, Count: 2},
		jobs.Record{Kind: jobs.KindExited, Job: 2, N: 3, Host: "a", Next: jobs.Succeeded, Seq: 5, Outcome: &jobs.Outcome{Started: 1, Ended: 2}})
	crash(t, j)
	table, report := replay1(t, r)
	if job := table.Job(2); !report.Damaged || job.State != jobs.Succeeded || job.Seq != 5 || len(job.Attempts) != 3 {
		t.Errorf("%+v: %+v", report, job)
	}
}

// TestSpecsLost checks a jobs.jsonl that has lost its end, while the journal knows the number of
// jobs. All jobs are present with their results, and the lost ones are marked.
func TestSpecsLost(t *testing.T) {
	m := memdisk.New().Mount("a")
	r := simulated(t, m)
	if err := r.AppendSpecs(jobstest.Specs(5)); err != nil {
		t.Fatal(err)
	}
	j, _, _ := take1(t, r, TakeOptions{Force: true, Who: machine("melon1")})
	record(t, j,
		jobs.Record{Kind: jobs.KindAccepted, Job: 1, Count: 5},
		jobs.Record{Kind: jobs.KindLaunching, Job: 5, N: 1, Host: "a"},
		jobs.Record{Kind: jobs.KindExited, Job: 5, N: 1, Host: "a", Next: jobs.Succeeded, Seq: 1, Outcome: &jobs.Outcome{Started: 1, Ended: 2}})
	crash(t, j)
	path := r.Path(rundir.SpecsFile)
	whole, err := rundir.ReadFile(m, path)
	if err != nil {
		t.Fatal(err)
	}
	for cut := range whole {
		if err := m.Remove(path); err != nil {
			t.Fatal(err)
		}
		if err := rundir.WriteNew(m, path, whole[:cut]); err != nil {
			t.Fatal(err)
		}
		again, err := rundir.OpenOn(m, r.Dir)
		if err != nil {
			t.Fatal(err)
		}
		table, report := replay1(t, again)
		if len(table.Jobs) != 5 || table.Job(5).State != jobs.Succeeded || !report.Damaged || len(report.Warnings) == 0 {
			t.Fatalf("cut at %d: %d jobs, %+v", cut, len(table.Jobs), report)
		}
		good := bytes.Count(whole[:cut], []byte{'\n'}) - 1
		for i := range table.Jobs {
			if lost := table.Jobs[i].Spec.Damage != ""; lost != (i >= good) {
				t.Fatalf("cut at %d: job %d is %q", cut, i+1, table.Jobs[i].Spec.Damage)
			}
		}
		next, _, _ := take1(t, again, TakeOptions{Force: true, Who: machine("melon1")})
		if err := again.AppendSpecs([]*jobs.Spec{{ID: 6, Command: "new", Options: jobs.NoOptions}}); err != nil {
			t.Fatalf("cut at %d: a new job: %v", cut, err)
		}
		record(t, next, jobs.Record{Kind: jobs.KindAccepted, Job: 6, Count: 1})
		crash(t, next)
		if table, _ := replay1(t, again); len(table.Jobs) != 6 || table.Job(6).Spec.Command != "new" {
			t.Fatalf("cut at %d: after one more there are %d jobs", cut, len(table.Jobs))
		}
		for _, path := range []string{fileOf(next.Epoch()).path(r), r.Path("jobs-000002.jsonl"), r.Path(rundir.OwnerFile)} {
			if err := m.Remove(path); err != nil {
				t.Fatal(err)
			}
		}
	}
}
