//go:build linux

package remote

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"dcs-tui/hosts"
	"dcs-tui/internal/polltest"
	"dcs-tui/jobs"
)

var (
	sweepAll  = flag.Bool("sweep", false, "let every call go wrong in every way, instead of a sample")
	sweepOnly = flag.String("sweep.only", "",
		"only the faults whose description this regular expression matches, all of them")
	sweepN    = flag.Int("sweep.n", 8, "how many faults of each scene a sample has")
	sweepSeed = flag.Int64("sweep.seed", 1, "which sample")
	sweepJobs = flag.Int("sweep.jobs", 6, "how many at a time")
)

// alike is the number of equal calls of one process that get a fault. The calls of each heartbeat
// repeat without end.
const alike = 3

// calls plays a scene without a fault and returns its calls, in order.
func (s scene) calls(t *testing.T, network bool) (keys []callKey, count map[callKey]int) {
	p := &plan{Network: network, Count: true}
	count = map[callKey]int{}
	t.Run("without a fault", func(t *testing.T) {
		d := newDriver(t, p)
		s.play(d)
		b, err := os.ReadFile(filepath.Join(p.Dir, "calls"))
		must(t, err)
		for line := range strings.Lines(string(b)) {
			w := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
			k := callKey{w[0], w[1], w[2]}
			if count[k]++; count[k] == 1 {
				keys = append(keys, k)
			}
		}
	})
	return keys, count
}

// failuresOf returns the ways in which a call of this kind can fail.
func failuresOf(op string) []string {
	if op == "short" {
		return []string{howShort}
	}
	return []string{"EIO", "ENOSPC", "EDQUOT", "ESTALE", "EINTR", howLate, howKill, howKilled}
}

// plans returns all faults of a scene.
func (s scene) plans(t *testing.T, network bool) (all []*plan) {
	keys, count := s.calls(t, network)
	for _, k := range keys {
		for n := 1; n <= min(count[k], alike); n++ {
			for _, how := range failuresOf(k.Op) {
				all = append(all, &plan{Network: network, Call: k, Nth: n, How: how})
			}
		}
	}
	return all
}

// TestEveryFileSystemCallFails checks promises 1 to 5 for every single file system call of a helper
// or a supervisor that fails, or that is the last call of its process. No attempt runs twice, no
// outcome is made up or lost, the next attempts run, nothing is left, and the messages name the
// file and the reason.
func TestEveryFileSystemCallFails(t *testing.T) {
	for _, network := range []bool{false, true} {
		for _, s := range scenes {
			name := s.name
			if network {
				name += " on a network file system"
			}
			t.Run(name, func(t *testing.T) { sweep(t, s, network) })
		}
	}
}

func sweep(t *testing.T, s scene, network bool) {
	all := s.plans(t, network)
	sites := len(all)
	switch {
	case *sweepOnly != "":
		only := regexp.MustCompile(*sweepOnly)
		all = slices.DeleteFunc(all, func(p *plan) bool { return !only.MatchString(p.String()) })
	case testing.Short():
		all = sample(all, 2)
	case !*sweepAll:
		all = sample(all, *sweepN)
	}
	work := make(chan *plan)
	var done sync.WaitGroup
	var mu sync.Mutex
	fired := 0
	for range *sweepJobs {
		done.Go(func() {
			for p := range work {
				t.Run(strings.ReplaceAll(p.String(), "/", ":"), func(t *testing.T) {
					d := newDriver(t, p)
					s.play(d)
					if p.fired() != "" {
						mu.Lock()
						fired++
						mu.Unlock()
					}
				})
			}
		})
	}
	for _, p := range all {
		work <- p
	}
	close(work)
	done.Wait()
	t.Logf("%d of %d faults, %d of them came to pass", len(all), sites, fired)
}

// sample returns n of the plans, the same ones each time.
func sample(all []*plan, n int) (some []*plan) {
	r := rand.New(rand.NewPCG(uint64(*sweepSeed), 1))
	for _, i := range r.Perm(len(all))[:min(n, len(all))] {
		some = append(some, all[i])
	}
	return some
}

// scene is the activity during which a fault happens.
type scene struct {
	name string
	play func(d *driver)
}

func exits(n int) func(o *jobs.Outcome) bool {
	return func(o *jobs.Outcome) bool { return o.Exit == n && o.Signal == "" && o.Error == "" && !o.Stopped }
}

