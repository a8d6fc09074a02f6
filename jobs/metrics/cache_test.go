package metrics

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"dcs-tui/jobs"
	"dcs-tui/jobs/results"
)

// longAgo returns a lab of n jobs that ended an hour ago, with acc and a text of two lines.
func longAgo(t *testing.T, n int) *lab {
	l := newLab(t)
	at := jobs.StampOf(time.Now().Add(-time.Hour))
	for i := range n {
		job := l.job(fmt.Sprintf("acc=%d\n{\"note\":\"a\\n\\\\%d\\t\"}\n", i+1, i+1))
		job.Outcome = &jobs.Outcome{Started: at, Ended: at}
		if err := os.Chtimes(job.Stdout, time.Time{}, at.Time()); err != nil {
			t.Fatal(err)
		}
	}
	return l
}

func (l *lab) cached(columns ...string) (*Found, int64) {
	l.t.Helper()
	r := l.reader(columns...)
	r.UseCache()
	before := l.disk.opened.Load()
	f := l.read(r)
	return f, l.disk.opened.Load() - before
}

// TestCacheIsWrittenOnTheWay checks that the cache is written during a long read, so that a user
// who interrupts it does not have to read the same outputs again. On a slow file server that takes
// minutes.
func TestCacheIsWrittenOnTheWay(t *testing.T) {
	l := longAgo(t, 3*worthCache)
	ctx, cancel := context.WithCancel(t.Context())
	l.disk.last = cancel
	l.disk.toGo.Store(2*worthCache + 50)
	r := l.reader("acc")
	r.UseCache()
	r.part = worthCache
	if _, err := r.Read(ctx, results.RowsOf(l.list), nil); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if n := len(r.cache.of) + len(r.known) + bytes.Count(r.cache.fresh, []byte("\n")); n > 0 {
		t.Errorf("%d metrics are kept in memory although the cache has them", n)
	}
	f, opened := l.cached("acc")
	if opened > 1+worthCache { // the cache, and what the last part lacked
		t.Errorf("%d files are opened", opened)
	}
	for i, v := range f.Values {
		if v[0] != strconv.Itoa(i+1) {
			t.Errorf("job %d: %q", i+1, v[0])
		}
	}
}

// TestNextTableOpensNoOutput checks that the next table of the same run opens no output again and
// is identical byte for byte. Another column, or another way to find one, is read again.
func TestNextTableOpensNoOutput(t *testing.T) {
	l := longAgo(t, 300)
	plain := values(l.read(l.reader("acc", "note=json:note", "none")))
	for i, c := range []struct {
		columns []string
		opened  int64
	}{
		{[]string{"acc", "note=json:note", "none"}, 300}, // there is no cache yet
		{[]string{"acc", "note=json:note", "none"}, 1},   // the cache
		{[]string{"acc"}, 1},
		{[]string{"acc=json:acc"}, 1 + 300},
		{[]string{"acc=json:acc", "acc2=key:acc"}, 1 + 300},
		{[]string{"note=json:note", "acc2=key:acc", "acc"}, 1},
	} {
		f, opened := l.cached(c.columns...)
		if opened != c.opened {
			t.Errorf("%d: %v: %d files are opened, want %d", i, c.columns, opened, c.opened)
		}
		if i < 2 && values(f) != plain {
			t.Errorf("%d: %.100q, want %.100q", i, values(f), plain)
		}
		if v := f.Values[299]; i == 5 && (v[0] != "a\n\\300\t" || v[1] != "300" || v[2] != "300") {
			t.Errorf("the values of job 300: got %q", v)
		}
	}
	if info, err := os.Stat(l.run.Path(CacheFile)); err != nil || info.Mode() != 0o600 {
		t.Errorf("the cache file: mode %v, %v; want 0600", info.Mode(), err)
	}
	// The output of another attempt of the job is read again.
	l.list[6].Attempt.N = 2
	l.list[6].Stdout = jobs.AttemptFile(l.run.Dir, l.list[6].Attempt, jobs.FileOut)
	l.write(l.list[6].Stdout, "acc=-7\n")
	if f, opened := l.cached("acc"); f.Values[6][0] != "-7" || f.Values[7][0] != "8" || opened != 2 {
		t.Errorf("%v, %d opened", f.Values[6], opened)
	}
}

// TestCacheIsDamaged checks that a changed or torn line of the cache, and one in a form of another
// program, is ignored, and that its content is written again. A cache that has become too large is started afresh.
func TestCacheIsDamaged(t *testing.T) {
	l := longAgo(t, 2*worthCache)
	l.write(l.run.Path("metrics.cache"), "of an older program")
	want, _ := l.cached("acc")
	path := l.run.Path(CacheFile)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, text string
		lost       int64
	}{
		{"empty", "", 2 * worthCache},
		{"strange", "x", 2 * worthCache},
		{"too large", "x", 2 * worthCache},
		{"changed", strings.Replace(string(whole), `{"acc":"17"}`, `{"acc":"18"}`, 1), 1},
		{"torn", string(whole[:len(whole)-1]) + "x", 1},
		{"of another program", string(jobs.AppendLineSum([]byte(`{"attempt":17,"metrics":["acc"]`), 0)) + "\n" +
			string(jobs.AppendLineSum([]byte(`[1`), 0)) + "\n", 2 * worthCache},
	} {
		t.Run(c.name, func(t *testing.T) {
			l.write(path, c.text)
			if c.name == "too large" {
				if err := os.Truncate(path, maxCache+1); err != nil {
					t.Fatal(err)
				}
			}
			if got, opened := l.cached("acc"); values(got) != values(want) || opened != 1+c.lost {
				t.Errorf("%s: %d files are opened, want the cache and %d", c.name, opened, c.lost)
			}
			if _, opened := l.cached("acc"); c.lost > worthCache && opened != 1 {
				t.Errorf("%s: it was not written anew: %d files are opened", c.name, opened)
			}
			if info, err := os.Stat(path); err != nil || info.Size() > 100*2*worthCache {
				t.Errorf("%s: %d bytes, %v", c.name, info.Size(), err)
			}
		})
	}
}

// TestValuesThatMayChangeAreNotCached checks that values that may still change are not cached: the
// output of a job that has just ended, an output of which only the end was searched without
// success, and a file that the job wrote.
func TestValuesThatMayChangeAreNotCached(t *testing.T) {
	l := longAgo(t, 300)
	l.list[0].Outcome = &jobs.Outcome{Started: 1, Ended: jobs.StampOf(time.Now())}
	l.list[1].Outcome = nil
	l.write(l.list[3].Stdout, "acc=4\n") // the clock of its host is behind
	l.write(l.list[2].Stdout, "acc=3\n"+strings.Repeat("x\n", MaxRead))
	l.write(l.run.Settings.Cwd+"/m.json", `{"acc": 5}`)
	l.cached("acc", "m=file:m.json:acc")
	if _, opened := l.cached("acc"); opened != 1+4 {
		t.Errorf("%d files are opened", opened)
	}
	l.write(l.run.Settings.Cwd+"/m.json", `{"acc": 6}`)
	if f, _ := l.cached("acc", "m=file:m.json:acc"); f.Values[9][1] != "6" {
		t.Errorf("the values of job 10: got %q, want the new one, 6", f.Values[9])
	}
	few := longAgo(t, worthCache-1)
	few.cached("acc")
	if _, err := os.Stat(few.run.Path(CacheFile)); !os.IsNotExist(err) {
		t.Errorf("so few outputs are remembered: %v", err)
	}
}
