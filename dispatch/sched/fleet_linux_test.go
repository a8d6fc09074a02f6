package sched

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// BenchmarkFleet measures the events of large fleets, each with the Next that follows a Step: all
// hosts come up, a job starts, a job ends and its slot is refilled, and a heartbeat comes. The jobs
// have the given number of different requirements, and all of them succeed or all fail. step-max-ms is
// the longest Step. The unit is CPU time of the thread, so that other processes do not matter.
func BenchmarkFleet(b *testing.B) {
	for _, size := range []struct{ hosts, slots, shapes, exit int }{
		{10, 4, 1, 0}, {1000, 4, 1, 0}, {5000, 4, 1, 0}, {5000, 64, 1, 0}, {1000, 4, 1000, 0}, {5000, 4, 1000, 0},
		{10, 4, 1, 1}, {1000, 4, 1, 1}, {1000, 4, 1000, 1},
	} {
		b.Run(fmt.Sprintf("%dx%d-shapes=%d-exit=%d", size.hosts, size.slots, size.shapes, size.exit),
			func(b *testing.B) {
				for b.Loop() {
					measureFleet(b, size.hosts, size.slots, size.shapes, size.exit)
				}
			})
	}
}

// threadTime returns the CPU time of the thread.
func threadTime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		panic(err)
	}
	return time.Duration(t.Nano())
}

func measureFleet(b *testing.B, numHosts, slots, shapes, exit int) {
	const events, warmUp = 2000, 200 // the first end shows how long jobs take, so that buffers are filled
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	specs := make([]*jobs.Spec, numHosts*slots*3+10*events)
	opts := make([]*jobs.Options, shapes)
	for i := range opts {
		opts[i] = &jobs.Options{}
		if i > 0 {
			opts[i].MemBytes = int64(i) << 10
		}
	}
	for i := range specs {
		specs[i] = &jobs.Spec{ID: jobs.ID(i + 1), Command: "true", Options: opts[i%shapes]}
	}
	list := make([]*hosts.Host, numHosts)
	for i := range list {
		list[i] = &hosts.Host{Name: fmt.Sprint("h", i), Slots: hosts.SlotRule{Fixed: slots}}
	}
	c := New(Config{}, &jobs.Table{Specs: specs, Jobs: make([]jobs.Job, 0, len(specs))}, inventoryOf(list...))
	now, longest := Time{Wall: wallStart}, time.Duration(0)
	running := make([][]jobs.AttemptID, numHosts)
	number := make(map[string]int, numHosts)
	for i, h := range list {
		number[h.Name] = i
	}
	step := func(ev Event) time.Duration {
		now.Mono += time.Microsecond
		now.Wall += jobs.Stamp(time.Microsecond)
		began := threadTime()
		_, commands := c.Step(now, ev)
		took := threadTime() - began
		c.Next()
		all := threadTime() - began
		longest = max(longest, took)
		for _, o := range commands {
			if l, ok := o.(Launch); ok {
				for _, p := range l.Jobs {
					running[number[l.Host]] = append(running[number[l.Host]], p.Attempt)
				}
			}
		}
		return all
	}
	step(Submit{Specs: specs, Last: true})
	longest = 0
	var up, starts, ends, beats time.Duration
	for _, h := range list {
		up += step(HostUp{Host: h.Name, Hello: &hosts.Hello{Machine: h.Name,
			Slots: slots, Cores: slots + 1, MemBytes: 64 << 30}})
	}
	for i, h := range list {
		s := &hosts.Started{}
		for _, id := range running[i] {
			s.Jobs = append(s.Jobs, hosts.StartedJob{Attempt: id, Slot: 1, At: now.Wall})
		}
		step(AttemptsStarted{h.Name, s})
	}
	for n := range events + warmUp {
		if n == warmUp {
			starts, ends, beats = 0, 0, 0
		}
		i := n * 7919 % numHosts
		name, id := list[i].Name, running[i][0]
		running[i] = running[i][1:]
		ends += step(AttemptsEnded{name, &hosts.Exits{Jobs: []hosts.ExitedJob{{Attempt: id, Slot: 1,
			Outcome: jobs.Outcome{Exit: exit, Started: now.Wall - 1e9, Ended: now.Wall}}}}})
		last := running[i][min(slots, len(running[i]))-1]
		starts += step(AttemptsStarted{name,
			&hosts.Started{Jobs: []hosts.StartedJob{{Attempt: last, Slot: 1, At: now.Wall}}}})
		beats += step(HostHeartbeat{Host: list[(i+1)%numHosts].Name,
			Heartbeat: &hosts.Heartbeat{MemFree: -1, DiskFree: -1}})
	}
	if c.Defects != 0 {
		b.Fatalf("%d defects", c.Defects)
	}
	b.ReportMetric(up.Seconds(), "up-s")
	b.ReportMetric(float64(longest.Microseconds())/1e3, "step-max-ms")
	b.ReportMetric(float64(starts.Microseconds())/events, "start-us")
	b.ReportMetric(float64(ends.Microseconds())/events, "end-us")
	b.ReportMetric(float64(beats.Microseconds())/events, "heartbeat-us")
	b.ReportMetric(0, "ns/op")
}
