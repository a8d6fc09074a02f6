package jobs

import "testing"

// TestRepeatedChangesNeedNoMemory checks that the memory of a working table is bounded, however often
// the rows of jobs that wait are changed.
func TestRepeatedChangesNeedNoMemory(t *testing.T) {
	const n, changes = 2000, 300
	table := NewWorking()
	for id := range ID(n) {
		table.AddSpec(&Spec{ID: id + 1, Command: "true", Options: NoOptions})
	}
	fold := func(r Record) {
		t.Helper()
		if err := Fold(table, &r); err != nil {
			t.Fatal(err)
		}
	}
	fold(Record{Kind: KindAccepted, Job: 1, Count: n})
	size := func() (bytes int) {
		for _, b := range table.packed.blocks.all {
			bytes += b.Cap()
		}
		return bytes
	}
	specs := size()
	for i := range changes {
		for id := range ID(n) {
			fold(Record{Kind: KindPriority, Job: id + 1, Priority: i})
		}
		table.PackIdle()
	}
	if now := size(); now > 2*specs+2<<20 {
		t.Errorf("%d bytes, %d at the beginning", now, specs)
	}
	for id := range ID(n) {
		fold(Record{Kind: KindJob, Job: id + 1, Next: Canceled, Seq: int64(id + 1)})
	}
	table.PackIdle()
	if len(table.packed.open) > 0 {
		t.Errorf("%d rows of finished jobs are not packed", len(table.packed.open))
	}
}
