//go:build linux

package remote

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"dcs-tui/hosts"
	"dcs-tui/internal/polltest"
	"dcs-tui/jobs"
	"dcs-tui/jobs/attempts"
)

// TestPlaceIsKept checks that a host whose attempts are in the run directory, and that does not see
// this directory for a moment, does not look for them elsewhere (promise 2). Otherwise, it would
// report that none of them started.
func TestPlaceIsKept(t *testing.T) {
	w := newWorld(t)
	w.runThenCrash("1.1")
	away := w.runDir + ".away"
	must(t, os.Rename(w.runDir, away))
	w.mustNotStart(w.open(), "cannot be seen", w.runDir)
	must(t, os.Rename(away, w.runDir))
	g := w.start(w.open())
	g.hasExited("1.1", 3)
}

// TestMirrorKeepsThePlaceOfAttempts checks that a host that shared the run directory keeps its
// attempts there when a mirror on another host continues the run. The same directory under an
// unknown name is refused.
func TestMirrorKeepsThePlaceOfAttempts(t *testing.T) {
	w := newWorld(t)
	w.runThenCrash("1.1")
	open := w.open()
	open.RunDir = filepath.Join(t.TempDir(), "elsewhere")
	w.mustNotStart(open, "cannot be seen")
	open.Mirrored = true
	g := w.start(open)
	if g.hello.Shared || g.hello.Dir != w.runDir {
		t.Errorf("hello %+v, want the directory %s", g.hello, w.runDir)
	}
	g.hasExited("1.1", 3)
}

// TestPlaceStaysOwn checks the reverse: a run that began in work_dir stays there when the host sees
// the run directory later.
func TestPlaceStaysOwn(t *testing.T) {
	w := newWorld(t)
	nonce := filepath.Join(w.runDir, "nonce")
	must(t, os.Rename(nonce, nonce+".away"))
	w.runThenCrash("1.1")
	must(t, os.Rename(nonce+".away", nonce))
	g := w.start(w.open())
	if g.hello.Shared || len(g.hello.Warnings) != 1 || !strings.Contains(g.hello.Warnings[0], "stay in") {
		t.Errorf("hello %+v, want a warning and not shared", g.hello)
	}
	g.hasExited("1.1", 3)
}

// TestCheckNotesNoPlace checks that a check records no location for the next one (X9). The
// directory may be shared by then, or the next check may be made from another directory.
func TestCheckNotesNoPlace(t *testing.T) {
	w := newWorld(t)
	nonce := filepath.Join(w.runDir, "nonce")
	open := w.open()
	open.Check = true
	for _, shared := range []bool{true, false, true} {
		from, to := nonce+".away", nonce
		if !shared {
			from, to = to, from
		}
		if err := os.Rename(from, to); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		f := w.start(open)
		if f.hello.Shared != shared || f.hello.Error != "" || len(f.hello.Warnings) != 0 {
			t.Errorf("%+v, want shared %v", f.hello, shared)
		}
		f.endRun()
	}
}

