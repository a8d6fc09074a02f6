package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/hosts/helper/wire"
)

// handshake is all that a good far side says, with the binary there or not.
func handshake(nonce string, deploy bool, more ...hosts.Message) []byte {
	var b bytes.Buffer
	machine := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH]
	fmt.Fprintf(&b, "Welcome\n%s sys Linux %s\n", nonce, machine)
	if deploy {
		fmt.Fprintf(&b, "%s skip /var/tmp/dcs-1: is full\n%s need plain /tmp/dcs-1\n%s ok\n", nonce, nonce, nonce)
	} else {
		fmt.Fprintf(&b, "%s have /tmp/dcs-1\n", nonce)
	}
	fmt.Fprintf(&b, "%s go\n", nonce)
	hello := &hosts.Hello{Version: hosts.ProtocolVersion, BootID: "b", Dir: "/tmp/dcs-1"}
	wire.NewWriter(&b).Write(append([]hosts.Message{hello}, more...)...)
	return b.Bytes()
}

// memConnector connects over l and has size bytes to send as its program.
func memConnector(t *testing.T, l *memLink, size int) *Connector {
	path := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(path, bytes.Repeat([]byte("x"), size), 0o600); err != nil {
		t.Fatal(err)
	}
	b, err := loadBinary(path, "our own program")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.file.Close() })
	c := New(Options{Opener: l})
	c.binaries.own = func() (*binary, error) { return b, nil }
	return c
}

func memConnect(ctx context.Context, c *Connector) (hosts.Worker, error) {
	return c.Connect(ctx, &hosts.Host{Name: "melon4"}, &hosts.Open{Run: "r1", Host: "melon4"})
}

// A link that is cut after any number of bytes of the handshake gives an error
// of the right class, never a hang and never a worker: cut so that it is known,
// because the far end died, or in silence (then within the deadline).
func TestCutAtEachByte(t *testing.T) {
	cuts := []struct {
		name  string
		atEnd error
		wait  error
		class hosts.Class
	}{
		{"link gone", io.EOF, errors.New("connection lost"), hosts.Unreachable},
		{"reset", errors.New("connection reset by peer"), nil, hosts.Unreachable},
		{"far end died", io.EOF, &hosts.ExitError{Code: -1, Signal: "SIGKILL"}, hosts.Broken},
		{"silence", nil, nil, hosts.Unreachable},
	}
	for _, deploy := range []bool{false, true} {
		for _, cut := range cuts {
			t.Run(fmt.Sprintf("deploy %v %s", deploy, cut.name), func(t *testing.T) {
				whole := handshake(strings.Repeat("0", 32), deploy)
				for k := range whole {
					synctest.Test(t, func(t *testing.T) {
						l := newMemLink()
						l.script = func(n string) []byte { return handshake(n, deploy)[:k] }
						l.atEnd, l.wait = cut.atEnd, cut.wait
						start := time.Now()
						w, err := memConnect(t.Context(), memConnector(t, l, 1000))
						if w != nil || err == nil || hosts.ClassOf(err) != cut.class || !strings.HasPrefix(err.Error(), "melon4: ") {
							t.Fatalf("after %d bytes: %v, %v (%v)", k, w, err, hosts.ClassOf(err))
						}
						if took := time.Since(start); took > 2*time.Minute {
							t.Fatalf("after %d bytes: took %v", k, took)
						}
						select {
						case <-l.closed:
						default:
							t.Fatalf("after %d bytes: the link is left open", k)
						}
					})
				}
			})
		}
	}
}

// The whole handshake, uncut, gives a worker.
func TestWholeHandshake(t *testing.T) {
	for _, deploy := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			l := newMemLink()
			l.script = func(n string) []byte { return handshake(n, deploy, hosts.Beat{Seq: 3}) }
			w, err := memConnect(t.Context(), memConnector(t, l, 1000))
			if err != nil {
				t.Fatal(err)
			}
			if m := <-w.Reports(); m.(*hosts.Beat).Seq != 3 {
				t.Errorf("got %+v", m)
			}
			if err := w.KeepAlive(t.Context()); err == nil || err.Error() != "kept alive" {
				t.Errorf("KeepAlive did not ask the link: %v", err)
			}
			w.Close()
			if _, more := <-w.Reports(); more || w.Err() == nil {
				t.Errorf("after Close: %v, %v", more, w.Err())
			}
		})
	}
}

