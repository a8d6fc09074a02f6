package rundir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"dcs-tui/internal/polltest"
)

func TestMain(m *testing.M) { os.Exit(polltest.RunWithoutLeaks(m)) }

func base(t *testing.T) string { return filepath.Join(t.TempDir(), Base) }

var must = polltest.Must

func newRun(t *testing.T) *Run {
	t.Helper()
	r, err := Create(base(t), "x", Settings{})
	must(t, err)
	return r
}

func reopen(t *testing.T, r *Run) *Run {
	t.Helper()
	again, err := Open(r.Dir)
	must(t, err)
	return again
}

// TestCreatedRunIsOpened checks that a run that was created is opened with the same settings, and
// that only the user may access its files.
func TestCreatedRunIsOpened(t *testing.T) {
	asked := Settings{
		Version: "1.2.3", Cwd: "/home/ü ser/\"q\"", Shell: "/bin/bash", Setup: "module load cuda",
		Created: time.Date(2026, 3, 14, 15, 2, 7, 0, time.UTC), JobsFile: "sweep.txt",
		InventoryFile: "hosts.toml", InventoryText: "[[host]]\nname = \"melon[1-4]\" # '''\n\ttags = []\r\n",
		EnvNames: []EnvRef{{Name: "A", Value: "b\nc", Stored: true}, {Name: "TOKEN", Hash: "00ff"}},
		Options: map[string]any{"tries": int64(3), "timeout": "30m", "halt": true, "weights": 1.5,
			"tags": []any{"a", "b"}},
	}
	made, err := Create(base(t), "sweep", asked)
	must(t, err)
	if uid := made.UID(); len(uid) == 0 || len(uid) > 16 || strings.Trim(uid, uidLetters) != "" {
		t.Errorf("uid %q", uid)
	}
	r := reopen(t, made)
	if !reflect.DeepEqual(r.Settings, made.Settings) {
		t.Errorf("read  %+v\nwrote %+v", r.Settings, made.Settings)
	}
	asked.Name, asked.UID = "sweep", r.UID()
	if !reflect.DeepEqual(*r.Settings, asked) {
		t.Errorf("read  %+v\nasked %+v", *r.Settings, asked)
	}
	if r.Nonce != made.Nonce || len(r.Nonce) != 32 || !filepath.IsAbs(r.Dir) {
		t.Errorf("nonce %q, dir %q", r.Nonce, r.Dir)
	}
	// Only the user may access the outputs of jobs.
	err = filepath.WalkDir(r.Dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		want := fs.FileMode(0o600)
		if e.IsDir() {
			want = 0o700
		}
		if err == nil && info.Mode().Perm() != want {
			t.Errorf("%s has mode %04o", path, info.Mode().Perm())
		}
		if strings.HasPrefix(e.Name(), ".") {
			t.Errorf("%s was left behind", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// TestCreateIsExclusive checks that exactly one of several concurrent calls of `run --name x` gets
// the directory.
func TestCreateIsExclusive(t *testing.T) {
	dir := base(t)
	var wg sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		wg.Go(func() { _, errs[i] = Create(dir, "x", Settings{Cwd: "/"}) })
	}
	wg.Wait()
	won := 0
	for _, err := range errs {
		switch {
		case err == nil:
			won++
		case !errors.Is(err, fs.ErrExist) || !strings.Contains(err.Error(), "resume "+filepath.Join(dir, "x")) &&
			!strings.Contains(err.Error(), "being created"):
			t.Errorf("the loser is told: %v", err)
		}
	}
	if won != 1 {
		t.Errorf("%d callers got the run", won)
	}
	if _, err := Open(filepath.Join(dir, "x")); err != nil {
		t.Error(err)
	}
}

// TestEachUnnamedRunIsItsOwn checks that every caller without a name gets a run of its own.
func TestEachUnnamedRunIsItsOwn(t *testing.T) {
	dir := base(t)
	now := time.Date(2026, 3, 14, 15, 2, 0, 0, time.UTC)
	names := map[string]bool{}
	for range 3 {
		r, err := Create(dir, "", Settings{JobsFile: "in/my sweep.txt", Created: now})
		must(t, err)
		names[r.Name()] = true
		if filepath.Base(r.Dir) != r.Name() {
			t.Errorf("%s in %s", r.Name(), r.Dir)
		}
	}
	for _, want := range []string{"my-sweep-20260314-1502", "my-sweep-20260314-1502-2", "my-sweep-20260314-1502-3"} {
		t.Run(want, func(t *testing.T) {
			if !names[want] {
				t.Errorf("no %s in %v", want, names)
			}
		})
	}
}

// TestValidNamesOfRuns checks which names a run may have, and that a default name is one of them.
func TestValidNamesOfRuns(t *testing.T) {
	for _, bad := range []string{"", ".", "..", "...", "a/b", "/", "-x", "a\nb", "a\x00", "a\x1b[2J", "\xff",
		strings.Repeat("x", MaxName+1)} {
		t.Run(bad, func(t *testing.T) {
			if err := CheckName(bad); err == nil {
				t.Errorf("%q is taken for a name", bad)
			}
			if bad != "" {
				if _, err := Create(base(t), bad, Settings{}); err == nil {
					t.Errorf("%q was made", bad)
				}
			}
		})
	}
	for _, good := range []string{"x", "sweep 2", "Läufe", ".hidden", "a-b_c.d", strings.Repeat("x", MaxName)} {
		t.Run(good, func(t *testing.T) {
			if err := CheckName(good); err != nil {
				t.Error(err)
			}
		})
	}
	now := time.Date(2026, 3, 14, 15, 2, 0, 0, time.UTC)
	for file, want := range map[string]string{
		"":                       "stdin",
		"-":                      "stdin",
		"a/b.txt":                "b",
		"../..":                  "run",
		".txt":                   ".txt",
		"Größe.txt":              "Gr--e",
		"-x":                     "x",
		"\n":                     "run",
		strings.Repeat("y", 300): strings.Repeat("y", 40),
		"/":                      "run",
		"tüü/":                   "t--",
	} {
		t.Run(file, func(t *testing.T) {
			got := DefaultName(file, now)
			if got != want+"-20260314-1502" || CheckName(got) != nil {
				t.Errorf("%q gave %q, want %q (%v)", file, got, want, CheckName(got))
			}
		})
	}
}

// TestUnsafeDirectoryIsNotUsed checks that a run is not created in a directory that has files or is
// open to others.
func TestUnsafeDirectoryIsNotUsed(t *testing.T) {
	dir := t.TempDir()
	mk := func(name string, mode fs.FileMode) string {
		path := filepath.Join(dir, name)
		must(t, os.Mkdir(path, 0o700))
		must(t, os.Chmod(path, mode))
		return path
	}
	full := mk("full", 0o700)
	must(t, os.WriteFile(filepath.Join(full, "thesis.tex"), nil, 0o600))
	file := filepath.Join(dir, "file")
	must(t, os.WriteFile(file, nil, 0o600))
	for path, want := range map[string]string{
		full: "not empty", file: "not a directory", mk("open", 0o755): "chmod 700", filepath.Join(dir, "no",
			"where"): "no such file",
	} {
		t.Run(path, func(t *testing.T) {
			if _, err := CreateAt(path, "x", Settings{}); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v", path, err)
			}
		})
	}
	if _, err := CreateAt(mk("empty", 0o700), "x", Settings{}); err != nil {
		t.Error(err)
	}
	if _, err := Create(base(t), "x", Settings{Cwd: "/a\xff"}); err == nil || !strings.Contains(err.Error(), "UTF-8") {
		t.Error(err)
	}
}

// TestDamagedRunIsNotOpened checks that a directory that lacks a part of a run is refused with the
// reason.
func TestDamagedRunIsNotOpened(t *testing.T) {
	for name, spoil := range map[string]func(dir string) error{
		"no run.toml":  func(dir string) error { return os.Remove(filepath.Join(dir, SettingsFile)) },
		"no nonce":     func(dir string) error { return os.Remove(filepath.Join(dir, NonceFile)) },
		"chmod 700":    func(dir string) error { return os.Chmod(dir, 0o750) },
		"names no run": func(dir string) error { return os.WriteFile(filepath.Join(dir, SettingsFile), nil, 0o600) },
		"run.toml: line": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, SettingsFile), []byte("x = ["), 0o600)
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRun(t)
			must(t, spoil(r.Dir))
			want := strings.TrimPrefix(name, "no ")
			if _, err := Open(r.Dir); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}

// TestRunIsNamedAsItCanBeTyped checks that messages name a run as the user can type it in the
// current directory.
func TestRunIsNamedAsItCanBeTyped(t *testing.T) {
	t.Chdir(t.TempDir())
	near, err := Create(Base, "near", Settings{})
	must(t, err)
	far, err := CreateAt(filepath.Join(t.TempDir(), "far"), "far", Settings{})
	must(t, err)
	if near.Ref() != "near" || far.Ref() != far.Dir {
		t.Errorf("Ref: got %s and %s, want the name and the path", near.Ref(), far.Ref())
	}
}

// TestNewestRunIsFound checks that the newest run is found without a name, and each run by its name
// or its path.
func TestNewestRunIsFound(t *testing.T) {
	dir := base(t)
	if _, err := Find(dir, ""); err == nil || !strings.Contains(err.Error(), "no run") {
		t.Errorf("nothing there: %v", err)
	}
	for i, name := range []string{"old", "newest", "older"} {
		t.Run(name, func(t *testing.T) {
			r, err := Create(dir, name, Settings{})
			must(t, err)
			when := time.Unix(int64([]int{200, 300, 100}[i]), 0)
			must(t, os.Chtimes(r.Path(SettingsFile), when, when))
		})
	}
	must(t, os.Mkdir(filepath.Join(dir, "half-made"), 0o700))
	elsewhere, err := CreateAt(filepath.Join(t.TempDir(), "mine"), "mine", Settings{})
	must(t, err)
	for run, want := range map[string]string{
		"": filepath.Join(dir, "newest"), "old": filepath.Join(dir, "old"),
		filepath.Join(dir, "old") + "/": filepath.Join(dir, "old"), elsewhere.Dir: elsewhere.Dir,
	} {
		t.Run(run, func(t *testing.T) {
			if got, err := Find(dir, run); err != nil || got != want {
				t.Errorf("%q: %q, %v", run, got, err)
			}
		})
	}
	for _, run := range []string{"none", "half-made", "/", "../old", "o"} {
		t.Run(run, func(t *testing.T) {
			if got, err := Find(dir, run); err == nil {
				t.Errorf("%q found %q", run, got)
			}
		})
	}
	if all, err := List(dir); err != nil || len(all) != 3 || all[2].Name != "older" {
		t.Errorf("List: got %v, %v; want 3 runs, the last one of them older", all, err)
	}
}

// TestUnreadableRunIsNotMissing checks that a run that cannot be read, such as one of another user, is not said
// to be missing: the message gives the reason.
func TestUnreadableRunIsNotMissing(t *testing.T) {
	loop := filepath.Join(t.TempDir(), "loop")
	must(t, os.Symlink(loop, loop)) // root may read any directory
	_, err := Find(base(t), loop)
	if !errors.Is(err, syscall.ELOOP) || !strings.Contains(err.Error(), "cannot be read") {
		t.Errorf("got %v, want that it cannot be read", err)
	}
	file := filepath.Join(t.TempDir(), "jobs.txt")
	must(t, os.WriteFile(file, nil, 0o600))
	for _, none := range []string{file, file + "/run"} {
		if _, err := Find(base(t), none); err == nil || !strings.Contains(err.Error(), "there is no run") {
			t.Errorf("%s: got %v, want that there is no run", none, err)
		}
	}
}

// FuzzDefaultName checks that every name of a jobs file yields a valid run name.
func FuzzDefaultName(f *testing.F) {
	for _, s := range []string{"", "-", "a/b.txt", "..", "--x--", "\xff\x00", "ü"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, file string) {
		if name := DefaultName(file, time.Unix(1e9, 0)); CheckName(name) != nil {
			t.Fatalf("%q gave %q: %v", file, name, CheckName(name))
		}
	})
}

