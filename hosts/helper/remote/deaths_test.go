//go:build linux

package remote

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// Promises 1 to 3 under many deaths: helpers are killed in the middle of their
// work, and supervisors too; each launch is repeated through each helper. In the
// end every attempt has one answer, none ran twice, and what is said to have
// exited has run.
func TestManyDeaths(t *testing.T) {
	const n, rounds = 150, 6
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	w := newWorld(t)
	runs := filepath.Join(w.runDir, "runs")
	o := w.open()
	o.Slots = 3
	var all []hosts.LaunchJob
	var ids []jobs.AttemptID
	for i := 1; i <= n; i++ {
		j := job(fmt.Sprintf("%d.1", i), fmt.Sprintf("echo %d >> %s; exit %d", i, runs, i%2))
		all = append(all, j)
		ids = append(ids, j.Attempt)
	}
	exited := map[jobs.AttemptID]bool{}
	for range rounds {
		f := w.start(o)
		var rest []hosts.LaunchJob
		for _, j := range all {
			if !exited[j.Attempt] {
				rest = append(rest, j)
			}
		}
		f.launch(rest...)
		for until := len(exited) + 1 + r.IntN(n/rounds); len(exited) < min(until, n*3/4); { // some die, and never exit
			await(f, func(m *hosts.Exits) bool {
				for _, e := range m.Jobs {
					exited[e.Attempt] = true
				}
				return true
			})
		}
		if r.IntN(2) == 0 {
			if taken, err := w.spool().taken(); err == nil {
				for _, by := range taken {
					if p, ok := readProc(by.pid); ok && p.start == by.start {
						signalAll([]proc{p}, unix.SIGKILL)
						break
					}
				}
			}
		}
		f.kill9()
	}
	f := w.start(o)
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
	if err != nil {
		t.Fatal(err)
	}
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
	f.bye()
}
