package helper

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/internal/polltest"
	"dcs-tui/jobs"
)

func mustConnect(t *testing.T, l *memLink, more ...hosts.Message) hosts.Worker {
	t.Helper()
	l.script = func(n string) []byte { return handshake(n, false, more...) }
	w, err := memConnect(t.Context(), memConnector(t, l, 1000))
	must(t, err)
	return w
}

// launch returns a Launch of one job with a command of n bytes.
func launch(n int) *hosts.Launch {
	return &hosts.Launch{Jobs: []hosts.LaunchJob{{Attempt: jobs.AttemptID{Job: 1, N: 1},
		Command: strings.Repeat("x", n)}}}
}

// TestTooLargeMessageFailsAlone checks that only a message that is too large to be sent fails, and
// that the worker continues.
func TestTooLargeMessageFailsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := mustConnect(t, newMemLink())
		defer w.Close()
		if err := w.Send(launch(MaxPayload)); !errors.Is(err, ErrTooLarge) {
			t.Errorf("got %v", err)
		}
		if err := w.Send(launch(10)); err != nil {
			t.Errorf("the next one: %v", err)
		}
		if w.Err() != nil {
			t.Error(w.Err())
		}
	})
}

// TestReportsAreBounded checks that a dispatcher that reads no reports makes the host wait, and can
// still close.
func TestReportsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var many []hosts.Message
		for i := range 3 * maxReports {
			many = append(many, hosts.Heartbeat{Seq: int64(i)})
		}
		w := mustConnect(t, newMemLink(), many...)
		synctest.Wait()
		if n := len(w.Reports()); n != maxReports {
			t.Errorf("%d reports wait, want %d", n, maxReports)
		}
		w.Close()
		synctest.Wait()
		n := int64(0)
		for m := range w.Reports() {
			if m.(*hosts.Heartbeat).Seq != n {
				t.Fatalf("report %d is %+v", n, m)
			}
			n++
		}
	})
}

// TestHowWorkersEnd checks that the ends of a worker are distinguished: a lost link, a failed
// helper, and an orderly end.
func TestHowWorkersEnd(t *testing.T) {
	lost := errors.New("connection lost")
	for _, c := range []struct {
		name  string
		atEnd error
		wait  error
		bye   bool
		class hosts.Class
		want  string // "": no error
	}{
		{"cut", io.EOF, lost, false, hosts.Unreachable, "the link was cut: connection lost"},
		{"cut after bye", io.EOF, lost, true, hosts.Unreachable, "the link was cut"},
		{"reset", lost, nil, false, hosts.Unreachable, "connection lost"},
		{"killed", io.EOF, &hosts.ExitError{Code: -1, Signal: "SIGKILL"}, false, hosts.Broken,
			"the helper ended: ended by SIGKILL"},
		{"left by itself", io.EOF, nil, false, hosts.Broken, "the helper ended: exit code 0"},
		{"left after bye", io.EOF, nil, true, 0, ""},
		{"failed after bye", io.EOF, &hosts.ExitError{Code: 2}, true, hosts.Broken, "exit code 2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newMemLink()
				l.wait = c.wait
				w := mustConnect(t, l, hosts.Heartbeat{})
				<-w.Reports()
				synctest.Wait()
				if c.bye {
					must(t, w.Send(hosts.Bye{End: true}))
				}
				l.end(c.atEnd)
				for range w.Reports() {
				}
				err := w.Err()
				if c.want == "" {
					if err != nil {
						t.Errorf("ended with %v", err)
					}
					return
				}
				if err == nil || hosts.ClassOf(err) != c.class || !strings.Contains(err.Error(), c.want) {
					t.Errorf("ended with %v (%v), want %v, %q", err, hosts.ClassOf(err), c.class, c.want)
				}
			})
		})
	}
}

// TestInvalidStreamIsBroken checks that invalid data in the helper's stream is Broken, and that the
// error names the frame.
func TestInvalidStreamIsBroken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newMemLink()
		l.script = func(n string) []byte { return append(handshake(n, false), "Segmentation fault\n"...) }
		w, err := memConnect(t.Context(), memConnector(t, l, 1000))
		must(t, err)
		for range w.Reports() {
		}
		if err := w.Err(); hosts.ClassOf(err) != hosts.Broken || !errors.Is(err, ErrFormat) ||
			!strings.Contains(err.Error(), "Segmentation fault") {
			t.Errorf("ended with %v", err)
		}
	})
}

// TestOtherBuildIsRefused checks that a program of another build is refused with the advice to
// build it again.
func TestOtherBuildIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newMemLink()
		l.script = func(n string) []byte {
			b, _, _ := strings.Cut(string(handshake(n, false)), "dcs-wire")
			return []byte(b + "dcs-wire 1 12345678\n")
		}
		_, err := memConnect(t.Context(), memConnector(t, l, 1000))
		if hosts.ClassOf(err) != hosts.Misconfigured || !strings.Contains(err.Error(), "(build our own program again") {
			t.Errorf("got %v", err)
		}
	})
}

