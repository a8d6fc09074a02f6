package jobs

import (
	"fmt"
	"testing"
)

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
			size := sizeOf(table)
			if size > n*maxBytes || len(table.packed.open) > 0 {
				t.Errorf("%d attempts take %d bytes, and %d rows are not packed", n, size, len(table.packed.open))
			}
			if a := table.Job(1).Attempts; len(a) != n || a[n-1].Outcome.Exit != 75 {
				t.Errorf("the job has %d attempts", len(a))
			}
		})
	}
}

// TestPackedSizeIsIndependentOfEdits checks that jobs that are edited again and again do not take
// more and more memory, that all jobs are as they were edited last, and that texts that were read
// before stay valid.
func TestPackedSizeIsIndependentOfEdits(t *testing.T) {
	const numJobs, numEdits = 3000, 20_000
	for name, table := range map[string]*Table{"of a reader": NewPacked(), "of a dispatcher": NewWorking()} {
		t.Run(name, func(t *testing.T) {
			fold := func(r Record) {
				t.Helper()
				if err := Fold(table, &r); err != nil {
					t.Fatal(err)
				}
				table.PackIdle()
			}
			var specs []*Spec
			for i := range numJobs {
				specs = append(specs, &Spec{ID: ID(i + 1), Command: fmt.Sprint("first ", i), Options: NoOptions})
			}
			table.SetSpecs(0, specs)
			fold(Record{Kind: KindAccepted, Job: 1, Count: numJobs})
			for id := range ID(numJobs) {
				fold(Record{Kind: KindPriority, Job: id + 1, Priority: int(id)})
			}
			before := table.Spec(7)
			for i := range numEdits { // of one job, and of others in turn
				for _, id := range []ID{7, ID(i%numJobs + 1)} {
					fold(Record{Kind: KindEdited, Job: id, N: 0, Spec: &Spec{ID: id, Command: fmt.Sprint("edit ", i),
						Options: NoOptions}})
				}
			}
			num := 0
			for _, b := range table.packed.blocks.all {
				num += b.num
			}
			if most := 4 * numJobs; num > most+minReplaced || num != table.packed.blocks.num {
				t.Errorf("%d jobs take %d texts, counted as %d; want at most %d", numJobs, num,
					table.packed.blocks.num, most)
			}
			if before.Command != "first 6" {
				t.Errorf("a text that was read before is %q now", before.Command)
			}
			last := map[ID]int{7: numEdits - 1}
			for i := range numEdits {
				if id := ID(i%numJobs + 1); id != 7 {
					last[id] = i
				}
			}
			for id, i := range last {
				if j := table.Job(id); j.Spec.Command != fmt.Sprint("edit ", i) {
					t.Fatalf("job %d is %q, want edit %d", id, j.Spec.Command, i)
				}
			}
		})
	}
}
