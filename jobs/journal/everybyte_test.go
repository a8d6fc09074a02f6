package journal

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"testing"

	"dcs-tui/jobs"
	"dcs-tui/jobs/jobstest"
	"dcs-tui/jobs/rundir"
	"dcs-tui/jobs/rundir/memdisk"
)

// epochs is a run of three dispatchers in memory. The first was taken over and continued to write,
// the second died in the middle of a line, and the third is the last. Its journal has records of
// every kind and two files whose length marks fix.
type epochs struct {
	m      *memdisk.Mount
	r      *rundir.Run
	recs   [3][]jobs.Record
	files  [3][]byte // as on the disk
	fixed  [3]int    // how many bytes of each count
	live   *jobs.Table
	checks int
	ends   map[int64]jobs.Record // the record that assigned each result number
}

// allKindsSeed returns the first seed of a short history (three jobs, 90 steps) with every kind of
// record. The search takes a second.
var allKindsSeed = sync.OnceValue(func() uint64 {
search:
	for seed := uint64(0); ; seed++ {
		_, recs := jobstest.History(seed, 3, 90)
		for _, k := range []jobs.Kind{jobs.KindAccepted, jobs.KindLaunching, jobs.KindRunning, jobs.KindExited,
			jobs.KindLost, jobs.KindSuperseded, jobs.KindCanceled,
			jobs.KindJob, jobs.KindCanceling, jobs.KindRequest, jobs.KindRound, jobs.KindEdited, jobs.KindPriority,
			jobs.KindAcked, jobs.KindHost, jobs.KindPause, jobs.KindInstance, jobs.KindEvent, jobs.KindEnded,
			jobs.KindClosed} {
			if !slices.ContainsFunc(recs, func(r jobs.Record) bool { return r.Kind == k }) {
				continue search
			}
		}
		return seed
	}
})

func threeEpochs(t testing.TB) *epochs {
	t.Helper()
	e := &epochs{ends: map[int64]jobs.Record{}}
	specs, recs := jobstest.History(allKindsSeed(), 3, 90)
	e.m, e.r = inMemory(t, specs...)
	for _, r := range recs {
		if r.Seq > 0 && r.Kind != jobs.KindAcked {
			e.ends[r.Seq] = r
		}
	}
	var js [3]*Journal
	for i := range js {
		js[i], _, _ = mustTake(t, e.r, takeOn("melon1"))
		e.recs[i] = recs[i*len(recs)/3 : (i+1)*len(recs)/3]
		record(t, js[i], e.recs[i]...)
		if i == 1 { // it died in the middle of a line
			putJournal(t, e.r, 2, append(content(t, e.r, 2), `0badcafe {"k":"lau`...))
		}
	}
	late := jobs.Record{Kind: jobs.KindJob, Job: 1, Next: jobs.Canceled, Seq: 1 << 40}
	putJournal(t, e.r, 1, appendLine(content(t, e.r, 1), &late))
	for i := range e.files {
		e.files[i] = content(t, e.r, i+1)
		e.fixed[i] = len(e.files[i])
	}
	first, err := firstRecord(e.r, fileOf(3), int64(len(e.files[2])))
	if err != nil || len(first.Files) != 2 {
		t.Fatal(first, err)
	}
	for i, m := range first.Files {
		if e.fixed[i] = int(m.Length); e.fixed[i] == len(e.files[i]) {
			t.Fatal("nothing of it is ignored")
		}
	}
	table, report := mustReplay(t, e.r)
	if e.live = table; report.Damaged {
		t.Fatalf("replay: got %+v, want no damage", report)
	}
	return e
}

