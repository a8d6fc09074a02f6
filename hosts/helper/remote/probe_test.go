//go:build linux

package remote

import (
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"dcs-tui/hosts"
	wire "dcs-tui/hosts/helper"
	"dcs-tui/internal/polltest"
	"dcs-tui/jobs"
	"dcs-tui/jobs/attempts"
	"dcs-tui/jobs/rundir"
)

// put writes a file of an attempt.
func (w *world) put(id string, f jobs.File, content []byte) {
	w.t.Helper()
	must(w.t, os.MkdirAll(filepath.Dir(w.file(id, f)), 0o700))
	write(w.t, w.file(id, f), string(content))
}

// claimed writes a claim of a process that no longer exists.
func (w *world) claimed(id, host string, tombstone bool) {
	w.t.Helper()
	c := w.claim(id, host)
	c.Tombstone = tombstone
	w.put(id, jobs.FileStatus, c.Encode())
}

func (w *world) sentinel(id, host string, o jobs.Outcome) {
	w.t.Helper()
	c := w.claim(id, host)
	w.put(id, jobs.FileStatus, c.EncodeFinished(1, o))
}

// TestFilesOfAnotherHostAreRead checks that the files that an unreachable host has left in the
// shared directory are read through another host (X2). Only complete files of that host and this
// run count.
func TestFilesOfAnotherHostAreRead(t *testing.T) {
	w := newWorld(t)
	w.sentinel("1.1", "melon2", jobs.Outcome{Exit: 3, Started: 1, Ended: 2})
	w.put("1.1", jobs.FileErr, []byte("no such thing\n"))
	w.sentinel("2.1", "melon3", jobs.Outcome{})
	w.claimed("3.1", "melon2", false)
	w.claimed("4.1", "melon2", true)
	another := w.claim("5.1", "melon2")
	another.Run = "another"
	w.put("5.1", jobs.FileStatus, another.EncodeFinished(1, jobs.Outcome{}))
	w.put("6.1", jobs.FileStatus, []byte(w.content("1.1", jobs.FileStatus)))
	write(t, attempts.HeartbeatFile(w.runDir, "melon2"), "17 b\n")
	f := w.start(w.open())
	var ids []jobs.AttemptID
	for _, s := range []string{"1.1", "2.1", "3.1", "4.1", "5.1", "6.1", "7.1"} {
		ids = append(ids, attemptID(t, s))
	}
	f.send(&hosts.Inspect{Host: "melon2", Attempts: ids}, &hosts.Inspect{Host: "melon3", Attempts: ids})
	m := await(f, func(m *hosts.Inspected) bool { return m.Host == "melon2" })
	if len(m.Jobs) != 1 || m.Jobs[0].Attempt != ids[0] || m.Jobs[0].Outcome.Exit != 3 ||
		m.Jobs[0].Outcome.LastLine != "no such thing" {
		t.Errorf("ended: %+v", m.Jobs)
	}
	if !slices.Equal(m.Runs, ids[2:3]) || !slices.Equal(m.Never, ids[3:4]) || m.Heartbeat != "17 b" || m.Why != "" {
		t.Errorf("got %+v, want the running and the never started attempts, and the heartbeat", m)
	}
	m = await(f, func(m *hosts.Inspected) bool { return m.Host == "melon3" })
	if len(m.Jobs) != 1 || m.Jobs[0].Attempt != ids[1] || m.Heartbeat != "" {
		t.Errorf("of the other: %+v", m)
	}
	if _, err := os.Stat(w.file("7.1", jobs.FileStatus)); err == nil {
		t.Error("looking made a claim")
	}
}

// stuck is a disk that hangs until it is released.
type stuck struct {
	rundir.Disk
	asked, free chan struct{}
}

func (s stuck) Names(dir string) ([]string, error) {
	if filepath.Base(dir) == "attempts" {
		s.asked <- struct{}{}
		<-s.free
	}
	return s.Disk.Names(dir)
}

