package journal

import (
	"errors"
	"io/fs"
	"sync"
	"testing"

	"dcs-tui/jobs/rundir"
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
