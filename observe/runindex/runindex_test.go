package runindex

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"dcs-tui/internal/polltest"
	"dcs-tui/jobs"
	"dcs-tui/jobs/jobstest"
	"dcs-tui/jobs/rundir"
)

var must = polltest.Must

// newIndex returns an empty index of this machine, and a directory beside it.
func newIndex(t *testing.T) (Index, string) {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("XDG_STATE_HOME", filepath.Join(dir, "state"))
	x := OfUser()
	x.machine = "ws01"
	return x, dir
}

// newRun creates a run that was made some minutes after another time.
func newRun(t *testing.T, base, name string, minute int) *rundir.Run {
	t.Helper()
	must(t, os.MkdirAll(base, 0o700))
	run, err := rundir.Create(base, name, rundir.Settings{
		Cwd:     "/",
		Created: time.Date(2026, 3, 14, 15, minute, 0, 0, time.UTC),
	})
	must(t, err)
	return run
}

// names returns the names of the runs in the index, by what is known of them: "a hidden:b", and removes
// forgotten ones.
func (x Index) names(t *testing.T) string {
	t.Helper()
	list, err := x.Entries(100)
	must(t, err)
	var found []string
	for _, e := range list {
		switch run, isVisible, isForgotten := x.Look(e); {
		case isVisible && run.Dir != e.Dir:
			t.Errorf("the run of %s is in %s", e.Dir, run.Dir)
		case isVisible:
			found = append(found, run.Name)
		case isForgotten:
			found = append(found, "forgotten:"+filepath.Base(e.Dir))
		default:
			found = append(found, "hidden:"+filepath.Base(e.Dir))
		}
	}
	return strings.Join(found, " ")
}

func (x Index) check(t *testing.T, what, want string) {
	t.Helper()
	if got := x.names(t); got != want {
		t.Errorf("%s: got %q, want %q", what, got, want)
	}
}

// TestRunsOfAllDirectoriesAreListed checks that runs of several directories are listed, the newest
// first; that a run that is resumed is listed once; and that a copy of a run is another one.
func TestRunsOfAllDirectoriesAreListed(t *testing.T) {
	x, dir := newIndex(t)
	if list, err := x.Entries(100); err == nil || len(list) > 0 {
		t.Errorf("an index that does not exist: got %v, %v", list, err)
	}
	a, b, c := newRun(t, dir+"/p", "a", 3), newRun(t, dir+"/q", "b", 7), newRun(t, dir+"/p", "c", 5)
	for _, run := range []*rundir.Run{a, b, c, a, a} {
		must(t, x.Add(run))
	}
	x.check(t, "three runs", "b c a")
	list, err := x.Entries(2)
	must(t, err)
	if len(list) != 2 || list[1].Dir != c.Dir || list[1].UID != c.UID() || !list[1].Made().Equal(c.Settings.Created) ||
		list[1].Machine != "ws01" {
		t.Errorf("the newest two: got %+v", list)
	}
	must(t, os.CopyFS(dir+"/copy", os.DirFS(a.Dir)))
	must(t, os.Chmod(dir+"/copy", 0o700))
	copied, err := rundir.Open(dir + "/copy")
	must(t, err)
	must(t, x.Add(copied))
	if got := x.names(t); got != "b c a copy" && got != "b c copy a" { // of the same time
		t.Errorf("with a copy of a run: got %q", got)
	}
	must(t, x.Remove(copied))
	must(t, x.Remove(b))
	x.check(t, "two were removed", "c a")
}

// TestDeletedRunsAreForgotten checks that a run is forgotten as soon as it is certain that its
// directory, or one above it, was deleted or moved; that it stays while that is not certain, because
// another file system may have been there, or because it was on another machine; and that it does not
// stay for ever.
func TestDeletedRunsAreForgotten(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(t *testing.T, x *Index, project string)
		want   string
	}{
		{"the run is deleted", func(t *testing.T, _ *Index, project string) {
			must(t, os.RemoveAll(project+"/dcs-runs/a"))
		}, "b forgotten:a"},
		{"a run is renamed", func(t *testing.T, _ *Index, project string) {
			must(t, os.Rename(project+"/dcs-runs/a", project+"/dcs-runs/other"))
		}, "b forgotten:a"},
		{"the project is deleted", func(t *testing.T, _ *Index, project string) {
			must(t, os.RemoveAll(project))
		}, "forgotten:b forgotten:a"},
		{"the file system of the project is not mounted", func(t *testing.T, _ *Index, project string) {
			must(t, os.Rename(project, project+".elsewhere")) // keeps its inode in use
			must(t, os.Mkdir(project, 0o700))
		}, "hidden:b hidden:a"},
		{"another machine looks", func(t *testing.T, x *Index, project string) {
			must(t, os.RemoveAll(project))
			x.machine = "ws02"
		}, "hidden:b hidden:a"},
		{"the run was not seen for a long time", func(t *testing.T, x *Index, project string) {
			must(t, os.RemoveAll(project+"/dcs-runs/a"))
			x.machine = "ws02"
			list, err := x.Entries(100)
			must(t, err)
			long := time.Now().Add(-forgetAfter - time.Hour)
			for _, e := range list {
				must(t, os.Chtimes(filepath.Join(x.dir, e.name), long, long))
			}
		}, "b forgotten:a"},
	} {
		t.Run(c.name, func(t *testing.T) {
			x, dir := newIndex(t)
			project := dir + "/project"
			for i, name := range []string{"a", "b"} {
				must(t, x.Add(newRun(t, project+"/dcs-runs", name, i)))
			}
			c.change(t, &x, project)
			x.check(t, "first", c.want)
			var left []string
			for word := range strings.FieldsSeq(c.want) {
				if !strings.HasPrefix(word, "forgotten:") {
					left = append(left, word)
				}
			}
			x.check(t, "then", strings.Join(left, " "))
			list, err := x.Entries(100)
			must(t, err)
			for _, e := range list { // those that were visible were marked as seen
				if strings.Contains(c.want, "hidden") || x.age(e.name) < touchInterval {
					continue
				}
				t.Errorf("%s was last seen %v ago", e.Dir, x.age(e.name))
			}
		})
	}
}

