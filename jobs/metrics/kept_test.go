package metrics

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"dcs-tui/jobs"
	"dcs-tui/jobs/results"
)

// farLab returns a run whose jobs ran on a host that shares no directory.
func farLab(t *testing.T, n int) *lab {
	l := newLab(t)
	for i := range n {
		l.job("")
		l.moveFar(i)
	}
	return l
}

// fetching lets a reader fetch outputs from the host, in which acc is the job's number. The host
// does not answer for jobs that an element of fails reports.
func fetching(r *Reader, asked *atomic.Int64, fails ...func(jobs.ID) bool) *Reader {
	r.Fetch = func(_ context.Context, res *results.Result, _ int64) ([]byte, int64, error) {
		if slices.ContainsFunc(fails, func(fails func(jobs.ID) bool) bool { return fails(res.Job) }) {
			return nil, 0, errors.New("far does not answer")
		}
		asked.Add(1)
		text := fmt.Appendf(nil, "acc=%d\nnote=\"a\\\"b\x1b\"\n", res.Job)
		return text, int64(len(text)), nil
	}
	return r
}

// TestMetricsAreKept checks that what was fetched from a host is available when the host is not,
// and that the next dispatcher does not fetch it again (X5).
func TestMetricsAreKept(t *testing.T) {
	l := farLab(t, 3)
	var asked atomic.Int64
	l.read(fetching(l.reader("acc", "note"), &asked))
	l.expect(l.reader("note", "acc"), `a\,1 a\,2 a\,3`)
	if l.read(fetching(l.reader("acc"), &asked)); asked.Load() != 3 {
		t.Errorf("%d outputs were fetched", asked.Load())
	}
	// This column is found in another way, so its value was not kept.
	l.expect(l.reader("acc=key:note"), "  ",
		"what 3 jobs printed is only on far: the metrics are empty; dcs-tui fetch "+l.run.Ref()+" copies it")
	if info, err := os.Stat(l.run.Path(KeptFile)); err != nil || info.Mode() != 0o600 {
		t.Error(info.Mode(), err)
	}
}

// TestKeptOfAHostWithoutAPlace checks a dispatcher that was killed before it recorded where a host
// keeps its outputs (X5). They then look like files of the run directory. The values that were kept
// still count.
func TestKeptOfAHostWithoutAPlace(t *testing.T) {
	l := farLab(t, 2)
	r := fetching(l.reader("acc"), new(atomic.Int64))
	if _, err := r.Read(t.Context(), results.RowsOf(l.list[:1]), nil); err != nil {
		t.Fatal(err)
	}
	for i := range l.list {
		l.list[i].Stdout = jobs.AttemptFile(l.run.Dir, l.list[i].Attempt, jobs.FileOut)
	}
	l.expect(l.reader("acc"), "1 ", "1 job wrote no such file, or it is not visible here: "+l.list[1].Stdout+" (job 2)")
}

// TestKeptToTheByte checks that a value that a job printed is kept byte for byte, even if it is not
// UTF-8, and that a line has the form of docs/reference/run-directory.md.
func TestKeptToTheByte(t *testing.T) {
	l := farLab(t, 1)
	r := l.reader("acc", "raw")
	r.Fetch = func(context.Context, *results.Result, int64) ([]byte, int64, error) {
		text := []byte("acc=1 raw=\"a\xff\ufffd<\"\n")
		return text, int64(len(text)), nil
	}
	live := values(l.read(r))
	if kept := values(l.read(l.reader("acc", "raw"))); kept != live || live != "1,a\xff\ufffd<" {
		t.Errorf("%q, later %q", live, kept)
	}
	text, err := os.ReadFile(l.run.Path(KeptFile))
	want := `{"attempt":"1.1","metrics":{"acc":"1"},"bytes":{"raw":"Yf/vv708"},"crc":"`
	if err != nil || !strings.HasPrefix(string(text), want) {
		t.Errorf("the kept file: got %s, %v", text, err)
	}
}

// TestKeptFileIsDamaged checks that a torn or changed line costs only its own attempt, and that
// lines after it count.
func TestKeptFileIsDamaged(t *testing.T) {
	l := farLab(t, 3)
	var asked atomic.Int64
	l.read(fetching(l.reader("acc"), &asked))
	path := l.run.Path(KeptFile)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	bad := strings.Replace(string(text), `"acc":"2"`, `"acc":"7"`, 1)
	if err := os.WriteFile(path, []byte(bad[:len(bad)-5]), 0o600); err != nil {
		t.Fatal(err)
	}
	// Lines before the torn one.
	lost := strings.Count(bad[:strings.LastIndex(bad, "{\"attempt\"")], "\n")
	if f := l.read(l.reader("acc")); strings.Contains(values(f), "7") || lost != 2 || len(f.Notes) != 1 {
		t.Errorf("values: got %q, notes %q; want no damaged value and one note", values(f), f.Notes)
	}
	if l.read(fetching(l.reader("acc"), &asked)); asked.Load() != 5 {
		t.Errorf("%d outputs were fetched, want 3 and then the 2 damaged", asked.Load())
	}
	l.expect(l.reader("acc"), "1 2 3")
}

