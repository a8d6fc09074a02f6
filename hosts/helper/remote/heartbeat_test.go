//go:build linux

package remote

import (
	"encoding/binary"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"dcs-tui/hosts"
	wire "dcs-tui/hosts/helper"
	"dcs-tui/internal/polltest"
)

// TestHelloReportsTheTimeZone checks that the hello reports the host's time zone, because quiet
// hours are in the host's local time (B7).
func TestHelloReportsTheTimeZone(t *testing.T) {
	const want = -32400
	t.Setenv("TZ", zoneFile(t, want))
	w := newWorld(t)
	if got := w.start(w.open()).hello.ZoneSeconds; got != want {
		t.Errorf("%d s ahead of UTC, want %d", got, want)
	}
}

// TestRuleOfPOSIXIsATimeZone checks that a host whose TZ is a rule of POSIX reports its offset in the
// hello and in heartbeats, and that one whose TZ means nothing says so.
func TestRuleOfPOSIXIsATimeZone(t *testing.T) {
	t.Run("rule", func(t *testing.T) {
		w := newWorld(t, "TZ=JST-9")
		f := w.start(w.open())
		if got := f.hello.ZoneSeconds; got != 9*3600 {
			t.Errorf("hello: got %d s, want 9 hours", got)
		}
		if b := await(f, func(*hosts.Heartbeat) bool { return true }); b.ZoneSeconds == nil ||
			*b.ZoneSeconds != 9*3600 {
			t.Errorf("heartbeat: got %v, want 9 hours", b.ZoneSeconds)
		}
	})
	t.Run("unknown", func(t *testing.T) {
		w := newWorld(t, "TZ=Mars/Olympus")
		if got := strings.Join(w.start(w.open()).hello.Warnings, "; "); !strings.Contains(got,
			`TZ="Mars/Olympus" is not a time zone`) {
			t.Errorf("got warnings %q", got)
		}
	})
}

// zoneFile writes a time zone file with a single offset (RFC 8536, version 1).
func zoneFile(t *testing.T, offset int) string {
	b := append([]byte("TZif"), make([]byte, 16)...)
	for _, count := range []uint32{0, 0, 0, 0, 1, 4} { // one type, four characters
		b = binary.BigEndian.AppendUint32(b, count)
	}
	b = binary.BigEndian.AppendUint32(b, uint32(int32(offset)))
	b = append(b, 0, 0, 'X', 'Y', 'Z', 0)
	path := filepath.Join(t.TempDir(), "zone")
	write(t, path, string(b))
	return path
}

// TestFirstHeartbeatFollowsTheHello checks that the first heartbeat follows the hello at once and
// is marked as early. Nothing starts on a host with a minimum of free resources before the first
// heartbeat.
func TestFirstHeartbeatFollowsTheHello(t *testing.T) {
	for _, interval := range []string{"1h", "100ms"} {
		w := newWorld(t, heartbeatEnv+"="+interval)
		f := w.start(w.open())
		if first := await(f, func(*hosts.Heartbeat) bool { return true }); !first.Early {
			t.Error("the first heartbeat does not say that it is early")
		}
		if interval == "100ms" {
			await(f, func(b *hosts.Heartbeat) bool { return !b.Early })
		}
	}
}

// TestIntervalOfHeartbeats checks that a helper sends heartbeats at the interval that the inventory
// has for its host.
func TestIntervalOfHeartbeats(t *testing.T) {
	w := newWorld(t, heartbeatEnv+"=1h")
	open := w.open()
	open.Heartbeat = 100 * time.Millisecond
	f := w.start(open)
	await(f, func(b *hosts.Heartbeat) bool { return !b.Early })
}

// hang makes one call of the next helper or its supervisors (role) hang until release is called.
// hangs waits for that call.
func hang(t *testing.T, w *world, role, op, path string) (hangs, release func()) {
	t.Helper()
	return hangNth(t, w, 1, role, op, path)
}

// hangNth is hang for the n-th of equal calls.
func hangNth(t *testing.T, w *world, n int, role, op, path string) (hangs, release func()) {
	p := &plan{Dir: t.TempDir(), Root: filepath.Dir(w.base), Call: callKey{role, op, path}, Nth: n, How: howHang}
	w.env = append(w.env, p.env())
	return func() { polltest.Until(t, p.String(), func() bool { return p.fired() != "" }) },
		func() { write(t, filepath.Join(p.Dir, "go"), "") }
}

