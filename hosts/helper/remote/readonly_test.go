//go:build linux

package remote

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
	"dcs-tui/jobs/attempts"
)

// X2: a helper that only reads gives outputs and sentinels whole, makes nothing and takes
// nothing from the helper of a dispatcher that is there at the same time.
func TestReadsAlone(t *testing.T) {
	w := newWorld(t)
	own := w.open()
	own.Nonce = "another"
	f := w.start(own)
	f.launch(job("1.1", "echo figure=7; exit 3"))
	f.exit("1.1")
	before := everything(t, w.workDir)

	reads := &hosts.Open{Version: hosts.ProtocolVersion, Run: w.run, Host: "melon1", WorkDir: w.workDir, Reads: true}
	g := w.start(reads)
	if g.hello.Error != "" || g.hello.Dir != filepath.Join(w.workDir, w.run) {
		t.Fatalf("hello %+v", g.hello)
	}
	read := func(id string, file jobs.File, offset int64, limit int) *hosts.Chunk {
		t.Helper()
		g.send(&hosts.Read{ID: 7, Attempt: attemptID(t, id), File: file, Offset: offset, Limit: limit})
		return await(g, func(c *hosts.Chunk) bool { return c.ID == 7 })
	}
	if c := read("1.1", jobs.FileOut, 0, hosts.MaxChunk); c.Size != 9 || string(c.Bulk) != "figure=7\n" {
		t.Errorf("output %+v", c)
	}
	if c := read("1.1", jobs.FileOut, 2, 3); c.Size != 9 || c.Offset != 2 || string(c.Bulk) != "gur" {
		t.Errorf("piece %+v", c)
	}
	c := read("1.1", jobs.FileStatus, 0, hosts.MaxChunk)
	if f := attempts.Decode(c.Bulk, w.run, attemptID(t, "1.1")); f.State != attempts.Finished || f.Host != "melon1" || f.Outcome.Exit != 3 {
		t.Errorf("status %+v, want exit 3 on melon1", f)
	}
	if c := read("1.2", jobs.FileOut, 0, 10); !c.None || c.Size != -1 {
		t.Errorf("of an attempt that never was: %+v", c)
	}
	if c := read("1.1", "secret", 0, 10); c.None || c.Size != -1 || len(c.Bulk) != 0 {
		t.Errorf("another file: %+v", c)
	}
	if after := everything(t, w.workDir); !slices.Equal(before, after) {
		t.Errorf("files changed:\n%q\n%q", before, after)
	}
	g.send(&hosts.Launch{Epoch: 9, Jobs: []hosts.LaunchJob{job("2.1", "true")}})
	if err := g.wait(); err == nil || !strings.Contains(g.stderr.String(), "only reads") {
		t.Errorf("after a launch: %v, %q", err, g.stderr.String())
	}
	g = w.start(reads)
	g.send(&hosts.Bye{})
	if err := g.wait(); err != nil {
		t.Errorf("after a bye: %v, %q", err, g.stderr.String())
	}
	f.launch(job("2.1", "exit 4"))
	if o := f.exit("2.1"); o.Exit != 4 {
		t.Errorf("the dispatcher's helper: %+v", o)
	}
	f.bye()
}

// X2: a host that has nothing of the run says so and where it looked, and a run's uid
// leads nowhere else.
func TestReadsNothing(t *testing.T) {
	w := newWorld(t)
	f := w.start(w.open()) // it shares the run directory
	f.bye()
	if err := os.Symlink(t.TempDir(), filepath.Join(w.workDir, "linked")); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		open hosts.Open
		want string
	}{
		"other run":     {hosts.Open{Run: "other", Host: "melon1", WorkDir: w.workDir}, "nothing of the run is in " + w.workDir},
		"other place":   {hosts.Open{Run: w.run, Host: "melon1", WorkDir: w.workDir + "/no"}, "work_dir was another"},
		"relative":      {hosts.Open{Run: w.run, Host: "melon1", WorkDir: "kept"}, "not an absolute path"},
		"a link":        {hosts.Open{Run: "linked", Host: "melon1", WorkDir: w.workDir}, "linked is not a directory"},
		"leads up":      {hosts.Open{Run: "../" + w.run, Host: "melon1", WorkDir: w.workDir}, "the run's uid"},
		"shared":        {hosts.Open{Run: w.run, Host: "melon1", WorkDir: w.workDir}, "in the run directory"},
		"another build": {hosts.Open{Version: 77, Run: w.run, Host: "melon1", WorkDir: w.workDir}, "version 77"},
	} {
		if c.open.Reads = true; c.open.Version == 0 {
			c.open.Version = hosts.ProtocolVersion
		}
		g := w.start(&c.open)
		if !strings.Contains(g.hello.Error, c.want) {
			t.Errorf("%s: %q, want %q", name, g.hello.Error, c.want)
		}
		if err := g.wait(); err != nil {
			t.Errorf("%s: it ended with %v", name, err)
		}
	}
	if _, err := os.Stat(w.workDir + "/no"); !os.IsNotExist(err) {
		t.Errorf("a directory was made: %v", err)
	}
}

// everything lists what is below a directory.
func everything(t *testing.T, dir string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		names = append(names, path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}
