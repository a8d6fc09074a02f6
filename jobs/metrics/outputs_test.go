package metrics

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"dcs-tui/jobs"
	"dcs-tui/jobs/results"
	"dcs-tui/jobs/rundir"
)

// TestOnlyListedFilesAreOpened checks that only listed files are opened and that no file is polled
// with stat. Each directory is listed by the first reader that needs it, and the result is in the
// order of the list.
func TestOnlyListedFilesAreOpened(t *testing.T) {
	l := newLab(t)
	var want []string
	for i := range 2500 {
		l.job(fmt.Sprintf("acc=%d\n{\"loss\":%d}\n", i, 2*i))
		want = append(want, fmt.Sprintf("%d,%d", i, 2*i))
	}
	l.expect(l.reader("acc", "loss=json:loss"), strings.Join(want, " "))
}

// TestFinalOutputIsReadOnce checks that the output of an attempt that has ended is read only once,
// because it no longer changes.
func TestFinalOutputIsReadOnce(t *testing.T) {
	l := newLab(t)
	l.job("acc=1\n")
	l.job("")
	r := l.reader("acc")
	l.read(r)
	l.write(jobs.AttemptFile(l.run.Dir, jobs.AttemptID{Job: 2, N: 1}, jobs.FileOut), "acc=2\n")
	for range 2 {
		if l.expect(r, "1 2"); l.disk.opened.Load() != 2 {
			t.Errorf("%d files were opened, want 2", l.disk.opened.Load())
		}
	}
}

// TestReadingIsBounded checks that only the end of a long output is read, first 64 KiB and at most
// 1 MiB, and that a note reports what may be missing because of that.
func TestReadingIsBounded(t *testing.T) {
	l := newLab(t)
	fill := func(n int) string { return strings.Repeat(strings.Repeat("x", 99)+"\n", n/100) }
	l.job("acc=1\n" + fill(50_000))              // in the first read
	l.job("acc=2\n" + fill(500_000))             // in the second
	l.job("acc=3\n" + fill(2_000_000))           // before the end
	l.job(fill(2_000_000) + "acc=4\n" + "tail")  // at the end
	l.job("acc=5" + strings.Repeat("y", 70_000)) // a long line
	l.expect(l.reader("acc=re:acc=([0-9])"), "1 2  4 5",
		"only the end of what 1 job wrote is searched, and a metric is not in it (job 3)")
}

