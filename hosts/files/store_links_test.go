package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"dcs-tui/jobs"
)

// listTree returns the modes, paths, and sizes of all files below dir.
func listTree(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	must(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil && !d.IsDir() {
			fmt.Fprintf(&b, "%v %s %d\n", info.Mode(), path, info.Size())
		}
		return err
	}))
	return b.String()
}

// TestStoreChangesNothingBehindALink checks that nothing is written, changed, or removed behind a symbolic link
// that a job has put in the place of a directory of the store, or of the store.
func TestStoreChangesNothingBehindALink(t *testing.T) {
	for _, link := range []string{".", tempDir, "blobs", "own", "jobs", "returned", keptDir} {
		t.Run(link, func(t *testing.T) {
			base, s := t.TempDir(), store(t)
			write(t, base, map[string]string{"a": "0123456789"})
			src := NewSource(base)
			m, _ := send(t, src, s, "a")
			outside := filepath.Join(t.TempDir(), "outside")
			write(t, outside, map[string]string{"f": "mine", "blob-x": "mine", "1.1/f": "mine", "1/f": "mine",
				blobName(&m[0]): "mine", "tmp/blob-x": "mine", "jobs/1.1/f": "mine", "kept/1/f": "mine",
				"blobs/f": "mine", "own/1.1": "mine", "returned/1.1": "mine", "tree": "mine", "boot": "mine"})
			before := listTree(t, outside)
			must(t, errors.Join(os.RemoveAll(s.path(link)), os.Symlink(outside, s.path(link))))
			id := jobs.AttemptID{Job: 1, N: 1}
			for _, call := range []func() error{
				func() error { return s.Open("boot") },
				func() error { return s.SetTree(m) },
				func() error { return s.SetOwn(id.String(), m) },
				func() error { return s.Receive(&m[0], strings.NewReader("0123456789")) },
				func() error { _, err := s.Make(id.String(), true, true, []string{"out/*"}); return err },
				func() error { _, _, err := s.Collect(id.String(), false, false, nil); return err },
				func() error { _, err := s.Keep(id); return err },
				func() error { return s.DropKept(id.Job) },
				func() error { return s.Drop(id.String()) },
				s.Remove,
			} {
				_ = call() // most calls fail
				if after := listTree(t, outside); after != before {
					t.Fatalf("before:\n%s\nafter:\n%s", before, after)
				}
			}
		})
	}
}

// TestStoreDoesNotWaitForAPipe checks that no call waits for a pipe that a job has put in the place of a file of
// the store.
func TestStoreDoesNotWaitForAPipe(t *testing.T) {
	base, s := t.TempDir(), store(t)
	write(t, base, map[string]string{"empty": ""})
	m, _ := send(t, NewSource(base), s, "empty")
	id := jobs.AttemptID{Job: 1, N: 1}.String()
	must(t, s.SetOwn(id, m))
	blob := filepath.Join("blobs", blobName(&m[0]))
	info, err := os.Lstat(s.path(blob))
	must(t, err)
	for _, test := range []struct {
		file  string
		call  func() error
		fails bool
	}{
		{blob, func() error { _, err := s.Make(id, true, false, []string{"empty"}); return err }, true}, // copies it
		{"tree", func() error { _, err := s.Make(id, true, false, nil); return err }, true},
		{filepath.Join("own", id), func() error { _, _, err := s.Collect(id, false, true, nil); return err }, true},
		{filepath.Join("returned", id), func() error { _, err := s.Returned(id); return err }, true},
		{"boot", func() error { return s.Open("boot") }, false}, // makes it again
	} {
		path := s.path(test.file)
		must(t, errors.Join(os.RemoveAll(path), syscall.Mkfifo(path, 0o600)))
		must(t, os.Chtimes(path, info.ModTime(), info.ModTime()))
		if err := test.call(); (err != nil) != test.fails {
			t.Errorf("with a pipe as %s: %v", test.file, err)
		}
	}
}

// TestRemoveAllOfADeepTree checks that a tree is removed that is deeper than the number of files that this
// process may open, and whose directories have names that are not in UTF-8.
func TestRemoveAllOfADeepTree(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "tree")
	must(t, os.Mkdir(dir, 0o700))
	root, err := os.OpenRoot(dir)
	must(t, err)
	const depth = 6 * maxDeep
	name := "d\xff"
	if root.Mkdir(name, 0o700) != nil { // this file system has only names in UTF-8
		name = "d"
	}
	_ = root.Remove(name)
	for range depth {
		must(t, root.Mkdir(name, 0o700))
		below, err := root.OpenRoot(name)
		must(t, errors.Join(err, root.Close()))
		root = below
	}
	must(t, root.Close())
	var limit syscall.Rlimit
	must(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit))
	low := limit
	low.Cur = depth / 2
	must(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &low))
	defer syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit)
	must(t, RemoveAll(dir))
	if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the tree: %v", err)
	}
}

// TestCollectTakesNamesThatAreNotUTF8 checks that a directory of a job whose name is not in UTF-8 keeps no file
// from being returned.
func TestCollectTakesNamesThatAreNotUTF8(t *testing.T) {
	s := store(t)
	dir, err := s.Make("1.1", false, false, nil)
	must(t, err)
	write(t, dir, map[string]string{"out/a": "x"})
	if os.Mkdir(filepath.Join(dir, "d\xff"), 0o700) != nil {
		t.Skip("this file system has only names in UTF-8")
	}
	if n, missing, err := s.Collect("1.1", false, false, []string{"out/*"}); n != 1 || missing != "" || err != nil {
		t.Errorf("%d files, missing %q, %v", n, missing, err)
	}
}
