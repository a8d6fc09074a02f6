//go:build linux

package remote

import (
	"strconv"
	"syscall"
	"testing"
	"time"

	"dcs-tui/hosts"
)

// BenchmarkSupervisorSleep0 runs `sleep 0` jobs through a real helper over pipes, with 4 slots and
// 60 jobs buffered on the host. For comparison, run:
//
//	seq 5000 | time xargs -P4 -I{} sh -c 'sleep 0'
func BenchmarkSupervisorSleep0(b *testing.B) {
	const slots, buffered = 4, 60
	f := newWorld(b).startWith(slots)
	next := 1
	batch := func(n int) {
		var list []hosts.LaunchJob
		for ; n > 0 && next <= b.N; n-- {
			list = append(list, job(strconv.Itoa(next)+".1", "sleep 0"))
			next++
		}
		if len(list) > 0 {
			f.launch(list...)
		}
	}
	b.ResetTimer()
	began := time.Now()
	batch(slots + buffered)
	for done, owed := 0, 0; done < b.N; {
		m, ok := <-f.msgs
		if !ok {
			b.Fatal(f.readErr, f.stderr.String())
		}
		switch m := m.(type) {
		case *hosts.Exits:
			for _, j := range m.Jobs {
				if !j.Outcome.OK() {
					b.Fatalf("got %+v, want a success", j)
				}
			}
			done += len(m.Jobs)
			owed += len(m.Jobs)
			if owed >= 16 || done == next-1 {
				batch(owed)
				owed = 0
			}
		case *hosts.Trouble, *hosts.Refused:
			b.Fatalf("got %+v, want no trouble", m)
		case *hosts.Heartbeat:
			f.ping(time.Hour)
		}
	}
	b.StopTimer()
	b.ReportMetric(float64(b.N)/time.Since(began).Seconds(), "jobs/s")
	f.endRun()
	var ru syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &ru) == nil {
		b.ReportMetric(float64(timeOf(ru.Utime)+timeOf(ru.Stime))/1e3/float64(b.N), "client-us/job")
	}
	if u, ok := f.cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		b.ReportMetric(float64(timeOf(u.Utime)+timeOf(u.Stime))/1e3/float64(b.N), "helper+jobs-us/job")
	}
}
