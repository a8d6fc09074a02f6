//go:build linux

package remote

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"dcs-tui/hosts"
	"dcs-tui/hosts/helper/wire"
	"dcs-tui/jobs"
	"dcs-tui/jobs/attempts"
	"dcs-tui/jobs/rundir"
)

// put writes a file of an attempt.
func (w *world) put(id string, f jobs.File, content []byte) {
	w.t.Helper()
	if err := os.MkdirAll(filepath.Dir(w.file(id, f)), 0o700); err != nil {
		w.t.Fatal(err)
	}
	write(w.t, w.file(id, f), string(content))
}

// claimed leaves a claim of a process that is no more.
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

// X2: what a host that cannot be asked has left in the shared directory is read
// through another one. What counts is what that host wrote, whole, of this run.
func TestLookForAnotherHost(t *testing.T) {
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
	write(t, attempts.BeatFile(w.runDir, "melon2"), "17 b\n")
	f := w.start(w.open())
	var ids []jobs.AttemptID
	for _, s := range []string{"1.1", "2.1", "3.1", "4.1", "5.1", "6.1", "7.1"} {
		ids = append(ids, attemptID(t, s))
	}
	f.send(&hosts.Look{Host: "melon2", Attempts: ids}, &hosts.Look{Host: "melon3", Attempts: ids})
	m := await(f, func(m *hosts.Looked) bool { return m.Host == "melon2" })
	if len(m.Jobs) != 1 || m.Jobs[0].Attempt != ids[0] || m.Jobs[0].Outcome.Exit != 3 || m.Jobs[0].Outcome.LastLine != "no such thing" {
		t.Errorf("ended: %+v", m.Jobs)
	}
	if !slices.Equal(m.Runs, ids[2:3]) || !slices.Equal(m.Never, ids[3:4]) || m.Beat != "17 b" || m.Why != "" {
		t.Errorf("%+v", m)
	}
	m = await(f, func(m *hosts.Looked) bool { return m.Host == "melon3" })
	if len(m.Jobs) != 1 || m.Jobs[0].Attempt != ids[1] || m.Beat != "" {
		t.Errorf("of the other: %+v", m)
	}
	if _, err := os.Stat(w.file("7.1", jobs.FileStatus)); err == nil {
		t.Error("looking made a claim")
	}
	f.bye()
}

// stuck is a disk that answers when it is let go.
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

// DESIGN 5: a wedged directory holds nobody up. Of several questions about one
// host the newest is answered; while it hangs for long others are refused.
func TestLookWhileItHangs(t *testing.T) {
	w := newWorld(t)
	w.sentinel("2.1", "melon2", jobs.Outcome{Exit: 2})
	r, out := io.Pipe()
	h := &helper{open: w.open(), dir: w.runDir, out: newOutbox(wire.NewWriter(out))}
	h.cfg.Run = w.run
	disk := stuck{rundir.OS, make(chan struct{}), make(chan struct{})}
	h.looks.disk = disk
	in := wire.NewReader(r)
	next := func() *hosts.Looked {
		t.Helper()
		m, err := in.Read()
		if err != nil {
			t.Fatal(err)
		}
		return m.(*hosts.Looked)
	}
	one, two := attemptID(t, "1.1"), attemptID(t, "2.1")
	h.look(&hosts.Look{Host: "melon9"})
	<-disk.asked
	h.look(&hosts.Look{Host: "melon2", Attempts: []jobs.AttemptID{one}})
	h.look(&hosts.Look{Host: "melon3"})
	h.look(&hosts.Look{Host: "melon2", Attempts: []jobs.AttemptID{two}})
	h.looks.mu.Lock()
	h.looks.since = uptime() - looksHang - 1
	h.looks.mu.Unlock()
	h.look(&hosts.Look{Host: "melon4"})
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
	h.looks.mu.Lock()
	defer h.looks.mu.Unlock()
	if h.looks.since != 0 {
		t.Error("nothing is asked and something is still looked at")
	}
	out.Close()
}