// TestMetricsAreReadFromFiles checks that metrics are read from the files of a job, and that a pipe
// or a directory in their place is reported.
func TestMetricsAreReadFromFiles(t *testing.T) {
	l := newLab(t)
	p := func(c string) jobs.Param { return jobs.Param{Name: "C", Value: c} }
	l.job("loss=7\n", p("0.1"))
	l.job("", p("1")).Stdout = jobs.AttemptFile(l.run.Dir, jobs.AttemptID{Job: 2, N: 1}, jobs.FileOut)
	l.job("x", p("10"))
	l.job("x", p("pipe"))
	l.job("x", p("dir"))
	l.job("x", p("link"))
	cwd := l.run.Settings.Cwd
	l.write(cwd+"/out/0.1.json", `{"acc": 0.5, "n": 1}`)
	l.write(cwd+"/sub/out/1.json", "{\n\"acc\":\n0.6}")
	l.cwds[1] = "sub"
	if err := syscall.Mkfifo(cwd+"/out/pipe.json", 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(cwd+"/out/dir.json", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("0.1.json", cwd+"/out/link.json"); err != nil {
		t.Fatal(err)
	}
	l.disk.hidden[cwd+"/out"] = true // another machine has just created it
	f := l.read(l.reader("acc=file:out/[C].json", "n=file:out/[C].json:n", "loss"))
	if got := values(f); got != "0.5,1,7 0.6,, ,, ,, ,, 0.5,1," {
		t.Errorf("values: got %q", got)
	}
	notes := strings.Join(f.Notes, "\n")
	if !strings.Contains(notes, "out/10.json") && !strings.Contains(notes, "2.1.out") ||
		!strings.Contains(notes, "what 2 jobs wrote cannot be read: "+cwd+
			"/out/pipe.json is not a regular file (such as job 4)") || len(f.Notes) != 2 {
		t.Errorf("notes: got %q, want one about the damaged files and one about the pipe", f.Notes)
	}
}

// TestReturnedFilesAreRead checks that a file that a job has returned from a host that does not share
// its files is read, and no other file of such a job.
func TestReturnedFilesAreRead(t *testing.T) {
	l := newLab(t)
	for i, files := range []int32{1, 1, 0, 1} {
		job := l.job("x")
		job.Apart, job.Host = true, "far"
		job.Outcome = &jobs.Outcome{Started: jobs.StampOf(time.Now()), Files: files}
		if i != 1 { // the file of job 2 is not here
			l.write(fmt.Sprintf("%s/out/%d.json", l.run.Settings.Cwd, i+1), fmt.Sprintf(`{"acc": %d}`, i+1))
		}
	}
	l.list[3].Outcome.Started = jobs.StampOf(time.Now().Add(time.Hour)) // the file of job 4 is older than the job
	const note = "files that 3 jobs wrote are seen only on far: metrics from them are empty; " +
		"--return of run copies such files here"
	l.expect(l.reader("acc=file:out/{id}.json"), "1   ", note)
	note4 := strings.Replace(note, "3 jobs", "4 jobs", 1)
	l.expect(l.reader("acc=file:"+l.run.Settings.Cwd+"/out/{id}.json"), "   ", note4) // a path on the host
}

// TestLinkInPlaceOfAnOutputIsNotRead checks that a link that a job put in the place of its output
// is not followed, but reported.
func TestLinkInPlaceOfAnOutputIsNotRead(t *testing.T) {
	l := newLab(t)
	l.write(l.run.Dir+"/secret", "acc=666\n")
	path := l.job("").Stdout
	l.job("acc=1\n")
	if err := os.Symlink(l.run.Dir+"/secret", path); err != nil {
		t.Fatal(err)
	}
	l.expect(l.reader("acc"), " 1", "what 1 job wrote cannot be read: "+path+
		" is a symbolic link that dcs-tui did not create: not read (job 1)")
}

// TestPartOfAnOutputIsReadAgain checks that the fetched part of the output of a lost attempt
// without a sentinel is read again each time, because a later fetch may extend it (X2).
func TestPartOfAnOutputIsReadAgain(t *testing.T) {
	l := newLab(t)
	path := l.job("acc=1\n").Stdout
	l.moveFar(0)
	r := l.reader("acc")
	for _, want := range []string{"1", "2"} {
		l.expect(r, want)
		l.write(path, "acc=1\nacc=2\n")
	}
}

// TestJobsThatAreNotOver checks that only finished attempts have metrics, because the output of a
// running one changes.
func TestJobsThatAreNotOver(t *testing.T) {
	l := newLab(t)
	l.job("acc=1\n").State = jobs.Running
	l.job("acc=2\n").Stdout = ""
	l.job("acc=3\n").State = jobs.Failed
	if f := l.read(l.reader("acc")); values(f) != "  3" || f.Values[0] != nil || len(f.Notes) > 0 {
		t.Errorf("values: got %q, notes %q; want the value of the failed job and no notes", values(f), f.Notes)
	}
}

// TestReadEndsWithItsContext checks that a read returns when its context is canceled.
func TestReadEndsWithItsContext(t *testing.T) {
	l := newLab(t)
	for range 500 {
		l.job("acc=1\n")
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if f, err := l.reader("acc").Read(ctx, results.RowsOf(l.list), nil); !errors.Is(err, context.Canceled) || f != nil {
		t.Errorf("Read: got %v, %v; want context.Canceled", f, err)
	}
}

// TestDeclaredColumnsAreRead checks that the metrics that a run was started with are known, and
// that an invalid one is an error.
func TestDeclaredColumnsAreRead(t *testing.T) {
	asked := func(v any) *rundir.Settings { return &rundir.Settings{Options: map[string]any{Option: v}} }
	for _, v := range []any{[]any{"acc", "loss=json:test.loss"}, []string{"acc", "loss=json:test.loss"}} {
		cs, err := Declared(asked(v))
		if err != nil || len(cs) != 2 || cs[0].Name != "acc" || cs[1].how != "json:test.loss" {
			t.Errorf("Declared: got %v, %v; want acc and the JSON value", cs, err)
		}
	}
	for _, v := range []any{[]any{"acc", 7}, []any{"acc", "b=x:"}} {
		if cs, err := Declared(asked(v)); err == nil || len(cs) != 1 || !strings.Contains(err.Error(), "run.toml") {
			t.Errorf("Declared: got %v, %v; want one column and an error that names run.toml", cs, err)
		}
	}
	if cs, err := Declared(&rundir.Settings{}); cs != nil || err != nil {
		t.Errorf("Declared: got %v, %v; want nothing", cs, err)
	}
}

// TestOneFileOfManyJobs checks that a file that all jobs write has the metric of the last job, and
// that one note reports this.
func TestOneFileOfManyJobs(t *testing.T) {
	l := newLab(t)
	for range 3 {
		l.job("x\n")
	}
	l.write(l.run.Settings.Cwd+"/log.txt", "loss=9\n")
	l.write(l.run.Settings.Cwd+"/1.txt", "loss=1\n")
	l.cwds[2] = "elsewhere"
	l.write(l.run.Settings.Cwd+"/elsewhere/log.txt", "loss=3\n")
	want := "2 jobs name the same file " + l.run.Settings.Cwd +
		"/log.txt, so each shows its present content; put [PARAMETER] or {id} into the name to tell them apart"
	l.expect(l.reader("l=file:log.txt:key:loss", "m=file:log.txt:key:m"), "9, 9, 3,", want)
	l.list = l.list[:1]
	l.expect(l.reader("l=file:log.txt:key:loss"), "9")
}

// TestFileOfAnEarlierRound checks that a metric from a file of an earlier round is shown with a
// note, because it may not belong to the current round (X5).
func TestFileOfAnEarlierRound(t *testing.T) {
	l := newLab(t)
	start := time.Now().Add(-time.Hour)
	// Clocks differ slightly.
	for i, before := range []time.Duration{3 * time.Minute, time.Minute, -time.Minute} {
		job := l.job("", jobs.Param{Name: "C", Value: string(rune('1' + i))})
		job.Outcome = &jobs.Outcome{Started: jobs.StampOf(start), Ended: jobs.StampOf(start.Add(time.Second))}
		path := l.run.Settings.Cwd + "/m_" + job.Params[0].Value + ".json"
		l.write(path, `{"acc": 0.9, "loss": 2}`)
		if err := os.Chtimes(path, time.Time{}, start.Add(-before)); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			l.list[i].Stdout = jobs.AttemptFile(l.run.Dir, job.Attempt, jobs.FileOut)
		}
	}
	want := "of 1 job the file is older than the start of the attempt that counts: another round or job wrote it: " +
		l.run.Settings.Cwd + "/m_1.json (job 1)"
	l.expect(l.reader("acc=file:m_[C].json", "loss=file:m_[C].json"), "0.9,2 0.9,2 0.9,2", want)
}

// TestStrangeFilesInTheRunDirectoryAreIgnored checks that strange files in the run directory are
// ignored. Jobs may create irregular or oversized files there. They neither block the reader nor
// exhaust its memory.
func TestStrangeFilesInTheRunDirectoryAreIgnored(t *testing.T) {
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
		if v := f.Values[worthCache]; v[0] != "201" || len(f.Notes) != 1 ||
			!strings.Contains(f.Notes[0], "cannot be kept") {
			t.Errorf("%s: %q, %q", name, v, f.Notes)
		}
	}
}
