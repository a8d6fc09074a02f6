package journal

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"

	"dcs-tui/jobs"
	"dcs-tui/jobs/jobstest"
	"dcs-tui/jobs/rundir"
	"dcs-tui/jobs/rundir/memdisk"
)

// life runs through everything that the files of a run experience: the run is created, given jobs,
// taken, written to in batches, kept alive by heartbeats, left, and taken again. Each step is
// repeated while it fails, as the dispatcher does, until stop returns true.
type life struct {
	m      *memdisk.Mount
	made   bool
	r      *rundir.Run
	j      *Journal
	specs  []*jobs.Spec
	first  int // number of jobs that the first dispatcher stores
	stored int // specifications acknowledged
	recs   []jobs.Record
	handed int // number of records appended
	acked  int // number of records durable, as acknowledged by Sync
	told   int // number of errors that were reported
	stop   error
}

const batch = 9

func newLife() *life {
	l := &life{m: memdisk.New().Mount("a")}
	l.specs, l.recs = jobstest.History(3, 4, 60)
	l.first = len(l.specs)
	for id := l.first + 1; id <= l.first+3; id++ { // a later dispatcher adds them
		l.specs = append(l.specs, &jobs.Spec{ID: jobs.ID(id), Command: "added", Options: jobs.NoOptions})
	}
	return l
}

// do repeats a step until it succeeds.
func (l *life) do(t *testing.T, what string, step func() error) bool {
	t.Helper()
	for try := 0; ; try++ {
		err := step()
		if err == nil {
			return true
		}
		l.told++
		if l.stop != nil && errors.Is(err, l.stop) {
			return false
		}
		if try == 3 {
			t.Fatalf("%s never recovers: %v", what, err)
		}
	}
}

// live runs all steps. It returns false if it was stopped.
func (l *life) live(t *testing.T) bool {
	t.Helper()
	opt := takeOn("melon1")
	if !l.made && !l.do(t, "making the run", func() (err error) {
		l.r, err = rundir.CreateOn(l.m, "/runs", "x", rundir.Settings{Cwd: "/home"}, nil)
		l.made = err == nil
		return err
	}) {
		return false
	}
	store := func(upTo int) bool {
		for l.stored < upTo {
			n := min(l.stored+2, upTo)
			if !l.do(t, "storing jobs", func() error { return l.r.AppendSpecs(l.specs[l.stored:n]) }) {
				return false
			}
			l.stored = n
		}
		return true
	}
	if !store(l.first) {
		return false
	}
	for epoch := 0; epoch < 2 || l.acked < len(l.recs); epoch++ {
		if !l.do(t, "opening the run", func() (err error) { l.r, err = rundir.OpenOn(l.m, "/runs/x"); return err }) ||
			!l.do(t, "taking the run", func() (err error) {
				l.j, _, _, err = Take(t.Context(), l.r, opt)
				return err
			}) {
			return false
		}
		if epoch > 0 && !store(len(l.specs)) {
			return false
		}
		for b := 0; b < 2 && l.handed < len(l.recs); b++ {
			n := min(l.handed+batch, len(l.recs))
			if err := l.j.Append(l.recs[l.handed:n]); err != nil {
				l.told++
			}
			l.handed = n
			if !l.do(t, "writing the journal", l.j.Sync) {
				return false
			}
			l.acked = n
			if !l.do(t, "the sign of life", l.j.Heartbeat) ||
				!l.do(t, "the address", func() error { return l.j.SetSocket("s") }) {
				return false
			}
		}
		if err := l.j.Close(); err != nil {
			if l.told++; l.stop != nil && errors.Is(err, l.stop) {
				return false
			}
		}
	}
	return l.do(t, "looking at the run", func() error { _, _, err := Replay(l.r); return err })
}

// check compares the records of the journal with the acknowledged ones, and returns their number.
// The journal must hold all acknowledged records, and may hold some that were appended but not
// acknowledged.
func (l *life) check(t *testing.T, what string) (records, specs int) {
	t.Helper()
	r, err := rundir.OpenOn(l.m, "/runs/x")
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	stored, err := jobstest.StoredSpecs(r.ReadSpecs)
	if err != nil || len(stored.Specs) < l.stored || len(stored.Damage) > zeroEnds(t, r) || len(stored.Specs) > 0 &&
		!reflect.DeepEqual(stored.Specs, l.specs[:len(stored.Specs)]) {
		t.Fatalf("%s: %d jobs of %d acknowledged, %q, %v", what, len(stored.Specs), l.stored, stored.Damage, err)
	}
	table, report := mustReplay(t, r)
	if report.Damaged {
		t.Fatalf("%s: %+v", what, report)
	}
	live := &jobs.Table{Specs: slices.Clone(table.Specs), Epoch: table.Epoch}
	for k := 0; ; k++ {
		if k >= l.acked && equalTables(table, live) {
			return k, len(stored.Specs)
		}
		if k == l.handed {
			t.Fatalf("%s: what is there is neither what was acknowledged (%d records) nor any more of what was "+
				"handed over (%d): %+v", what, l.acked, l.handed, report)
		}
		must(t, jobs.Fold(live, &l.recs[k]))
	}
}

