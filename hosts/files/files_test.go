package files

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"dcs-tui/internal/polltest"
	"dcs-tui/jobs"
)

func write(t *testing.T, dir string, content map[string]string) {
	t.Helper()
	for name, text := range content {
		path := filepath.Join(dir, name)
		must(t, os.MkdirAll(filepath.Dir(path), 0o700))
		must(t, os.WriteFile(path, []byte(text), 0o600))
	}
}

func paths(m Manifest) (list []string) {
	for _, e := range m {
		if e.Kind != 'd' {
			list = append(list, e.Path)
		}
	}
	return list
}

// TestIgnoreAsGit checks that .dcsignore has the rules of git: the files that are sent of a tree
// are those that `git ls-files --others` lists.
func TestIgnoreAsGit(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("no git: nothing to compare with")
	}
	tree := map[string]string{}
	for _, name := range strings.Fields("a.o a.c b/a.o b/a.c b/keep.o " +
		"doc/x.txt doc/y.pdf deep/doc/x.txt build/x sub/build/x sub/build.c x[1] x1 #h !n " +
		"foo/bar/baz foo/bar.c one/two/three/four/f log/a.log log/b/c.log .hidden/f sp\u00e9 a/b/c/d/e.tmp") {
		tree[name] = name
	}
	tree["trailing "] = "t"
	for i, rules := range []string{
		"", "[]x]*\n", "[a-]*\n[!]b]/*.o\n", "*.o\n", "*.o\n!keep.o\n", "/build\n", "build/\n",
		"doc/*.txt\n", "**/doc/*.txt\n", "foo/**/baz\nfoo/**\n!foo/bar.c\n",
		"\\#h\n\\!n\n# comment\n", "x[1]\n", "x\\[1\\]\n", "one/**/four\n",
		"log/**\n!log/a.log\n", "?.c\n", "trailing\\ \n",
		"\ufeff*.o\n", ".\n./\n..\n./foo\nlog//b\n//build\n", "**/.\n",
		"a/b/\n", "**\n!a.c\n", "[!a-c].*\n", "*/a.*\n", "/*\n!/foo\n!/a.c\n",
	} {
		for _, inSub := range []string{"", "!a.o\n*.c\n"} {
			dir := t.TempDir()
			write(t, dir, tree)
			for name, text := range map[string]string{"": rules, "b/": inSub} {
				if text != "" {
					write(t, dir, map[string]string{name + ignoreFile: text, name + ".gitignore": text})
				}
			}
			cmd := exec.Command("sh", "-c",
				"git init -q . && git -c core.excludesFile=/dev/null ls-files -z --others --exclude-standard")
			cmd.Dir = dir
			out, err := cmd.Output()
			must(t, err)
			want := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
			slices.Sort(want)
			if got := paths(manifest(t, NewSource(dir), ".")); !slices.Equal(got, want) && len(got)+len(out) > 0 {
				t.Errorf("rules %d %q %q:\nsent %q\ngit  %q", i, rules, inSub, got, want)
			}
		}
	}
}

// TestIgnoreFileIsAFile checks that a .dcsignore may be a link, and that a pipe, a device, or a file that
// would fill the memory is refused by name without waiting.
func TestIgnoreFileIsAFile(t *testing.T) {
	for name, put := range map[string]func(path string) error{
		"pipe":   func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"device": func(path string) error { return os.Symlink("/dev/zero", path) },
		"large": func(path string) error {
			return errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, 1<<40))
		},
		"link": func(path string) error { return os.Symlink("rules", path) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir, map[string]string{"a.c": "", "a.o": "", "rules": "*.o\n"})
			must(t, put(filepath.Join(dir, ignoreFile)))
			m, err := NewSource(dir).Manifest([]string{"."})
			switch {
			case name == "link" && (err != nil || slices.Contains(paths(m), "a.o")):
				t.Errorf("%q, %v", paths(m), err)
			case name != "link" && (err == nil || !strings.Contains(err.Error(), ignoreFile)):
				t.Errorf("got the error %v", err)
			}
		})
	}
}

