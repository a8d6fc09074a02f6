package journal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"dcs-tui/jobs"
	"dcs-tui/jobs/jobstest"
	"dcs-tui/jobs/live"
	"dcs-tui/jobs/rundir"
	"dcs-tui/jobs/rundir/memdisk"
)

// atEnd is the Limit of a run that has no dispatcher.
var atEnd = Limit{End: true}

// publishedLimit returns the Limit of a run whose dispatcher has published this position.
func publishedLimit(epoch int, bytes int64) Limit {
	return Limit{Durable: live.Durable{Epoch: epoch, Bytes: bytes}}
}

// mustPoll returns the records of a Poll as "epoch:kind:reason".
func mustPoll(t testing.TB, f *Follower, limit Limit) (recs []jobs.Record, words string, restarted bool) {
	t.Helper()
	restarted, err := f.Poll(limit, func(epoch int, r *jobs.Record) {
		recs = append(recs, *r)
		words += fmt.Sprintf("%d:%s:%s ", epoch, r.Kind, r.Reason)
	})
	must(t, err)
	return recs, words, restarted
}

// wantPoll polls, and compares the records and whether the Follower restarted.
func wantPoll(t testing.TB, f *Follower, limit Limit, want string, again bool) {
	t.Helper()
	if _, words, restarted := mustPoll(t, f, limit); words != want || restarted != again {
		t.Errorf("got %q, restarted %v; want %q, %v", words, restarted, want, again)
	}
}

// TestFollowerReturnsEveryRecord checks that a Follower returns every record of a run complete, in
// order, and with the host of its attempt, and later the added ones. It returns a partial line only
// once that is complete. Its table equals that of a replay.
func TestFollowerReturnsEveryRecord(t *testing.T) {
	r, _, recs, content := written(t, 1, 50, 1000)
	hosts := map[jobs.AttemptID]string{}
	for i := range recs {
		if w := &recs[i]; w.N > 0 && w.Kind != jobs.KindRequest {
			if w.Kind == jobs.KindLaunching {
				hosts[w.Attempt()] = w.Host
			}
			w.Host = hosts[w.Attempt()]
		}
	}
	f := Follow(r)
	var all []jobs.Record
	for _, cut := range []int{0, 5, len(content) / 3, len(content)/3 + 40, len(content) - 1, len(content)} {
		putJournal(t, r, 1, content[:cut])
		got, _, restarted := mustPoll(t, f, publishedLimit(1, math.MaxInt64))
		if all = append(all, got...); len(all) != strings.Count(string(content[:cut]), "\n") ||
			restarted != (cut == 0) {
			t.Fatalf("%d records in %d bytes, restarted %v", len(all), cut, restarted)
		}
		if table, _ := mustReplay(t, r); !equalTables(f.Table(), table) {
			t.Fatalf("after %d bytes the table is another than a replay's", cut)
		}
	}
	if !reflect.DeepEqual(all[1:], recs) || all[0].Kind != jobs.KindEpoch || len(hosts) == 0 {
		t.Fatalf("%d records, want %d and the epoch", len(all), len(recs))
	}
	if f.Report().Records != len(all) || f.Report().Damaged {
		t.Errorf("Report: got %+v, want all records and no damage", f.Report())
	}
}

// countedLock counts how often it is locked.
type countedLock struct {
	sync.Mutex
	n int
}

func (l *countedLock) Lock() {
	l.Mutex.Lock()
	l.n++
}

// TestFollowerCountsStoredJobs checks that AcceptStored counts jobs that were stored after the last
// Poll, and that it changes the table only under the guard: a screen that is being closed may still
// read it.
func TestFollowerCountsStoredJobs(t *testing.T) {
	all := specs(5)
	_, r := inMemory(t, all[:2]...)
	j, _, _, err := Take(context.Background(), r, TakeOptions{})
	must(t, err)
	must(t, j.Append([]jobs.Record{{Kind: jobs.KindAccepted, Job: 1, Count: 2}}))
	must(t, j.Sync())
	var lock countedLock
	f := Follow(r).Packed().SetGuard(&lock)
	for range 2 {
		_, err := f.Poll(Limit{Durable: j.Durable()}, nil)
		must(t, err)
	}
	must(t, r.AppendSpecs(all[2:]))
	before := lock.n
	must(t, f.AcceptStored())
	if table := f.Table(); table.NumJobs() != 5 || table.Counts[jobs.Queued] != 5 {
		t.Errorf("%d jobs, %d queued, want 5 and 5", table.NumJobs(), table.Counts[jobs.Queued])
	}
	if lock.n < before+2 {
		t.Errorf("the table was locked %d times, want once for the specifications and once for the jobs", lock.n-before)
	}
	must(t, j.Close())
}

