package journal

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"dcs-tui/jobs"
	"dcs-tui/jobs/jobstest"
	"dcs-tui/jobs/rundir"
	"dcs-tui/jobs/rundir/memdisk"
)

// machine is the identity of a simulated machine.
func machine(name string) *Owner {
	o := &Owner{Host: name, User: "ada"}
	o.PID, o.Start, o.Boot, o.PIDNS = 7, 70, "boot of "+name, "pid:[1]"
	return o
}

// simulated makes a run on a server's disk without anything left to chance.
func simulated(t testing.TB, d rundir.Disk) *rundir.Run {
	t.Helper()
	r, err := rundir.CreateOn(d, "/runs", "x", rundir.Asked{UID: "abcdefghijkl", Created: time.Unix(1, 0)}, rand.NewChaCha8([32]byte{1}))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// The simulator's promise that a seed replays exactly: given clock, token and
// identity, a forced Take and all that follows make the same file operations and
// the same bytes, whatever the clock and the processes of this machine are.
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

// A run moves between machines on one server: each begins where the other ended,
// through its own view, and the file owner names the one that has it.
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