// TestCheckLeavesNothing checks that a check leaves nothing on a host but the program, however it
// ends, and removes nothing that existed before.
func TestCheckLeavesNothing(t *testing.T) {
	another := func(work ...string) func(w *world, open *hosts.Open) {
		return func(w *world, open *hosts.Open) {
			open.Nonce, open.WorkDir = "another", filepath.Join(append([]string{filepath.Dir(w.base)}, work...)...)
		}
	}
	for name, c := range map[string]struct {
		before func(w *world, open *hosts.Open)
		end    func(f *helperProcess)
		want   string // the error in the hello
	}{
		"shared directory":           {func(*world, *hosts.Open) {}, (*helperProcess).endRun, ""},
		"own directory":              {another("work"), (*helperProcess).endRun, ""},
		"the link breaks":            {another("work"), breakLink, ""},
		"several levels of work_dir": {another("work", "a", "b"), (*helperProcess).endRun, ""},
		"work_dir is there": {func(w *world, open *hosts.Open) {
			another("run", "a", "work")(w, open)
			must(t, os.MkdirAll(filepath.Join(open.WorkDir, "a run"), 0o700))
		}, (*helperProcess).endRun, ""},
		"below a directory of another user": {func(w *world, open *hosts.Open) {
			another("run", "scratch", "work")(w, open)
			scratch := filepath.Dir(open.WorkDir)
			must(t, os.Mkdir(scratch, 0o700))
			must(t, os.Chmod(scratch, 0o777|os.ModeSticky))
			if os.Getuid() == 0 {
				must(t, os.Chown(scratch, 12345, 12345))
			}
		}, breakLink, ""},
		"work_dir is a link to nothing": {func(w *world, open *hosts.Open) {
			another("run", "link")(w, open)
			must(t, os.Symlink(filepath.Join(w.runDir, "nothing"), open.WorkDir))
		}, breakLink, "work_dir cannot be used"},
		"work_dir cannot be used": {func(w *world, open *hosts.Open) {
			write(t, filepath.Join(w.runDir, "file"), "")
			open.WorkDir = filepath.Join(w.runDir, "file", "work")
		}, breakLink, "work_dir cannot be used"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			open := w.open()
			open.Check = true
			c.before(w, open)
			if open.Nonce != "another" { // in the shared directory, the dispatcher cleans up
				must(t, os.Mkdir(filepath.Join(w.runDir, "attempts"), 0o700))
			}
			before := tree(t, filepath.Dir(w.base))
			f := w.start(open)
			if (f.hello.Error == "") != (c.want == "") || !strings.Contains(f.hello.Error, c.want) {
				t.Errorf("error %q, want %q", f.hello.Error, c.want)
			}
			c.end(f)
			if after := tree(t, filepath.Dir(w.base)); !slices.Equal(before, after) {
				t.Errorf("before\n%s\nafter\n%s", strings.Join(before, "\n"), strings.Join(after, "\n"))
			}
		})
	}
}

// TestCheckOfUnknownWorkDir checks that a check uses work_dir itself, and not a directory beside
// it, unless it is certain that work_dir does not exist. Otherwise, a file server that cannot find
// the directory for a moment would pass the check.
func TestCheckOfUnknownWorkDir(t *testing.T) {
	defer func() { fault = nil }()
	dir := filepath.Join(t.TempDir(), "work")
	for _, err := range []error{unix.ESTALE, unix.EIO, unix.EACCES} {
		fault = func(op, path string, _ bool) error {
			if op == "stat" && path == dir {
				return err
			}
			return nil
		}
		if own, remove := checkedDir(dir, "check-1"); own != filepath.Join(dir, "check-1") || remove != own {
			t.Errorf("%v: it uses %s and removes %s", err, own, remove)
		}
	}
}

// breakLink closes the channel and waits until the helper has ended.
func breakLink(f *helperProcess) {
	f.in.Close()
	f.wait()
}

// TestChecksWithOneWorkDir checks that checks of several hosts with the same work_dir, which does
// not exist yet, do not disturb each other.
func TestChecksWithOneWorkDir(t *testing.T) {
	w := newWorld(t)
	before := tree(t, filepath.Dir(w.base))
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for j := range 20 {
				open := w.open()
				open.Check, open.Nonce, open.Run = true, "another", fmt.Sprintf("%s-%d-%d", w.run, i, j)
				h := &helper{open: open}
				h.self, _ = readProc(os.Getpid())
				if err := h.findDirs(&hosts.Hello{}); err != nil {
					t.Errorf("%s: %v", open.Run, err)
				}
				if _, _, err := h.takeSpool(w.base); err != nil {
					t.Errorf("%s: %v", open.Run, err)
				}
				h.removeTraces()
			}
		})
	}
	all.Wait()
	polltest.Until(t, "all traces are removed", func() bool { // removeTraces does not wait for a slow disk
		return slices.Equal(before, tree(t, filepath.Dir(w.base)))
	})
}

// tree lists all files below dir.
func tree(t *testing.T, dir string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		names = append(names, path)
		return err
	})
	must(t, err)
	return names
}

