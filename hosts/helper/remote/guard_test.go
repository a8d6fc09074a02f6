//go:build linux

package remote

import (
	"errors"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"dcs-tui/hosts"
	"dcs-tui/internal/polltest"
	"dcs-tui/jobs/attempts"
	"dcs-tui/jobs/rundir"
)

// TestNothingIsChangedBehindALink checks that each call below a guarded directory in which a directory is a
// symbolic link fails, names the link, and changes nothing where it leads; and that a link to the guarded
// directory itself, which the user has chosen, is followed.
func TestNothingIsChangedBehindALink(t *testing.T) {
	top := t.TempDir()
	outside, real, own := filepath.Join(top, "outside"), filepath.Join(top, "real"), filepath.Join(top, "own")
	must(t, errors.Join(os.MkdirAll(filepath.Join(outside, "d"), 0o755), os.Mkdir(real, 0o700), os.Symlink(real, own)))
	must(t, os.WriteFile(filepath.Join(outside, "f"), []byte("mine"), 0o644))
	guard(own)
	link := filepath.Join(own, "link")
	must(t, os.Symlink(outside, link))
	plain := filepath.Join(own, "plain")
	must(t, writeFile(plain, nil))
	dir, err := openDir(own)
	must(t, err)
	defer unix.Close(dir)
	f, d, made := filepath.Join(link, "f"), filepath.Join(link, "d"), filepath.Join(link, "new")
	for name, call := range map[string]func() error{
		"truncate":    func() error { return writeFile(f, nil) },
		"create":      func() error { return writeTemp(made, nil) },
		"read":        func() error { _, err := readFile(f); return err },
		"list":        func() error { _, err := listNames(link); return err },
		"remove":      func() error { return remove(f) },
		"remove tree": func() error { return removeTree(d) },
		"a link":      func() error { return removeTree(link) },
		"rename from": func() error { return rename(f, filepath.Join(own, "taken")) },
		"rename to":   func() error { return rename(plain, made) },
		"link":        func() error { return linkat(f, dir, "taken") },
		"mkdir":       func() error { return mkdir(made, 0o700) },
		"mkdirs":      func() error { return makeDirs(filepath.Join(made, "x")) },
		"own dir":     func() error { return makeOwnDir(d) },
		"mkfifo":      func() error { return mkfifo(made, 0o600) },
	} {
		is, ok := errors.AsType[*rundir.LinkError](call())
		if !ok || is.Path != link {
			t.Errorf("%s: %v", name, is)
		}
	}
	var st os.FileInfo
	if st, err = os.Stat(filepath.Join(outside, "d")); err != nil || st.Mode().Perm() != 0o755 {
		t.Errorf("the directory outside: %v, %v", st, err)
	}
	b, err := os.ReadFile(filepath.Join(outside, "f"))
	names, nerr := listNames(outside)
	slices.Sort(names)
	if err := errors.Join(err, nerr); err != nil || string(b) != "mine" || !slices.Equal(names, []string{"d", "f"}) {
		t.Errorf("outside: %q, %v, %v", b, names, err)
	}
	if names, err := listNames(own); err != nil || len(names) != 2 {
		t.Errorf("in the directory itself: %v, %v", names, err)
	}
}

// TestHelperWritesNothingBehindALink checks that a helper writes nothing behind a symbolic link in the place of
// a directory of its spool, names the link, and still ends the job.
func TestHelperWritesNothingBehindALink(t *testing.T) {
	w := newWorld(t)
	f := w.start(w.open())
	f.launch(job("1.1", "exec sleep 1000"))
	f.started("1.1")
	outside, stop := t.TempDir(), w.spool().path(dirStop)
	must(t, errors.Join(os.Remove(stop), os.Symlink(outside, stop)))
	f.kill("1.1")
	await(f, func(m *hosts.Trouble) bool { return strings.Contains(m.Text, stop+" is a symbolic link") })
	if p := f.settled("1.1"); p.Answer != hosts.HasExited {
		t.Errorf("the job is %+v", p)
	}
	if names, err := os.ReadDir(outside); len(names) > 0 || err != nil {
		t.Errorf("behind the link: %v, %v", names, err)
	}
	must(t, errors.Join(os.Remove(stop), os.Mkdir(stop, 0o700)))
	f.endRun()
}

