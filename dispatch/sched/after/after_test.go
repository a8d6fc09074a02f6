package after

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"dcs-tui/jobs"
	"dcs-tui/jobs/jobstest"
)

// run is a run of queued jobs, which end as a test wants.
type run struct {
	table *jobs.Table
	index *Index
}

func newRun(n int) *run {
	t := &jobs.Table{Specs: jobstest.Specs(n)}
	for _, s := range t.Specs {
		t.Jobs = append(t.Jobs, jobs.Job{Spec: s, State: jobs.Queued})
	}
	return &run{t, New(t)}
}

// add makes a job wait for others, and describes the answer.
func (r *run) add(id jobs.ID, on jobs.Dependencies, isComplete bool) string {
	r.table.Specs[id-1].SetAfter(on)
	waits, next, reason := r.index.Add(id, on, isComplete)
	switch {
	case reason != "":
		return fmt.Sprintf("%s: %s", next, reason)
	case waits:
		return "waits"
	}
	return "may run"
}

// end ends a job, and describes the jobs that need not wait any more.
func (r *run) end(id jobs.ID, state jobs.JobState) string {
	r.table.Jobs[id-1].State = state
	var all []string
	for dependent, reason := range r.index.End(id) {
		r.index.Remove(dependent)
		all = append(all, strings.TrimSpace(fmt.Sprint(dependent, " ", reason)))
	}
	return strings.Join(all, "; ")
}

