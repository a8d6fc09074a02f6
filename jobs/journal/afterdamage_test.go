package journal

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"dcs-tui/jobs"
	"dcs-tui/jobs/jobstest"
	"dcs-tui/jobs/rundir"
)

// TestDamagedRunCanBeResumed checks that a run whose journal is damaged can be resumed through
// several more dispatchers and more damage. Attempt numbers leave gaps for attempts that may be
// lost, and each dispatcher begins exactly where the last one stopped.
func TestDamagedRunCanBeResumed(t *testing.T) {
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
				remove(t, e.r, i+1)
				continue
			}
			putJournal(t, e.r, i+1, flipped(e.files[i], 8*rng.IntN(e.fixed[i])+rng.IntN(8)))
		}
		var live *jobs.Table
		for epoch := 4; epoch < 8; epoch++ {
			j, table, report := mustTake(t, e.r, takeOn("melon1"))
			if !report.Damaged || j.Epoch() != epoch {
				t.Fatalf("seed %d: epoch %d, %+v", seed, j.Epoch(), report)
			}
			if live != nil {
				if live.Epoch, live.Closed = epoch, (jobs.Closing{}); !equalTables(live, table) {
					t.Fatalf("seed %d: epoch %d begins with another state than the last one left; %q", seed,
						epoch, report.Warnings)
				}
			}
			live = table
			if len(live.Specs) > 0 {
				record(t, j, jobstest.Continue(seed*10+uint64(epoch), live, 40)...)
			}
			crash(t, j)
			if shown, report := mustReplay(t, e.r); !equalTables(shown, live) || !report.Damaged {
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

// TestCancelSurvivesLostRecords checks that a user's cancel, and the acceptance of a request,
// survive the loss of the records before them.
func TestCancelSurvivesLostRecords(t *testing.T) {
	recs := []jobs.Record{
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
		b := lines(e.files[0], 1)
		for i := range recs {
			from := len(b)
			if b = appendLine(b, &recs[i]); i == lost {
				b[from] ^= 1
			}
		}
		putJournal(t, e.r, 1, b)
		remove(t, e.r, 2, 3)
		table, report := mustReplay(t, e.r)
		if !report.Damaged || table.Cancels[1].Reason != "enough" || !table.Requests["requeue-7"] ||
			table.Job(1).State.Terminal() || table.Job(2).State != jobs.Running {
			t.Errorf("%s lost: %v, %v, job 1 is %s; %q", recs[lost].Kind, table.Cancels, table.Requests,
				table.Job(1).State, report.Warnings)
		}
	}
}

// TestMisfitRecordCounts checks that a record that does not fit proves that others are missing and
// still counts itself. No later record is dropped.
func TestMisfitRecordCounts(t *testing.T) {
	_, r := inMemory(t, jobstest.Specs(2)...)
	j, _, _ := mustTake(t, r, takeOn("melon1"))
	record(t, j,
		jobs.Record{Kind: jobs.KindAccepted, Job: 1, Count: 2},
		jobs.Record{Kind: jobs.KindExited, Job: 2, N: 3, Host: "a", Next: jobs.Succeeded, Seq: 5,
			Outcome: &jobs.Outcome{Started: 1, Ended: 2}})
	crash(t, j)
	table, report := mustReplay(t, r)
	if job := table.Job(2); !report.Damaged || job.State != jobs.Succeeded || job.Seq != 5 || len(job.Attempts) != 3 {
		t.Errorf("%+v: %+v", report, job)
	}
}

// TestLostSpecsAreMarked checks a jobs.jsonl that has lost its end, while the journal knows the
// number of jobs. All jobs are present with their results, and the lost ones are marked.
func TestLostSpecsAreMarked(t *testing.T) {
	m, r := inMemory(t, jobstest.Specs(5)...)
	j, _, _ := mustTake(t, r, takeOn("melon1"))
	record(t, j,
		jobs.Record{Kind: jobs.KindAccepted, Job: 1, Count: 5},
		jobs.Record{Kind: jobs.KindLaunching, Job: 5, N: 1, Host: "a"},
		jobs.Record{Kind: jobs.KindExited, Job: 5, N: 1, Host: "a", Next: jobs.Succeeded, Seq: 1,
			Outcome: &jobs.Outcome{Started: 1, Ended: 2}})
	crash(t, j)
	path := r.Path(rundir.SpecsFile)
	whole, err := rundir.ReadFile(m, path)
	must(t, err)
	for cut := range whole {
		putFile(t, r, path, whole[:cut])
		again, err := rundir.OpenOn(m, r.Dir)
		must(t, err)
		table, report := mustReplay(t, again)
		if len(table.Jobs) != 5 || table.Job(5).State != jobs.Succeeded || !report.Damaged ||
			len(report.Warnings) == 0 {
			t.Fatalf("cut at %d: %d jobs, %+v", cut, len(table.Jobs), report)
		}
		good := bytes.Count(whole[:cut], []byte{'\n'}) - 1
		for i := range table.Jobs {
			if lost := table.Jobs[i].Spec.Damage != ""; lost != (i >= good) {
				t.Fatalf("cut at %d: job %d is %q", cut, i+1, table.Jobs[i].Spec.Damage)
			}
		}
		next, _, _ := mustTake(t, again, takeOn("melon1"))
		if err := again.AppendSpecs([]*jobs.Spec{{ID: 6, Command: "new", Options: jobs.NoOptions}}); err != nil {
			t.Fatalf("cut at %d: a new job: %v", cut, err)
		}
		record(t, next, jobs.Record{Kind: jobs.KindAccepted, Job: 6, Count: 1})
		crash(t, next)
		if table, _ := mustReplay(t, again); len(table.Jobs) != 6 || table.Job(6).Spec.Command != "new" {
			t.Fatalf("cut at %d: after one more there are %d jobs", cut, len(table.Jobs))
		}
		forget(t, r, next.Epoch())
		must(t, m.Remove(r.Path("jobs-000002.jsonl")))
	}
}
