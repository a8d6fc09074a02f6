package metrics

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"dcs-tui/internal/polltest"
	"dcs-tui/jobs"
	"dcs-tui/jobs/results"
	"dcs-tui/jobs/rundir"
)

func TestMain(m *testing.M) { os.Exit(polltest.RunWithoutLeaks(m)) }

// lookingDisk is the real disk. It records opened files that no listing has shown.
type lookingDisk struct {
	rundir.Disk
	t      *testing.T
	mu     sync.Mutex
	shown  map[string]bool
	hidden map[string]bool // directories that are invisible until their parent is listed
	opened atomic.Int64
	last   func() // called when the number of outputs to open reaches zero
	toGo   atomic.Int64
}

func (d *lookingDisk) Names(dir string) ([]string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.hidden[dir] {
		delete(d.hidden, dir) // the listing of the directory above has shown it
		return nil, fs.ErrNotExist
	}
	names, err := d.Disk.Names(dir)
	for _, n := range names {
		d.shown[filepath.Join(dir, n)] = true
	}
	return names, err
}

func (d *lookingDisk) OpenFile(path string, flag int, perm fs.FileMode) (rundir.File, error) {
	// Files that this package writes.
	if flag&os.O_CREATE != 0 && (filepath.Base(path) == KeptFile || filepath.Base(path) == CacheFile) {
		return d.Disk.OpenFile(path, flag, perm)
	}
	if d.toGo.Add(-1) == 0 {
		d.last()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.opened.Add(1); !d.shown[path] {
		d.t.Errorf("%s is opened, which no listing showed", path)
	}
	if flag&(os.O_WRONLY|os.O_RDWR) != 0 {
		d.t.Errorf("%s is opened with flags %x", path, flag)
	}
	return d.Disk.OpenFile(path, flag, perm)
}

func (d *lookingDisk) Stat(path string) (fs.FileInfo, error) {
	d.t.Errorf("%s is asked for with stat", path)
	return d.Disk.Stat(path)
}

// lab is a run directory that the test created itself.
type lab struct {
	t    *testing.T
	run  *rundir.Run
	disk *lookingDisk
	list []results.Result
	cwds []string
}

func newLab(t *testing.T) *lab {
	d := &lookingDisk{Disk: rundir.OS, t: t, shown: map[string]bool{}, hidden: map[string]bool{}}
	return &lab{t: t, disk: d, run: &rundir.Run{Dir: t.TempDir(), Disk: d,
		Settings: &rundir.Settings{Cwd: t.TempDir()}}}
}

func (l *lab) write(path, text string) {
	l.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		l.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		l.t.Fatal(err)
	}
}

// job adds a job that succeeded and printed out.
func (l *lab) job(out string, params ...jobs.Param) *results.Result {
	l.t.Helper()
	id := jobs.AttemptID{Job: jobs.ID(len(l.list) + 1), N: 1}
	path := jobs.AttemptFile(l.run.Dir, id, jobs.FileOut)
	if out != "" {
		l.write(path, out)
	}
	l.list = append(l.list, results.Result{Job: id.Job, State: jobs.Succeeded, Attempt: id, Host: "melon1",
		Stdout: path, Params: params})
	l.cwds = append(l.cwds, "")
	return &l.list[len(l.list)-1]
}

func (l *lab) reader(columns ...string) *Reader {
	l.t.Helper()
	var cs []*Metric
	for _, text := range columns {
		c, err := Parse(text)
		if err != nil {
			l.t.Fatal(err)
		}
		cs = append(cs, c)
	}
	return NewReader(l.run, cs)
}

func (l *lab) read(r *Reader) *Found {
	l.t.Helper()
	f, err := r.Read(context.Background(), results.RowsOf(l.list), func(i int) string { return l.cwds[i] })
	if err != nil {
		l.t.Fatal(err)
	}
	return f
}

// expect checks the values and the notes that a reader finds.
func (l *lab) expect(r *Reader, want string, notes ...string) {
	l.t.Helper()
	if f := l.read(r); values(f) != want || !slices.Equal(f.Notes, notes) {
		l.t.Errorf("found %q with the notes %q, want %q with %q", values(f), f.Notes, want, notes)
	}
}

// moveFar moves the output of a job to a host that shares no directory.
func (l *lab) moveFar(i int) {
	l.list[i].Host, l.list[i].Stdout = "far", fmt.Sprintf("far:/kept/attempts/000/%d.1.out", i+1)
}

func values(f *Found) string {
	var rows []string
	for _, v := range f.Values {
		rows = append(rows, strings.Join(v, ","))
	}
	return strings.Join(rows, " ")
}
