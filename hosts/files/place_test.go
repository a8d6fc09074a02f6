package files

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// TestHostWritesOnlyWhatTheJobReturns checks that a list of returned files that a host has made up
// writes nothing at all: no file that no pattern matches, none that this machine trusts, none in a
// run directory or a repository, and none through a symbolic link. Directories are not created
// either.
func TestHostWritesOnlyWhatTheJobReturns(t *testing.T) {
	for _, tt := range []struct {
		name     string
		patterns string
		path     string
		kind     byte
	}{
		{"another name", "out.txt", "hosts.toml", 'f'},
		{"a hidden file", "out/*", ".bashrc", 'f'},
		{"a name below the pattern's name", "out.txt", "sub/out.txt", 'f'},
		{"the inventory, which the pattern matches", "*", "hosts.toml", 'f'},
		{"the jobs file through a link", "**", "alias/jobs.txt", 'f'},
		{"the run directory", "**", "runs/r1/journal/000001.jsonl", 'f'},
		{"the run directory through a link", "**", "link/journal/000001.jsonl", 'f'},
		{"a place of the run directory through a link", "**", "link/requests/x/y", 'f'},
		{"in place of the run directory", "**", "runs/r1", 'f'},
		{"another run", "**", "dcs-runs/other/run.toml", 'f'},
		{"another run, on a disk that ignores case", "**", "DCS-Runs/other/run.toml", 'f'},
		{"a hook", "**", ".git/hooks/post-commit", 'f'},
		{"a hook through a link", "**", "repository/hooks/post-commit", 'f'},
		{"a directory", "**", "new", 'd'},
		{"a symbolic link", "**", "new", 'l'},
		{"the inventory, where case is ignored", "**", "HOSTS.toml", 'f'},
	} {
		t.Run(tt.name, func(t *testing.T) {
			base := t.TempDir()
			write(t, base, map[string]string{"hosts.toml": "ours", "in/jobs.txt": "ours", "runs/r1/run.toml": "ours",
				".git/config": "ours"})
			for name, to := range map[string]string{"alias": "in", "link": "runs/r1", "repository": ".git"} {
				must(t, os.Symlink(to, filepath.Join(base, name)))
			}
			before := tree(t, base)
			p := placement(t, base, "1.1", tt.patterns)
			for _, name := range []string{"hosts.toml", "in/jobs.txt", "runs/r1"} {
				p.Protected = append(p.Protected, filepath.Join(base, name))
			}
			read := func(string, int64, int64) ([]byte, error) { return []byte("theirs"), nil }
			m := Manifest{{Path: "out.txt", Kind: 'f', Size: 6}, {Path: tt.path, Kind: tt.kind, Size: 6, Target: "x"}}
			err := p.Place(m, read, func() error { return nil })
			if place, ok := errors.AsType[*PlaceError](err); !ok || place.Path != tt.path && tt.patterns == "**" {
				t.Errorf("Place: got %v, want an error for %q", err, tt.path)
			}
			if after := tree(t, base); !slices.Equal(after, before) {
				t.Errorf("there is %q, want %q", after, before)
			}
		})
	}
}

// tree lists the files and directories below dir, each with its content.
func tree(t *testing.T, dir string) (list []string) {
	t.Helper()
	must(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		b, _ := os.ReadFile(path)
		list = append(list, strings.TrimPrefix(path, dir)+" "+string(b))
		return nil
	}))
	return list
}

// TestReturnedFilesHaveNamesOfTheirOwn checks that a file does not replace another file of the same
// attempt. Where case is ignored, two names may be those of one file, as the same name is here.
func TestReturnedFilesHaveNamesOfTheirOwn(t *testing.T) {
	base := t.TempDir()
	read := func(string, int64, int64) ([]byte, error) { return []byte("theirs"), nil }
	m := Manifest{{Path: "out", Kind: 'f', Size: 6}, {Path: "out", Kind: 'f', Size: 6}}
	err := placement(t, base, "1.1", "**").Place(m, read, func() error { return nil })
	if _, ok := errors.AsType[*PlaceError](err); !ok || !strings.Contains(err.Error(), "the same name") {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(filepath.Join(base, "out")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("one of the two was kept: %v", err)
	}
}

// TestReturnedFilesMustFit checks that files which do not fit are not begun: the error is that of a
// full disk if there may be space later, and another one if the disk is too small. A host reserves
// nothing by announcing it.
func TestReturnedFilesMustFit(t *testing.T) {
	base := t.TempDir()
	p := placement(t, base, "1.1", "**")
	p.Space.Free = func() (int64, error) { return 100, nil }
	read := func(path string, _, size int64) ([]byte, error) { return make([]byte, size), nil }
	place := func(sizes ...int64) error {
		var m Manifest
		for i, size := range sizes {
			m = append(m, Entry{Path: string(rune('a' + i)), Kind: 'f', Size: size})
		}
		return p.Place(m, read, func() error { return nil })
	}
	if err := place(50, 51); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("101 bytes of 100: got %v, want a full disk", err)
	}
	for _, sizes := range [][]int64{{1 << 62}, {1 << 62, 1 << 62, 1 << 62}} {
		if err := place(sizes...); err == nil || errors.Is(err, syscall.ENOSPC) ||
			!strings.Contains(err.Error(), "the whole disk") {
			t.Errorf("%d bytes: got %v, want an error that no space can help", sizes, err)
		}
	}
	if list := tree(t, base); len(list) > 1 {
		t.Errorf("begun: %q", list)
	}
	must(t, place(50, 50))
	must(t, place(100))
}
