package jobs

import "testing"

// TestPackedSizeGrowsWithAttempts checks that the memory of a job that is tried again and again
// grows with its attempts, and not with their square.
func TestPackedSizeGrowsWithAttempts(t *testing.T) {
	const n, maxBytes = 100, 150 // per attempt
	for name, table := range map[string]*Table{"of a reader": NewPacked(), "of a dispatcher": NewWorking()} {
		t.Run(name, func(t *testing.T) {
			fold := func(r Record) {
				t.Helper()
				if err := Fold(table, &r); err != nil {
					t.Fatal(err)
				}
				table.PackIdle()
			}
			table.SetSpecs(0, []*Spec{{ID: 1, Command: "poll", Options: NoOptions}})
			fold(Record{Kind: KindAccepted, Job: 1, Count: 1})
			for i := range n {
				at, next, seq := Stamp(1e18)+Stamp(i)*6e10, Queued, int64(0)
				if i == n-1 {
					next, seq = Failed, 1
				}
				fold(Record{Kind: KindLaunching, Job: 1, N: i + 1, Host: "melon1", At: at})
				fold(Record{Kind: KindExited, Job: 1, N: i + 1, Next: next, Seq: seq,
					Outcome: &Outcome{Exit: 75, Started: at, Ended: at + 1e9, CPU: 1e8, MaxRSSBytes: 1 << 22}})
			}
			size := 0
			for _, b := range table.packed.blocks.all {
				size += b.Len()
			}
			if size > n*maxBytes || len(table.packed.open) > 0 {
				t.Errorf("%d attempts take %d bytes, and %d rows are not packed", n, size, len(table.packed.open))
			}
			if a := table.Job(1).Attempts; len(a) != n || a[n-1].Outcome.Exit != 75 {
				t.Errorf("the job has %d attempts", len(a))
			}
		})
	}
}