// TestHungDirectoryBlocksNobody checks that a hung directory blocks nobody. Of several queries
// about one host, the newest is answered. While an answer takes long, other queries are refused.
func TestHungDirectoryBlocksNobody(t *testing.T) {
	w := newWorld(t)
	w.sentinel("2.1", "melon2", jobs.Outcome{Exit: 2})
	r, out := io.Pipe()
	h := &helper{open: w.open(), dir: w.runDir, outbox: newOutbox(wire.NewWriter(out))}
	h.config.Run = w.run
	disk := stuck{rundir.OS, make(chan struct{}), make(chan struct{})}
	h.disk = disk
	in := wire.NewReader(r)
	next := func() *hosts.Inspected {
		t.Helper()
		m, err := in.Read()
		must(t, err)
		return m.(*hosts.Inspected)
	}
	one, two := attemptID(t, "1.1"), attemptID(t, "2.1")
	h.inspectShared(&hosts.Inspect{Host: "melon9"})
	<-disk.asked
	h.inspectShared(&hosts.Inspect{Host: "melon2", Attempts: []jobs.AttemptID{one}})
	h.inspectShared(&hosts.Inspect{Host: "melon3"})
	h.inspectShared(&hosts.Inspect{Host: "melon2", Attempts: []jobs.AttemptID{two}})
	h.inspectionQueue.mu.Lock()
	h.inspectionQueue.since = uptime() - inspectHang - 1
	h.inspectionQueue.mu.Unlock()
	h.inspectShared(&hosts.Inspect{Host: "melon4"})
	if m := next(); m.Host != "melon4" || !strings.Contains(m.Why, "does not answer") {
		t.Errorf("while it hangs: %+v", m)
	}
	disk.free <- struct{}{}
	for _, want := range []string{"melon9", "melon2", "melon3"} {
		if want != "melon9" {
			<-disk.asked
			disk.free <- struct{}{}
		}
		m := next()
		if m.Host != want || m.Why != "" || (len(m.Jobs) == 1) != (want == "melon2") {
			t.Errorf("%s: %+v", want, m)
		}
	}
	polltest.Until(t, "the helper has stopped reading", func() bool { // it sends the answer before
		h.inspectionQueue.mu.Lock()
		defer h.inspectionQueue.mu.Unlock()
		return h.inspectionQueue.since == 0
	})
	out.Close()
}

// list requests everything that the host has and returns it with the sizes of the pieces.
func (f *helperProcess) list() (all map[string]hosts.ProbedJob, pieces []int) {
	f.w.t.Helper()
	all = map[string]hosts.ProbedJob{}
	f.send(&hosts.List{Epoch: 1})
	for last := false; !last; {
		m := await(f, func(*hosts.Listed) bool { return true })
		if m.Why != "" {
			f.w.t.Errorf("the list may not be whole: %s", m.Why)
		}
		for _, p := range m.Jobs {
			if _, twice := all[p.Attempt.String()]; twice {
				f.w.t.Errorf("%s is listed twice", p.Attempt)
			}
			all[p.Attempt.String()] = p
		}
		last = m.Last
		pieces = append(pieces, len(m.Jobs))
	}
	return all, pieces
}

// TestHostListsEverythingAndChangesNothing checks that, after damage to the journal, a host lists
// everything that it has of the run, and changes nothing.
func TestHostListsEverythingAndChangesNothing(t *testing.T) {
	w := newWorld(t)
	w.claimed("11.1", "melon2", false)
	w.sentinel("12.1", "melon2", jobs.Outcome{})
	w.claimed("13.1", "melon1", false)
	w.claimed("14.1", "melon1", false)
	w.sentinel("14.1", "melon1", jobs.Outcome{Exit: 4})
	w.sentinel("15.1", "melon1", jobs.Outcome{Exit: 5}) // its claim was removed
	f := w.startWith(1)
	f.launch(job("1.1", "exit 3"))
	f.exit("1.1")
	f.hold("2.1", "exit 0", job("3.1", "exit 4"))
	f.answers("3.1", hosts.Buffered)
	f.probe("16.1") // makes a tombstone
	// The sentinel is kept on the host because something else is in its final place.
	must(t, os.Mkdir(w.file("17.1", jobs.FileStatus), 0o700))
	ended := w.claim("17.1", "melon1")
	write(t, w.spool().path(dirDone, "17.1"), string(ended.EncodeFinished(1, jobs.Outcome{Exit: 7})))
	// A helper died while it wrote this spec, and no supervisor was notified.
	write(t, w.spool().path(dirIn, specName(1, attemptID(t, "18.1"))), "DCS1 torn")

	all, _ := f.list()
	want := map[string]hosts.Answer{
		"1.1":  hosts.HasExited,
		"2.1":  hosts.IsRunning,
		"3.1":  hosts.Buffered,
		"13.1": hosts.Dead,
		"14.1": hosts.HasExited,
		"15.1": hosts.HasExited,
		"16.1": hosts.NeverStarted,
		"17.1": hosts.HasExited,
		"18.1": hosts.Unknown,
	}
	got := map[string]hosts.Answer{}
	for id, p := range all {
		got[id] = p.Answer
	}
	if !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	for id, exit := range map[string]int{"1.1": 3, "14.1": 4, "15.1": 5, "17.1": 7} {
		if o := all[id].Outcome; o == nil || o.Exit != exit {
			t.Errorf("%s: %+v, want exit %d", id, all[id], exit)
		}
	}
	if _, err := os.Stat(w.file("18.1", jobs.FileStatus)); err == nil {
		t.Error("listing made a claim")
	}
	os.Remove(w.file("17.1", jobs.FileStatus))
	w.release("2.1")
	f.exit("3.1")
}

// TestLongListIsSentInPieces checks that a long list is sent in pieces, and that a list that is
// requested while another is in progress is sent too.
func TestLongListIsSentInPieces(t *testing.T) {
	w := newWorld(t)
	const n = 2*listPiece + 7
	for i := 1; i <= n; i++ {
		w.claimed(fmt.Sprintf("%d.1", i), "melon1", true)
	}
	f := w.start(w.open())
	all, pieces := f.list()
	if len(all) != n || fmt.Sprint(pieces) != fmt.Sprint([]int{listPiece, listPiece, 7}) {
		t.Errorf("%d attempts in pieces of %v", len(all), pieces)
	}
	f.send(&hosts.List{Epoch: 1}, &hosts.List{Epoch: 1}, &hosts.List{Epoch: 1})
	for lists := 0; lists < 1; {
		if m := await(f, func(*hosts.Listed) bool { return true }); m.Last {
			lists++
		}
	}
}

