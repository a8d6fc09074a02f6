package sched

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// BenchmarkMillion submits a million jobs and runs them on four hosts of 16 slots that report 64
// exits at a time, as at full speed. It reports the core's time per job, with all of its events and
// records, and the memory of a queued job beyond jobs.Job and jobs.Spec.
func BenchmarkMillion(b *testing.B) {
	const n, block = 1_000_000, 10_000
	for b.Loop() {
		specs := make([]*jobs.Spec, n)
		for i := range specs {
			specs[i] = &jobs.Spec{ID: jobs.ID(i + 1), Command: "true", Options: jobs.NoOptions}
		}
		table := &jobs.Table{Specs: specs, Jobs: make([]jobs.Job, 0, n)}
		f := newBusyHosts(table)
		before := heapBytes()
		start := time.Now()
		for i := 0; i < n; i += block {
			f.c.Step(f.now, Submit{Specs: specs[i : i+block], Last: i+block == n})
		}
		submitted := time.Since(start)
		perQueued := float64(heapBytes()-before) / n

		start = time.Now()
		f.connect()
		f.work(n)
		if f.c.table.Counts[jobs.Succeeded] != n || f.c.Defects != 0 {
			b.Fatalf("%d of %d jobs succeeded, %d defects", f.c.table.Counts[jobs.Succeeded], n, f.c.Defects)
		}
		b.ReportMetric(float64(submitted.Nanoseconds())/n, "submit-ns/job")
		b.ReportMetric(float64(time.Since(start).Nanoseconds())/n, "run-ns/job")
		b.ReportMetric(perQueued, "B/queued")
		b.ReportMetric(float64(f.steps), "steps")
	}
}

// TestEndedJobTakesLittleMemory checks that a core that continues a run of ended jobs holds less
// than 200 bytes for each of them, before and after some were requeued and have ended again.
func TestEndedJobTakesLittleMemory(t *testing.T) {
	const n, again = 50_000, 5_000
	before := heapBytes()
	table := jobs.NewWorking()
	fold := func(r jobs.Record) {
		t.Helper()
		if err := jobs.Fold(table, &r); err != nil {
			t.Fatal(err)
		}
		table.PackIdle()
	}
	for id := range jobs.ID(n) {
		table.AddSpec(&jobs.Spec{ID: id + 1, Command: fmt.Sprintf("./simulate --seed %d", id), Options: jobs.NoOptions})
	}
	fold(jobs.Record{Kind: jobs.KindAccepted, Job: 1, Count: n})
	for id := jobs.ID(1); id <= n; id++ {
		fold(jobs.Record{Kind: jobs.KindLaunching, At: wallStart, Job: id, N: 1, Host: "melon1"})
		fold(jobs.Record{Kind: jobs.KindExited, At: wallStart, Job: id, N: 1, Next: jobs.Succeeded, Seq: int64(id),
			Outcome: &jobs.Outcome{Started: wallStart, Ended: wallStart + 1e9}})
	}
	fold(jobs.Record{Kind: jobs.KindAcked, Seq: n})
	f := newBusyHosts(table)
	f.connect()
	f.c.Step(f.now, Submit{Last: true})
	check := func(when string) {
		t.Helper()
		if each := float64(heapBytes()-before) / n; each > 200 {
			t.Errorf("%s: %.0f bytes a job", when, each)
		}
	}
	check("after the takeover")
	requeue := Requeue{}
	for id := range jobs.ID(again) {
		requeue.Jobs = append(requeue.Jobs, id+1)
	}
	_, o := f.c.Step(f.now, requeue)
	f.take(o)
	f.work(again)
	f.c.Step(f.now, Acked{Seq: n + again})
	f.c.Step(f.now, Tick{})
	check("after jobs were requeued and have ended")
	if got := table.Counts[jobs.Succeeded]; got != n || table.Seq != n+again || f.c.Defects != 0 {
		t.Errorf("%d jobs have succeeded, the last result is %d, %d defects", got, table.Seq, f.c.Defects)
	}
	runtime.KeepAlive(f)
}

// TestDependentJobTakesLittleMemory checks that a core holds less than 250 bytes for each job that
// depends on another one, and that the stored specifications of such jobs share their options.
func TestDependentJobTakesLittleMemory(t *testing.T) {
	const n = 50_000
	before := heapBytes()
	table := jobs.NewWorking()
	var reader jobs.SpecReader
	for id := jobs.ID(1); id <= n; id++ {
		spec, err := reader.Read(fmt.Appendf(nil, `{"id":%d,"command":"./simulate --seed %d",`+
			`"options":{"queue":"night","after":[%d],"after_on":["any"],"file":"jobs.txt"}}`, id, id, max(1, id-1)))
		if err != nil {
			t.Fatal(err)
		}
		table.AddSpec(spec)
	}
	if err := jobs.Fold(table, &jobs.Record{Kind: jobs.KindAccepted, Job: 1, Count: n}); err != nil {
		t.Fatal(err)
	}
	f := newBusyHosts(table)
	f.connect()
	f.c.Step(f.now, Submit{Last: true})
	f.c.Step(f.now, Tick{})
	if each := float64(heapBytes()-before) / n; each > 250 {
		t.Errorf("%.0f bytes a job", each)
	}
	if got := f.c.Why(f.now, n); !strings.Contains(got, fmt.Sprintf("waits for job %d to end", n-1)) {
		t.Errorf("the last job: %s", got)
	}
	if table.OptionsOf(1) != table.OptionsOf(n) {
		t.Error("the options are not shared")
	}
	runtime.KeepAlive(&reader)
	runtime.KeepAlive(f)
}