// TestFollowerFoldsUpToThePublishedPosition checks that a Follower folds the newest epoch up to the
// published position, and earlier ones up to the positions that were fixed. It does not fold what
// an old dispatcher writes after a takeover.
func TestFollowerFoldsUpToThePublishedPosition(t *testing.T) {
	r := newRun(t)
	first, _, _ := mustTake(t, r, force)
	record(t, first, event("a"))
	f, tail := Follow(r), Tail(r)
	published := Limit{Durable: first.Durable()}
	wantPoll(t, f, published, "1:epoch: 1:event:a ", true)
	wantPoll(t, tail, published, "", true)
	record(t, first, event("b"))
	wantPoll(t, f, published, "", false)
	second, _, _ := mustTake(t, r, force)
	tooLate(t, first, event("too late"))
	record(t, second, event("c"))
	// The old position limits the new epoch, whose first record fixes the old one.
	wantPoll(t, f, published, "1:event:b ", false)
	wantPoll(t, f, Limit{Durable: second.Durable()}, "2:epoch: 2:event:c ", false)
	wantPoll(t, f, published, "", false) // an older position
	wantPoll(t, f, atEnd, "", false)
	wantPoll(t, tail, atEnd, "1:event:b 2:epoch: 2:event:c ", false)
	for _, f := range []*Follower{f, tail} {
		if p := f.Report(); p.Ignored == 0 || p.Damaged {
			t.Errorf("Report: got %+v, want ignored records and no damage", p)
		}
	}
}

// TestFollowerRestartsIfAFileShrinks checks that a Follower restarts if a file shrinks below the
// folded position or disappears. A removed run directory is a distinct error, and the table is
// kept.
func TestFollowerRestartsIfAFileShrinks(t *testing.T) {
	r := newRun(t)
	first, _, _ := mustTake(t, r, force)
	record(t, first, event("a"), event("b"))
	crash(t, first)
	second, _, _ := mustTake(t, r, force)
	record(t, second, event("c"))
	f := Follow(r)
	wantPoll(t, f, atEnd, "1:epoch: 1:event:a 1:event:b 2:epoch: 2:event:c ", true)
	b := content(t, r, 2)
	putJournal(t, r, 2, lines(b, 1))
	wantPoll(t, f, atEnd, "1:epoch: 1:event:a 1:event:b 2:epoch: ", true)
	putJournal(t, r, 2, b)
	wantPoll(t, f, atEnd, "2:event:c ", false)
	remove(t, r, 1)
	wantPoll(t, f, atEnd, "2:epoch: 2:event:c ", true)
	if !f.Report().Damaged {
		t.Error("a lost file is no damage")
	}
	must(t, os.Rename(r.Dir, r.Dir+".away"))
	if _, err := f.Poll(atEnd, nil); err == nil || !strings.Contains(err.Error(), "was it removed?") ||
		f.Table().Epoch != 2 {
		t.Errorf("the directory is gone: %v, epoch %d", err, f.Table().Epoch)
	}
	must(t, os.Rename(r.Dir+".away", r.Dir))
	wantPoll(t, f, atEnd, "", false)
}

// TestFollowerReportsADamagedLine checks that a damaged line is reported and costs only itself,
// whether the Follower finds it at first or as the file grows.
func TestFollowerReportsADamagedLine(t *testing.T) {
	r, _, recs, content := written(t, 2, 20, 100)
	damaged := flipped(content, 8*(len(lines(content, 10))+20))
	for _, before := range []int{0, 5} {
		f := Follow(r)
		putJournal(t, r, 1, lines(content, before))
		some, _, _ := mustPoll(t, f, publishedLimit(1, math.MaxInt64))
		putJournal(t, r, 1, damaged)
		more, _, _ := mustPoll(t, f, publishedLimit(1, math.MaxInt64))
		if p := f.Report(); len(some)+len(more) != len(recs) || !p.Damaged ||
			!strings.Contains(p.Warnings[0], "journal/000001.jsonl:11: the line is damaged") {
			t.Errorf("after %d lines: %d records of %d, %+v", before, len(some)+len(more), len(recs)+1, p)
		}
	}
}

