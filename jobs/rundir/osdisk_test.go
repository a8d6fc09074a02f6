package rundir

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestNoLinkLeadsOutOfTheRun checks that each call with a path below a run directory in which a
// directory or a file is a symbolic link fails, names the link, and changes nothing where it leads.
// A link at or above the run directory, which its user has chosen, is followed.
func TestNoLinkLeadsOutOfTheRun(t *testing.T) {
	top := t.TempDir()
	must(t, os.Mkdir(filepath.Join(top, "real"), 0o700))
	must(t, os.Symlink("real", filepath.Join(top, "above")))
	must(t, os.MkdirAll(filepath.Join(top, "elsewhere/run"), 0o700))
	must(t, os.Symlink("../elsewhere/run", filepath.Join(top, "real/r")))
	r, err := CreateAt(filepath.Join(top, "above/r"), "", Settings{Cwd: "/"})
	must(t, err)
	must(t, r.MakeRequestsDir())
	if r, err = Open(r.Dir); err != nil {
		t.Fatal(err)
	}
	outside := filepath.Join(top, "outside")
	must(t, os.MkdirAll(filepath.Join(outside, "000/d"), 0o700))
	for _, name := range []string{"f", "000/f"} {
		must(t, os.WriteFile(filepath.Join(outside, name), []byte("mine"), 0o600))
	}
	calls := map[string]func(dir string) error{
		"read":     func(dir string) error { _, err := ReadFile(r.Disk, dir+"/f"); return err },
		"create":   func(dir string) error { return WriteNew(r.Disk, dir+"/new", nil) },
		"truncate": func(dir string) error { return Overwrite(r.Disk, dir+"/f", nil) },
		"replace":  func(dir string) error { return Replace(r.Disk, dir+"/f", nil) },
		"list":     func(dir string) error { _, err := r.Disk.Names(dir); return err },
		"stat":     func(dir string) error { _, err := r.Disk.Stat(dir + "/f"); return err },
		"lstat":    func(dir string) error { _, err := r.Disk.Lstat(dir + "/f"); return err },
		"rename":   func(dir string) error { return r.Disk.Rename(dir+"/f", dir+"/g") },
		"remove":   func(dir string) error { return r.Disk.Remove(dir + "/f") },
		"rmdir":    func(dir string) error { return r.Disk.Remove(dir + "/d") },
		"mkdir":    func(dir string) error { return r.Disk.Mkdir(dir+"/new", 0o700) },
		"sync":     func(dir string) error { return r.Disk.SyncDir(dir) },
		"log": func(dir string) error {
			rel, err := filepath.Rel(r.Dir, dir)
			must(t, err)
			_, err = r.OpenFile(AppendFlags, rel, "f")
			return err
		},
	}
	for _, c := range []struct{ link, dir string }{
		{JournalDir, ""}, {AttemptsDir, ""}, {AttemptsDir, "000"}, {HostsDir, ""}, {RequestsDir, ""},
		{AttemptsDir + "/000", ""},
	} {
		link := r.Path(c.link)
		_ = os.Remove(link)
		must(t, os.Symlink(outside, link))
		if err := r.CheckLinks(); (err == nil) != strings.Contains(c.link, "/") {
			t.Errorf("%s: the check returns %v", c.link, err)
		}
		for name, call := range calls {
			t.Run(name+" below "+filepath.Join(c.link, c.dir), func(t *testing.T) {
				var is *LinkError
				err := call(filepath.Join(link, c.dir))
				if !errors.As(err, &is) || is.Path != link || !errors.Is(err, unix.ELOOP) {
					t.Errorf("error is %v, want one that names the link %s", err, link)
				}
			})
		}
		must(t, os.Remove(link))
		must(t, os.Mkdir(link, 0o700))
	}
	for _, name := range []string{"f", "000/f"} {
		if b, err := os.ReadFile(filepath.Join(outside, name)); err != nil || string(b) != "mine" {
			t.Errorf("%s outside: %q, %v", name, b, err)
		}
	}
	if names, err := OS.Names(outside); err != nil || strings.Join(names, " ") != "000 f" {
		t.Errorf("outside: %q, %v", names, err)
	}
	must(t, os.Symlink(filepath.Join(outside, "f"), r.Path(LiveFile)))
	var is *LinkError
	if _, err := ReadFile(r.Disk, r.Path(LiveFile)); !errors.As(err, &is) {
		t.Errorf("a file: %v", err)
	}
	if err := errors.Join(Replace(r.Disk, r.Path(LiveFile), nil), r.Disk.Remove(r.Path(LiveFile))); err != nil {
		t.Errorf("a link is replaced and removed like a file: %v", err)
	}
}

// TestHeldDirectory checks that the disk of HoldDir reads and removes the files of the directory that was
// held, wherever its name leads meanwhile, follows no link in it, and reaches all others as before.
func TestHeldDirectory(t *testing.T) {
	r, err := CreateAt(filepath.Join(t.TempDir(), "r"), "", Settings{Cwd: "/"})
	must(t, err)
	dir, outside := r.Path(AttemptsDir, "000"), t.TempDir()
	must(t, os.MkdirAll(dir, 0o700))
	must(t, os.WriteFile(filepath.Join(outside, "f"), []byte("outside"), 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "f"), []byte("ours"), 0o600))
	must(t, os.Symlink(filepath.Join(outside, "f"), filepath.Join(dir, "link")))
	held, release := HoldDir(WithoutPacks(r.Disk), dir)
	defer release()
	var is *LinkError
	link := filepath.Join(dir, "link")
	if _, err := ReadFile(held, link); !errors.As(err, &is) || is.Path != link {
		t.Errorf("a link: %v", err)
	}
	must(t, os.Rename(dir, dir+"old"))
	must(t, os.Symlink(outside, dir))
	if b, err := ReadFile(held, filepath.Join(dir, "f")); err != nil || string(b) != "ours" {
		t.Errorf("got %q, %v", b, err)
	}
	if info, err := held.Lstat(filepath.Join(dir, "f")); err != nil || info.Size() != 4 {
		t.Errorf("got %v, %v", info, err)
	}
	must(t, held.Remove(filepath.Join(dir, "f")))
	if _, err := os.Stat(filepath.Join(dir+"old", "f")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file is not removed: %v", err)
	}
	if _, err := held.Names(dir); !errors.As(err, &is) {
		t.Errorf("a link in the place of the directory: %v", err)
	}
	if b, err := ReadFile(held, r.Path(SettingsFile)); err != nil || len(b) == 0 {
		t.Errorf("a file elsewhere: %q, %v", b, err)
	}
	absent, _ := HoldDir(WithoutPacks(r.Disk), r.Path(AttemptsDir, "001"))
	must(t, os.Mkdir(r.Path(AttemptsDir, "001"), 0o700))
	if err := WriteNew(absent, r.Path(AttemptsDir, "001", "f"), nil); err != nil {
		t.Errorf("a directory that did not exist: %v", err)
	}
}

// BenchmarkOpen measures opening and reading a file of attempts in a run directory.
func BenchmarkOpen(b *testing.B) {
	dir := b.TempDir()
	path := filepath.Join(dir, AttemptsDir, "000", "1.1.status")
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte("x"), 0o600)); err != nil {
		b.Fatal(err)
	}
	for name, d := range map[string]Disk{"whole path": OS, "within": Within(dir)} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := ReadFile(d, path); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