// check replays the damaged journal and, every seventh time, takes over the run. lost holds the
// records that may be missing. whole means that none is.
func (e *epochs) check(t *testing.T, what string, lost []jobs.Record, whole bool) {
	t.Helper()
	table, report := mustReplay(t, e.r)
	if report.Damaged == whole || table.Damaged == whole {
		t.Fatalf("%s: damaged is %v, %v; %q", what, report.Damaged, table.Damaged, report.Warnings)
	}
	spared := func(id jobs.ID) bool {
		return !slices.ContainsFunc(lost, func(r jobs.Record) bool {
			return r.Kind == jobs.KindAccepted || r.Job == id
		})
	}
	for i := range table.Jobs {
		j, id := &table.Jobs[i], jobs.ID(i+1)
		if r, ok := e.ends[j.Seq]; j.State.Terminal() && (!ok || r.Job != id || r.Next != j.State) {
			t.Fatalf("%s: job %d is %s by result %d, which was %+v", what, id, j.State, j.Seq, r)
		}
		if spared(id) && i < len(e.live.Jobs) && !reflect.DeepEqual(*j, e.live.Jobs[i]) {
			t.Fatalf("%s: job %d pays for it:\n%+v, it was\n%+v; %q", what, id, *j, e.live.Jobs[i], report.Warnings)
		}
	}
	if whole && len(lost) == 0 && !equalTables(table, e.live) {
		t.Fatalf("%s: nothing is damaged, and the state is another", what)
	}
	for i := len(table.Jobs); i < len(e.live.Jobs); i++ {
		if spared(jobs.ID(i + 1)) {
			t.Fatalf("%s: job %d is gone", what, i+1)
		}
	}
	if e.checks++; e.checks%7 != 0 {
		return
	}
	e.follow(t, what)
	next, taken, _ := mustTake(t, e.r, takeOn("melon2"))
	if next.Epoch() != 4 {
		t.Fatalf("%s: epoch %d", what, next.Epoch())
	}
	if table.Epoch, table.Closed = 4, (jobs.Closing{}); !equalTables(table, taken) {
		t.Fatalf("%s: taken over as another state than is shown", what)
	}
	record(t, next, event("on"))
	again, report := mustReplay(t, e.r)
	if !equalTables(again, taken) || report.Damaged == whole {
		t.Fatalf("%s: after the takeover it is another state: %+v", what, report)
	}
	crash(t, next)
	forget(t, e.r, 4)
}

// lines returns the records of a file whose lines lie in a range of it. It omits the epoch record,
// which holds no fact of a job.
func (e *epochs) lines(i, from, to int) []jobs.Record {
	var hit []jobs.Record
	at := 0
	for n := -1; n < len(e.recs[i]); n++ {
		end := at + bytes.IndexByte(e.files[i][at:], '\n') + 1
		if n >= 0 && at < to && end > from {
			hit = append(hit, e.recs[i][n])
		}
		at = end
	}
	return hit
}

// TestAnyFlippedBitInventsNoResult checks every single bit flip in the files of three epochs. There
// is no panic, no invented result, and no lost fact of another line. Damaged is set exactly if a
// fact may be missing. Then the run is resumed (promises 1 and 3).
func TestAnyFlippedBitInventsNoResult(t *testing.T) {
	e := threeEpochs(t)
	step := 1
	if testing.Short() || raceDetector {
		step = 17
	}
	n := 0
	for i, whole := range e.files {
		for bit := 0; bit < 8*len(whole); bit += step {
			at := bit / 8
			putJournal(t, e.r, i+1, flipped(whole, bit))
			what := fmt.Sprintf("file %d, byte %d, bit %d", i+1, at, bit%8)
			switch {
			case at >= e.fixed[i]: // none of it counts
				e.check(t, what, nil, true)
			case whole[at] == '\n' && i == 2: // a damaged newline costs nothing
				e.check(t, what, nil, true)
			default:
				e.check(t, what, e.lines(i, at, at+1), false)
			}
			n++
		}
		putJournal(t, e.r, i+1, whole)
	}
	t.Logf("%d bits of %d bytes", n, len(e.files[0])+len(e.files[1])+len(e.files[2]))
}

// TestAnyCutLosesOnlyItsFile checks every file cut at every byte. The records of other files count.
// A cut of the last file is a torn tail, which is not damage. A cut of an older file is reported.
func TestAnyCutLosesOnlyItsFile(t *testing.T) {
	e := threeEpochs(t)
	step := 1
	if testing.Short() || raceDetector {
		step = 7
	}
	for i, whole := range e.files {
		for cut := 0; cut < len(whole); cut += step {
			putJournal(t, e.r, i+1, whole[:cut])
			lost := e.lines(i, bytes.LastIndexByte(whole[:cut], '\n')+1, e.fixed[i])
			if cut >= e.fixed[i] {
				lost = nil
			}
			e.check(t, fmt.Sprintf("file %d cut at byte %d", i+1, cut), lost, i == 2 || cut >= e.fixed[i])
		}
		putJournal(t, e.r, i+1, whole)
	}
}
