package rundir

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// strangersDisk shows the files of these names as files of another user.
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

// A stop file counts if the user of the run has created it. A file of another user, a
// symbolic link and a directory do not count.
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
			r, err := CreateOn(d, t.TempDir(), "r", Asked{Cwd: "/"}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := c.make(r.Path(name)); err != nil {
				t.Fatal(err)
			}
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
