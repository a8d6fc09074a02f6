package sched

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
	"dcs-tui/jobs/jobstest"
)

// TestOrderOfQueuedJobs checks that jobs are sorted by priority, then deadline, then id, and that a
// queued job is moved if its priority changes (K2).
func TestOrderOfQueuedJobs(t *testing.T) {
	day := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	s := newStage(t, Config{}, testHost("a", 1))
	s.submit(true, jobs.NoOptions, &jobs.Options{Priority: 5}, &jobs.Options{Priority: -2},
		&jobs.Options{Deadline: day.Add(time.Hour)},
		&jobs.Options{Deadline: day}, jobs.NoOptions, jobs.NoOptions, jobs.NoOptions)
	s.step(SetPriority{Jobs: []jobs.ID{7, 99}, Priority: -1})
	s.step(SetPriority{Jobs: []jobs.ID{1}, Priority: 7})
	want(t, "order", s.runThroughSlot("a", 8), "3.1 7.1 5.1 4.1 6.1 8.1 2.1 1.1")
}

// runThroughSlot runs n jobs on a host and ends them in the order of their launches. It returns
// their attempts.
func (s *stage) runThroughSlot(name string, n int) string {
	all := launchedOn(s.up(name), name)
	for i := range n {
		all = strings.TrimSpace(all + " " + launchedOn(s.ended(name, strings.Fields(all)[i], succeeded), name))
	}
	return all
}

// TestQueueAgainstModel compares the queue with a sorted list over random arrivals, priorities,
// cancels, and removals.
func TestQueueAgainstModel(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 7))
		c := New(Config{}, &jobs.Table{}, inventoryOf(testHost("a", 1)))
		c.Step(Time{}, Tick{})
		opts := []*jobs.Options{jobs.NoOptions, {Priority: 1}, {Slots: 2}, {Slots: 2, Priority: 1}, {MemBytes: 5}}
		var model []jobs.ID
		for range 300 {
			n := len(c.table.Jobs)
			switch r.IntN(5) {
			case 0, 1:
				var specs []*jobs.Spec
				for i := range 1 + r.IntN(4) {
					id := jobs.ID(n + i + 1)
					specs = append(specs, &jobs.Spec{ID: id, Options: opts[r.IntN(2)]})
					model = append(model, id)
				}
				c.Step(Time{}, Submit{Specs: specs})
			case 2:
				if n > 0 {
					c.Step(Time{}, SetPriority{Jobs: []jobs.ID{jobs.ID(1 + r.IntN(n))}, Priority: r.IntN(3)})
				}
			case 3:
				if n > 0 {
					id := jobs.ID(1 + r.IntN(n))
					if c.table.Job(id).State == jobs.Queued {
						c.Step(Time{}, Cancel{Jobs: []jobs.ID{id}})
						model = slices.DeleteFunc(model, func(m jobs.ID) bool { return m == id })
					} else {
						c.Step(Time{}, Requeue{[]jobs.ID{id}})
						model = append(model, id)
					}
				}
			case 4:
				slices.SortFunc(model, func(a, b jobs.ID) int {
					return cmp.Or(cmp.Compare(c.table.Job(a).Priority, c.table.Job(b).Priority), cmp.Compare(a, b))
				})
				for len(c.queue.list) > 0 && r.IntN(3) > 0 {
					id, _ := c.queue.list[0].head(c)
					if id != model[0] {
						t.Fatalf("seed %d: head is job %d, want %d", seed, id, model[0])
					}
					c.cancelJob(id, c.table.Job(id), "", "")
					model = model[1:]
				}
			}
			if c.queue.ready != len(model) {
				t.Fatalf("seed %d: %d ready, want %d", seed, c.queue.ready, len(model))
			}
		}
	}
}

