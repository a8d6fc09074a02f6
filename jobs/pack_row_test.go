package jobs

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"
)

// TestPackedSizeOfAnEndedJob checks that a job that has succeeded at once takes little memory.
func TestPackedSizeOfAnEndedJob(t *testing.T) {
	const n, maxBytes = 5000, 40 // per job
	_, size := endedTable(t, n)
	if size > n*maxBytes {
		t.Errorf("the row of an ended job takes %.1f bytes, want at most %d", float64(size)/n, maxBytes)
	}
}

// BenchmarkEndedJobs folds and packs jobs as a dispatcher does, and reads them.
func BenchmarkEndedJobs(b *testing.B) {
	const n = 20_000
	for b.Loop() {
		table, size := endedTable(b, n)
		for range table.Rows() {
		}
		b.ReportMetric(float64(size)/n, "B/row")
	}
}

// endedTable returns a table of jobs without a command that succeeded one after the other on 16 slots
// of four hosts, and the size of the rows. Times and memory are those of `sleep 1`.
func endedTable(tb testing.TB, n int) (table *Table, size int) {
	table = NewWorking()
	random := rand.New(rand.NewPCG(1, 2))
	fold := func(r Record) {
		if err := Fold(table, &r); err != nil {
			tb.Fatal(err)
		}
	}
	for id := range ID(n) {
		table.AddSpec(&Spec{ID: id + 1, Options: NoOptions})
	}
	fold(Record{Kind: KindAccepted, Job: 1, Count: n})
	specs := sizeOf(table)
	names := []string{"melon1", "melon2", "melon3", "melon4"}
	for _, name := range names {
		fold(Record{Kind: KindMachine, Host: name, Reason: "id of " + name})
	}
	at := StampOf(time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC))
	for i := range n {
		id, host := ID(i+1), names[i%4]
		at += Stamp(60e6 + random.Int64N(5e6))
		started := at + Stamp(1e6+random.Int64N(1e9))
		fold(Record{Kind: KindLaunching, Job: id, N: 1, Host: host, At: at})
		fold(Record{Kind: KindRunning, Job: id, N: 1, Host: host, Slot: i/4%4 + 1, Started: started, At: started})
		fold(Record{Kind: KindExited, Job: id, N: 1, Host: host, Next: Succeeded, Seq: int64(id), Outcome: &Outcome{
			Started: started, Ended: started + 1e9 + Stamp(random.Int64N(5e6)),
			CPU: time.Duration(1000+random.IntN(1000)) * 1000, MaxRSSBytes: 17_000_000 &^ 1023,
		}})
		table.PackIdle()
	}
	if len(table.packed.open) > 0 {
		tb.Fatalf("%d rows are not packed", len(table.packed.open))
	}
	return table, sizeOf(table) - specs
}

// sizeOf returns the number of packed bytes.
func sizeOf(table *Table) (size int) {
	for _, b := range table.packed.blocks.all {
		size += b.Len()
	}
	return size
}

// TestRowsSurvivePacking checks that rows with any fields, most of them zero or most of them not, are
// the same after they were packed and unpacked.
func TestRowsSurvivePacking(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	table := NewPacked()
	table.AddSpec(&Spec{ID: 1, Options: NoOptions})
	var r RowReader
	for i := range 20_000 {
		fill := filler{random, random.Float64()}
		var want Job
		fill.set(reflect.ValueOf(&want).Elem())
		for n := range random.IntN(4) {
			a := new(Attempt)
			fill.set(reflect.ValueOf(a).Elem())
			a.ID = AttemptID{1, n + 1}
			if random.IntN(2) == 0 {
				a.Outcome = new(Outcome)
				fill.set(reflect.ValueOf(a.Outcome).Elem())
			}
			want.Attempts = append(want.Attempts, a)
		}
		want.Counted = int32(random.IntN(len(want.Attempts) + 1))
		table.packed.rows = []address{table.packed.addRow(&want)}
		got := *r.load(table, 1)
		if !slices.EqualFunc(got.Attempts, want.Attempts, func(a, b *Attempt) bool { return reflect.DeepEqual(a, b) }) {
			t.Fatalf("row %d: the attempts differ", i)
		}
		attempts := want.Attempts
		got.Attempts, want.Attempts = nil, nil
		if !reflect.DeepEqual(got, want) || table.State(1) != want.State || table.SeqOf(1) != want.Seq {
			t.Fatalf("row %d with %d attempts is %+v, want %+v", i, len(attempts), got, want)
		}
	}
}

// filler sets fields of structs to random values. Each remains zero with probability zero.
type filler struct {
	random *rand.Rand
	zero   float64
}

func (f filler) set(v reflect.Value) {
	if v.Kind() != reflect.Struct && f.random.Float64() < f.zero {
		return
	}
	number := f.random.Int64() >> f.random.IntN(64)
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			f.set(v.Field(i))
		}
	case reflect.Bool:
		v.SetBool(true)
	case reflect.String:
		v.SetString(string(make([]byte, f.random.IntN(300))) + "\xff")
	case reflect.Uint8:
		v.SetUint(uint64(uint8(number)))
	case reflect.Int, reflect.Int32, reflect.Int64:
		if f.random.IntN(2) == 0 {
			number = ^number
		}
		v.SetInt(number)
	}
}