// TestManifestRoundTrip checks that a manifest with any bytes in names can be encoded and decoded,
// and that only a complete manifest is accepted.
func TestManifestRoundTrip(t *testing.T) {
	m := Manifest{
		{Path: "a", Kind: 'd'}, {Path: "a/b \n\xff\"", Kind: 'f', Exec: true, Size: 7, Mtime: -5, Sum: Sum{1, 2},
			Origin: "/x\ny"},
		{Path: "a/l", Kind: 'l', Target: "../b"},
	}
	b := m.Encode()
	if got, err := Decode(b); err != nil || !reflect.DeepEqual(got, m) {
		t.Errorf("Decode: got %v, %v; want the manifest unchanged", got, err)
	}
	for i := range b {
		if got, err := Decode(b[:i]); err == nil {
			t.Errorf("%d of %d bytes are accepted: %v", i, len(b), got)
		}
	}
	for _, e := range []Entry{
		{Path: "../x", Kind: 'f'}, {Path: "/x", Kind: 'f'}, {Path: "a/../../x", Kind: 'd'}, {Path: "",
			Kind: 'f'}, {Path: "a//b", Kind: 'f'},
		{Path: "l", Kind: 'l', Target: ".."}, {Path: "l", Kind: 'l', Target: "/etc"}, {Path: "a/l", Kind: 'l',
			Target: "b/../../x"}, {Path: "l", Kind: 'l'},
		{Path: "x", Kind: 'f', Size: -1}, {Path: "x\x00", Kind: 'f'},
	} {
		if _, err := Decode(Manifest{e}.Encode()); err == nil {
			t.Errorf("%+v is accepted", e)
		}
	}
}

// FuzzDecode checks that a damaged or hostile manifest never leads out of the directory of a job.
func FuzzDecode(f *testing.F) {
	f.Add(Manifest{{Path: "a", Kind: 'd'}, {Path: "a/l", Kind: 'l', Target: "../b"}}.Encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := Decode(b)
		if err != nil {
			return
		}
		for _, e := range m {
			if !filepath.IsLocal(e.Path) || e.Kind == 'l' && filepath.IsAbs(e.Target) {
				t.Errorf("got entry %+v, want only local paths and relative links", e)
			}
		}
		if again, err := Decode(m.Encode()); err != nil || !reflect.DeepEqual(again, m) {
			t.Errorf("%v becomes %v, %v", m, again, err)
		}
	})
}

// send copies the items into a store, like a helper, and returns the number of bytes that were
// read.
func send(t *testing.T, src *Source, s Store, items ...string) (Manifest, int) {
	t.Helper()
	m := manifest(t, src, items...)
	n := 0
	for _, e := range s.Missing(m, false) {
		var text []byte
		for int64(len(text)) < e.Size {
			b, err := src.Read(e.Sum, int64(len(text)), 3)
			must(t, err)
			text = append(text, b...)
		}
		must(t, s.Receive(e, bytes.NewReader(text)))
		n += len(text)
	}
	must(t, s.SetTree(m))
	return m, n
}

// mustMake makes the directory of an attempt.
func mustMake(t *testing.T, s Store, attempt string) string {
	t.Helper()
	dir, err := s.Make(attempt, true, false, nil)
	must(t, err)
	return dir
}

// manifest returns the manifest of items.
func manifest(t *testing.T, src *Source, items ...string) Manifest {
	t.Helper()
	m, err := src.Manifest(items)
	must(t, err)
	return m
}

func store(t *testing.T) Store {
	s := Store{filepath.Join(t.TempDir(), "files")}
	must(t, s.Open("boot"))
	return s
}

// TestOnlyDifferencesAreSent checks that only contents that a host lacks are sent. Contents that it
// has under another name are not sent again.
func TestOnlyDifferencesAreSent(t *testing.T) {
	base, s := t.TempDir(), store(t)
	write(t, base, map[string]string{"d/a": "0123456789", "d/b": "0123456789", "d/c/e": ""})
	src := NewSource(base)
	if _, n := send(t, src, s, "d"); n != 10 {
		t.Errorf("%d bytes were sent of 10 that differ", n)
	}
	write(t, base, map[string]string{"d/c/new": "abc"})
	os.Rename(filepath.Join(base, "d/a"), filepath.Join(base, "d/moved"))
	if _, n := send(t, src, s, "d"); n != 3 {
		t.Errorf("%d bytes were sent of 3 that are new", n)
	}
	dir := mustMake(t, s, "1.1")
	for name, want := range map[string]string{"d/moved": "0123456789", "d/b": "0123456789", "d/c/e": "",
		"d/c/new": "abc"} {
		t.Run(name, func(t *testing.T) {
			if b, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(b) != want {
				t.Errorf("%s: %q, %v", name, b, err)
			}
		})
	}
	if _, err := os.Stat(filepath.Join(dir, "d/a")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that was renamed is still under its old name: %v", err)
	}
	// After a crash of the host, no file is assumed to be complete.
	must(t, s.Open("another boot"))
	if _, n := send(t, src, s, "d"); n != 13 {
		t.Errorf("%d bytes were sent after a reboot, of 13", n)
	}
}