var scenes = []scene{
	// One job starts at once and two wait. One job fails, and one has a command that is too long
	// for an argument. Output is read, and everything is listed.
	{"launch", func(d *driver) {
		d.add("echo out; exit 0", exits(0))
		d.add("echo oops >&2; exit 3", exits(3))
		d.add("exit 0"+strings.Repeat("\n# long", maxArgument/6), exits(0))
		d.until("all are over", d.allDone)
		var asked *helperProcess
		d.until("all is listed", func() bool {
			if asked != d.link && !d.listed {
				asked = d.link
				d.link.out.Write(&hosts.Read{ID: 7, Attempt: d.jobs[1].last().id, File: jobs.FileErr, Limit: 100},
					&hosts.Inspect{Host: "melon1",
						Attempts: []jobs.AttemptID{d.jobs[0].last().id}}, &hosts.List{Epoch: 1})
			}
			return d.listed
		})
		d.end()
	}},
	// Two jobs need the same device, so they run one after the other.
	{"gpu", func(d *driver) {
		d.add("exit 0", exits(0)).gpus = []int{0}
		d.add("exit 2", exits(2)).gpus = []int{0}
		d.until("both are over", d.allDone)
		d.end()
	}},
	// The first job runs. The second waits and is withdrawn.
	{"withdraw", func(d *driver) {
		gate := d.gate()
		first := d.add("read x < "+gate, exits(0))
		second := d.add("exit 4", exits(4))
		d.add("exit 5", exits(5))
		d.until("the first runs", func() bool { return first.last().started || second.last().started || first.done() })
		second.dropped = true
		var asked *helperProcess
		d.until("the second is taken back", func() bool {
			if !second.done() && asked != d.link {
				asked = d.link
				d.link.out.Write(&hosts.Withdraw{Epoch: 1, Attempts: []jobs.AttemptID{second.last().id}})
			}
			return second.done()
		})
		d.pass(gate)
		d.until("all are over", d.allDone)
		d.end()
	}},
	// The first job runs and is killed with all of its processes.
	{"kill", func(d *driver) {
		first := d.add("sleep 1000 & sleep 1000", func(o *jobs.Outcome) bool { return o.Stopped && !o.OK() })
		d.add("exit 6", exits(6))
		d.until("the first runs", func() bool { return first.last().started || first.done() })
		first.dropped = true
		var asked *helperProcess
		d.until("the first has ended", func() bool {
			if !first.done() && asked != d.link {
				asked = d.link
				d.link.out.Write(&hosts.Kill{Epoch: 1, Attempts: []jobs.AttemptID{first.last().id}, Why: "asked"})
			}
			return first.done()
		})
		d.until("all are over", d.allDone)
		d.end()
	}},
	// A host that does not see the run directory packs its attempts, once while the run goes on and once
	// at its end.
	{"pack", func(d *driver) {
		d.open, d.dir = d.w.ownPlace()
		d.open.Slots = 1
		m := &hosts.Pack{Epoch: 1}
		for range 2 * packLeast {
			d.add("echo out; exit 0", exits(0))
		}
		d.until("all are over", d.allDone)
		for _, k := range d.jobs[:packLeast] {
			m.Attempts = append(m.Attempts, k.last().id)
		}
		d.link.out.Write(m)
		// With a fault, it may never happen.
		polltest.Within(2*time.Second, func() bool { _, packs := plainFiles(d.t, d.dir); return len(packs) > 0 })
		d.end()
	}},
	// The helper dies. The first job ends and the second begins without a helper. Then another
	// helper starts.
	{"adopt", func(d *driver) {
		one, two := d.gate(), d.gate()
		first := d.add("read x < "+one+"; exit 7", exits(7))
		second := d.add("read x < "+two+"; exit 8", exits(8))
		d.add("exit 0", exits(0))
		d.until("one runs", func() bool { return d.running() || first.done() })
		d.until("all launches are in the spool", d.allKnown)
		if !d.link.ended {
			d.link.cmd.Process.Kill()
			d.hangUp()
			d.ends--
		}
		d.pass(one)
		// Nobody reports this. With a fault, it may never happen.
		polltest.Within(2*time.Second, func() bool { return d.runs(second.last().id) > 0 })
		d.pass(two)
		d.until("all are over", d.allDone)
		d.end()
	}},
}

