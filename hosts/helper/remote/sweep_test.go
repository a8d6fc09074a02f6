//go:build linux

package remote

import (
	"flag"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

var (
	sweepAll  = flag.Bool("sweep", false, "let every call go wrong in every way, instead of a sample")
	sweepOnly = flag.String("sweep.only", "", "only the faults whose description this regular expression matches, all of them")
	sweepN    = flag.Int("sweep.n", 8, "how many faults of each scene a sample has")
	sweepSeed = flag.Int64("sweep.seed", 1, "which sample")
	sweepJobs = flag.Int("sweep.jobs", 6, "how many at a time")
)

// alike is how many of the calls that look the same in one process are let go
// wrong: what comes with each beat comes again and again.
const alike = 3

// calls plays a scene without a fault and returns what was called, in order.
func (s scene) calls(t *testing.T, network bool) (keys []callKey, count map[callKey]int) {
	p := &plan{Network: network, Count: true}
	count = map[callKey]int{}
	t.Run("without a fault", func(t *testing.T) {
		d := newDriver(t, p)
		s.play(d)
		b, err := os.ReadFile(filepath.Join(p.Dir, "calls"))
		if err != nil {
			t.Fatal(err)
		}
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

// ways are how a call of this kind goes wrong.
func ways(op string) []string {
	if op == "short" {
		return []string{howShort}
	}
	return []string{"EIO", "ENOSPC", "EDQUOT", "ESTALE", "EINTR", howLate, howKill, howKilled}
}

// plans are all faults of a scene.
func (s scene) plans(t *testing.T, network bool) (all []*plan) {
	keys, count := s.calls(t, network)
	for _, k := range keys {
		for n := 1; n <= min(count[k], alike); n++ {
			for _, how := range ways(k.Op) {
				all = append(all, &plan{Network: network, Call: k, Nth: n, How: how})
			}
		}
	}
	return all
}

// Promises 1 to 5 (DESIGN 1): whatever single file-system call of a helper or a
// supervisor fails, or is the last that its process makes, no attempt runs twice,
// no outcome is made up or lost, the next attempts run, nothing is left, and
// whoever reads the messages learns which file it was and why.
func TestSweep(t *testing.T) {
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

// sample chooses n of them, the same ones each time.
func sample(all []*plan, n int) (some []*plan) {
	r := rand.New(rand.NewPCG(uint64(*sweepSeed), 1))
	for _, i := range r.Perm(len(all))[:min(n, len(all))] {
		some = append(some, all[i])
	}
	return some
}
