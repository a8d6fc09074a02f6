package rundir

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// strangersDisk shows the files with these names as files of another user.
type strangersDisk struct {
	Disk
	names []string
}

func (d strangersDisk) Lstat(path string) (fs.FileInfo, error) {
	info, err := d.Disk.Lstat(path)
	if err == nil && slices.Contains(d.names, filepath.Base(path)) {
		info.Sys().(*syscall.Stat_t).Uid++
	}
	return info, err
}

// TestStopFilesOfOthersAreIgnored checks that a stop file counts if the user of the run created it.
// A file of another user, a symbolic link, and a directory do not count.
func TestStopFilesOfOthersAreIgnored(t *testing.T) {
	for _, c := range []struct {
		what     string
		make     func(path string) error
		stranger bool
		refused  string
	}{
		{"ours", func(p string) error { return os.WriteFile(p, nil, 0o644) }, false, ""},
		{"a stranger's", func(p string) error { return os.WriteFile(p, nil, 0o644) }, true, "belongs to user"},
		{"a link to ours", func(p string) error { return os.Symlink(SpecsFile, p) }, false, "symbolic link"},
		{"a link to nothing", func(p string) error { return os.Symlink("nothing", p) }, false, "symbolic link"},
		{"a directory", func(p string) error { return os.Mkdir(p, 0o700) }, false, "not a file"},
		{"a pipe", func(p string) error { return syscall.Mkfifo(p, 0o600) }, false, "not a file"},
	} {
		for _, name := range []string{StopFile, StopNowFile} {
			d := strangersDisk{Disk: OS}
			if c.stranger {
				d.names = []string{name}
			}
			r, err := CreateOn(d, t.TempDir(), "r", Settings{Cwd: "/"}, nil)
			must(t, err)
			must(t, c.make(r.Path(name)))
			names, refused, err := r.StopFiles()
			switch {
			case err != nil:
				t.Errorf("%s %s: %v", c.what, name, err)
			case c.refused == "" && (!slices.Equal(names, []string{name}) || len(refused) > 0):
				t.Errorf("%s %s: %q, refused %v", c.what, name, names, refused)
			case c.refused != "" && (len(names) > 0 || len(refused) != 1 ||
				!strings.Contains(refused[0].Error(), c.refused) || !strings.Contains(refused[0].Error(), name)):
				t.Errorf("%s %s: %q, refused %v", c.what, name, names, refused)
			}
		}
	}
}

// TestReadReturnsOnlyThePiece checks that a read returns only the requested part, and that a path
// that is not a regular file is refused at once.
func TestReadReturnsOnlyThePiece(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "out")
	must(t, os.WriteFile(path, []byte("0123456789"), 0o600))
	must(t, os.Truncate(path, 1<<30)) // a hole, which takes no space
	for _, c := range []struct {
		offset int64
		limit  int
		want   string
	}{{0, 4, "0123"}, {8, 4, "89\x00\x00"}, {1 << 30, 4, ""}, {1 << 40, 4, ""}, {-1 << 40, 2, "01"}, {-2, 9,
		"\x00\x00"}} {
		data, size, err := readPiece(OS, path, c.offset, c.limit)
		if err != nil || size != 1<<30 || string(data) != c.want {
			t.Errorf("%d, %d: %q of %d, %v", c.offset, c.limit, data, size, err)
		}
	}
	if _, _, err := readPiece(OS, dir, 0, 10); err == nil {
		t.Error("a directory was read")
	}
	pipe := filepath.Join(dir, "pipe") // a job may create one
	must(t, syscall.Mkfifo(pipe, 0o600))
	if _, _, err := readPiece(OS, pipe, 0, 10); err == nil {
		t.Error("a pipe was read")
	}
	link := filepath.Join(dir, "link")
	must(t, os.Symlink(path, link))
	if data, _, err := readPiece(OS, link, 0, 10); err == nil {
		t.Errorf("%q was read behind a link", data)
	}
	if _, _, err := readPiece(OS, filepath.Join(dir, "none"), 0, 10); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

// TestFileReaderIsLeft checks that a caller that waits for a free read returns when its context
// ends, even if the file system hangs.
func TestFileReaderIsLeft(t *testing.T) {
	r := NewFileReader(OS)
	for range maxReads {
		r.places <- struct{}{} // reads that hang
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := r.Read(ctx, "any", 0, 1); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	path := filepath.Join(t.TempDir(), "out")
	must(t, os.WriteFile(path, []byte("hello"), 0o600))
	<-r.places // one of them ends
	if data, size, err := r.Read(t.Context(), path, 1, 3); err != nil || string(data) != "ell" || size != 5 {
		t.Errorf("%q of %d, %v", data, size, err)
	}
}