// TestHeartbeatsWhileTheSpoolHangs checks that a spool on a hung file system does not make the host
// look dead (promise 5). The helper sends heartbeats and handles messages, and later continues
// where it was.
func TestHeartbeatsWhileTheSpoolHangs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	hangs, release := hang(t, w, "host0", "create", "#-#.#")
	f := w.start(w.open())
	f.launch(job("1.1", "exit 9"))
	hangs()
	for seq := int64(2); seq < 5; seq++ {
		f.send(&hosts.Ping{Seq: seq, LeaseUptime: uptime() + time.Hour})
		await(f, func(b *hosts.Heartbeat) bool { return b.Seq == seq })
	}
	release()
	f.exits("1.1", 9)
}

// TestPingsCountWhileTheSpoolHangs checks that a helper whose handling of messages hangs does not exit
// for lack of messages while it receives pings.
func TestPingsCountWhileTheSpoolHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		h := &helper{limits: defaultLimits}
		var passed atomic.Bool
		silence := time.AfterFunc(h.limits.silence, func() { passed.Store(true) })
		ended := make(chan error, 1)
		go func() { ended <- h.receiveMessages(wire.NewReader(r), make(chan hosts.Message, 256), silence, nil) }()
		out := wire.NewWriter(w)
		for seq := range int64(100) {
			time.Sleep(h.limits.silence / 2)
			must(t, out.Write(&hosts.Ping{Seq: seq}))
		}
		synctest.Wait()
		if passed.Load() || h.pings.Load() != 99 {
			t.Errorf("the last ping is %d; the silence has passed: %t", h.pings.Load(), passed.Load())
		}
		w.Close()
		must(t, <-ended)
	})
}

// TestHungSpoolIsReported checks that such a host reports that a file system does not respond, so
// that no more jobs are sent to it.
func TestHungSpoolIsReported(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, release := hang(t, w, "host0", "open", "/base/runs/r#/melon#")
	f := w.start(w.open())
	await(f, func(b *hosts.Heartbeat) bool { return b.FSDelay > time.Second })
	release()
	f.heartbeat(func(b *hosts.Heartbeat) bool { return b.FSDelay < time.Second })
}

// TestMeterOnAQuietHost checks that processes are not listed on a quiet host. After a quiet time,
// the CPU that all processes use counts as ours, so that no slot is given up by mistake. So it does after
// a supervisor was adopted, whose CPU use of the last hours is not that of the last seconds.
func TestMeterOnAQuietHost(t *testing.T) {
	at := uptime() - 10*time.Millisecond // this process is older
	roots := map[int]bool{os.Getpid(): true}
	for _, c := range []struct {
		name  string
		m     meter
		scans int
		ours  func(busy, ours float64) bool
	}{
		{
			"quiet",
			meter{measuredAt: at, busy: math.MaxUint64, scannedAt: at},
			0,
			func(_, ours float64) bool { return ours == 0 },
		},
		{
			"busy after quiet",
			meter{measuredAt: at, scannedAt: at - 1},
			1,
			func(busy, ours float64) bool { return busy > quietCores && ours == busy },
		},
		{
			"an adopted supervisor",
			meter{measuredAt: at, scannedAt: at},
			1,
			func(busy, ours float64) bool { return busy > quietCores && ours == busy },
		},
		{
			"busy",
			meter{measuredAt: at, scannedAt: at, treeTicks: map[int]uint64{os.Getpid(): 0}},
			1,
			func(busy, ours float64) bool { return busy > quietCores && ours < busy },
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			busy, ours := c.m.measure(roots)
			if known := c.name == "busy"; known != (len(c.m.rates) == 1) || known && c.m.rates[os.Getpid()] != ours {
				t.Errorf("rates %v of trees with %v cores", c.m.rates, ours)
			}
			if !c.ours(busy, ours) || c.m.scans != c.scans {
				t.Errorf("%v cores are busy, %v of them with ours, after %d listings; "+
					"want %d listings", busy, ours, c.m.scans, c.scans)
			}
		})
	}
}

