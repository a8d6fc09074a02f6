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

	"dcs-tui/jobs"
	"dcs-tui/jobs/results"
	"dcs-tui/jobs/rundir"
)

// TestReadsWhatListingsShow checks that only listed files are opened and that no file is polled
// with stat. Each directory is listed by the first reader that needs it, and the result is in the
// order of the list.
func TestReadsWhatListingsShow(t *testing.T) {
	l := newLab(t)
	var want []string
	for i := range 2500 {
		l.job(fmt.Sprintf("acc=%d\n{\"loss\":%d}\n", i, 2*i))
		want = append(want, fmt.Sprintf("%d,%d", i, 2*i))
	}
	f := l.read(l.reader("acc", "loss=json:loss"))
	if values(f) != strings.Join(want, " ") || len(f.Notes) > 0 {
		t.Errorf("%.200s %q", values(f), f.Notes)
	}
}

// TestReadsOnce checks that the output of an attempt that has ended is read only once, because it
// no longer changes.
func TestReadsOnce(t *testing.T) {
	l := newLab(t)
	l.job("acc=1\n")
	l.job("")
	r := l.reader("acc")
	l.read(r)
	l.write(jobs.AttemptFile(l.run.Dir, jobs.AttemptID{Job: 2, N: 1}, jobs.FileOut), "acc=2\n")
	if f := l.read(r); values(f) != "1 2" || l.disk.opened.Load() != 2 {
		t.Errorf("%s after %d opens", values(f), l.disk.opened.Load())
	}
	if f := l.read(r); values(f) != "1 2" || l.disk.opened.Load() != 2 {
		t.Errorf("%s after %d opens", values(f), l.disk.opened.Load())
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
	f := l.read(l.reader("acc=re:acc=([0-9])"))
	if want := "only the end of what 1 job wrote is searched, and a metric is not in it (job 3)"; values(f) != "1 2  4 5" || len(f.Notes) != 1 || f.Notes[0] != want {
		t.Errorf("%q %q", values(f), f.Notes)
	}
}

func TestFiles(t *testing.T) {
	l := newLab(t)
	p := func(c string) jobs.Param { return jobs.Param{Name: "C", Value: c} }
	l.job("loss=7\n", p("0.1"))
	l.job("", p("1")).Stdout = jobs.AttemptFile(l.run.Dir, jobs.AttemptID{Job: 2, N: 1}, jobs.FileOut)
	l.job("x", p("10"))
	l.job("x", p("pipe"))
	l.job("x", p("dir"))
	l.job("x", p("link"))
	cwd := l.run.Asked.Cwd
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
		t.Errorf("%q", got)
	}
	notes := strings.Join(f.Notes, "\n")
	if !strings.Contains(notes, "out/10.json") && !strings.Contains(notes, "2.1.out") || !strings.Contains(notes, "what 2 jobs wrote cannot be read: "+cwd+"/out/pipe.json is not a regular file (job 4)") || len(f.Notes) != 2 {
		t.Errorf("%q", f.Notes)
	}
}

// TestAStrangeOutput checks strange outputs. A job owns its output file and may have put anything
// there.
func TestAStrangeOutput(t *testing.T) {
	l := newLab(t)
	l.write(l.run.Dir+"/secret", "acc=666\n")
	path := l.job("").Stdout
	l.job("acc=1\n")
	if err := os.Symlink(l.run.Dir+"/secret", path); err != nil {
		t.Fatal(err)
	}
	f := l.read(l.reader("acc"))
	if values(f) != " 1" || len(f.Notes) != 1 || !strings.Contains(f.Notes[0], "symbolic link") {
		t.Errorf("%q %q", values(f), f.Notes)
	}
}

// TestOutputsBroughtInPart checks that the fetched part of the output of a lost attempt without a
// sentinel is read again each time, because a later fetch may extend it (X2).
func TestOutputsBroughtInPart(t *testing.T) {
	l := newLab(t)
	path := l.job("acc=1\n").Stdout
	l.list[0].Host, l.list[0].Stdout = "far", "far:/kept/attempts/000/1.1.out"
	r := l.reader("acc")
	for _, want := range []string{"1", "2"} {
		if f := l.read(r); values(f) != want || len(f.Notes) != 0 {
			t.Errorf("%q %q, want %s", values(f), f.Notes, want)
		}
		l.write(path, "acc=1\nacc=2\n")
	}
}

