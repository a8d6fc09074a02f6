package metrics

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"dcs-tui/jobs"
)

// longAgo is a lab of n jobs that ended an hour ago, with acc and a text of two lines.
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

func (l *lab) remember(columns ...string) (*Found, int64) {
	l.t.Helper()
	r := l.reader(columns...)
	r.Remember()
	before := l.disk.opened.Load()
	f := l.read(r)
	return f, l.disk.opened.Load() - before
}

// Who ends a long reading finds what was read before when he asks again: minutes over a
// slow file server are not spent twice.
func TestRemembersOnTheWay(t *testing.T) {
	l := longAgo(t, 3*memorable)
	ctx, cancel := context.WithCancel(t.Context())
	l.disk.last = cancel
	l.disk.toGo.Store(2*memorable + 50)
	r := l.reader("acc")
	r.Remember()
	r.part, r.saveEvery = memorable, 0
	if _, err := r.Read(ctx, l.list, nil); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	f, opened := l.remember("acc")
	if opened != 1+memorable { // the memory, and the last part
		t.Errorf("%d files are opened", opened)
	}
	for i, v := range f.Values {
		if v[0] != strconv.Itoa(i+1) {
			t.Errorf("job %d: %q", i+1, v[0])
		}
	}
}

// Issue 5, point 3: the next table of the same run opens no output again, and shows the
// same, byte for byte. Another column, or another way to find one, is read.
func TestRemembers(t *testing.T) {
	l := longAgo(t, 300)
	plain := values(l.read(l.reader("acc", "note=json:note", "none")))
	for i, c := range []struct {
		columns []string
		opened  int64
	}{
		{[]string{"acc", "note=json:note", "none"}, 300},
		{[]string{"acc", "note=json:note", "none"}, 3}, // their files
		{[]string{"acc"}, 1},
		{[]string{"acc=json:acc"}, 300},
		{[]string{"acc=json:acc", "acc2=key:acc"}, 1 + 300},
		{[]string{"note=json:note", "acc2=key:acc", "acc"}, 3},
	} {
		f, opened := l.remember(c.columns...)
		if opened != c.opened {
			t.Errorf("%d: %v: %d files are opened, want %d", i, c.columns, opened, c.opened)
		}
		if i < 2 && values(f) != plain {
			t.Errorf("%d: %.100q, want %.100q", i, values(f), plain)
		}
		if v := f.Values[299]; i == 5 && (v[0] != "a\n\\300\t" || v[1] != "300" || v[2] != "300") {
			t.Errorf("%q", v)
		}
	}
	files, err := filepath.Glob(l.run.Path(MemoryDir, "*"))
	if err != nil || len(files) != 5 {
		t.Errorf("%q %v", files, err)
	}
	for _, path := range append(files, l.run.Path(MemoryDir)) {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %v %v", path, info.Mode(), err)
		}
	}
	// Another attempt of a job is another output.
	l.list[6].Attempt.N = 2
	l.list[6].Stdout = jobs.AttemptFile(l.run.Dir, l.list[6].Attempt, jobs.FileOut)
	l.write(l.list[6].Stdout, "acc=-7\n")
	if f, opened := l.remember("acc"); f.Values[6][0] != "-7" || f.Values[7][0] != "8" || opened != 2 {
		t.Errorf("%v, %d opened", f.Values[6], opened)
	}
}

// A file that was changed or torn is as good as none.
func TestMemoryIsDamaged(t *testing.T) {
	l := longAgo(t, 300)
	want, _ := l.remember("acc")
	files, err := filepath.Glob(l.run.Path(MemoryDir, "*"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	whole, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"", string(whole[:len(whole)/2]), strings.Replace(string(whole), "17.1\t17", "17.1\t18", 1), "x"} {
		l.write(files[0], text)
		if got, opened := l.remember("acc"); values(got) != values(want) || opened != 301 {
			t.Errorf("%d bytes: %d files are opened", len(text), opened)
		}
	}
	if _, opened := l.remember("acc"); opened != 1 {
		t.Error("it was not written anew")
	}
}

// What may still change is not remembered: an output of a job that has just ended, one
// of which only the end was searched in vain, a file that the job wrote.
func TestForgets(t *testing.T) {
	l := longAgo(t, 300)
	l.list[0].Outcome = &jobs.Outcome{Started: 1, Ended: jobs.StampOf(time.Now())}
	l.list[1].Outcome = nil
	l.write(l.list[3].Stdout, "acc=4\n") // its host's clock is behind
	l.write(l.list[2].Stdout, "acc=3\n"+strings.Repeat("x\n", MaxRead))
	l.write(l.run.Asked.Cwd+"/m.json", `{"acc": 5}`)
	l.remember("acc", "m=file:m.json:acc")
	if _, opened := l.remember("acc"); opened != 1+4 {
		t.Errorf("%d files are opened", opened)
	}
	l.write(l.run.Asked.Cwd+"/m.json", `{"acc": 6}`)
	if f, _ := l.remember("acc", "m=file:m.json:acc"); f.Values[9][1] != "6" {
		t.Errorf("%q", f.Values[9])
	}
	few := longAgo(t, memorable-1)
	few.remember("acc")
	if _, err := os.Stat(few.run.Path(MemoryDir)); !os.IsNotExist(err) {
		t.Errorf("so few outputs are remembered: %v", err)
	}
}

// There is room for so many columns; when it is used up, the memory of those that are not
// asked for now goes, whatever they are of.
func TestMemoryMakesRoom(t *testing.T) {
	l := longAgo(t, memorable)
	for i := range memoryFiles - 1 {
		l.write(l.run.Path(MemoryDir, fmt.Sprintf("%08x", i)), "of an older program")
	}
	for _, c := range []struct {
		columns []string
		files   int
	}{{[]string{"acc"}, memoryFiles}, {[]string{"acc", "b", "c"}, 3}, {[]string{"d"}, 4}} {
		l.remember(c.columns...)
		if names := memoryNames(t, l); len(names) != c.files {
			t.Errorf("%q: %d files, want %d", c.columns, len(names), c.files)
		}
		if _, opened := l.remember(c.columns...); opened != int64(len(c.columns)) {
			t.Errorf("%q are not remembered: %d files are opened", c.columns, opened)
		}
	}
}