// TestCopyThatAJobChangedIsRemoved checks that a copy that a job has changed is detected, removed,
// and not given to other jobs.
func TestCopyThatAJobChangedIsRemoved(t *testing.T) {
	base, s := t.TempDir(), store(t)
	write(t, base, map[string]string{"a": "right"})
	src := NewSource(base)
	send(t, src, s, "a")
	dir := mustMake(t, s, "1.1")
	must(t, errors.Join(os.Chmod(filepath.Join(dir, "a"), 0o600),
		os.WriteFile(filepath.Join(dir, "a"), []byte("WRONG!"), 0)))
	if _, err := s.Make("2.1", true, false, nil); err == nil {
		t.Fatal("another job gets what the first one has changed")
	}
	send(t, src, s, "a")
	if b, _ := os.ReadFile(filepath.Join(mustMake(t, s, "2.2"), "a")); string(b) != "right" {
		t.Errorf("the file holds %q, want \"right\"", b)
	}
}

// TestMatchingFilesAreReturned checks that a job returns the files that match its patterns, except
// for its inputs, and that a directory that is kept outlives the run.
func TestMatchingFilesAreReturned(t *testing.T) {
	base, s := t.TempDir(), store(t)
	write(t, base, map[string]string{"in/a.csv": "a", "in/b.csv": "b"})
	send(t, NewSource(base), s, "in")
	for _, c := range []struct {
		patterns, made, want, missing string
	}{
		{"out/*.csv", "out/1.csv out/2.csv out/3.txt out/x/4.csv", "out/1.csv out/2.csv", ""},
		{"out/**/*.csv", "out/1.csv out/x/y/4.csv", "out/1.csv out/x/y/4.csv", ""},
		{"out", "out/1.csv out/x/y/4.csv", "out/1.csv out/x/y/4.csv", ""},
		{"**/*.csv", "out/1.csv", "out/1.csv", ""},
		{"**", "z", "z", ""},
		{"in/*", "", "", "in/*"},
		{"in/b.csv", "in/b.csv", "in/b.csv", ""},
		{"a b z", "a z", "", "b"},
		{"run[1].csv", "run[1].csv run1.csv", "run[1].csv", ""},
		{"run[1].csv", "run1.csv", "run1.csv", ""},
		{`run\[1].csv`, "run[1].csv run1.csv", "run[1].csv", ""},
		{"o[1]/*.csv", "o[1]/a.csv o1/b.csv", "o1/b.csv", ""},
		{"o[1]", "o[1]/a.csv o1/b.csv", "o[1]/a.csv", ""},
		{"a[!b]c a[.-0]c", "a/c", "", "a[!b]c"},
		{".", "a b/c", "a b/c", ""},
		{"[ab] c?", "a c1 c22", "a c1", ""},
	} {
		dir := mustMake(t, s, "1.1")
		for _, name := range strings.Fields(c.made) {
			os.Remove(filepath.Join(dir, name))
			write(t, dir, map[string]string{name: "made"})
		}
		n, missing, err := s.Collect("1.1", true, false, strings.Fields(c.patterns))
		if err != nil || missing != c.missing || n != len(strings.Fields(c.want)) {
			t.Errorf("%s of %s: %d files, missing %q, %v", c.patterns, c.made, n, missing, err)
			continue
		}
		if missing != "" {
			continue
		}
		b, err := s.Returned("1.1")
		must(t, err)
		if m, err := Decode(b); err != nil || strings.Join(paths(m), " ") != c.want {
			t.Errorf("%s of %s: %q, %v", c.patterns, c.made, paths(m), err)
		}
	}
	must(t, s.Drop("1.1"))
	if _, err := os.Stat(s.path("jobs", "1.1")); !errors.Is(err, fs.ErrNotExist) {
		t.Error("the directory of the job is still there")
	}
	mustMake(t, s, "1.2")
	write(t, s.Directory("1.2"), map[string]string{"made": "by the job"})
	kept, err := s.Keep(jobs.AttemptID{Job: 1, N: 2})
	must(t, err)
	must(t, s.Remove())
	if b, err := os.ReadFile(filepath.Join(kept, "made")); err != nil || string(b) != "by the job" {
		t.Errorf("after the end of the run, the file that was kept has %q, %v", b, err)
	}
	if left, _ := os.ReadDir(s.Dir); len(left) != 1 {
		t.Errorf("the store still has %v", left)
	}
	must(t, os.Chmod(kept, 0o500))
	must(t, s.DropKept(1))
	must(t, s.DropKept(1)) // nothing is left
	if _, err := os.Stat(kept); !errors.Is(err, fs.ErrNotExist) {
		t.Error("the files that were kept are still there after a success")
	}
}