// busyHosts holds four hosts of 16 slots that report 64 exits at a time.
type busyHosts struct {
	c       *Core
	now     Time
	hosts   []*hosts.Host
	running [][]jobs.AttemptID // by host
	steps   int
}

func newBusyHosts(table *jobs.Table) *busyHosts {
	f := &busyHosts{now: Time{Wall: wallStart}, running: make([][]jobs.AttemptID, 4)}
	for i := range f.running {
		f.hosts = append(f.hosts, &hosts.Host{Name: fmt.Sprintf("melon%d", i+1), Slots: hosts.SlotRule{Fixed: 16}})
	}
	f.c = New(Config{}, table, inventoryOf(f.hosts...))
	return f
}

func (f *busyHosts) connect() {
	for _, h := range f.hosts {
		_, o := f.c.Step(f.now, HostUp{Host: h.Name, Hello: &hosts.Hello{Slots: 16, Cores: 17}})
		f.take(o)
	}
}

func (f *busyHosts) take(commands []Command) {
	for i, h := range f.hosts {
		for _, p := range launchItems(commands, h.Name) {
			f.running[i] = append(f.running[i], p.Attempt)
		}
	}
}

// work runs the launched jobs until the number of ended jobs reaches most, and returns this number.
func (f *busyHosts) work(most int) (done int) {
	for done < most {
		for i, h := range f.hosts {
			k := min(64, len(f.running[i]))
			if k == 0 {
				continue
			}
			f.now.Mono += time.Millisecond
			f.now.Wall += jobs.Stamp(time.Millisecond)
			s, x := &hosts.Started{}, &hosts.Exits{}
			for _, id := range f.running[i][:k] {
				s.Jobs = append(s.Jobs, hosts.StartedJob{Attempt: id, Slot: 1, At: f.now.Wall})
				x.Jobs = append(x.Jobs, hosts.ExitedJob{Attempt: id, Slot: 1,
					Outcome: jobs.Outcome{Started: f.now.Wall, Ended: f.now.Wall + 1e6}})
			}
			f.running[i] = append(f.running[i][:0], f.running[i][k:]...)
			_, o := f.c.Step(f.now, AttemptsStarted{h.Name, s})
			f.take(o)
			_, o = f.c.Step(f.now, AttemptsEnded{h.Name, x})
			f.take(o)
			f.c.Step(f.now, HostHeartbeat{Host: h.Name, Heartbeat: &hosts.Heartbeat{MemFree: -1, DiskFree: -1}})
			done += k
			f.steps += 3
		}
	}
	return done
}

func heapBytes() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestReclassifyingKeepsRowsPacked checks that moving all ready jobs to new classes takes less than
// 50 bytes of memory for each.
func TestReclassifyingKeepsRowsPacked(t *testing.T) {
	const n = 50_000
	f := newBusyHosts(jobs.NewWorking())
	specs := make([]*jobs.Spec, n)
	for i := range specs {
		specs[i] = &jobs.Spec{ID: jobs.ID(i + 1), Command: "true", Options: jobs.NoOptions}
	}
	f.c.Step(f.now, Submit{Specs: specs})
	f.c.reclassify(func() {})
	f.c.Step(f.now) // entries of the queue have grown
	before := heapBytes()
	f.c.reclassify(func() {})
	if more := int64(heapBytes()-before) / n; more > 50 || f.c.queue.ready != n {
		t.Errorf("%d jobs are ready, and each takes %d bytes more", f.c.queue.ready, more)
	}
	runtime.KeepAlive(f)
}

// BenchmarkQueues measures the core's time per job from launch to end. A million jobs are ready in
// 1, 10, and 100 queues, on four hosts of 16 slots that report 64 exits at a time. The time grows
// with the number of queues, but not with the number of jobs.
func BenchmarkQueues(b *testing.B) {
	const n, mostDone = 1_000_000, 200_000
	for _, queues := range []int{1, 10, 100} {
		b.Run(fmt.Sprintf("%d-queues", queues), func(b *testing.B) {
			opts := make([]*jobs.Options, queues)
			for q := range opts {
				opts[q] = &jobs.Options{Queue: fmt.Sprint("q", q)}
			}
			for b.Loop() {
				specs := make([]*jobs.Spec, n)
				for i := range specs {
					specs[i] = &jobs.Spec{ID: jobs.ID(i + 1), Command: "true", Options: opts[i%queues]}
				}
				table := &jobs.Table{Specs: specs, Jobs: make([]jobs.Job, 0, n)}
				f := newBusyHosts(table)
				f.c.Step(f.now, Submit{Specs: specs, Last: true})
				f.connect()
				start := time.Now()
				done := f.work(mostDone)
				if f.c.Defects != 0 {
					b.Fatalf("%d defects", f.c.Defects)
				}
				b.ReportMetric(float64(time.Since(start).Nanoseconds())/float64(done), "run-ns/job")
			}
		})
	}
}