// TestUnsatisfiableJobFails checks that a job that no host can ever run fails at once with a reason
// that names the requirement. While a host that might run it has never connected, the job waits
// (issue point 6).
func TestUnsatisfiableJobFails(t *testing.T) {
	tagged := testHost("b", 4)
	tagged.Tags = []string{"big", "x"}
	unknown := &hosts.Host{Name: "c", GPUs: -1, Slots: hosts.SlotRule{Less: 1}}
	for _, tt := range []struct {
		name  string
		opts  *jobs.Options
		hosts []*hosts.Host
		up    []string
		want  string // "" if the job waits or runs
	}{
		{"tag", &jobs.Options{Tags: []string{"gpu"}}, []*hosts.Host{testHost("a", 1), tagged}, nil,
			"no host has tag gpu"},
		{"tag, one host", &jobs.Options{Tags: []string{"gpu"}}, []*hosts.Host{testHost("a", 1)}, nil,
			"host a has no tag gpu"},
		{"slots", &jobs.Options{Slots: 5}, []*hosts.Host{testHost("a", 1), tagged}, nil, "no host has 5 slots"},
		{"slots not known yet", &jobs.Options{Slots: 5}, []*hosts.Host{testHost("a", 1), unknown}, []string{"a"}, ""},
		{"memory", &jobs.Options{MemBytes: 17 << 30}, []*hosts.Host{testHost("a", 1), tagged}, []string{"a", "b"},
			"no host has 17 GiB of memory"},
		{"very much memory", &jobs.Options{MemBytes: 10000 << 30}, []*hosts.Host{testHost("a", 1), tagged},
			[]string{"a", "b"}, "no host has 9.77 TiB of memory"},
		{"memory not known yet", &jobs.Options{MemBytes: 17 << 30}, []*hosts.Host{testHost("a", 1), tagged},
			[]string{"a"}, ""},
		{"GPUs", &jobs.Options{GPUs: 3 * jobs.WholeGPU}, []*hosts.Host{testHost("a", 1), tagged}, []string{"a", "b"},
			"no host has 3 GPUs"},
		{"one GPU", &jobs.Options{GPUs: jobs.WholeGPU}, []*hosts.Host{noGPUs("a"), noGPUs("b")}, nil,
			"no host has 1 GPU"},
		{"one GPU, one host", &jobs.Options{GPUs: jobs.WholeGPU}, []*hosts.Host{noGPUs("a")}, nil,
			"it needs 1 GPU and host a has 0"},
		{"GPUs there", &jobs.Options{GPUs: 2 * jobs.WholeGPU}, []*hosts.Host{testHost("a", 1), tagged},
			[]string{"a", "b"}, ""},
		{"together", &jobs.Options{Tags: []string{"big"}, Slots: 5}, []*hosts.Host{testHost("a", 8), tagged}, nil,
			"no host has all that it asks for; for example, host a has no tag big"},
		{"max slots", &jobs.Options{Slots: 7}, []*hosts.Host{testHost("a", 8)}, nil,
			"it needs 7 slots and --max-slots allows 6"},
	} {
		s := newStage(t, Config{MaxSlots: 6}, tt.hosts...)
		s.submit(true, tt.opts)
		s.up(tt.up...)
		failed := ""
		if j := s.job(1); j.State.Terminal() {
			failed = j.Reason
		}
		want(t, tt.name, failed, tt.want)
	}
}

