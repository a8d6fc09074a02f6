package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
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