// TestRecordOfANewerProgramStopsReaders checks that a record of an unknown kind, or with an unknown
// field, is not damage. It stops readers and takers with an error that tells the user what to do.
func TestRecordOfANewerProgramStopsReaders(t *testing.T) {
	for _, c := range []struct{ record, want string }{
		{`{"k":"teleported","t":1,"j":1}`, `of kind "teleported"`},
		{`{"k":"event","t":1,"why":"x","color":"red"}`, `with the field "color"`},
		{`{"k":"edited","t":1,"j":1,"spec":{"id":1,"command":"x","options":{"color":1}}}`, `with the field "color"`},
	} {
		r := newRun(t)
		j, _, _ := mustTake(t, r, force)
		record(t, j, event("a"))
		crash(t, j)
		putJournal(t, r, 1, append(content(t, r, 1), jobs.Checksum([]byte(c.record))+" "+c.record+"\n"...))
		f := Follow(r)
		for range 2 {
			_, err := f.Poll(atEnd, nil)
			if !errors.As(err, new(*NewerRecordError)) || !strings.Contains(err.Error(),
				"journal/000001.jsonl:3: a newer dcs-tui wrote a record "+c.want) {
				t.Fatalf("Poll: got error %v, want a NewerRecordError %s", err, c.want)
			}
		}
		if f.Report().Records != 2 || f.Report().Damaged {
			t.Errorf("Report: got %+v, want 2 records and no damage", f.Report())
		}
		if _, _, _, err := Take(t.Context(), r, force); !errors.As(err, new(*NewerRecordError)) {
			t.Errorf("taken over: %v", err)
		}
	}
}

// TestRunOfANewerProgramIsNotTaken checks that a program that opened a run before a newer one
// resumed it changes nothing when it tries to take the run over. The newer one marks the run of an
// older one.
func TestRunOfANewerProgramIsNotTaken(t *testing.T) {
	r := newRun(t)
	path := r.Path(rundir.FormatFile)
	must(t, r.Disk.Remove(path)) // as the first programs made it
	j, _, _ := mustTake(t, r, force)
	must(t, j.Close())
	if b, err := rundir.ReadFile(r.Disk, path); err != nil || !strings.HasPrefix(string(b),
		strconv.Itoa(jobs.FormatRun.Version)+" ") {
		t.Errorf("the file format: %q, %v", b, err)
	}
	putFile(t, r, path, []byte("7 v9.8.7\n"))
	names, err := r.Disk.Names(r.Dir)
	must(t, err)
	owner, err := ReadOwner(r)
	must(t, err)
	_, _, _, err = Take(t.Context(), r, force)
	if !errors.As(err, new(*jobs.VersionError)) || !strings.Contains(err.Error(), "v9.8.7") {
		t.Errorf("taken over: %v", err)
	}
	after, err := r.Disk.Names(r.Dir)
	must(t, err)
	now, err := ReadOwner(r)
	must(t, err)
	if !slices.Equal(names, after) || now.Token != owner.Token {
		t.Errorf("the run directory was changed: %q, owner %v", after, now)
	}
}

// TestFollowerReturnsReadErrors checks one failure of each file operation of a Poll. The Poll
// returns the error unless it was a stale handle, and the next one continues.
func TestFollowerReturnsReadErrors(t *testing.T) {
	for _, cause := range []error{syscall.EIO, syscall.ESTALE} {
		for n := 1; ; n++ {
			e := threeEpochs(t)
			f := Follow(e.r)
			if n%2 == 0 { // in the middle of the newest file
				mustPoll(t, f, publishedLimit(3, int64(len(lines(e.files[2], 7)))))
			}
			left, failed := n/2+1, ""
			e.m.Fault = func(op, _ string) error {
				if left--; left == 0 {
					failed = op
					return cause
				}
				return nil
			}
			_, err := f.Poll(atEnd, nil)
			e.m.Fault = nil
			if left > 0 {
				if n%2 == 0 {
					break
				}
				continue
			}
			if stale := cause == syscall.ESTALE; failed != "close" &&
				(stale != (err == nil) || !stale && !errors.Is(err, cause)) {
				t.Fatalf("operation %d (%s) failed with %v: %v", n, failed, cause, err)
			}
			mustPoll(t, f, atEnd)
			if !equalTables(f.Table(), e.live) || f.Report().Damaged {
				t.Fatalf("operation %d failed with %v: the table is another; %+v", n, cause, f.Report())
			}
		}
	}
}

