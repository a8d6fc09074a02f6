package journal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"testing"
	"time"

	"dcs-tui/jobs/jobstest"
	"dcs-tui/jobs/rundir"
	"dcs-tui/jobs/rundir/memdisk"
)

// TestManyTakersAtOnce checks that one of many concurrent takers wins, and that the others report
// who it is.
func TestManyTakersAtOnce(t *testing.T) {
	for range 10 {
		r := newRun(t)
		won, lost := make(chan *Journal, 6), make(chan error, 6)
		var wg sync.WaitGroup
		for range cap(won) {
			wg.Go(func() {
				if j, _, _, err := Take(t.Context(), r, TakeOptions{}); err != nil {
					lost <- err
				} else {
					won <- j
				}
			})
		}
		wg.Wait()
		close(lost)
		if len(won) != 1 {
			t.Fatalf("%d own the run", len(won))
		}
		owner := <-won
		for err := range lost {
			var owned *OwnedError
			if !errors.As(err, &owned) || owned.Owner == nil || owned.Owner.Token != owner.Token() {
				t.Errorf("a loser is told: %v", err)
			}
		}
		if o, err := ReadOwner(r); err != nil || o.Token != owner.Token() {
			t.Errorf("the owner file says %v, %v", o, err)
		}
		must(t, owner.Close())
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

// TestTakeFailsIfItIsFenced checks that a Take fails and reports that it was fenced off if another
// process opens a higher epoch while the journal is read.
func TestTakeFailsIfItIsFenced(t *testing.T) {
	r := newRun(t)
	j, _, _ := mustTake(t, r, TakeOptions{})
	must(t, j.Close())
	r.Disk = hookDisk{r.Disk, func(path string) {
		if path == fileOf(1).path(r) {
			putJournal(t, r, 3, nil)
		}
	}}
	if _, _, _, err := Take(t.Context(), r, TakeOptions{}); !errors.Is(err, ErrFenced) {
		t.Errorf("Take: got error %v, want ErrFenced", err)
	}
}

// TestOwnerRestoresItsFileFromALateTaker checks a taker that was overtaken between opening its
// epoch and installing its owner file, and then installs it. The current owner restores its own
// file with the next heartbeat. Otherwise everybody would soon consider it dead. The overtaken
// taker is told.
func TestOwnerRestoresItsFileFromALateTaker(t *testing.T) {
	r := newRun(t)
	j, _, _ := mustTake(t, r, TakeOptions{})
	late := &Journal{writer: ownerWriter{run: r, owner: *machine("melon2")}}
	late.writer.owner.V, late.writer.owner.Token = 1, "late"
	tmp, err := late.writer.prepare()
	must(t, err)
	must(t, late.writer.install(tmp))
	if o, err := ReadOwner(r); err != nil || o.Token != "late" {
		t.Fatal(o, err)
	}
	must(t, j.Heartbeat())
	if o, err := ReadOwner(r); err != nil || o.Token != j.writer.owner.Token || o.Epoch != 1 {
		t.Errorf("the file owner says %v, %v", o, err)
	}
	if err := late.markLeft(); !errors.Is(err, ErrFenced) {
		t.Errorf("the late one is told: %v", err)
	}
	if o, err := ReadOwner(r); err != nil || o.Left {
		t.Errorf("… and has made it say %+v, %v", o, err)
	}
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
		must(t, r.AppendSpecs(specs))
		clock := time.Unix(1000, 0)
		rest := recs
		for epoch := range 3 {
			j, _, _, err := Take(context.Background(), r, TakeOptions{Force: true, Who: machine("melon1"),
				Token: fmt.Sprint("token", epoch),
				Now:   func() time.Time { clock = clock.Add(time.Second); return clock }})
			must(t, err)
			record(t, j, rest[:len(recs)/3]...)
			rest = rest[len(recs)/3:]
			must(t, j.Heartbeat())
			if epoch == 1 {
				must(t, j.Close())
			}
		}
		for _, name := range []string{"owner", "run.toml", "nonce", "jobs.jsonl", "journal/000001.jsonl",
			"journal/000002.jsonl", "journal/000003.jsonl"} {
			b, err := rundir.ReadFile(m, r.Path(name))
			must(t, err)
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