// TestReturnedFilesHaveDirectories checks that a job finds the directories in which it creates the
// files that it returns, and that a file of the same name is left alone.
func TestReturnedFilesHaveDirectories(t *testing.T) {
	from, s := t.TempDir(), store(t)
	write(t, from, map[string]string{"taken": "a file"})
	send(t, NewSource(from), s, "taken")
	dir, err := s.Make("1.1", true, false, []string{"out/deep/*.csv", "taken/x"})
	must(t, err)
	if st, err := os.Stat(filepath.Join(dir, "out/deep")); err != nil || !st.IsDir() {
		t.Errorf("out/deep: %v", err)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "taken")); err != nil || string(b) != "a file" {
		t.Errorf("the file that was sent has %q, %v", b, err)
	}
}

// TestOldOutputsThatAreSentAreWritable checks that a job may write a sent file that it returns, as it may
// after rsync: the host's copy stays, an unchanged file is not returned, and other files are read-only.
func TestOldOutputsThatAreSentAreWritable(t *testing.T) {
	from, s := t.TempDir(), store(t)
	write(t, from, map[string]string{"out/1.csv": "old", "out/2.csv": "same", "in.csv": "input"})
	send(t, NewSource(from), s, ".")
	dir, err := s.Make("1.1", true, false, []string{"out/*.csv"})
	must(t, err)
	for name, want := range map[string]bool{"out/1.csv": true, "out/2.csv": true, "in.csv": false} {
		if st, err := os.Stat(filepath.Join(dir, name)); err != nil || st.Mode()&0o200 != 0 != want {
			t.Errorf("%s: %v, %v, want it writable: %t", name, st, err, want)
		}
	}
	must(t, os.WriteFile(filepath.Join(dir, "out/1.csv"), []byte("new"), 0))
	if n, missing, err := s.Collect("1.1", true, false, []string{"out/*.csv"}); n != 1 || missing != "" || err != nil {
		t.Errorf("%d files are returned, missing %q, %v; want out/1.csv", n, missing, err)
	}
	if b, err := os.ReadFile(filepath.Join(mustMake(t, s, "1.2"), "out/1.csv")); err != nil || string(b) != "old" {
		t.Errorf("the next job gets %q, %v", b, err)
	}
}

// TestLinksCountForNoCopies checks that a file to which the directory of a job has a link takes nothing of
// the size that writable copies may have.
func TestLinksCountForNoCopies(t *testing.T) {
	from, s := t.TempDir(), store(t)
	write(t, from, map[string]string{"out/1.csv": "old"})
	m, _ := send(t, NewSource(from), s, ".")
	m = slices.Insert(m, slices.IndexFunc(m, func(e Entry) bool { return e.Kind == 'f' }),
		Entry{Path: "out/0.csv", Kind: 'f', Size: maxWritable, Target: "/data/0.csv"})
	must(t, s.SetTree(m))
	dir, err := s.Make("1.1", true, false, []string{"out/*.csv"})
	must(t, err)
	st, err := os.Stat(filepath.Join(dir, "out/1.csv"))
	must(t, err)
	if st.Mode()&0o200 == 0 {
		t.Errorf("the copy has mode %v", st.Mode())
	}
}

// placement returns a Placement with records in base/notes.
func placement(t *testing.T, base, attempt string, patterns ...string) *Placement {
	t.Helper()
	ps, err := jobs.ParseReturn(patterns)
	must(t, err)
	return &Placement{Base: base, Records: filepath.Join(base, "notes"), Attempt: attempt, Patterns: ps,
		Space: &Space{Dir: base}}
}