// TestIdlePollReadsLittle checks that a Poll without news lists the journal and looks at the newest
// file only. At the end of a run it also looks for new specifications.
func TestIdlePollReadsLittle(t *testing.T) {
	e := threeEpochs(t)
	f := Follow(e.r)
	for _, c := range []struct {
		limit Limit
		want  string
	}{
		{publishedLimit(3, int64(len(e.files[2]))), "list open stat close"},
		{atEnd, "list open stat close list open stat close"},
	} {
		mustPoll(t, f, c.limit)
		var ops []string
		e.m.Fault = func(op, path string) error { ops = append(ops, op); return nil }
		_, words, restarted := mustPoll(t, f, c.limit)
		e.m.Fault = nil
		if words != "" || restarted || len(ops) > len(strings.Fields(c.want)) {
			t.Errorf("%q, restarted %v: %v, want %s", words, restarted, ops, c.want)
		}
	}
}

// follow checks that a Follower of a damaged journal arrives at the table of a replay.
func (e *epochs) follow(t *testing.T, what string) {
	t.Helper()
	f := Follow(e.r)
	newest := content(t, e.r, 3)
	for _, cut := range []int{0, len(newest) / 3, len(newest)} {
		if _, err := f.Poll(publishedLimit(3, int64(cut)), nil); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	if _, err := f.Poll(atEnd, nil); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	if table, report := mustReplay(t, e.r); !equalTables(table, f.Table()) || report.Damaged != f.Report().Damaged ||
		report.Torn != f.Report().Torn {
		t.Fatalf("%s: followed to another table than a replay gives; replay %+v, follower %+v", what, report,
			f.Report())
	}
}

// TestLimitIsWhatTheOwnerPublished checks that LimitOf trusts only the owner file and the live.json
// of that owner, and that the limit is the end of the journal if the owner is gone.
func TestLimitIsWhatTheOwnerPublished(t *testing.T) {
	here, err := ownerOfThisProcess()
	must(t, err)
	here.Epoch, here.Token, here.File, here.Bytes = 3, "token", 3, 70
	gone, begins, ahead, other := *here, *here, *here, *machine("melon1")
	gone.Left = true
	begins.File, begins.Bytes = 2, 50
	ahead.Bytes = 80
	other.Epoch, other.Token = 3, "token"
	state := func(epoch int, token string) *live.State {
		return &live.State{Epoch: epoch, Token: token, Durable: live.Durable{Epoch: epoch, Bytes: 77}}
	}
	for name, c := range map[string]struct {
		owner *Owner
		state *live.State
		want  Limit
	}{
		"nobody ever":       {nil, nil, atEnd},
		"left":              {&gone, state(3, "token"), atEnd},
		"here":              {here, state(3, "token"), publishedLimit(3, 77)},
		"elsewhere":         {&other, state(3, "token"), publishedLimit(3, 77)},
		"of another epoch":  {here, state(2, "token"), publishedLimit(3, 70)},
		"of another taker":  {here, state(3, "another"), publishedLimit(3, 70)},
		"nothing published": {here, nil, publishedLimit(3, 70)},
		"older state":       {&ahead, state(3, "token"), publishedLimit(3, 80)},
		"begins":            {&begins, nil, publishedLimit(2, 50)},
		"begins, published": {&begins, state(3, "token"), publishedLimit(3, 77)},
	} {
		t.Run(name, func(t *testing.T) {
			if got := LimitOf(c.owner, c.owner.Liveness(), c.state); got != c.want {
				t.Errorf("%s: %+v, want %+v", name, got, c.want)
			}
		})
	}
}

// TestDurableAdvancesOnlyAfterASync checks that Durable advances only if a Sync has returned nil.
func TestDurableAdvancesOnlyAfterASync(t *testing.T) {
	m, r := inMemory(t)
	j, _, _ := mustTake(t, r, takeOn("melon1"))
	size := func() int64 {
		n, err := sizeOf(r, fileOf(1))
		must(t, err)
		return n
	}
	began := live.Durable{Epoch: 1, Bytes: size()}
	if got := j.Durable(); got != began {
		t.Fatalf("after Take: %+v, want %+v", got, began)
	}
	_ = j.Append([]jobs.Record{event("a")})
	// The last operation is the fence check.
	for _, op := range []string{"write", "sync", "readdir"} {
		t.Run(op, func(t *testing.T) {
			m.Fault = failing(op, io.ErrUnexpectedEOF)
			if err := j.Sync(); err == nil || j.Durable() != began {
				t.Errorf("%s failed: %v, %+v", op, err, j.Durable())
			}
			m.Fault = nil
		})
	}
	if err := j.Sync(); err != nil || j.Durable().Bytes != size() || j.Durable() == began {
		t.Fatalf("%v, %+v of %d", err, j.Durable(), size())
	}
	before := j.Durable()
	next, _, _ := mustTake(t, r, takeOn("melon2"))
	tooLate(t, j, event("too late"))
	if j.Durable() != before || next.Durable().Epoch != 2 {
		t.Errorf("fenced: %+v, %+v", j.Durable(), next.Durable())
	}
}

// failing returns a Fault that fails all operations of one kind.
func failing(op string, err error) func(op, path string) error {
	return func(o, _ string) error {
		if o != op {
			return nil
		}
		return err
	}
}

// followed is a run that dispatchers write, crash in, and take from each other while Followers
// poll.
type followed struct {
	t      *testing.T
	rng    *rand.Rand
	r      *rundir.Run // as the observer sees it
	server *memdisk.Server
	n      int

	j        *Journal // the current dispatcher; nil: it crashed
	view     *memdisk.Mount
	table    *jobs.Table
	sleepers []*Journal
	limit    Limit // as published
	// Reasons of events that a Sync had acknowledged before the publication.
	sure  map[string]bool
	acked []string // acknowledged by a Sync
}

// next returns a record that fits the table of the dispatcher.
func (w *followed) next() jobs.Record {
	w.n++
	at := jobs.Stamp(w.n)
	if w.rng.IntN(3) == 0 || len(w.table.Jobs) == 0 {
		return jobs.Record{Kind: jobs.KindEvent, At: at, Reason: fmt.Sprint("event ", w.n)}
	}
	j := &w.table.Jobs[w.rng.IntN(len(w.table.Jobs))]
	id, n := j.Spec.ID, len(j.Attempts)
	switch {
	case j.State == jobs.Queued:
		return jobs.Record{Kind: jobs.KindLaunching, At: at, Job: id, N: n + 1, Host: "melon1"}
	case j.State.Terminal():
		return jobs.Record{Kind: jobs.KindRound, At: at, Job: id}
	case w.rng.IntN(4) == 0:
		return jobs.Record{Kind: jobs.KindLost, At: at, Job: id, N: n, Next: jobs.Queued}
	}
	return jobs.Record{Kind: jobs.KindExited, At: at, Job: id, N: n, Next: jobs.Succeeded, Seq: w.table.Seq + 1,
		Outcome: &jobs.Outcome{Ended: at}}
}

// write appends records of the dispatcher and sometimes new jobs, without a Sync.
func (w *followed) write() {
	if w.rng.IntN(8) == 0 {
		from := len(w.table.Specs)
		specs := jobstest.Specs(from + 1 + w.rng.IntN(3))[from:]
		if err := w.j.run.AppendSpecs(specs); err != nil {
			return // fenced
		}
		w.table.Specs = append(w.table.Specs, specs...)
	}
	for range 1 + w.rng.IntN(4) {
		rec := w.next()
		if left := len(w.table.Specs) - len(w.table.Jobs); left > 0 {
			rec = jobs.Record{Kind: jobs.KindAccepted, At: rec.At, Job: jobs.ID(len(w.table.Jobs) + 1), Count: left}
		}
		must(w.t, jobs.Fold(w.table, &rec))
		if rec.Kind == jobs.KindEvent {
			w.acked = append(w.acked, rec.Reason)
		}
		_ = w.j.Append([]jobs.Record{rec})
	}
}

// fold returns the table of the records that count, computed in the simplest way.
func (w *followed) fold(limit Limit) *jobs.Table {
	w.t.Helper()
	files, err := listFiles(w.r)
	must(w.t, err)
	lengths, base := map[string]int{}, len(files)-1
	content := map[string][]byte{}
	for _, e := range files {
		if content[e.name], err = rundir.ReadFile(w.r.Disk, e.path(w.r)); err != nil {
			w.t.Fatal(err)
		}
		switch {
		case limit.End || e.epoch < limit.Epoch:
			lengths[e.name] = len(content[e.name])
		case e.epoch == limit.Epoch:
			lengths[e.name] = min(len(content[e.name]), int(limit.Bytes))
		}
	}
	for ; base >= 0; base-- {
		first, err := firstRecord(w.r, files[base], int64(len(content[files[base].name])))
		must(w.t, err)
		if first == nil {
			continue
		}
		for _, e := range files[:base] {
			lengths[e.name] = 0
		}
		for _, m := range first.Files {
			lengths[m.Name] = int(m.Length)
		}
		break
	}
	table := &jobs.Table{Specs: w.table.Specs}
	for _, e := range files {
		for _, line := range bytes.SplitAfter(content[e.name][:lengths[e.name]], []byte{'\n'}) {
			if !bytes.HasSuffix(line, []byte{'\n'}) {
				continue // torn line
			}
			var d jobs.RecordReader
			rec := new(jobs.Record)
			must(w.t, d.Read(line[prefix:len(line)-1], rec))
			must(w.t, jobs.Fold(table, rec))
		}
	}
	return table
}

// unpacked returns the table of a lean Follower in the form of a plain one, without Past.
func unpacked(t *jobs.Table) *jobs.Table {
	whole := &jobs.Table{Counts: t.Counts, Seq: t.Seq, Acked: t.Acked, Epoch: t.Epoch, Cancels: t.Cancels,
		Requests: t.Requests, Late: t.Late, Results: t.Results,
		Hosts: t.Hosts, Past: t.Past, Paused: t.Paused, Ended: t.Ended, Closed: t.Closed, Damaged: t.Damaged}
	for id := range jobs.ID(t.NumJobs()) {
		whole.Jobs = append(whole.Jobs, *t.Job(id + 1))
	}
	for id := range jobs.ID(t.NumSpecs()) {
		whole.Specs = append(whole.Specs, t.Spec(id+1))
	}
	return whole
}

// TestFollowerAgainstTheJournal lets a Follower poll at random moments while dispatchers write,
// sync, publish the durable position, crash in the middle of a line, lose what was not durable,
// take over the run, and write after a takeover. At each Poll the table holds exactly the durable
// records, including every acknowledged one. At the end it equals a fresh replay.
func TestFollowerAgainstTheJournal(t *testing.T) {
	seeds := uint64(150)
	if testing.Short() || raceDetector {
		seeds = 60
	}
	polls, restarts, takes := 0, 0, 0
	for seed := range seeds {
		server := memdisk.New()
		server.NamesDurable = true
		w := &followed{t: t, rng: rand.New(rand.NewPCG(seed, 23)), server: server,
			r: simulated(t, server.Mount("observer")), sure: map[string]bool{}}
		f := Follow(w.r)
		switch seed % 3 {
		case 0:
			f.Packed()
		case 1:
			f.keep(jobs.NewWorking)
		}
		seen := map[string]int{}
		see := func(_ int, r *jobs.Record) {
			if f.Report().Records == 1 {
				clear(seen)
			}
			if r.Kind == jobs.KindEvent {
				seen[r.Reason]++
			}
		}
		poll := func(limit Limit) {
			t.Helper()
			before := f.Table()
			restarted, err := f.Poll(limit, see)
			if err != nil || f.Report().Damaged {
				t.Fatalf("seed %d: %v, %+v", seed, err, f.Report())
			}
			if restarted && polls > 0 && before.Epoch > 0 {
				restarts++
			}
			polls++
			got, want := unpacked(f.Table()), w.fold(limit)
			if seed%3 == 0 { // a table of a reader has no Past
				want.Past = nil
			}
			// Specifications that no record accepts may have been read or not.
			got.Specs, want.Specs = nil, nil
			if !equalTables(got, want) {
				t.Fatalf("seed %d, limit %+v: the table is not what is durable\ngot  %+v\nwant %+v", seed, limit,
					got, want)
			}
			for reason := range w.sure {
				if seen[reason] != 1 {
					t.Fatalf("seed %d, limit %+v: %q was acknowledged and is seen %d times", seed, limit, reason,
						seen[reason])
				}
			}
		}
		publish := func() {
			w.limit = Limit{Durable: w.j.Durable()}
			for _, reason := range w.acked {
				w.sure[reason] = true
			}
		}
		for step := range 150 {
			if w.j == nil {
				if step > 0 && w.rng.IntN(3) == 0 {
					poll(atEnd)
				}
				name := fmt.Sprint("melon", step)
				w.view = server.Mount(name)
				r, err := rundir.OpenOn(w.view, w.r.Dir)
				must(t, err)
				left := 1 << 30
				if w.rng.IntN(3) == 0 {
					left = w.rng.IntN(60)
				}
				w.view.Fault = func(string, string) error {
					if left--; left < 0 {
						return errGone
					}
					return nil
				}
				j, table, report, err := Take(t.Context(), r, takeOn(name))
				w.view.Fault = nil
				if err != nil {
					if w.table == nil {
						w.table = &jobs.Table{}
					}
					continue // the dispatcher died during the Take
				}
				if report.Damaged {
					t.Fatalf("seed %d: %+v", seed, report)
				}
				takes++
				w.j, w.table, w.acked = j, table, nil
				if w.rng.IntN(2) == 0 {
					publish()
				}
			}
			switch w.rng.IntN(12) {
			case 0, 1, 2, 3:
				w.write()
			case 4, 5:
				must(t, w.j.Sync())
				publish()
			case 6: // it wrote more than is durable
				w.write()
				w.view.Fault = failing("sync", syscall.EIO)
				if err := w.j.Sync(); err == nil {
					t.Fatalf("seed %d: nothing was to be written", seed)
				}
				w.view.Fault = nil
			case 7: // it dies, perhaps in the middle of a line or with a power loss
				if w.write(); w.rng.IntN(2) == 0 {
					w.view.Fault = failing("write", memdisk.ShortWrite{N: w.rng.IntN(len(w.j.pending))})
				} else {
					w.view.Fault = failing("sync", syscall.EIO)
				}
				_ = w.j.Sync()
				if w.view.Fault = nil; w.rng.IntN(4) == 0 {
					poll(atEnd) // the Follower has seen what is lost next
				}
				if w.rng.IntN(2) == 0 {
					w.view.PowerLoss(func(l memdisk.Loss) memdisk.Fate {
						return memdisk.Fate{Keep: w.rng.IntN(l.Len + 1)}
					})
				}
				w.j, w.acked = nil, nil
			case 8: // another dispatcher takes over the run, unnoticed by this one
				if w.rng.IntN(2) == 0 {
					w.write()
				}
				w.sleepers = append(w.sleepers, w.j)
				w.j, w.acked = nil, nil
			case 9: // a dispatcher that was taken over wakes up
				if n := len(w.sleepers); n > 0 {
					late := w.sleepers[w.rng.IntN(n)]
					_ = late.Append([]jobs.Record{event("too late")})
					_ = late.Sync()
				}
			default:
				if w.limit.Epoch > 0 {
					poll(w.limit)
				}
			}
		}
		poll(atEnd)
		table, report := mustReplay(t, w.r)
		if seed%3 == 0 {
			table.Past = nil
		}
		if !equalTables(table, unpacked(f.Table())) || report.Damaged {
			t.Fatalf("seed %d: a fresh replay gives another table", seed)
		}
	}
	t.Logf("%d seeds: %d polls, %d restarts, %d takeovers", seeds, polls, restarts, takes)
	if polls < int(seeds)*10 || restarts == 0 || takes < int(seeds)*3 {
		t.Error("too little has happened")
	}
}