// running reports whether some attempt has been started and has not ended.
func (d *driver) running() bool {
	return slices.ContainsFunc(d.jobs, func(k *task) bool { return k.last().started && !k.last().settled() })
}

// gate creates a pipe before which a job waits. pass lets every attempt of the job continue.
func (d *driver) gate() string { return d.w.fifo("gate" + string(rune('a'+len(d.gates())))) }

func (d *driver) gates() []string {
	names, _ := filepath.Glob(filepath.Join(d.w.runDir, "gate*"))
	return names
}

func (d *driver) pass(gate string) {
	for range maxStarts {
		d.w.say(gate)
	}
}

// end probes every attempt once more, which must change nothing, ends the run, and checks what is
// left.
func (d *driver) end() {
	d.t.Helper()
	ids := []jobs.AttemptID{{Job: 9, N: 1}} // never launched
	for _, k := range d.jobs {
		for _, r := range k.attempts {
			ids = append(ids, r.id)
		}
	}
	stray := &task{id: 9, attempts: []*try{{id: ids[0]}}, dropped: true}
	d.jobs = append(d.jobs, stray)
	answered := map[jobs.AttemptID]bool{}
	asked := time.Time{}
	for end := time.Now().Add(polltest.Patience); len(answered) < len(ids); {
		if time.Now().After(end) {
			d.t.Fatalf("not all are answered: %v; said:\n\t%s", answered, strings.Join(d.said, "\n\t"))
		}
		if d.link.ended {
			d.ends++
			d.connect()
			asked = time.Time{}
		}
		if time.Since(asked) > 300*time.Millisecond {
			asked = time.Now()
			d.link.out.Write(&hosts.Probe{Epoch: 1, Attempts: ids})
		}
		if m, ok := d.receive(100 * time.Millisecond); ok {
			if m, ok := m.(*hosts.Probed); ok {
				for _, p := range m.Jobs {
					if p.Answer >= hosts.HasExited {
						answered[p.Attempt] = true
					}
				}
			}
		}
	}
	for {
		d.link.out.Write(&hosts.Bye{End: true, Pack: true})
		d.hangUp()
		if d.link.cmd.ProcessState.Success() {
			break
		}
		d.ends++
		d.connect()
	}
	d.check()
}

// clean reports whether the fault has no visible effect.
func (d *driver) clean() bool {
	for _, k := range d.jobs {
		if len(k.attempts) > 1 || k.id != 9 && !k.dropped && k.last().answer != hosts.HasExited {
			return false
		}
	}
	return d.ends == 0 && len(d.said) == 0 && len(d.leftovers()) == 0
}

// leftovers returns the names of files that should not be left.
func (d *driver) leftovers() (out []string) {
	filepath.WalkDir(filepath.Dir(d.w.base), func(path string, e os.DirEntry, err error) error {
		rel, _ := filepath.Rel(filepath.Dir(d.w.base), path)
		switch {
		case err != nil:
			out = append(out, err.Error())
		case strings.HasPrefix(rel, "base/runs/") && e.IsDir() && strings.Count(rel, "/") == 3:
			out = append(out, rel)
		case strings.Contains(rel, "/attempts/") && !e.IsDir():
			if ok := finalFile.MatchString(rel); !ok {
				out = append(out, rel)
			}
		}
		return nil
	})
	return out
}

// TestTemporaryTroubleLosesNothing checks promises 1 to 3 and 5 for a disk that is full for a
// while, or a file system that refuses all writes. The fault costs only time. Jobs that ended in
// the meantime have their outcome, a message reports the fault with the reason, and afterwards
// everything continues without intervention.
func TestTemporaryTroubleLosesNothing(t *testing.T) {
	ways := []string{"ENOSPC", "EDQUOT", "ESTALE", "EIO", "EROFS"}
	places := []string{"attempts", "spool", ""}
	for i, how := range ways {
		for j, where := range places {
			network := (i+j)%2 == 1
			if testing.Short() && i%len(places) != j {
				continue
			}
			t.Run(how+" in "+strings.TrimSpace("all "+where), func(t *testing.T) {
				p := &plan{Network: network, Call: callKey{Op: how, Path: where}, How: howFull}
				d := newDriver(t, p)
				full := filepath.Join(p.Dir, "full")
				gate := d.gate()
				first := d.add("read x < "+gate+"; exit 7", exits(7))
				// A probe reports an attempt that is claimed and has no files yet as running. Such
				// an attempt could still be refused.
				d.until("the first runs", func() bool { return first.last().started && d.runs(first.last().id) > 0 })
				write(t, full, "")
				d.add("exit 0", exits(0))
				d.add("exit 9", exits(9))
				d.launch()
				d.pass(gate)
				d.until("it is said why", func() bool { return d.hasSaid(errnos[how].Error()) })
				must(t, os.Remove(full))
				d.until("all are over", d.allDone)
				if len(first.attempts) > 1 {
					t.Errorf("what ran through it was run again: %s", d.state())
				}
				d.end()
			})
		}
	}
}

