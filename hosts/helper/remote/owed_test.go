//go:build linux

package remote

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// wedge makes the start of an attempt hang, as on a file system that does not
// answer, until the function that is returned is called.
func (w *world) wedge(id string) (free func()) {
	w.t.Helper()
	out := w.file(id, jobs.FileOut)
	if err := os.MkdirAll(filepath.Dir(out), 0o700); err != nil {
		w.t.Fatal(err)
	}
	if err := unix.Mkfifo(out, 0o600); err != nil { // opening it for writing waits for a reader
		w.t.Fatal(err)
	}
	return func() {
		f, err := os.OpenFile(out, os.O_RDONLY|unix.O_NONBLOCK, 0)
		if err != nil {
			w.t.Fatal(err)
		}
		w.t.Cleanup(func() { f.Close() })
	}
}

// Promise 1: the report of a job that has ended waits for the start of the next
// one in its slot only as long as that does not hang.
func TestOwedReportIsNotHeldUp(t *testing.T) {
	w := newWorld(t)
	gate, ready := w.fifo("gate"), w.fifo("ready")
	free := w.wedge("2.1")
	open := w.open()
	open.Slots = 1
	f := w.start(open)
	f.launch(job("1.1", "echo up > "+ready+"; read x < "+gate+"; exit 3"), job("2.1", "exit 4"))
	w.hear(ready)
	if p := f.probe("2.1"); p.Answer != hosts.Buffered { // its token waits when the first one ends
		t.Fatalf("2.1 is %v", p.Answer)
	}
	w.say(gate)
	if o := f.exit("1.1"); o.Exit != 3 {
		t.Errorf("1.1: %+v, want exit 3", o)
	}
	free()
	if o := f.exit("2.1"); o.Exit != 4 {
		t.Errorf("2.1: %+v, want exit 4", o)
	}
	f.bye()
}

// The same when the run is ended meanwhile.
func TestByeWhileOwing(t *testing.T) {
	w := newWorld(t)
	gate, ready := w.fifo("gate"), w.fifo("ready")
	free := w.wedge("2.1")
	open := w.open()
	open.Slots = 1
	f := w.start(open)
	f.launch(job("1.1", "echo up > "+ready+"; read x < "+gate), job("2.1", "exit 4"))
	w.hear(ready)
	f.probe("2.1")
	w.say(gate)
	f.send(&hosts.Bye{End: true})
	f.exit("1.1")
	free()
	if err := f.wait(); err != nil {
		t.Errorf("the helper ended with %v: %q", err, f.stderr.String())
	}
	if _, err := os.Stat(w.spool().dir); !os.IsNotExist(err) {
		t.Errorf("the spool is still there: %v", err)
	}
}

// Promise 1: a supervisor that died before it paid is found by its taken spec;
// the outcome is the sentinel's.
func TestDiedWhileOwing(t *testing.T) {
	w := newWorld(t)
	f := w.start(w.open())
	f.launch(job("1.1", "exit 3"))
	f.exit("1.1")
	f.kill9()
	write(t, w.spool().path(dirTaken, takenName(attemptID(t, "1.1"), holder{1, 1 << 22, 3})), "")
	g := w.start(w.open())
	if o := g.exit("1.1"); o.Exit != 3 {
		t.Errorf("%+v, want exit 3", o)
	}
	g.bye()
}

// Promise 1: what is over is found to be, though its supervisor lives, still
// holds it, and runs something else.
func TestHeldButOver(t *testing.T) {
	w := newWorld(t)
	gate, ready := w.fifo("gate"), w.fifo("ready")
	open := w.open()
	open.Slots = 1
	f := w.start(open)
	f.launch(job("1.1", "echo $PPID; exit 3"))
	f.exit("1.1")
	f.pending = nil
	p, _ := readProc(atoi(t, w.content("1.1", jobs.FileOut)))
	held := w.spool().path(dirTaken, takenName(attemptID(t, "1.1"), holder{1, p.pid, p.start}))
	write(t, held, "")
	f.launch(job("2.1", "echo $PPID > "+ready+"; read x < "+gate))
	if pid := w.hear(ready); pid != strconv.Itoa(p.pid) {
		t.Fatalf("2.1 runs under %s, not under %d", pid, p.pid)
	}
	if o := f.exit("1.1"); o.Exit != 3 {
		t.Errorf("%+v, want exit 3", o)
	}
	if a := f.probe("2.1").Answer; a != hosts.IsRunning {
		t.Errorf("2.1 is %v, want running", a)
	}
	if _, err := os.Stat(held); !os.IsNotExist(err) {
		t.Errorf("it is still held: %v", err)
	}
	w.say(gate)
	f.exit("2.1")
	f.bye()
}

