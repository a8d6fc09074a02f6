package rundir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A directory without run.toml in which anything was started may never be removed,
// whatever else of it is gone. A directory in which nothing was started is a run that
// was not completely created.
func TestARunWithoutAskedIsKept(t *testing.T) {
	file := func(r *Run, elem ...string) {
		t.Helper()
		if err := errors.Join(os.MkdirAll(filepath.Dir(r.Path(elem...)), 0o700), os.WriteFile(r.Path(elem...), []byte("x"), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		what   string
		change func(r *Run)
		lost   bool
	}{
		{"nothing was started", func(*Run) {}, false},
		{"a journal", func(r *Run) { file(r, JournalDir, "1.jsonl") }, true},
		{"attempts", func(r *Run) { file(r, AttemptsDir, "000", "1.1.status") }, true},
		{"an owner", func(r *Run) { file(r, OwnerFile) }, true},
		{"attempts and no journal", func(r *Run) { file(r, AttemptsDir, "000", "1.1.out"); os.Remove(r.Path(JournalDir)) }, true},
		{"a journal and no nonce", func(r *Run) { file(r, JournalDir, "1.jsonl"); os.Remove(r.Path(NonceFile)) }, true},
		{"what cannot be listed", func(r *Run) { os.Remove(r.Path(AttemptsDir)); file(r, AttemptsDir) }, true},
	} {
		base := filepath.Join(t.TempDir(), Base)
		older, err := Create(base, "older", Asked{Cwd: "/"})
		if err != nil {
			t.Fatal(err)
		}
		r, err := Create(base, "sweep", Asked{Cwd: "/"})
		if err != nil {
			t.Fatal(err)
		}
		c.change(r)
		if err := os.Remove(r.Path(AskedFile)); err != nil {
			t.Fatal(err)
		}
		ask := map[string]func() error{
			"Open":    func() error { _, err := Open(r.Dir); return err },
			"Find":    func() error { _, err := Find(base, "sweep"); return err },
			"newest":  func() error { _, err := Find(base, ""); return err },
			"by path": func() error { _, err := Find(base, r.Dir); return err },
			"Create":  func() error { _, err := Create(base, "sweep", Asked{Cwd: "/"}); return err },
		}
		if !c.lost {
			delete(ask, "newest") // is the older one
		}
		for how, f := range ask {
			var lost *LostError
			err := f()
			if err == nil || errors.As(err, &lost) != c.lost || c.lost && strings.Contains(err.Error(), "remove") {
				t.Errorf("%s, %s: %v", c.what, how, err)
			}
			if how == "Create" && !errors.Is(err, fs.ErrExist) {
				t.Errorf("%s, %s: %v is no fs.ErrExist", c.what, how, err)
			}
		}
		found, err := List(base)
		listed := 0
		for _, e := range found {
			if e.Name == "sweep" && e.Lost != nil && !e.Made.IsZero() {
				listed++
			}
		}
		if err != nil || (listed == 1) != c.lost || older == nil {
			t.Errorf("%s: listed %+v, %v", c.what, found, err)
		}
	}
}

// A run with attempts that has lost its journal is kept as well.
func TestARunWithoutJournalIsKept(t *testing.T) {
	r, err := Create(filepath.Join(t.TempDir(), Base), "sweep", Asked{Cwd: "/"})
	if err != nil {
		t.Fatal(err)
	}
	err = errors.Join(os.Remove(r.Path(JournalDir)), os.MkdirAll(r.Path(AttemptsDir, "000"), 0o700))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(r.Dir); err == nil || !strings.Contains(err.Error(), "has no journal; keep it") || !strings.Contains(err.Error(), "restore journal from a backup") {
		t.Error(err)
	}
}

// A directory that is not a run, but has a journal in it, is not a run that has lost
// its run.toml.
func TestNoRunIsNotLost(t *testing.T) {
	dir := t.TempDir()
	if err := errors.Join(os.Mkdir(filepath.Join(dir, JournalDir), 0o700), os.WriteFile(filepath.Join(dir, JournalDir, "diary"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if err := lost(OS, dir); err != nil {
		t.Error(err)
	}
}