// TestMeterSkipsForeignProcesses checks that the processes that a scan found outside of our trees are
// not read again, that new processes of a tree are, and that a supervisor that was first seen as
// foreign is found with its tree.
func TestMeterSkipsForeignProcesses(t *testing.T) {
	child := func() int {
		cmd := exec.Command("sleep", "1000")
		must(t, cmd.Start())
		t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
		return cmd.Process.Pid
	}
	self, first := os.Getpid(), child()
	roots := map[int]bool{self: true}
	m := meter{}
	m.trees(roots)
	second := child()
	read := scan(m.foreign)
	for pid := range m.foreign {
		if _, found := read[pid]; found {
			t.Errorf("%d is foreign and was read again", pid)
		}
	}
	if !m.foreign[os.Getppid()] {
		t.Error("our parent does not count as foreign")
	}
	for _, pid := range []int{self, first, second} {
		if m.foreign[pid] || read[pid].pid != pid {
			t.Errorf("%d belongs to the tree of %d and is not read", pid, self)
		}
	}
	m.foreign[1<<22+1] = true
	m.older = 0 // it lists all processes
	m.trees(roots)
	if m.foreign[1<<22+1] {
		t.Error("the number of a process that is gone is still skipped")
	}
	m.trees(map[int]bool{first: true}) // the root is no longer one, as if it had not been registered
	if !m.foreign[self] || !m.foreign[second] {
		t.Error("processes of no tree do not count as foreign")
	}
	if sums, _ := m.trees(roots); len(sums) != 1 || m.foreign[self] || m.foreign[second] {
		t.Errorf("sums %v: a supervisor that had not been registered is not found with its tree", sums)
	}
}

// TestMeterListsProcessesOnlyIfManyAreNew checks that a look reads only the processes outside of foreign
// trees and the new ones, that a number that may be reused is read again, and that a process that was
// not visible yet is found later.
func TestMeterListsProcessesOnlyIfManyAreNew(t *testing.T) {
	parent := os.Getppid()
	for _, c := range []struct {
		name                string
		older, last, newest int
		isForeign           bool // it was found at the last look
		lists, reads        bool
	}{
		{"no process was started", parent + 1, parent + 1, parent + 1, true, false, false},
		{"others were started", parent, parent, parent + 1, true, false, false},
		{"many others were started", parent, parent, parent + maxProbed + 1, true, true, false},
		{"it may be reused", parent - 1, parent - 1, parent, true, false, true},
		{"it was not visible at the last look", parent - 1, parent, parent + 1, false, false, true},
		{"it was seen at the last look", parent - 1, parent, parent + 1, true, false, false},
		{"it may be reused after the largest number", parent + 5, parent + 5, parent, true, true, true},
		{"it may be reused before the largest number", parent - 1, parent - 1, parent - 2, true, true, true},
		{"smaller numbers were reused", parent, parent, parent - 1, true, true, false},
		{"the newest number is not known", 0, 0, 0, true, true, false},
	} {
		m := meter{older: c.older, newest: c.last, foreign: map[int]bool{}}
		if c.isForeign {
			m.foreign[parent] = true
		}
		table := m.scan(c.newest)
		_, lists := table[1]
		_, reads := table[parent]
		if lists != c.lists || reads != c.reads || m.foreign[parent] == c.reads || m.newest != c.newest ||
			m.older != c.last {
			t.Errorf("%s: lists %t, reads the foreign process %t, it stays foreign %t; want %t, %t, %t", c.name, lists,
				reads, m.foreign[parent], c.lists, c.reads, !c.reads)
		}
	}
	if l, newest := loadAverages(); newest == 0 || l[0] < 0 {
		t.Errorf("load averages %v, newest process %d", l, newest)
	}
}

// TestHelperWaitsNotForEverForItsFirstMessage checks that a helper whose link was cut without
// notice before the dispatcher's first message exits by itself (promise 4).
func TestHelperWaitsNotForEverForItsFirstMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		defer w.Close()
		start := time.Now()
		_, err := firstMessage(wire.NewReader(r), defaultLimits.silence)
		if err == nil || !strings.Contains(err.Error(), "nothing received for 30s") ||
			time.Since(start) != defaultLimits.silence {
			t.Errorf("%v after %v", err, time.Since(start))
		}
	})
}
