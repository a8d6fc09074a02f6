package metrics

import (
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"dcs-tui/jobs"
)

// TestFileOfAnEarlierRound checks that a metric from a file of an earlier round is shown with a
// note, because it may not belong to the current round (X5).
func TestFileOfAnEarlierRound(t *testing.T) {
	l := newLab(t)
	start := time.Now().Add(-time.Hour)
	// Clocks differ slightly.
	for i, before := range []time.Duration{3 * time.Minute, time.Minute, -time.Minute} {
		job := l.job("", jobs.Param{Name: "C", Value: string(rune('1' + i))})
		job.Outcome = &jobs.Outcome{Started: jobs.StampOf(start), Ended: jobs.StampOf(start.Add(time.Second))}
		path := l.run.Asked.Cwd + "/m_" + job.Params[0].Value + ".json"
		l.write(path, `{"acc": 0.9, "loss": 2}`)
		if err := os.Chtimes(path, time.Time{}, start.Add(-before)); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			l.list[i].Stdout = jobs.AttemptFile(l.run.Dir, job.Attempt, jobs.FileOut)
		}
	}
	f := l.read(l.reader("acc=file:m_[C].json", "loss=file:m_[C].json"))
	want := "of 1 job the file is older than the start of the attempt that counts: another round or job wrote it: " + l.run.Asked.Cwd + "/m_1.json (job 1)"
	if values(f) != "0.9,2 0.9,2 0.9,2" || len(f.Notes) != 1 || f.Notes[0] != want {
		t.Errorf("%q %q, want %q", values(f), f.Notes, want)
	}
}

// TestStrangeFilesOfOurs checks that strange files in the run directory are ignored. Jobs may
// create irregular or oversized files there. They neither block the reader nor exhaust its memory.
func TestStrangeFilesOfOurs(t *testing.T) {
	strange := map[string]func(path string) error{
		"a pipe":   func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"a hole":   func(path string) error { return os.Truncate(path, 8<<40) },
		"a folder": func(path string) error { return os.Mkdir(path, 0o700) },
		"a link":   func(path string) error { return os.Symlink("/dev/zero", path) },
	}
	for name, put := range strange {
		l := longAgo(t, worthCache)
		l.job("")
		l.list[worthCache].Host, l.list[worthCache].Stdout = "far", "far:/kept/attempts/000/201.1.out"
		l.cached("acc")
		for _, path := range []string{l.run.Path(KeptFile), l.run.Path(CacheFile)} {
			if name != "a hole" {
				os.Remove(path)
			} else if f, err := os.OpenFile(path, os.O_CREATE, 0o600); err != nil || f.Close() != nil {
				t.Fatal(err)
			}
			if err := put(path); err != nil {
				t.Fatal(err)
			}
		}
		f, opened := l.cached("acc")
		if !strings.HasPrefix(values(f), "1 2 3") || opened < worthCache || len(f.Notes) != 1 {
			t.Errorf("%s: %.20q, %q, %d opened", name, values(f), f.Notes, opened)
		}
		// Nothing is written to such a file either.
		f = l.read(fetching(l.reader("acc"), new(atomic.Int64)))
		if v := f.Values[worthCache]; v[0] != "201" || len(f.Notes) != 1 || !strings.Contains(f.Notes[0], "cannot be kept") {
			t.Errorf("%s: %q, %q", name, v, f.Notes)
		}
	}
}