// FuzzSettings checks that accepted settings have a uid and a valid name.
func FuzzSettings(f *testing.F) {
	f.Add([]byte("uid = \"abc\"\nname = \"x\"\n[options]\ntries = 3\n"))
	f.Add([]byte("[[env]]\nname = 1\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if a, err := decodeSettings(b); err == nil && (a.UID == "" || CheckName(a.Name) != nil) {
			t.Fatalf("%q gave %+v", b, a)
		}
	})
}

// TestHalfMadeDirectoryIsNoRun checks a directory in which the creation of a run was cut off. It is
// not a run. The errors of Find and Create say so and tell the user what to do.
func TestHalfMadeDirectoryIsNoRun(t *testing.T) {
	base := base(t)
	dir := filepath.Join(base, "half")
	must(t, os.MkdirAll(dir, 0o700))
	must(t, os.WriteFile(filepath.Join(dir, NonceFile), []byte("ab\n"), 0o600))
	_, byName := Find(base, "half")
	_, byDir := Find(base, dir)
	_, again := Create(base, "half", Settings{})
	_, inIt := CreateAt(dir, "", Settings{})
	for _, err := range []error{byName, byDir, again, inIt} {
		if err == nil || !strings.Contains(err.Error(), "its creation was interrupted") ||
			!strings.Contains(err.Error(), "remove it") {
			t.Errorf("got error %v, want one that says that the creation was interrupted and what to remove", err)
		}
	}
	if !errors.Is(again, fs.ErrExist) {
		t.Errorf("Create again: got error %v, want fs.ErrExist", again)
	}
}