// TestKeeperReadsOutputsAsJobsEnd checks that a Keeper reads outputs as jobs end, repeats failed
// fetches at the end, and reports what is lost. It does not fetch what this machine can read
// itself.
func TestKeeperReadsOutputsAsJobsEnd(t *testing.T) {
	l := farLab(t, 200)
	l.job("acc=201\n")
	var asked, refused atomic.Int64
	k := NewKeeper(fetching(l.reader("acc"), &asked, func(id jobs.ID) bool {
		return id == 7 && refused.Add(1) == 1 || id == 8
	}))
	for i := range l.list {
		k.Add(&l.list[i])
	}
	k.Add(&l.list[7]) // a resume may deliver a result twice
	notes := k.Close(t.Context())
	if len(notes) != 1 || notes[0] != "what 1 job wrote cannot be read: far does not answer (job 8)" ||
		asked.Load() != 199 {
		t.Errorf("%q, %d fetched", notes, asked.Load())
	}
	f := l.read(l.reader("acc"))
	for i, v := range f.Values {
		want := fmt.Sprint(i + 1)
		if i == 7 {
			want = ""
		}
		if v[0] != want {
			t.Errorf("job %d has %q", i+1, v[0])
		}
	}
}

// TestKeeperDoesNotWaitForEver checks that a host that hangs does not keep a run from ending.
func TestKeeperDoesNotWaitForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := farLab(t, 3)
		r := l.reader("acc")
		r.Fetch = func(ctx context.Context, _ *results.Result, _ int64) ([]byte, int64, error) {
			<-ctx.Done()
			return nil, 0, ctx.Err()
		}
		k := NewKeeper(r)
		k.Add(&l.list[0])
		synctest.Wait()
		k.Add(&l.list[1])
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		start := time.Now()
		notes := k.Close(ctx)
		if len(notes) != 1 || !strings.HasPrefix(notes[0], "the metrics of 2 jobs are not all kept") ||
			time.Since(start) != 10*time.Second {
			t.Errorf("%q after %s", notes, time.Since(start))
		}
	})
}

// TestFewOutputsAreRequestedAtATime checks that a host is asked for few outputs at a time, up to a
// limit for each, and within a timeout.
func TestFewOutputsAreRequestedAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := farLab(t, 10*batch)
		var now, most atomic.Int64
		r := l.reader("acc")
		r.Fetch = NewFetch(256<<10, func(ctx context.Context, _ jobs.AttemptID, n int) ([]byte, int64, error) {
			most.Store(max(most.Load(), now.Add(1)))
			defer now.Add(-1)
			if n != 256<<10 {
				t.Errorf("%d bytes are asked for", n)
			}
			<-ctx.Done()
			return nil, 0, errors.New("far does not answer")
		})
		start := time.Now()
		f := l.read(r)
		if took := time.Since(start); len(f.Notes) != 1 || most.Load() != maxFetches ||
			took < fetchTimeout*10*batch/maxFetches || took > fetchTimeout*10*batch {
			t.Errorf("%q, %d at a time, after %s", f.Notes, most.Load(), took)
		}
	})
}

// TestAPartIsNotTheWhole checks that a value is not kept as missing if it may be in a part of an
// output that was not fetched. Tables still report that only the host has it.
func TestAPartIsNotTheWhole(t *testing.T) {
	l := farLab(t, 1)
	r := l.reader("acc", "loss")
	r.Fetch = func(context.Context, *results.Result, int64) ([]byte, int64, error) {
		return []byte("x\nacc=1\n"), 1 << 30, nil
	}
	l.expect(r, "1,", "only the end of what 1 job wrote is searched, and a metric is not in it (job 1)")
	l.expect(l.reader("acc", "loss"), "1,", "what 1 job printed is only on far: the metrics are empty; dcs-tui fetch "+
		l.run.Ref()+" copies it")
	l.expect(l.reader("acc"), "1")
}

// TestKeeperIsClosedMeanwhile checks that results may still be added to a Keeper while it is
// closed.
func TestKeeperIsClosedMeanwhile(t *testing.T) {
	for range 20 {
		l := farLab(t, 40)
		var asked atomic.Int64
		k := NewKeeper(fetching(l.reader("acc"), &asked))
		var adding sync.WaitGroup
		adding.Go(func() {
			for i := range l.list {
				k.Add(&l.list[i])
			}
		})
		if notes := k.Close(t.Context()); notes != nil {
			t.Errorf("Close: got notes %q, want none", notes)
		}
		before := asked.Load()
		adding.Wait()
		if asked.Load() != before {
			t.Error("it read on")
		}
	}
}

// TestKeeperAsksAHostAgain checks that a host that did not respond is asked again once it does.
func TestKeeperAsksAHostAgain(t *testing.T) {
	l := farLab(t, 3)
	var asked atomic.Int64
	var there atomic.Bool
	k := NewKeeper(fetching(l.reader("acc"), &asked, func(id jobs.ID) bool { return !there.Load() && id != 2 }))
	for i := range l.list {
		k.Add(&l.list[i])
	}
	if got := k.MissingHosts(t.Context()); !slices.Equal(got, []string{"far"}) {
		t.Errorf("MissingHosts: got %q, want far", got)
	}
	there.Store(true)
	k.Retry()
	if got := k.MissingHosts(t.Context()); got != nil || asked.Load() != 3 {
		t.Errorf("%q, %d fetched", got, asked.Load())
	}
	if notes := k.Close(t.Context()); notes != nil {
		t.Errorf("Close: got notes %q, want none", notes)
	}
}