// Each step that never answers ends at its deadline, and the error names it.
func TestDeadlines(t *testing.T) {
	block := func(stop <-chan struct{}, _ []byte) error { <-stop; return errors.New("closed") }
	for _, c := range []struct {
		name, want string
		set        func(*memLink)
		after      time.Duration
	}{
		{"open", "while opening the link", func(l *memLink) {
			l.open = func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		}, 20 * time.Second},
		{"shell", "while waiting for the login shell", func(l *memLink) {}, 20 * time.Second},
		{"shell with words", `it printed "Press any key"`, func(l *memLink) {
			l.script = func(n string) []byte { return []byte("Press any key\n") }
		}, 20 * time.Second},
		{"upload", "while sending the helper to /tmp/dcs-1", func(l *memLink) {
			l.script = func(n string) []byte { return handshake(n, true) }
			l.take = block
		}, time.Minute},
		{"check", "while checking the helper in /tmp/dcs-1", func(l *memLink) {
			l.script = func(n string) []byte { b, _, _ := bytes.Cut(handshake(n, true), []byte(n+" ok")); return b }
		}, time.Minute},
		{"hello", "while waiting for the helper's hello", func(l *memLink) {
			l.script = func(n string) []byte { b, _, _ := bytes.Cut(handshake(n, false), []byte("dcs-wire")); return b }
		}, 20 * time.Second},
		{"open frame not taken", "while waiting for the helper's hello", func(l *memLink) {
			l.script = func(n string) []byte { return handshake(n, false) }
			l.take = block
		}, 20 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newMemLink()
				c.set(l)
				start := time.Now()
				_, err := memConnect(t.Context(), memConnector(t, l, 1000))
				if err == nil || hosts.ClassOf(err) != hosts.Unreachable || !strings.Contains(err.Error(), c.want) {
					t.Errorf("got %v, want %q", err, c.want)
				}
				if took := time.Since(start); took != c.after {
					t.Errorf("gave up after %v, want %v", took, c.after)
				}
			})
		})
	}
}

// A slow upload is no stalled upload: it may take as long as it makes progress.
func TestSlowUploadGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newMemLink()
		l.script = func(n string) []byte { return handshake(n, true) }
		l.take = func(stop <-chan struct{}, p []byte) error {
			slow := time.NewTimer(50 * time.Second)
			defer slow.Stop()
			if len(p) < 60<<10 {
				return nil
			}
			select {
			case <-slow.C:
				return nil
			case <-stop:
				return errors.New("closed")
			}
		}
		start := time.Now()
		w, err := memConnect(t.Context(), memConnector(t, l, 1<<20))
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took < 10*time.Minute {
			t.Errorf("took only %v", took)
		}
		w.Close()
	})
}

// The caller's ctx ends Connect at once, and counts no more afterwards.
func TestConnectHonoursContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(3*time.Second, cancel)
		l := newMemLink()
		start := time.Now()
		if _, err := memConnect(ctx, memConnector(t, l, 1000)); !errors.Is(err, context.Canceled) || time.Since(start) != 3*time.Second {
			t.Errorf("got %v after %v", err, time.Since(start))
		}
		ctx, cancel = context.WithCancel(t.Context())
		l = newMemLink()
		l.script = func(n string) []byte { return handshake(n, false) }
		w, err := memConnect(ctx, memConnector(t, l, 1000))
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		synctest.Wait()
		if err := w.Send(hosts.Ping{}); err != nil {
			t.Errorf("ctx of Connect still counts: %v", err)
		}
		w.Close()
	})
}