// TestJobWaitsForItsDependencies checks that a job waits for its dependencies, is skipped if one
// fails, and fails if they can never be met.
func TestJobWaitsForItsDependencies(t *testing.T) {
	after := jobstest.After
	s := connectedStage(t, Config{Tries: 1}, testHost("a", 8))
	s.submitAfter(false, map[jobs.ID]jobs.Dependencies{3: after(1, 2), 4: after(3), 5: after(2, 1, 1), 6: after(9),
		7: after(10), 8: after(7), 9: after(11)}, repeatOptions(11, jobs.NoOptions)...)
	want(t, "first", launchedOn(s.commands, "a"), "1.1 2.1 10.1 11.1")
	s.step(Submit{Last: true})
	want(t, "after one", launchedOn(s.ended("a", "1.1", succeeded), "a"), "")
	want(t, "after both", launchedOn(s.ended("a", "2.1", succeeded), "a"), "3.1 5.1")
	s.ended("a", "3.1", exit1)
	s.wantState(4, jobs.Skipped)
	want(t, "why skipped", s.job(4).Reason, "job 3, which it comes after, has failed")
	want(t, "chain", launchedOn(s.ended("a", "10.1", succeeded), "a"), "7.1")
	want(t, "chain", launchedOn(s.ended("a", "7.1", succeeded), "a"), "8.1")
	want(t, "forward", launchedOn(s.ended("a", "11.1", succeeded), "a"), "9.1")
	want(t, "forward", launchedOn(s.ended("a", "9.1", succeeded), "a"), "6.1")

	// A job that is canceled and requeued waits for all of its dependencies again.
	s = connectedStage(t, Config{}, testHost("a", 8))
	s.submitAfter(true, map[jobs.ID]jobs.Dependencies{3: after(1, 2)}, repeatOptions(3, jobs.NoOptions)...)
	s.step(Cancel{Jobs: []jobs.ID{3}})
	s.step(Requeue{[]jobs.ID{3}})
	want(t, "one of two", launchedOn(s.ended("a", "1.1", succeeded), "a"), "")
	want(t, "both", launchedOn(s.ended("a", "2.1", succeeded), "a"), "3.1")

	s = newStage(t, Config{}, testHost("a", 8))
	s.submitAfter(true, map[jobs.ID]jobs.Dependencies{1: after(2), 2: after(3), 3: after(1), 4: after(4), 5: after(77),
		6: after(1)}, repeatOptions(7, jobs.NoOptions)...)
	for id, why := range map[jobs.ID]string{1: "cycle", 2: "cycle", 3: "cycle", 4: "comes after itself",
		5: "no such job"} {
		s.wantState(id, jobs.Failed)
		wantContains(t, "reason", s.job(id).Reason, why)
	}
	want(t, "job 6 has ended", s.job(6).State.Terminal(), true)
	s.wantState(7, jobs.Queued)
}

func noGPUs(name string) *hosts.Host {
	h := testHost(name, 1)
	h.GPUs = 0
	return h
}

// TestJobWithADamagedSpecIsNotLaunched checks that a job whose stored specification is damaged is
// never launched. It fails with that reason, and its dependents are skipped (promise 5).
func TestJobWithADamagedSpecIsNotLaunched(t *testing.T) {
	s := connectedStage(t, Config{}, testHost("a", 8))
	lost := jobs.LostSpec(2, "jobs.jsonl:3: the line is damaged")
	s.submitAfter(true, map[jobs.ID]jobs.Dependencies{3: jobstest.After(2)}, jobs.NoOptions, lost.Options,
		jobs.NoOptions)
	want(t, "launched", launchedOn(s.commands, "a"), "1.1")
	s.wantState(2, jobs.Failed)
	wantContains(t, "why", s.job(2).Reason, "jobs.jsonl:3")
	s.wantState(3, jobs.Skipped)
}

// TestJobWaitsForItsCondition checks that a job waits until another job succeeds, ends, or fails,
// as its condition requires. It is skipped when the condition can no longer be met.
func TestJobWaitsForItsCondition(t *testing.T) {
	for _, tt := range []struct {
		parent          jobs.Outcome
		ok, any, failed jobs.JobState
	}{
		{succeeded, jobs.Running, jobs.Running, jobs.Skipped},
		{exit1, jobs.Skipped, jobs.Running, jobs.Running},
	} {
		s := connectedStage(t, Config{Tries: 1}, testHost("a", 4))
		after := map[jobs.ID]jobs.Dependencies{}
		for on := range jobs.AfterFailure + 1 {
			after[jobs.ID(2+on)] = jobs.Dependencies{{Range: jobs.Range{First: 1, Last: 1}, On: on}}
		}
		s.submitAfter(true, after, repeatOptions(4, jobs.NoOptions)...)
		for id := jobs.ID(2); id <= 4; id++ {
			s.wantState(id, jobs.Queued)
		}
		wantContains(t, "why", s.c.Why(s.now(), 4), "job 1 to end (after=failed:1)")
		s.ended("a", "1.1", tt.parent)
		s.wantState(2, tt.ok)
		s.wantState(3, tt.any)
		s.wantState(4, tt.failed)
	}
}
