package journal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"dcs-tui/jobs"
	"dcs-tui/jobs/jobstest"
	"dcs-tui/jobs/rundir"
	"dcs-tui/jobs/rundir/memdisk"
)

// TestManyTakersAtOnce checks that one of many concurrent takers wins, and that the others report
// who it is.
func TestManyTakersAtOnce(t *testing.T) {
	for range 10 {
		r := newRun(t)
		var wg sync.WaitGroup
		won := make([]*Journal, 6)
		errs := make([]error, len(won))
		for i := range won {
			wg.Go(func() { won[i], _, _, errs[i] = Take(t.Context(), r, TakeOptions{}) })
		}
		wg.Wait()
		var owner *Journal
		for i, j := range won {
			switch {
			case errs[i] == nil && owner == nil:
				owner = j
			case errs[i] == nil:
				t.Error("two own the run")
			}
		}
		for _, err := range errs {
			var owned *OwnedError
			if err != nil && (!errors.As(err, &owned) || owned.Owner == nil || owner != nil && owned.Owner.Token != owner.beats.owner.Token) {
				t.Errorf("a loser is told: %v", err)
			}
		}
		if owner == nil {
			t.Fatalf("nobody got it: %v", errs)
		}
		if o, err := ReadOwner(r); err != nil || o.Token != owner.beats.owner.Token {
			t.Errorf("the owner file says %v, %v", o, err)
		}
		if err := owner.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestManyForcedTakers checks that several takers may succeed with --force, and that only the last
// epoch is not fenced off.
func TestManyForcedTakers(t *testing.T) {
	r := newRun(t)
	var wg sync.WaitGroup
	won := make([]*Journal, 6)
	errs := make([]error, len(won))
	for i := range won {
		wg.Go(func() { won[i], _, _, errs[i] = Take(t.Context(), r, force) })
	}
	wg.Wait()
	free := 0
	for i, j := range won {
		if errs[i] != nil {
			continue
		}
		if n, err := j.Fenced(); err == nil && n == 0 {
			free++
		}
		crash(t, j)
	}
	if free > 1 {
		t.Errorf("%d own the run: %v", free, errs)
	}
}

// hookDisk calls hook before a file is opened.
type hookDisk struct {
	rundir.Disk
	hook func(path string)
}

func (d hookDisk) OpenFile(path string, flag int, perm fs.FileMode) (rundir.File, error) {
	d.hook(path)
	return d.Disk.OpenFile(path, flag, perm)
}

// TestFencedWhileTaking checks that a Take fails and reports that it was fenced off if another
// process opens a higher epoch while the journal is read.
func TestFencedWhileTaking(t *testing.T) {
	r := newRun(t)
	j, _, _ := take1(t, r, TakeOptions{})
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	r.Disk = hookDisk{r.Disk, func(path string) {
		if path == fileOf(1).path(r) {
			put(t, r, 3, nil)
		}
	}}
	if _, _, _, err := Take(t.Context(), r, TakeOptions{}); !errors.Is(err, ErrFenced) {
		t.Errorf("%v", err)
	}
}

// TestInstalledTooLate checks a taker that was overtaken between opening its epoch and installing
// its owner file, and then installs it. The current owner restores its own file with the next
// heartbeat. Otherwise everybody would soon consider it dead. The overtaken taker is told.
func TestInstalledTooLate(t *testing.T) {
	r := newRun(t)
	j, _, _ := take1(t, r, TakeOptions{})
	defer crash(t, j)
	late := &Journal{beats: beats{run: r, owner: *machine("melon2")}}
	late.beats.owner.V, late.beats.owner.Token = 1, "late"
	tmp, err := late.beats.prepare()
	if err != nil {
		t.Fatal(err)
	}
	if err := late.beats.install(tmp); err != nil {
		t.Fatal(err)
	}
	if o, err := ReadOwner(r); err != nil || o.Token != "late" {
		t.Fatal(o, err)
	}
	if err := j.Beat(); err != nil {
		t.Fatal(err)
	}
	if o, err := ReadOwner(r); err != nil || o.Token != j.beats.owner.Token || o.Epoch != 1 {
		t.Errorf("the file owner says %v, %v", o, err)
	}
	if err := late.leave(); !errors.Is(err, ErrFenced) {
		t.Errorf("the late one is told: %v", err)
	}
	if o, err := ReadOwner(r); err != nil || o.Left {
		t.Errorf("… and has made it say %+v, %v", o, err)
	}
}

// machine returns the identity of a simulated machine.
func machine(name string) *Owner {
	o := &Owner{Host: name, User: "ada"}
	o.PID, o.Start, o.Boot, o.PIDNS = 7, 70, "boot of "+name, "pid:[1]"
	return o
}

// simulated creates a run on a server's disk deterministically.
func simulated(t testing.TB, d rundir.Disk) *rundir.Run {
	t.Helper()
	r, err := rundir.CreateOn(d, "/runs", "x", rundir.Asked{UID: "abcdefghijkl", Created: time.Unix(1, 0)}, rand.NewChaCha8([32]byte{1}))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestTakeLeavesNothingToChance checks that a seed of the simulator replays exactly. Given clock,
// token, and identity, a forced Take and everything after it perform the same file operations and
// write the same bytes. They do not depend on the clock and the processes of this machine.
func TestTakeLeavesNothingToChance(t *testing.T) {
	specs, recs := jobstest.History(3, 4, 60)
	once := func() (said []string, files string) {
		m := memdisk.New().Mount("a")
		m.Fault = func(op, path string) error {
			said = append(said, op+" "+path)
			return nil
		}
		r := simulated(t, m)
		if err := r.AppendSpecs(specs); err != nil {
			t.Fatal(err)
		}
		clock := time.Unix(1000, 0)
		rest := recs
		for epoch := range 3 {
			j, _, _, err := Take(context.Background(), r, TakeOptions{Force: true, Who: machine("melon1"),
				Token: fmt.Sprint("token", epoch), Now: func() time.Time { clock = clock.Add(time.Second); return clock }})
			if err != nil {
				t.Fatal(err)
			}
			record(t, j, rest[:len(recs)/3]...)
			rest = rest[len(recs)/3:]
			if err := j.Beat(); err != nil {
				t.Fatal(err)
			}
			if epoch == 1 {
				if err := j.Close(); err != nil {
					t.Fatal(err)
				}
			}
		}
		for _, name := range []string{"owner", "run.toml", "nonce", "jobs.jsonl", "journal/000001.jsonl", "journal/000002.jsonl", "journal/000003.jsonl"} {
			b, err := rundir.ReadFile(m, r.Path(name))
			if err != nil {
				t.Fatal(err)
			}
			files += string(b)
		}
		return said, files
	}
	said, files := once()
	for range 3 {
		again, same := once()
		if fmt.Sprint(said) != fmt.Sprint(again) {
			t.Fatalf("other file operations: %d and %d", len(said), len(again))
		}
		if files != same {
			t.Fatal("other bytes")
		}
	}
}

// TestMachinesTakeTurns checks a run that moves between machines on one server. Each begins where
// the other ended, through its own view, and the file owner names the current one.
func TestMachinesTakeTurns(t *testing.T) {
	server := memdisk.New()
	server.NamesDurable = true
	specs, recs := jobstest.History(6, 6, 200)
	first := simulated(t, server.Mount("melon0"))
	if err := first.AppendSpecs(specs); err != nil {
		t.Fatal(err)
	}
	live := &jobs.Table{Specs: slices.Clone(specs)}
	for epoch := 1; len(recs) > 0; epoch++ {
		host := fmt.Sprint("melon", epoch%3)
		view := server.Mount(host)
		r, err := rundir.OpenOn(view, first.Dir)
		if err != nil {
			t.Fatal(err)
		}
		j, table, report, err := Take(t.Context(), r, TakeOptions{Force: true, Who: machine(host)})
		if err != nil {
			t.Fatal(err)
		}
		if live.Epoch = epoch; !same(table, live) || report.Damaged {
			t.Fatalf("epoch %d: %+v", epoch, report)
		}
		if o, err := ReadOwner(first); err != nil || o.Host != host || o.Epoch != epoch {
			t.Fatalf("epoch %d is of %v, %v", epoch, o, err)
		}
		n := min(17, len(recs))
		for i := range recs[:n] {
			if err := jobs.Fold(live, &recs[i]); err != nil {
				t.Fatal(err)
			}
		}
		record(t, j, recs[:n]...)
		recs = recs[n:]
		view.PowerLoss(nil)
	}
	if table, report := replay1(t, first); !same(table, live) || report.Damaged {
		t.Errorf("%+v", report)
	}
}