// zeroEnds counts the specification files that end in a zero instead of a newline. The power loss
// tore the write there. Such an end is reported as damage that costs nothing. No single bit flip
// turns a newline into a zero.
func zeroEnds(t *testing.T, r *rundir.Run) (n int) {
	t.Helper()
	names, err := r.Disk.Names(r.Dir)
	must(t, err)
	for _, name := range names {
		if b, err := rundir.ReadFile(r.Disk, r.Path(name)); strings.HasPrefix(name, "jobs") && err == nil &&
			bytes.HasSuffix(b, []byte{'}', 0}) {
			n++
		}
	}
	return n
}

// faultsOf returns the ways in which an operation fails once.
func faultsOf(op string) map[string]error {
	all := map[string]error{}
	for _, err := range diskErrors {
		all[err.Error()] = err
		if op == "sync" {
			all["lost, "+err.Error()] = memdisk.LostWrites{Err: err}
			all["zeros, "+err.Error()] = memdisk.LostWrites{Err: err, Zeros: true}
		}
		if op == "write" {
			all["short, "+err.Error()] = memdisk.ShortWrite{N: 300, Err: err}
		}
	}
	if op == "write" {
		all["short"] = memdisk.ShortWrite{N: 5}
	}
	return all
}

// TestEveryOperationFailsOnce checks one failure of each kind of each file operation in the whole
// life of a run. The failure is reported unless it did not matter. Continuing yields exactly the
// jobs and the facts, nothing duplicated and nothing torn (promise 1).
func TestEveryOperationFailsOnce(t *testing.T) {
	var ops []string
	l := newLife()
	l.m.Fault = func(op, path string) error { ops = append(ops, op+" "+path); return nil }
	l.live(t)
	l.m.Fault = nil
	if k, n := l.check(t, "without a fault"); k != len(l.recs) || n != len(l.specs) || l.told > 0 {
		t.Fatalf("%d records, %d jobs, %d errors", k, n, l.told)
	}
	runs := 0
	for n, what := range ops {
		var op string
		if _, err := fmt.Sscan(what, &op); err != nil {
			t.Fatal(err)
		}
		for how, cause := range faultsOf(op) {
			l, count := newLife(), 0
			l.m.Fault = func(string, string) error {
				if count++; count == n+1 {
					return cause
				}
				return nil
			}
			l.live(t)
			l.m.Fault = nil
			at := fmt.Sprintf("operation %d (%s) failed: %s", n+1, what, how)
			if k, n := l.check(t, at); k != len(l.recs) || n != len(l.specs) {
				t.Fatalf("%s: %d records of %d, %d jobs of %d", at, k, len(l.recs), n, len(l.specs))
			}
			runs++
		}
	}
	t.Logf("%d operations, %d runs", len(ops), runs)
}

// errGone is the error of every operation once the machine is going down.
var errGone = fmt.Errorf("the power is failing: %w", syscall.EIO)

// TestPowerFailsAtEveryOperation checks a power loss at each file operation in the whole life of a
// run. What was not durable is lost, kept, or torn. What was acknowledged is present, no line is
// damaged, and the next dispatcher finishes the run.
func TestPowerFailsAtEveryOperation(t *testing.T) {
	total := 0
	l := newLife()
	l.m.Fault = func(string, string) error { total++; return nil }
	l.live(t)
	seeds := uint64(12)
	if testing.Short() || raceDetector {
		seeds = 3
	}
	unmade := 0
	for n := range total {
		for seed := range seeds {
			rng := rand.New(rand.NewPCG(seed, uint64(n)))
			l, count := newLife(), 0
			l.stop = errGone
			l.m.Fault = func(op, _ string) error {
				if count++; count <= n {
					return nil
				}
				if op == "write" && count == n+1 {
					return memdisk.ShortWrite{N: rng.IntN(400), Err: errGone}
				}
				return errGone
			}
			l.live(t)
			l.m.Fault = nil
			l.m.PowerLoss(func(loss memdisk.Loss) memdisk.Fate {
				switch seed {
				case 0:
					return memdisk.Fate{}
				case 1: // only the process died
					return memdisk.Fate{Keep: loss.Len}
				}
				return memdisk.Fate{Keep: rng.IntN(loss.Len + 1), Zeros: rng.IntN(2) == 0}
			})
			at := fmt.Sprintf("the power failed at operation %d, seed %d", n+1, seed)
			if !l.made { // the creation of the run was not acknowledged
				unmade++
				continue
			}
			l.acked, l.stored = l.check(t, at)
			l.handed, l.stop = l.acked, nil
			l.r, _ = rundir.OpenOn(l.m, "/runs/x")
			l.live(t)
			if k, jobs := l.check(t, at); k != len(l.recs) || jobs != len(l.specs) {
				t.Fatalf("%s: in the end %d records of %d, %d jobs of %d", at, k, len(l.recs), jobs, len(l.specs))
			}
		}
	}
	t.Logf("%d operations, %d losses of power, %d before there was a run", total, total*int(seeds), unmade)
}