// bareSlot is a supervisor within the test, without a loop: it owes the report of
// 1.1. ring is the pipe of its tokens, told that of its reports.
func (w *world) bareSlot() (s *slot, owe *owed, ring int, told *os.File) {
	t := w.t
	t.Helper()
	sp, err := makeSpool(w.base, w.run, "melon1")
	if err != nil {
		t.Fatal(err)
	}
	var pipe, reports [2]int
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	if err := unix.Pipe2(reports[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		t.Fatal(err)
	}
	told = os.NewFile(uintptr(reports[0]), "reports")
	told.SetReadDeadline(time.Now().Add(bound))
	s = &slot{spool: sp, reports: reports[1], tokens: openTokens(pipe[0]), by: holder{1, 2, 3}}
	t.Cleanup(func() {
		told.Close()
		for _, fd := range []int{pipe[0], pipe[1], reports[1], s.tokens.quick, s.in, s.taken, s.free} {
			unix.Close(fd)
		}
	})
	for fd, dir := range map[*int]string{&s.in: dirIn, &s.taken: dirTaken, &s.free: dirFree} {
		if *fd, err = openat(unix.AT_FDCWD, sp.path(dir), unix.O_RDONLY|unix.O_DIRECTORY, 0); err != nil {
			t.Fatal(err)
		}
	}
	id := attemptID(t, "1.1")
	owe = &owed{&attempt{id: id, taken: takenName(id, s.by)}, &report{kind: repExited, attempt: id}}
	write(t, sp.path(dirTaken, owe.a.taken), "")
	s.debt.cur.Store(owe)
	return s, owe, pipe[1], told
}

// What is owed is paid though the loop does not come to it any more.
func TestPaidByTimer(t *testing.T) {
	w := newWorld(t)
	s, owe, _, told := w.bareSlot()
	if got := s.debt.await(s); got != owe {
		t.Errorf("owed is %v", got)
	}
	buf := make([]byte, 4096)
	n, err := told.Read(buf)
	if err != nil || !strings.HasPrefix(string(buf[:n]), "E 1.1 ") || s.debt.cur.Load() != nil {
		t.Errorf("reported %q, %v; owed is %v", buf[:n], err, s.debt.cur.Load())
	}
	if _, err := os.Stat(s.spool.path(dirFree, "1.1")); err != nil {
		t.Errorf("the spec was not let go: %v", err)
	}
}

// What is owed is paid before the loop waits for a token, and not before a
// token that is there.
func TestPaysBeforeItWaits(t *testing.T) {
	w := newWorld(t)
	s, owe, ring, told := w.bareSlot()
	next := attemptID(t, "2.1")
	unix.Write(ring, appendToken(nil, 1, next))
	if _, got, ok := s.nextToken(); !ok || got != next || s.debt.cur.Load() != owe {
		t.Errorf("token %v %v; owed is %v", got, ok, s.debt.cur.Load())
	}
	done := make(chan jobs.AttemptID)
	go func() {
		_, got, _ := s.nextToken()
		done <- got
	}()
	buf := make([]byte, 4096)
	n, err := told.Read(buf) // comes while the other waits
	if err != nil || !strings.HasPrefix(string(buf[:n]), "E 1.1 ") {
		t.Errorf("reported %q, %v", buf[:n], err)
	}
	if _, err := os.Stat(s.spool.path(dirFree, "1.1")); err != nil {
		t.Errorf("the spec was not let go: %v", err)
	}
	unix.Write(ring, appendToken(nil, 1, next))
	if got := <-done; got != next {
		t.Errorf("token %v, want %v", got, next)
	}
}
