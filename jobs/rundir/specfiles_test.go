package rundir_test

import (
	"bytes"
	"fmt"
	"testing"

	"dcs-tui/jobs"
	"dcs-tui/jobs/jobstest"
	"dcs-tui/jobs/rundir"
	"dcs-tui/jobs/rundir/memdisk"
)

// owner opens the run as the dispatcher of an epoch.
func owner(t *testing.T, m *memdisk.Mount, epoch int) *rundir.Run {
	t.Helper()
	r, err := rundir.OpenOn(m, "/runs/x")
	must(t, err)
	_, err = jobstest.StoredSpecs(r.ReadSpecs)
	must(t, err)
	r.SetOwner(epoch, func() error { return nil })
	return r
}

// add stores the jobs with these numbers. Their commands name who added them.
func add(t *testing.T, r *rundir.Run, who string, from, to int) {
	t.Helper()
	var specs []*jobs.Spec
	for id := from; id <= to; id++ {
		specs = append(specs, &jobs.Spec{ID: jobs.ID(id), Command: fmt.Sprint(who, id), Options: jobs.NoOptions})
	}
	must(t, r.AppendSpecs(specs))
}

func commands(t *testing.T, m *memdisk.Mount) (said string, damage []string) {
	t.Helper()
	r, err := rundir.OpenOn(m, "/runs/x")
	must(t, err)
	stored, err := jobstest.StoredSpecs(r.ReadSpecs)
	must(t, err)
	for i, s := range stored.Specs {
		if s.ID != jobs.ID(i+1) {
			t.Fatalf("job %d stands in place %d", s.ID, i+1)
		}
		said += s.Command + " "
	}
	return said, stored.Damage
}

// TestLateWriteOfAnEarlierDispatcher checks late writes of an earlier dispatcher, whose link was
// cut or whose machine slept in the middle of a write, after the next one has continued. No job of
// the next one changes its command, none is lost, and no number means two jobs (promise 1).
func TestLateWriteOfAnEarlierDispatcher(t *testing.T) {
	for order := range 6 {
		m, first := inMemory(t)
		first.SetOwner(1, func() error { return nil })
		add(t, first, "a", 1, 3)
		second := owner(t, m, 2)
		late := func() { add(t, first, "late", 4, 6) } // it does not know of the takeover yet
		want := "a1 a2 a3 b4 b5 c6 "
		if order == 0 {
			late()
		}
		add(t, second, "b", 4, 4)
		if order == 1 {
			late()
		}
		add(t, second, "b", 5, 5)
		if order == 2 {
			late()
		}
		third := owner(t, m, 3)
		if order == 3 {
			late()
		}
		if order > 3 {
			add(t, second, "late", 6, 6+order)
		}
		add(t, third, "c", 6, 6)
		if order == 4 {
			late()
		}
		if got, damage := commands(t, m); got != want || len(damage) > 0 {
			t.Errorf("order %d: %s, want %s; %q", order, got, want, damage)
		}
	}
}

// TestDamagedLaterFileLeavesEarlierJobs checks a file of a later epoch with every single bit
// flipped, and cut at every byte. Jobs of earlier files are unchanged, a bit flip costs at most one
// job of this file, and new specifications can be appended.
func TestDamagedLaterFileLeavesEarlierJobs(t *testing.T) {
	m, first := inMemory(t)
	first.SetOwner(1, func() error { return nil })
	add(t, first, "a", 1, 2)
	add(t, owner(t, m, 2), "b", 3, 5)
	path, whole := contentOf(t, m, first, "jobs-000002.jsonl")
	for bit := range 8 * len(whole) {
		overwrite(t, m, path, flipped(whole, bit))
		got, damage := commands(t, m)
		ok := got == "a1 a2 b3 b4 b5 "
		for _, lost := range []string{"a1 a2 false b4 b5 ", "a1 a2 b3 false b5 ", "a1 a2 b3 b4 false "} {
			ok = ok || got == lost
		}
		if !ok || len(damage) == 0 {
			t.Fatalf("bit %d: %s; %q", bit, got, damage)
		}
	}
	for cut := range whole {
		overwrite(t, m, path, whole[:cut])
		n := max(0, bytes.Count(whole[:cut], []byte("\n"))-1)
		want := "a1 a2 "
		for id := 3; id < 3+n; id++ {
			want += fmt.Sprint("b", id, " ")
		}
		if got, damage := commands(t, m); got != want || len(damage) > 0 {
			t.Fatalf("cut at %d: %s, want %s; %q", cut, got, want, damage)
		}
		add(t, owner(t, m, 3), "c", 3+n, 4+n)
		want += fmt.Sprint("c", 3+n, " c", 4+n, " ")
		if got, damage := commands(t, m); got != want || len(damage) > 0 {
			t.Fatalf("cut at %d, then added: %s, want %s; %q", cut, got, want, damage)
		}
		must(t, m.Remove(first.Path("jobs-000003.jsonl")))
	}
}
