package helper

import (
	"os"
	"strings"
	"syscall"
	"testing"

	"dcs-tui/hosts"
	"dcs-tui/internal/polltest"
)

// TestUnusablePlacesAreSkipped checks that locations that cannot be used are skipped, and that the
// error names each of them.
func TestUnusablePlacesAreSkipped(t *testing.T) {
	polltest.Long(t)
	asRoot := func(t *testing.T) {
		if os.Getuid() != 0 {
			t.Skip("LEFT OUT: needs root to mount or to change owners")
		}
	}
	mount := func(options string) func(t *testing.T, base string) {
		return func(t *testing.T, base string) {
			asRoot(t)
			must(t, os.Mkdir(base, 0o700))
			flags := uintptr(0)
			if options == "noexec" {
				flags, options = syscall.MS_NOEXEC, "size=64m"
			}
			if err := syscall.Mount("none", base, "tmpfs", flags, options+",mode=0700"); err != nil {
				t.Skip("LEFT OUT: cannot mount a tmpfs here: ", err)
			}
			t.Cleanup(func() {
				if err := syscall.Unmount(base, syscall.MNT_DETACH); err != nil {
					t.Error(err)
				}
			})
		}
	}
	for _, c := range []struct {
		name, want string
		make       func(t *testing.T, base string)
	}{
		{"noexec", "programs cannot be run there (is /", mount("noexec")},
		{"full", "No space left", mount("size=1m")},
		{"no room for a name", "No space left", mount("size=64m,nr_inodes=1")},
		{"a file", "File exists", func(t *testing.T, base string) { os.WriteFile(base, nil, 0o600) }},
		{"a symbolic link", "is a symbolic link", func(t *testing.T, base string) { os.Symlink(t.TempDir(), base) }},
		{"a dangling link", "File exists", func(t *testing.T, base string) { os.Symlink(base+"x", base) }},
		{"of another user", "belongs to somebody else", func(t *testing.T, base string) {
			asRoot(t)
			os.Mkdir(base, 0o777)
			os.Chown(base, 12345, 12345)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := newShellHost(t)
			f.env = []string{"LC_ALL=C"}
			c.make(t, f.base)
			conn := f.connector()
			for _, link := range []string{"local", "ssh"} { // the program is sent as it is, or compressed
				_, err := f.connectVia(conn, link, "/dev/null/work")
				if err == nil || hosts.ClassOf(err) != hosts.Misconfigured ||
					!strings.Contains(err.Error(), f.base+": ") || !strings.Contains(err.Error(), c.want) ||
					!strings.Contains(err.Error(), "/dev/null/work: ") ||
					!strings.Contains(err.Error(), "give the host a work_dir") {
					t.Errorf("over %s: got %v, want %q", link, err, c.want)
				}
			}
			if dir := f.runsFrom(conn, "local", "~/wo rk"); dir != f.home+"/wo rk" {
				t.Errorf("with a good work_dir it runs from %q", dir)
			}
			if dir := f.runsFrom(conn, "ssh", ""); dir != f.home+"/.dcs-tui" {
				t.Errorf("without a work_dir it runs from %q", dir)
			}
		})
	}
}

// TestPlaceWithoutRoomForTheSpoolIsSkipped checks that a read-only directory that has the program is
// used only if it has the spool, whose jobs may still run.
func TestPlaceWithoutRoomForTheSpoolIsSkipped(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("LEFT OUT: needs root to mount")
	}
	f := newShellHost(t).install()
	f.env = []string{"LC_ALL=C"}
	mount := func(source string, flags uintptr) {
		t.Helper()
		if err := syscall.Mount(source, f.base, "", flags|syscall.MS_BIND, ""); err != nil {
			t.Skip("LEFT OUT: cannot mount here: ", err)
		}
	}
	mount(f.base, 0)
	t.Cleanup(func() { must(t, syscall.Unmount(f.base, syscall.MNT_DETACH)) })
	mount("", syscall.MS_REMOUNT|syscall.MS_RDONLY)
	conn := f.connector()
	_, err := f.connectVia(conn, "local", "/dev/null/work")
	for _, want := range []string{f.base + ": ", "Read-only file system"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	if dir := f.runsFrom(conn, "local", ""); dir != f.home+"/.dcs-tui" {
		t.Errorf("it runs from %q", dir)
	}
	mount("", syscall.MS_REMOUNT)
	must(t, os.MkdirAll(f.base+"/runs/r1/melon4", 0o700))
	mount("", syscall.MS_REMOUNT|syscall.MS_RDONLY)
	if dir := f.runsFrom(conn, "local", ""); dir != f.base {
		t.Errorf("although it has the spool, it runs from %q", dir)
	}
}
