package sched

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// The minimal timeouts say of every tuple what all of them say, in whatever order they
// come; none of them says what another does; and no job that is as hard as another comes
// before it (E2).
func TestMinimalTimeouts(t *testing.T) {
	words := []string{"0", "1", "2", "3.0", "-1", "x", "y"}
	limits := []time.Duration{0, time.Second, time.Minute}
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 1))
		h := newTuples()
		n := 1 + rng.IntN(3)
		draw := func() *tuple {
			o := &jobs.Options{}
			for range n {
				o.Hardness = append(o.Hardness, words[rng.IntN(len(words))])
			}
			return h.intern(o, limits[rng.IntN(len(limits))])
		}
		var bars []bar
		for i := range 60 {
			if u := draw(); rng.IntN(4) == 0 && u.limit > 0 {
				b := bar{u.at, u.limit, jobs.ID(i + 1)}
				bars = append(bars, b)
				h.add(u.f, b)
			}
		}
		for range 20 {
			draw() // also what comes when they are known
		}
		f := h.list[0]
		for _, u := range f.list {
			want := slices.ContainsFunc(bars, func(b bar) bool { return naive(b.at, u.at) && u.limit > 0 && u.limit <= b.limit })
			if got := u.by != 0; got != want {
				t.Fatalf("seed %d: %v with %v is to be skipped: %v, want %v by %v", seed, u.at, u.limit, got, want, bars)
			}
		}
		for i, a := range f.bars {
			for k, b := range f.bars {
				if i != k && naive(a.at, b.at) && b.limit <= a.limit {
					t.Fatalf("seed %d: %v says what %v says", seed, b, a)
				}
			}
		}
		for _, a := range f.list {
			for _, b := range f.list {
				if a != b && naive(a.at, b.at) && naive(b.at, a.at) && a.limit == b.limit {
					t.Fatalf("seed %d: %v is there twice", seed, a.at)
				}
				if d := a.compare(b); d != -b.compare(a) || a != b && d == 0 || naive(a.at, b.at) && !naive(b.at, a.at) && d >= 0 {
					t.Fatalf("seed %d: %v comes %d to %v", seed, a.at, d, b.at)
				}
				for _, c := range f.list {
					if a.compare(b) < 0 && b.compare(c) < 0 && a.compare(c) >= 0 {
						t.Fatalf("seed %d: %v %v %v go round", seed, a.at, b.at, c.at)
					}
				}
			}
		}
	}
}

// naive says that b is at least as hard as a, as E2 has it.
func naive(a, b []jobs.Hardness) bool {
	for i := range a {
		if a[i].IsNum != b[i].IsNum || a[i].IsNum && a[i].Num > b[i].Num || !a[i].IsNum && a[i].Text != b[i].Text {
			return false
		}
	}
	return true
}

// BenchmarkDomino queues 100,000 jobs of as many tuples and has 1,000 of them, none of
// which is as hard as another, time out one after the other: on the antidiagonal of a
// square, beyond which the others lie.
func BenchmarkDomino(b *testing.B) {
	const side, bars = 317, 1000
	var all []*jobs.Options
	for x := range side {
		for y := range side {
			all = append(all, &jobs.Options{Hardness: []string{strconv.Itoa(x * 4), strconv.Itoa(y * 4)}, Timeout: time.Minute})
		}
	}
	var hardest []*jobs.Options
	for i := range bars {
		hardest = append(hardest, &jobs.Options{Hardness: []string{strconv.Itoa(i), strconv.Itoa(bars - i)}, Timeout: time.Minute, Priority: -1})
	}
	for b.Loop() {
		c := New(Config{}, &jobs.Table{}, []*hosts.Host{box("melon1", bars)})
		now := Time{Wall: wallStart}
		var specs []*jobs.Spec
		for i, o := range slices.Concat(hardest, all) {
			specs = append(specs, &jobs.Spec{ID: jobs.ID(i + 1), Command: "true", Options: o})
		}
		begin := time.Now()
		c.Step(now, Submit{Specs: specs, Last: true})
		submitted := time.Since(begin)
		c.Step(now, HostUp{Host: "melon1", Hello: &hosts.Hello{Cores: bars + 1, Slots: bars}})
		c.Step(now, HostBeat{"melon1", &hosts.Beat{MemFree: -1, DiskFree: -1}})
		begin = time.Now()
		var longest time.Duration
		for i := range bars {
			id := jobs.AttemptID{Job: jobs.ID(i + 1), N: 1}
			if c.flights[id] == nil {
				b.Fatal("not launched", id)
			}
			was := time.Now()
			c.Step(now, AttemptsEnded{"melon1", &hosts.Exits{Jobs: []hosts.ExitedJob{{Attempt: id, Outcome: timedOut}}}})
			longest = max(longest, time.Since(was))
		}
		if n := len(c.hard.list[0].bars); n != bars || c.Defects > 0 {
			b.Fatal(n, "minimal timeouts,", c.Defects, "defects")
		}
		b.ReportMetric(float64(submitted)/float64(len(specs)), "ns/job-submitted")
		b.ReportMetric(float64(time.Since(begin))/bars/1e3, "µs/timeout")
		b.ReportMetric(float64(longest)/1e6, "ms-longest-step")
		b.ReportMetric(float64(c.table.Counts[jobs.Skipped]), "skipped")
	}
}