// TestOpensWaitForNothing checks that nothing that somebody puts in the place of a file, with any flags, makes
// opening it wait, and that a file that is opened has the flags that were asked for.
func TestOpensWaitForNothing(t *testing.T) {
	dir := t.TempDir()
	guard(dir)
	path := filepath.Join(dir, "f")
	kinds := map[string]func() error{
		"a pipe":      func() error { return unix.Mkfifo(path, 0o600) },
		"a directory": func() error { return os.Mkdir(path, 0o700) },
		"a link":      func() error { return os.Symlink("/dev/tty", path) },
		"a socket": func() error {
			fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
			t.Cleanup(func() { unix.Close(fd) })
			return errors.Join(err, unix.Bind(fd, &unix.SockaddrUnix{Name: path}))
		},
	}
	if os.Getuid() == 0 {
		kinds["a device"] = func() error { return unix.Mknod(path, unix.S_IFCHR|0o600, int(unix.Mkdev(1, 3))) }
	}
	for name, put := range kinds {
		must(t, put())
		for _, flags := range []int{unix.O_RDONLY, unix.O_WRONLY, unix.O_RDWR, unix.O_RDWR | unix.O_CREAT,
			unix.O_WRONLY | unix.O_CREAT | unix.O_TRUNC, unix.O_WRONLY | unix.O_CREAT | unix.O_APPEND,
			unix.O_WRONLY | unix.O_CREAT | unix.O_EXCL} {
			var err error
			ok := withTimeout(polltest.Patience, func() { _, err = openat(unix.AT_FDCWD, path, flags, 0o600) })
			if !ok || err == nil {
				t.Fatalf("%s with flags %#x: returned: %v, %v; want an error at once", name, flags, ok, err)
			}
		}
		if fd, err := openFIFO(path); (err == nil) != (name == "a pipe") {
			t.Errorf("%s as a pipe: %v", name, err)
		} else if err == nil {
			unix.Close(fd)
		}
		if err := writeFile(path, []byte("x")); (err == nil) == (name == "a directory") {
			t.Errorf("writing %s: %v", name, err)
		}
		must(t, os.Remove(path))
	}
	must(t, os.WriteFile(path, nil, 0o600))
	for _, flags := range []int{unix.O_RDONLY, unix.O_RDWR, unix.O_WRONLY | unix.O_CREAT | unix.O_APPEND} {
		fd, err := openat(unix.AT_FDCWD, path, flags, 0o600)
		must(t, err)
		got, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
		unix.Close(fd)
		const asked = unix.O_ACCMODE | unix.O_APPEND | unix.O_NONBLOCK
		if want := flags & asked; err != nil || got&asked != want {
			t.Errorf("a file has the flags %#x, %v; want %#x", got&asked, err, want)
		}
	}
}

// TestOpenWaitsForALease checks that a file on which another process has a lease, as an NFS client of this
// machine has on what it reads, is opened when the lease has ended.
func TestOpenWaitsForALease(t *testing.T) {
	broken := make(chan os.Signal, 1)
	signal.Notify(broken, unix.SIGIO)
	defer signal.Stop(broken)
	path := filepath.Join(t.TempDir(), "file")
	for name, open := range map[string]func() error{
		"helper": func() error {
			fd, err := openat(unix.AT_FDCWD, path, unix.O_WRONLY|unix.O_CREAT, 0o600)
			if err == nil {
				err = unix.Close(fd)
			}
			return err
		},
		"dispatcher": func() error {
			f, err := rundir.OS.OpenFile(path, os.O_WRONLY, 0)
			if err == nil {
				err = f.Close()
			}
			return err
		},
	} {
		must(t, os.WriteFile(path, nil, 0o600))
		leased, err := os.Open(path)
		must(t, err)
		defer leased.Close()
		if _, err := unix.FcntlInt(leased.Fd(), unix.F_SETLEASE, unix.F_RDLCK); err != nil {
			t.Skip("the file system has no leases:", err)
		}
		opened := make(chan error, 1)
		go func() { opened <- open() }()
		<-broken
		_, err = unix.FcntlInt(leased.Fd(), unix.F_SETLEASE, unix.F_UNLCK)
		must(t, err)
		if err := <-opened; err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestPipesInTheSpool checks that a helper and its supervisors run jobs although pipes are in the place of all
// files that they find in the spool or in work_dir, and also of what they create there.
func TestPipesInTheSpool(t *testing.T) {
	w := newWorld(t)
	w.runThenCrash("1.1")
	s := w.spool()
	var found []string
	must(t, filepath.WalkDir(s.dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && d.Name() != fileControl {
			found = append(found, path)
		}
		return err
	}))
	found = append(found, s.path(fileGPUs), attempts.HeartbeatFile(w.runDir, "melon1"), s.path(configName(2)),
		s.path(dirIn, "1-4.1"), s.path(dirStop, "6.1"), s.path(dirFree, "7.1"),
		s.path(dirProgress, "2.1"), s.path(dirProgress, "2.1.report"))
	for _, path := range found {
		if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		must(t, unix.Mkfifo(path, 0o600))
	}
	must(t, os.Remove(s.path(fileReports)))
	must(t, os.WriteFile(s.path(fileReports), nil, 0o600))
	f := w.start(w.open())
	f.launch(job("2.1", "exit 4"))
	f.exits("2.1", 4)
	f.endRun()
}