// TestListOfNothingReadable checks that a list reports what could not be read, beside what was
// found.
func TestListOfNothingReadable(t *testing.T) {
	w := newWorld(t)
	f := w.start(w.open())
	attempts := filepath.Join(w.runDir, "attempts")
	must(t, os.RemoveAll(attempts))
	write(t, attempts, "in the way")
	f.send(&hosts.List{Epoch: 1})
	if m := await(f, func(*hosts.Listed) bool { return true }); !m.Last || m.Why == "" || len(m.Jobs) > 0 {
		t.Errorf("List of an unreadable directory: got %+v, want an empty last part with the reason", m)
	}
	must(t, os.Remove(attempts))
}

// TestReadingHelperTakesNothing checks that a helper that only reads returns complete outputs and
// sentinels (X2). It creates nothing and takes nothing from the helper of a dispatcher that runs at
// the same time.
func TestReadingHelperTakesNothing(t *testing.T) {
	w := newWorld(t)
	own := w.open()
	own.Nonce = "another"
	f := w.start(own)
	f.launch(job("1.1", "echo figure=7; exit 3"))
	f.exit("1.1")
	before := tree(t, w.workDir)

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
	if f := attempts.Decode(c.Bulk, w.run, attemptID(t, "1.1")); f.State != attempts.Finished || f.Host != "melon1" ||
		f.Outcome.Exit != 3 {
		t.Errorf("status %+v, want exit 3 on melon1", f)
	}
	if c := read("1.2", jobs.FileOut, 0, 10); !c.None || c.Size != -1 {
		t.Errorf("of an attempt that never was: %+v", c)
	}
	if c := read("1.1", "secret", 0, 10); c.None || c.Size != -1 || len(c.Bulk) != 0 {
		t.Errorf("another file: %+v", c)
	}
	if after := tree(t, w.workDir); !slices.Equal(before, after) {
		t.Errorf("files changed:\n%q\n%q", before, after)
	}
	g.send(&hosts.Launch{Epoch: 9, Jobs: []hosts.LaunchJob{job("2.1", "true")}})
	if err := g.wait(); err == nil || !strings.Contains(g.stderr.String(), "read-only helper") {
		t.Errorf("after a launch: %v, %q", err, g.stderr.String())
	}
	for how, end := range map[string]func(f *helperProcess){
		"a bye":               func(f *helperProcess) { f.send(&hosts.Bye{}) },
		"the end of the link": func(f *helperProcess) { f.in.Close() },
	} {
		g = w.start(reads)
		end(g)
		if err := g.wait(); err != nil {
			t.Errorf("after %s: %v, %q", how, err, g.stderr.String())
		}
	}
	f.launch(job("2.1", "exit 4"))
	f.exits("2.1", 4)
}

// TestHostWithoutFilesOfTheRunSaysSo checks that a host that has nothing of the run reports that
// and where it looked, and that a run's uid cannot be used to read elsewhere (X2).
func TestHostWithoutFilesOfTheRunSaysSo(t *testing.T) {
	w := newWorld(t)
	f := w.start(w.open()) // it shares the run directory
	f.endRun()
	must(t, os.Symlink(t.TempDir(), filepath.Join(w.workDir, "linked")))
	for name, c := range map[string]struct {
		open hosts.Open
		want string
	}{
		"other run": {hosts.Open{Run: "other", Host: "melon1", WorkDir: w.workDir}, "nothing of the run is in " +
			w.workDir},
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

// TestUnreadableFileIsAnError checks that a file that cannot be read to its end is an error, not a
// shorter piece.
func TestUnreadableFileIsAnError(t *testing.T) {
	broken := io.NewSectionReader(brokenAt(3), 0, 10)
	for name, c := range map[string]struct {
		m    hosts.Read
		want string
		size int64
	}{
		"before": {hosts.Read{Limit: 3}, "xxx", 10},
		"across": {hosts.Read{Limit: 8}, "xxx", -1},
		"behind": {hosts.Read{Offset: -2, Limit: 8}, "", -1},
	} {
		got := readPiece(&c.m, broken, 10, nil, false)
		if string(got.Bulk) != c.want || got.Size != c.size || (got.Why != "") != (c.size < 0) || got.None {
			t.Errorf("%s: got %+v, want %q of size %d", name, got, c.want, c.size)
		}
	}
}

// brokenAt is a file full of the letter x whose disk fails from this offset on.
type brokenAt int64

func (f brokenAt) ReadAt(b []byte, off int64) (n int, err error) {
	for ; n < len(b); n++ {
		if off+int64(n) >= int64(f) {
			return n, unix.EIO
		}
		b[n] = 'x'
	}
	return n, nil
}
