//go:build linux

package remote

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"dcs-tui/hosts"
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