// TestSweepRemovesOnlyRecords checks that a sweep leaves what a job has put in place of the records or
// beside them, and waits for nothing: a link to another directory, a pipe, a directory, another file.
func TestSweepRemovesOnlyRecords(t *testing.T) {
	base, other := t.TempDir(), t.TempDir()
	notes := filepath.Join(base, "notes")
	names := func(dir string) (list []string) {
		entries, err := os.ReadDir(dir)
		must(t, err)
		for _, e := range entries {
			list = append(list, e.Name())
		}
		return list
	}
	none := func(string) bool { return false }
	write(t, other, map[string]string{"17.2": "mine", "thesis": "mine"})
	must(t, os.Symlink(other, notes))
	if err := Sweep(base, notes, none); err == nil || len(names(other)) != 2 {
		t.Errorf("a link: %v, left: %q", err, names(other))
	}
	if err := placement(t, base, "1.1", "out").Place(Manifest{}, nil, func() error { return nil }); err == nil {
		t.Error("records were written to the directory that a link names")
	}
	must(t, os.Remove(notes))
	write(t, notes, map[string]string{"1.1": "damaged", "1.2.placed": "damaged", "thesis": "mine"})
	must(t, errors.Join(os.Mkdir(filepath.Join(notes, "1.3"), 0o700),
		syscall.Mkfifo(filepath.Join(notes, "1.4"), 0o600),
		os.Symlink(filepath.Join(other, "thesis"), filepath.Join(notes, "1.5"))))
	if err := Sweep(base, notes, none); err != nil ||
		!slices.Equal(names(notes), []string{"1.3", "1.4", "1.5", "thesis"}) {
		t.Errorf("%v, left: %q", err, names(notes))
	}
}

// TestAllOrNoFilesArePlaced checks that no file is moved to its final place before all files have
// been copied, and that nothing is left of a failed attempt or of a process that was killed.
func TestAllOrNoFilesArePlaced(t *testing.T) {
	base := t.TempDir()
	notes := filepath.Join(base, "notes")
	m := Manifest{{Path: "out/a", Kind: 'f', Size: 5}, {Path: "out/sub/b", Kind: 'f', Exec: true, Size: 3}}
	content := map[string]string{"out/a": "12345", "out/sub/b": "xyz"}
	read := func(path string, at, size int64) ([]byte, error) {
		b := []byte(content[path])[at:]
		return b[:min(2, len(b))], nil
	}
	left := func() (list []string) {
		filepath.WalkDir(base, func(path string, d fs.DirEntry, err error) error {
			if !d.IsDir() {
				list = append(list, strings.TrimPrefix(path, base+"/"))
			}
			return err
		})
		return list
	}
	// breaks returns the beginning of the second file, and then err.
	breaks := func(err error) func(string, int64, int64) ([]byte, error) {
		return func(path string, at, size int64) ([]byte, error) {
			if path == "out/sub/b" && at > 0 {
				return nil, err
			}
			return read(path, at, size)
		}
	}
	lost := errors.New("the link is lost")
	commit := func() error { return nil }
	to := func(attempt string) *Placement { return placement(t, base, attempt, "out") }
	for name, err := range map[string]error{
		"read":   to("1.1").Place(m, breaks(lost), commit),
		"commit": to("1.1").Place(m, read, func() error { return lost }),
		"short":  to("1.1").Place(m, breaks(nil), commit),
	} {
		t.Run(name, func(t *testing.T) {
			if err == nil || len(left()) > 0 {
				t.Errorf("%s: %v, left: %q", name, err, left())
			}
		})
	}
	// A process is killed before it calls commit.
	root, err := os.OpenRoot(base)
	must(t, err)
	defer root.Close()
	write(t, notes, map[string]string{"1.1": string(m.Encode())})
	for i := range m {
		fetch(root, "1.1", i, &m[i], read, func(int64) {})
	}
	if len(left()) != 3 {
		t.Fatalf("the test does not leave what it should: %q", left())
	}
	// sweeps checks what a sweep leaves while no attempt counts but the one given.
	sweeps := func(counts string, want ...string) {
		t.Helper()
		if err := Sweep(base, notes, func(attempt string) bool { return attempt == counts }); err != nil ||
			!slices.Equal(left(), want) {
			t.Errorf("%v, left: %q, want %q", err, left(), want)
		}
	}
	sweeps("")

	// The process was killed before the result was recorded. Only the file that somebody else wrote
	// stays.
	place := func(attempt string) {
		t.Helper()
		must(t, to(attempt).Place(m, read, commit))
	}
	place("1.2")
	write(t, base, map[string]string{"out/new": "another's"})
	must(t, os.Rename(filepath.Join(base, "out/new"), filepath.Join(base, "out/a")))
	sweeps("", "out/a")
	// The result was recorded, so all files stay.
	place("1.3")
	sweeps("1.3", "out/a", "out/sub/b")
	place("1.4")
	RemovePlaceRecord(notes, "1.4")
	sweeps("", "out/a", "out/sub/b")
	// If one file cannot be moved to its final place, none is.
	must(t, errors.Join(os.RemoveAll(filepath.Join(base, "out/a")), os.Remove(filepath.Join(base, "out/sub/b")),
		os.Mkdir(filepath.Join(base, "out/sub/b"), 0o700)))
	if err := to("1.5").Place(m, read, commit); err == nil || len(left()) > 0 {
		t.Errorf("%v, left: %q", err, left())
	}
	must(t, os.Remove(filepath.Join(base, "out/sub/b")))
	place("1.6")
	RemovePlaceRecord(notes, "1.6")
	if b, _ := os.ReadFile(filepath.Join(base, "out/sub/b")); !bytes.Equal(b, []byte("xyz")) {
		t.Errorf("the file holds %q, want \"xyz\"", b)
	}
}