// TestIndexIsSafeWithManyPrograms checks that programs that add, renew, and read runs at the same time
// see each entry whole, and lose none.
func TestIndexIsSafeWithManyPrograms(t *testing.T) {
	x, dir := newIndex(t)
	var runs []*rundir.Run
	for i := range 8 {
		runs = append(runs, newRun(t, dir, fmt.Sprint("r", i), i))
		must(t, x.Add(runs[i]))
	}
	var all sync.WaitGroup
	for _, run := range runs {
		all.Go(func() {
			for range 20 {
				if err := x.Add(run); err != nil {
					t.Error(err)
				}
				if list, err := x.Entries(100); err != nil || len(list) != len(runs) {
					t.Errorf("got %d entries, %v; want %d", len(list), err, len(runs))
				}
			}
		})
	}
	all.Wait()
	x.check(t, "afterwards", "r7 r6 r5 r4 r3 r2 r1 r0")
	if names, err := os.ReadDir(x.dir); err != nil || len(names) != len(runs) {
		t.Errorf("got files %v, %v", names, err)
	}
}

// TestForeignFilesAreIgnored checks that files that are no entries, damaged ones, and those of a newer
// version are ignored and stay; and that what a program left that was killed while it wrote is removed.
func TestForeignFilesAreIgnored(t *testing.T) {
	x, dir := newIndex(t)
	run := newRun(t, dir, "a", 1)
	jobstest.Newer(&jobs.FormatRunIndex, func() { must(t, x.Add(run)) })
	must(t, x.Add(newRun(t, dir, "b", 2)))
	name, err := nameOf(run)
	must(t, err)
	if _, err := x.read(name); err == nil ||
		!strings.Contains(err.Error(), "has version 2, and this dcs-tui knows version 1") {
		t.Errorf("a newer entry: got %v", err)
	}
	valid := func(minute int) string {
		return fmt.Sprintf("20260314T15%02d00Z.abcdefghijkm.0123456789abcdef", minute)
	}
	for name, text := range map[string]string{"README": "", valid(20): "", valid(21): `{"v":1,"dir":"a"}`,
		valid(22): `{"v":1,"dir":"/a/../b"}`,
		"20261314T156000Z.abcdefghijkm.0123456789abcdef": `{"v":1,"dir":"/a"}`, // there is no such time
		newPrefix + "young": "", newPrefix + "old": ""} {
		must(t, os.WriteFile(filepath.Join(x.dir, name), []byte(text), 0o600))
	}
	must(t, os.Mkdir(filepath.Join(x.dir, valid(23)), 0o700))
	old := time.Now().Add(-2 * touchInterval)
	must(t, os.Chtimes(filepath.Join(x.dir, newPrefix+"old"), old, old))
	x.check(t, "between other files", "b")
	files, err := os.ReadDir(x.dir)
	must(t, err)
	if len(files) != 9 || strings.Contains(fmt.Sprint(files), newPrefix+"old") {
		t.Errorf("left: %v", files)
	}
}

// TestIndexThatCannotBeWritten checks that a home directory that is missing, that cannot be written, or
// that belongs to another user has no index, which is an error that callers ignore.
func TestIndexThatCannotBeWritten(t *testing.T) {
	_, dir := newIndex(t)
	run := newRun(t, dir, "a", 1)
	t.Setenv("XDG_STATE_HOME", "relative") // does not count
	homeless := Index{}                    // as OfUser returns it for a user without a home directory
	if err := homeless.Add(run); err == nil {
		t.Error("without a home directory, a run was added")
	}
	if list, err := homeless.Entries(100); err == nil || len(list) > 0 {
		t.Errorf("without a home directory: got %v, %v", list, err)
	}
	file := filepath.Join(dir, "file")
	must(t, os.WriteFile(file, nil, 0o600))
	t.Setenv("HOME", file)
	if err := OfUser().Add(run); err == nil {
		t.Error("below a file, a run was added")
	}
	if list, err := OfUser().Entries(100); err == nil || len(list) > 0 {
		t.Errorf("below a file: got %v, %v", list, err)
	}
	if os.Geteuid() != 0 {
		return
	}
	home := filepath.Join(dir, "home")
	must(t, os.Mkdir(home, 0o700))
	must(t, os.Chown(home, 54321, 54321))
	t.Setenv("HOME", home)
	if err := OfUser().Add(run); err == nil || !strings.Contains(err.Error(), "belongs to another user") {
		t.Errorf("root in the home directory of another user: got %v", err)
	}
	if left, err := os.ReadDir(home); err != nil || len(left) > 0 {
		t.Errorf("root has written %v into it, %v", left, err)
	}
}