func want[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

func on(id jobs.ID, c jobs.Condition) (d jobs.Dependencies) {
	d.Add(id, c)
	return d
}

// TestJobWaitsForAllOthers checks that a job waits until all jobs that it depends on have ended, that
// each condition decides which end lets it run, and what is said about the others.
func TestJobWaitsForAllOthers(t *testing.T) {
	r := newRun(8)
	want(t, "after two", r.add(3, jobstest.After(1, 2), false), "waits")
	want(t, "after any end", r.add(4, on(1, jobs.AfterEnd), false), "waits")
	want(t, "after a failure", r.add(5, on(1, jobs.AfterFailure), false), "waits")
	want(t, "after a later job", r.add(6, jobstest.After(7), false), "waits")
	want(t, "waiting jobs", r.index.NumWaiting(), 4)
	want(t, "job 1 succeeds", r.end(1, jobs.Succeeded), "4; 5 job 1, which it comes after if that fails, has succeeded")
	want(t, "unmet", fmt.Sprint(r.index.Unmet(jobstest.After(1, 2))), "[2]")
	want(t, "job 2 fails", r.end(2, jobs.Failed), "3 job 2, which it comes after, has failed")
	want(t, "job 7 succeeds", r.end(7, jobs.Succeeded), "6")
	want(t, "after jobs that have ended", r.add(8, jobstest.After(1, 7), true), "may run")
	want(t, "after a failed job", r.add(8, jobstest.After(7, 2), true),
		"skipped: job 2, which it comes after, has failed")
	want(t, "waiting jobs", r.index.NumWaiting(), 0)
}

// TestImpossibleDependencies checks which jobs can never run: those after themselves, after a job that
// does not exist, and in a cycle or after one. A job may name one that is submitted later.
func TestImpossibleDependencies(t *testing.T) {
	r := newRun(9)
	want(t, "itself", r.add(1, jobstest.After(1), false), "failed: it comes after itself")
	want(t, "not submitted yet", r.add(2, jobstest.After(77), false), "waits")
	want(t, "no such job", r.add(1, jobstest.After(77), true),
		"failed: it comes after job 77, and there is no such job")
	want(t, "no such job", r.add(1, jobstest.After(0), false), "failed: it comes after job 0, and there is no such job")
	for id, after := range map[jobs.ID]jobs.ID{3: 4, 4: 5, 5: 3, 6: 3, 7: 8, 8: 9} {
		want(t, "a later or waiting job", r.add(id, jobstest.After(after), false), "waits")
	}
	var all []string
	for id, reason := range r.index.Impossible() {
		all = append(all, fmt.Sprint(id, " ", reason))
	}
	cycle := "its dependencies form a cycle"
	want(t, "impossible", strings.Join(all, "; "), fmt.Sprintf("2 it comes after job 77, and there is no such job; "+
		"3 %[1]s; 4 %[1]s; 5 %[1]s; 6 %[1]s", cycle))
	want(t, "job 9 succeeds", r.end(9, jobs.Succeeded), "8")
}

// TestRemovedJobWaitsAgain checks that a job whose wait is over, for example because it was canceled, is
// neither released by the jobs of that wait nor impossible, and that it may wait again.
func TestRemovedJobWaitsAgain(t *testing.T) {
	r := newRun(3)
	r.add(3, jobstest.After(1, 2), true)
	r.index.Remove(3)
	want(t, "job 1 succeeds", r.end(1, jobs.Succeeded), "")
	want(t, "added again", r.add(3, jobstest.After(1, 2), true), "waits")
	want(t, "job 2 succeeds", r.end(2, jobs.Succeeded), "3")

	r = newRun(2)
	r.add(1, jobstest.After(2), true)
	r.index.Remove(1)
	for id := range r.index.Impossible() {
		t.Errorf("job %d waits no more, and is impossible", id)
	}

	r = newRun(3)
	r.end(2, jobs.Failed)
	want(t, "after a failed job", r.add(3, jobstest.After(1, 2), true),
		"skipped: job 2, which it comes after, has failed")
	want(t, "job 1 succeeds", r.end(1, jobs.Succeeded), "")
}

// TestIndexAgainstModel compares the index with lists of unmet dependencies, in random runs in which
// jobs end and start again, and wait, and wait no more. The memory of all waits is used again.
func TestIndexAgainstModel(t *testing.T) {
	const n = 12
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 3))
		r, unmet := newRun(n), map[jobs.ID][]jobs.Dependency{}
		for range 200 {
			id := jobs.ID(1 + rng.IntN(n))
			switch job := &r.table.Jobs[id-1]; {
			case unmet[id] != nil:
				r.index.Remove(id)
				delete(unmet, id)
			case job.State.Terminal():
				job.State = jobs.Queued
			case rng.IntN(2) == 0:
				state := []jobs.JobState{jobs.Succeeded, jobs.Failed, jobs.Canceled}[rng.IntN(3)]
				expected := endInModel(unmet, id, state)
				job.State = state
				for dependent, reason := range r.index.End(id) {
					r.index.Remove(dependent)
					if is, ok := expected[dependent]; !ok || is != (reason == "") {
						t.Fatalf("seed %d: job %d ends, and job %d waits no more (%s); want %v", seed, id, dependent,
							reason, expected)
					}
					delete(expected, dependent)
				}
				if len(expected) > 0 {
					t.Fatalf("seed %d: job %d ends, and %v wait for more", seed, id, expected)
				}
			default:
				var on jobs.Dependencies
				for range 1 + rng.IntN(3) {
					if dep := jobs.ID(1 + rng.IntN(n)); dep != id && !r.table.State(dep).Terminal() {
						on = append(on, jobs.Dependency{Range: jobs.Range{First: dep, Last: dep},
							On: jobs.Condition(rng.IntN(3))})
					}
				}
				if waits := r.add(id, on, true); len(on) > 0 {
					want(t, "a job after others", waits, "waits")
					unmet[id] = on
				}
			}
			want(t, "waiting jobs", r.index.NumWaiting(), len(unmet))
		}
		for id := jobs.ID(1); id <= n; id++ {
			r.end(id, jobs.Succeeded)
		}
		unused := 0
		for i := r.index.unused; i > 0; i = r.index.all[i].next {
			unused++
		}
		want(t, "elements for further dependencies", unused, len(r.index.all)-1)
	}
}

// endInModel handles the end of a job in lists of unmet dependencies, and returns the jobs that wait no
// more, with whether they may run.
func endInModel(unmet map[jobs.ID][]jobs.Dependency, id jobs.ID, state jobs.JobState) map[jobs.ID]bool {
	released := map[jobs.ID]bool{}
	for other, list := range unmet {
		var left []jobs.Dependency
		mayRun := true
		for _, d := range list {
			if d.First != id {
				left = append(left, d)
			} else if !d.On.IsMet(state) {
				mayRun = false
			}
		}
		if unmet[other] = left; len(left) == 0 || !mayRun {
			released[other] = mayRun
			delete(unmet, other)
		}
	}
	return released
}
