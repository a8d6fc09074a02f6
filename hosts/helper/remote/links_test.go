//go:build linux

package remote

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// If somebody has put a symbolic link in the place of an attempt's file, nothing is
// written through it.
func TestLinksAreNotFollowed(t *testing.T) {
	w := newWorld(t)
	f := w.start(w.open())
	secret := filepath.Join(w.base, "secret")
	for i, file := range []jobs.File{jobs.FileOut, jobs.FileErr} {
		id := fmt.Sprintf("%d.1", i+1)
		write(t, secret, "secret")
		must(t, os.MkdirAll(filepath.Dir(w.file(id, file)), 0o700))
		must(t, os.Symlink(secret, w.file(id, file)))
		f.launch(job(id, "echo out; echo err >&2"))
		if r := f.refused(id); !strings.Contains(r.Why, id+"."+string(file)+": it is a symbolic link, which is not followed") {
			t.Errorf("%s: refused: %s", file, r.Why)
		}
		if b, err := os.ReadFile(secret); string(b) != "secret" {
			t.Errorf("%s: the file behind the link holds %q, %v", file, b, err)
		}
	}
	f.bye()
}

// A pipe that a job has put in the place of its progress file blocks nobody.
func TestProgressIsNoPipe(t *testing.T) {
	t.Setenv(beatEnv, "50ms")
	w := newWorld(t)
	gate, ready := w.fifo("gate"), w.fifo("ready")
	f := w.start(w.open())
	f.launch(job("1.1", fmt.Sprintf("mkfifo $DCS_PROGRESS; echo up > %s; read x < %s", ready, gate)),
		job("2.1", fmt.Sprintf("echo half > $DCS_PROGRESS; echo up > %s; read x < %s", ready, gate)))
	w.hearTimes(ready, 2)
	await(f, func(b *hosts.Beat) bool { return b.Progress["2.1"] == "half" })
	w.say(gate)
	w.say(gate)
	f.exit("1.1")
	f.exit("2.1")
	f.bye()
}

// A work_dir of another user is refused with advice, by checks, runs and readers alike.
func TestWorkDirOfAnotherUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can make directories of other users")
	}
	w := newWorld(t)
	must(t, os.Mkdir(w.workDir, 0o777))
	must(t, os.Chown(w.workDir, 4711, -1))
	for name, set := range map[string]func(o *hosts.Open){
		"a run":    func(o *hosts.Open) {},
		"a check":  func(o *hosts.Open) { o.Check = true },
		"a reader": func(o *hosts.Open) { o.Reads = true },
		"behind a link": func(o *hosts.Open) {
			must(t, os.Symlink(w.workDir, w.workDir+".link"))
			o.WorkDir = w.workDir + ".link"
		},
	} {
		o := w.open()
		set(o)
		f := w.start(o)
		want := fmt.Sprintf("work_dir cannot be used: %s belongs to user 4711, not to us; set another work_dir for this host", o.WorkDir)
		if f.hello.Error != want || f.hello.Passing {
			t.Errorf("%s: %q, passing %v", name, f.hello.Error, f.hello.Passing)
		}
		f.wait()
	}
	if names, err := list(w.workDir); err != nil || len(names) > 0 {
		t.Errorf("left there: %v, %v", names, err)
	}
}