// TestNeverStartedMeansUnclaimed checks that the answer for an attempt that could not be started is
// "never started" only if nobody else has claimed it, and that nobody can claim it afterwards
// (promise 2).
func TestNeverStartedMeansUnclaimed(t *testing.T) {
	w := newWorld(t)
	_, mine := w.helperWithoutProcess()
	other, buried := mine, mine
	other.By, buried.By, buried.Tombstone = "2.4711.5", "0.4711.5", true
	repeat := mine
	repeat.At++ // an earlier start by the same supervisor
	path := w.file("1.1", jobs.FileStatus)
	dir, err := openDir(filepath.Dir(path))
	must(t, err)
	defer unix.Close(dir)
	for _, c := range []struct {
		name  string
		there string
		want  bool
	}{
		{"no claim", "", true},
		{"our claim", string(mine.Encode()), true},
		{"a tombstone", string(buried.Encode()), true},
		{"another's claim", string(other.Encode()), false},
		{"our claim of another time", string(repeat.Encode()), false},
		{"our attempt has ended", string(mine.EncodeFinished(1, jobs.Outcome{})), false},
		{"a damaged claim", string(mine.Encode()[:50]), false},
	} {
		os.Remove(path)
		if c.there != "" {
			write(t, path, c.there)
		}
		if got := ensureTombstone(dir, "", mine); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
		b, err := os.ReadFile(path)
		there := attempts.Decode(b, mine.Run, mine.Attempt)
		if c.want && there.State != attempts.NeverStarts || !c.want && string(b) != c.there {
			t.Errorf("%s: it is now %q, %v", c.name, b, err)
		}
	}
}

// TestLogsAreForwarded checks that the next helper forwards, once, the messages that a supervisor
// wrote while there was no helper.
func TestLogsAreForwarded(t *testing.T) {
	w := newWorld(t)
	f := w.start(w.open())
	f.crash()
	log := w.spool().path(dirLog, "0.1")
	write(t, log, "making its files: no space left on device\n")
	g := w.start(w.open())
	await(g, func(m *hosts.Trouble) bool { return strings.Contains(m.Text, "no space left on device") })
	polltest.Until(t, "it is not said again", func() bool {
		_, err := os.Stat(log)
		return os.IsNotExist(err)
	})
}

// TestCopyOfTheRunDirectory checks that a host keeps its attempts in the original run directory
// while it exists (promise 2). A copy lacks the claims that were made after it was copied. A
// directory that was moved is found under its new name.
func TestCopyOfTheRunDirectory(t *testing.T) {
	w := newWorld(t)
	copied := w.runDir + ".copy"
	must(t, os.CopyFS(copied, os.DirFS(w.runDir)))
	w.runThenCrash("1.1")

	open := w.open()
	open.RunDir = copied
	g := w.start(open)
	if g.hello.Shared || g.hello.Dir != w.runDir || len(g.hello.Warnings) != 1 ||
		!strings.Contains(g.hello.Warnings[0], "is a copy of "+w.runDir) {
		t.Errorf("hello %+v, want a warning and not shared", g.hello)
	}
	g.hasExited("1.1", 3)
	g.crash()

	moved := w.runDir + ".moved"
	must(t, os.Rename(w.runDir, moved))
	open = w.open()
	open.RunDir = moved
	for range 2 {
		g = w.start(open)
		if !g.hello.Shared || g.hello.Dir != moved || len(g.hello.Warnings) != 0 {
			t.Errorf("hello %+v, want shared", g.hello)
		}
		g.hasExited("1.1", 3)
		g.crash()
	}
	w.runDir = moved
	w.start(w.open()).endRun()
}

// TestNonceOfAnotherUserIsHarmless checks that what another user has put into the place of a nonce,
// such as a pipe, a file of 1 TB, or a link, neither makes a helper wait nor takes memory, and is
// not taken for the nonce.
func TestNonceOfAnotherUserIsHarmless(t *testing.T) {
	for name, put := range map[string]func(path string) error{
		"a pipe": func(path string) error { return unix.Mkfifo(path, 0o666) },
		"a sparse file": func(path string) error {
			return errors.Join(os.WriteFile(path, nil, 0o644), os.Truncate(path, 1<<40))
		},
		"a link to zeros": func(path string) error { return os.Symlink("/dev/zero", path) },
		"a directory":     func(path string) error { return os.Mkdir(path, 0o755) },
		"an endless device": func(path string) error {
			return unix.Mknod(path, unix.S_IFCHR|0o666, int(unix.Mkdev(1, 5)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := put(filepath.Join(dir, "nonce")); err != nil {
				t.Skip(err) // a device needs root
			}
			if sees, err := seesNonce(dir, "nonce"); sees || err != nil {
				t.Errorf("got %v, %v; want the nonce of another directory", sees, err)
			}
			if b, err := readFile(filepath.Join(dir, "nonce")); err == nil {
				t.Errorf("read %d bytes, want an error", len(b))
			}
		})
	}
}