// TestPlaceStaysInside checks that nothing is written outside the tree through a local directory
// that is a symbolic link.
func TestPlaceStaysInside(t *testing.T) {
	base, other := t.TempDir(), t.TempDir()
	must(t, os.Symlink(other, filepath.Join(base, "out")))
	err := placement(t, base, "1.1", "out").Place(Manifest{{Path: "out/a", Kind: 'f'}},
		func(string, int64, int64) ([]byte, error) { return nil, nil }, func() error { return nil })
	if _, ok := errors.AsType[*PlaceError](err); !ok {
		t.Errorf("Place: got error %v, want a PlaceError", err)
	}
	if list, _ := os.ReadDir(other); len(list) > 0 {
		t.Errorf("written outside: %v", list)
	}
}

// TestPathsOutOfTheTreeAreRefused checks that items and links that lead out of the tree are refused
// by name.
func TestPathsOutOfTheTreeAreRefused(t *testing.T) {
	top := t.TempDir()
	base := filepath.Join(top, "base")
	write(t, top, map[string]string{"secret": "s", "base/tree/a": "a", "base/ok/sub/f": "f"})
	for link, target := range map[string]string{"base/tree/out": "../../secret", "base/esc": "../secret",
		"base/ok/l": "sub/f", "base/ok/sub/up": "../l"} {
		must(t, os.Symlink(target, filepath.Join(top, link)))
	}
	src := NewSource(base)
	for item, want := range map[string]string{"tree": "leads out", "esc": "escapes", "../secret": "leads out",
		"nothere": "no such file", "ok:../x": "leads out", "": "not a path"} {
		t.Run(item, func(t *testing.T) {
			if _, err := src.Manifest([]string{item}); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%q: %v", item, err)
			}
		})
	}
	m, err := src.Manifest([]string{"ok", "../secret:in/s", filepath.Join(base, "tree/a") + ":b"})
	if got := strings.Join(paths(m), " "); err != nil || got != "b in/s ok/l ok/sub/f ok/sub/up" {
		t.Errorf("Manifest: got %s, %v", got, err)
	}
}

// TestChangedFileIsNotSent checks that a file that changes after its checksum was computed is not
// sent as the old file.
func TestChangedFileIsNotSent(t *testing.T) {
	base := t.TempDir()
	write(t, base, map[string]string{"a": "one"})
	src := NewSource(base)
	m := manifest(t, src, "a")
	write(t, base, map[string]string{"a": "other"})
	if _, err := src.Read(m[0].Sum, 0, 10); !errors.Is(err, ErrChanged) {
		t.Errorf("Read: got error %v, want ErrChanged", err)
	}
	if _, err := src.Read(Sum{9}, 0, 10); err == nil {
		t.Error("a content that was never in a manifest is given")
	}
}

// TestChangeWithinATickIsDetected checks that a file that changes twice within a tick of its file
// system's clock is not taken for the old file.
func TestChangeWithinATickIsDetected(t *testing.T) {
	base := t.TempDir()
	path := filepath.Join(base, "a")
	src := NewSource(base)
	at := time.Now().Add(time.Minute) // recent, however slow this machine is
	sums := map[Sum]bool{}
	for _, text := range []string{"one", "two"} {
		write(t, base, map[string]string{"a": text})
		must(t, os.Chtimes(path, at, at))
		sums[manifest(t, src, "a")[0].Sum] = true
	}
	if len(sums) != 2 {
		t.Error("the second content has the sum of the first")
	}
}

var must = polltest.Must
