package journal

import (
	"errors"
	"io/fs"
	"sync"
	"testing"

	"dcs-tui/jobs/rundir"
)

// Of many takers at once one wins, and the others say who has it.
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

// With --force several may get through; the last epoch alone is not fenced off.
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

// Somebody opens a higher epoch while we read the journal: our Take fails, and
// says that it was fenced off.
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

// A taker that was overtaken between opening its epoch and installing its owner file
// goes on and installs it: the owner in force puts its own back with the next beat,
// or everybody else would soon take it for dead, and the overtaken one is told.
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