// TestOutputsOnAHost checks that outputs that are only on a host are reported, and are fetched if a
// connection exists (X5).
func TestOutputsOnAHost(t *testing.T) {
	l := newLab(t)
	for _, here := range []string{"", "", "acc=1\n"} {
		l.job(here)
	}
	for i := range 2 {
		l.list[i].Host, l.list[i].Stdout = "far", fmt.Sprintf("far:/kept/attempts/000/%d.1.out", i+1)
	}
	r := l.reader("acc")
	f := l.read(r)
	if values(f) != "  1" || len(f.Notes) != 1 || f.Notes[0] != "what 2 jobs printed is only on far: the metrics are empty; dcs-tui fetch "+l.run.Ref()+" brings it" {
		t.Errorf("%q %q", values(f), f.Notes)
	}
	var asked atomic.Int64
	r.Fetch = func(_ context.Context, res *results.Result, n int64) ([]byte, int64, error) {
		if asked.Add(1); res.Job == 2 {
			return nil, 0, errors.New("far does not answer")
		}
		return []byte("cut acc=8\nacc=9\n"), 1 << 30, nil
	}
	for range 2 {
		if f = l.read(r); values(f) != "9  1" || len(f.Notes) != 1 || !strings.Contains(f.Notes[0], "far does not answer (job 2)") {
			t.Errorf("%q %q", values(f), f.Notes)
		}
	}
	if n := asked.Load(); n != 3 { // what was fetched is kept
		t.Errorf("%d fetched", n)
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
		t.Errorf("%q %q", values(f), f.Notes)
	}
}

func TestStops(t *testing.T) {
	l := newLab(t)
	for range 500 {
		l.job("acc=1\n")
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if f, err := l.reader("acc").Read(ctx, l.list, nil); !errors.Is(err, context.Canceled) || f != nil {
		t.Errorf("%v %v", f, err)
	}
}

func TestDeclared(t *testing.T) {
	asked := func(v any) *rundir.Asked { return &rundir.Asked{Options: map[string]any{Option: v}} }
	for _, v := range []any{[]any{"acc", "loss=json:test.loss"}, []string{"acc", "loss=json:test.loss"}} {
		cs, err := Declared(asked(v))
		if err != nil || len(cs) != 2 || cs[0].Name != "acc" || cs[1].how != "json:test.loss" {
			t.Errorf("%v %v", cs, err)
		}
	}
	for _, v := range []any{[]any{"acc", 7}, []any{"acc", "b=x:"}} {
		if cs, err := Declared(asked(v)); err == nil || len(cs) != 1 || !strings.Contains(err.Error(), "run.toml") {
			t.Errorf("%v %v", cs, err)
		}
	}
	if cs, err := Declared(&rundir.Asked{}); cs != nil || err != nil {
		t.Errorf("%v %v", cs, err)
	}
}

// TestOneFileOfManyJobs checks that a file that all jobs write has the metric of the last job, and
// that one note reports this.
func TestOneFileOfManyJobs(t *testing.T) {
	l := newLab(t)
	for range 3 {
		l.job("x\n")
	}
	l.write(l.run.Asked.Cwd+"/log.txt", "loss=9\n")
	l.write(l.run.Asked.Cwd+"/1.txt", "loss=1\n")
	l.cwds[2] = "elsewhere"
	l.write(l.run.Asked.Cwd+"/elsewhere/log.txt", "loss=3\n")
	f := l.read(l.reader("l=file:log.txt:key:loss", "m=file:log.txt:key:m"))
	want := "2 jobs name the same file " + l.run.Asked.Cwd + "/log.txt, so each shows its present content; put [PARAMETER] or {id} into the name to tell them apart"
	if values(f) != "9, 9, 3," || len(f.Notes) != 1 || f.Notes[0] != want {
		t.Errorf("%q %q", values(f), f.Notes)
	}
	l.list = l.list[:1]
	if f := l.read(l.reader("l=file:log.txt:key:loss")); len(f.Notes) > 0 {
		t.Errorf("%q", f.Notes)
	}
}