// TestStalledBootstrapEndsByItself checks that a link that is cut silently at any moment of the
// bootstrap leaves no waiting process on the host (promise 4). The test replaces the real timeout
// by a shorter one.
func TestStalledBootstrapEndsByItself(t *testing.T) {
	real, err := exec.LookPath("timeout")
	if err != nil {
		t.Skip("no timeout(1) here: nothing bounds it")
	}
	for _, c := range []struct {
		name         string
		lines        bool   // the five lines are sent
		last, upload string // the last answer before the link is cut, and the data sent after it
	}{
		{"before the lines", false, "sys", ""},
		{"within the lines", false, "sys", "hash\n2000"},
		{"before the upload", true, "need", ""},
		{"within the upload", true, "need", "plain 200000\n" + strings.Repeat("x", 70000)},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			// The first call of timeout lets the lines arrive, however slow this machine is.
			first := filepath.Join(dir, "first")
			file(t, filepath.Join(dir, "timeout"), "#!/bin/sh\nshift\nmkdir "+first+" 2>/dev/null && exec "+real+
				" 600 \"$@\"\nexec "+real+" 1 \"$@\"\n")
			if !c.lines {
				must(t, os.Mkdir(first, 0o700))
			}
			cmd := exec.Command("/bin/sh", "-c", bootstrap("N0"))
			cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"))
			in, err1 := cmd.StdinPipe()
			out, err2 := cmd.StdoutPipe()
			if err := cmd.Start(); err1 != nil || err2 != nil || err != nil {
				t.Fatal(err1, err2, err)
			}
			if base := filepath.Join(dir, "base"); c.lines {
				io.WriteString(in, "hash\n200000\n"+filepath.Join(dir, "work")+"\nrun/host\n"+base+"\n")
			}
			answers := bufio.NewReader(out)
			for line, err := "", error(nil); !strings.HasPrefix(line, "N0 "+c.last); {
				if line, err = answers.ReadString('\n'); err != nil {
					t.Fatalf("got %q, %v; want the last answer", line, err)
				}
			}
			io.WriteString(in, c.upload)
			// A process that is left would hold the output open. The input stays open.
			if rest, err := io.ReadAll(answers); err != nil || len(rest) > 0 {
				t.Errorf("got %q, %v; want the end of the output", rest, err)
			}
			if err := cmd.Wait(); err == nil {
				t.Error("it ended as if all were well")
			}
		})
	}
}

// TestMailboxesAreBounded checks that hosts that read nothing cost a bounded amount of memory,
// however many there are. A host can always be sent one message, and bytes that were read free
// space for other hosts.
func TestMailboxesAreBounded(t *testing.T) {
	var all atomic.Int64
	const others = maxUnsent - 2<<20
	all.Store(others)
	full, fresh := newMailbox(&all), newMailbox(&all)
	for i, c := range []struct {
		box   *mailbox
		bytes int
		want  bool
	}{
		{full, 4 << 20, true},
		{full, 1, false},
		{fresh, maxUnsentSure / 2, true},
		{fresh, maxUnsentSure / 2, true},
		{fresh, 1, false},
	} {
		if _, err := c.box.Write(make([]byte, c.bytes)); (err == nil) != c.want {
			t.Errorf("write %d of %d bytes: %v, want success %v", i, c.bytes, err, c.want)
		}
	}
	must(t, full.flush(io.Discard))
	if _, err := fresh.Write([]byte("x")); err != nil {
		t.Errorf("after another host has read: %v", err)
	}
	fresh.close(errClosed)
	if n := all.Load(); n != others {
		t.Errorf("%d bytes are still counted", n-others)
	}
}

// TestFullMailboxCloses checks that a host that accepts nothing never blocks Send: if too much is
// waiting, the worker closes with an error.
func TestFullMailboxCloses(t *testing.T) {
	polltest.Long(t)
	synctest.Test(t, func(t *testing.T) {
		l := newMemLink()
		first := true
		l.take = func(stop <-chan struct{}, p []byte) error {
			if first { // Open
				first = false
				return nil
			}
			<-stop
			return errors.New("closed")
		}
		w := mustConnect(t, l)
		start, sent := time.Now(), 0
		var err error
		for ; err == nil && sent < 100; sent++ {
			err = w.Send(launch(4 << 20))
		}
		if err == nil || !strings.Contains(err.Error(), "does not read what is sent") || sent < 7 {
			t.Errorf("%d sends, then %v", sent, err)
		}
		if time.Since(start) != 0 {
			t.Errorf("Send waited %v", time.Since(start))
		}
		for range w.Reports() {
		}
		if hosts.ClassOf(w.Err()) != hosts.Unreachable {
			t.Errorf("ended with %v", w.Err())
		}
	})
}

// TestSilenceIsNoEnd checks that a host that is sent nothing for hours keeps its worker: the worker
// has no timer of its own.
func TestSilenceIsNoEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := mustConnect(t, newMemLink())
		defer w.Close()
		select {
		case m := <-w.Reports():
			t.Errorf("got %v, %v", m, w.Err())
		case <-time.After(10 * time.Hour):
		}
	})
}