func (d *driver) hasSaid(text string) bool {
	return slices.ContainsFunc(d.said, func(s string) bool { return strings.Contains(s, text) })
}

// TestNothingIsLostByManyDeaths checks promises 1 to 3 while helpers and supervisors are killed in
// the middle of their work, and each launch is repeated through each helper. In the end, every
// attempt has one answer, none ran twice, and every attempt that is reported as exited has run.
func TestNothingIsLostByManyDeaths(t *testing.T) {
	n, rounds := polltest.Scale(50, 150, 150), polltest.Scale(3, 6, 6)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	w := newWorld(t)
	runs := filepath.Join(w.runDir, "runs")
	var all []hosts.LaunchJob
	var ids []jobs.AttemptID
	for i := 1; i <= n; i++ {
		j := job(fmt.Sprintf("%d.1", i), fmt.Sprintf("echo %d >> %s; exit %d", i, runs, i%2))
		all = append(all, j)
		ids = append(ids, j.Attempt)
	}
	exited := map[jobs.AttemptID]bool{}
	for range rounds {
		f := w.startWith(3)
		var rest []hosts.LaunchJob
		for _, j := range all {
			if !exited[j.Attempt] {
				rest = append(rest, j)
			}
		}
		f.launch(rest...)
		// Some jobs die and never exit.
		for until := len(exited) + 1 + r.IntN(n/rounds); len(exited) < min(until, n*3/4); {
			await(f, func(m *hosts.Exits) bool {
				for _, e := range m.Jobs {
					exited[e.Attempt] = true
				}
				return true
			})
		}
		if r.IntN(2) == 0 {
			if taken, err := w.spool().takenAttempts(); err == nil {
				for _, by := range taken {
					if p, ok := readProc(by.PID); ok && p.start == by.Start {
						signalAll([]proc{p}, unix.SIGKILL)
						break
					}
				}
			}
		}
		f.crash()
	}
	f := w.startWith(3)
	f.mayDie = true
	answers := map[jobs.AttemptID]hosts.Answer{}
	for open := ids; len(open) > 0; {
		f.ping(time.Hour)
		f.send(&hosts.Probe{Epoch: 1 << 20, Attempts: open})
		for asked := map[jobs.AttemptID]bool{}; len(asked) < len(open); {
			await(f, func(m *hosts.Probed) bool {
				for _, p := range m.Jobs {
					asked[p.Attempt] = true
					answers[p.Attempt] = max(p.Answer, answers[p.Attempt])
				}
				return true
			})
		}
		open = nil
		for _, id := range ids {
			if a := answers[id]; a < hosts.HasExited {
				answers[id] = 0
				open = append(open, id)
			}
		}
	}
	b, err := os.ReadFile(runs)
	must(t, err)
	count := map[string]int{}
	for line := range strings.Lines(string(b)) {
		count[strings.TrimSpace(line)]++
	}
	tally := map[hosts.Answer]int{}
	for _, id := range ids {
		ran, a := count[fmt.Sprint(int(id.Job))], answers[id]
		tally[a]++
		switch {
		case ran > 1:
			t.Errorf("%s ran %d times", id, ran)
		case a == hosts.HasExited && ran != 1:
			t.Errorf("%s is said to have exited but ran %d times", id, ran)
		case a == hosts.NeverStarted && ran != 0:
			t.Errorf("%s is said never to have started but ran", id)
		case exited[id] && a != hosts.HasExited:
			t.Errorf("%s was reported over and is now %v", id, a)
		}
	}
	t.Logf("answers: %v", tally)
}
