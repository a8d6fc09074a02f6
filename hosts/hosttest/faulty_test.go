package hosttest_test

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/hosts/hosttest"
	"dcs-tui/hosts/locallink"
)

var melon = &hosts.Host{Name: "melon4", Link: "local"}

// Left alone, a faulty link keeps every promise of hosts.Link.
func TestFaultyConformance(t *testing.T) {
	hosttest.Conform(t, func(testing.TB) (hosts.Opener, *hosts.Host) {
		return hosttest.Faulty(locallink.Opener{}), melon
	})
}

// echo is a host in memory: what goes in comes out.
type echo struct{}

func (echo) Open(context.Context, *hosts.Host) (hosts.Link, error) { return echo{}, nil }
func (echo) KeepAlive(context.Context) error                       { return nil }
func (echo) Close() error                                          { return nil }
func (echo) Start(context.Context, string) (hosts.Stream, error) {
	r, w := io.Pipe()
	s := &echoStream{Reader: r, w: w}
	s.errs, s.errw = io.Pipe()
	return s, nil
}

type echoStream struct {
	io.Reader
	w    *io.PipeWriter
	errs *io.PipeReader
	errw *io.PipeWriter
}

func (s *echoStream) Stdin() io.WriteCloser { return s.w }
func (s *echoStream) Stderr() io.Reader     { return s.errs }
func (s *echoStream) Wait() error           { return nil }
func (s *echoStream) Close() error {
	s.w.CloseWithError(io.EOF)
	return s.errw.Close()
}

// world is an echoing host behind a Fault.
func world(t *testing.T) (*hosttest.Fault, hosts.Link, hosts.Stream) {
	t.Helper()
	f := hosttest.Faulty(echo{})
	l, err := f.Open(t.Context(), melon)
	if err != nil {
		t.Fatal(err)
	}
	s, err := l.Start(t.Context(), "cat")
	if err != nil {
		t.Fatal(err)
	}
	return f, l, s
}

func done(l hosts.Link, s hosts.Stream) {
	s.Close()
	l.Close()
	synctest.Wait()
}

// What passes comes late by the delay, each way, and so do answers.
func TestFaultyDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, l, s := world(t)
		defer done(l, s)
		f.Delay(50 * time.Millisecond)
		begin := time.Now()
		io.WriteString(s.Stdin(), "x")
		if d := time.Since(begin); d != 0 {
			t.Errorf("writing took %v", d)
		}
		if _, err := io.ReadFull(s, make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		if d := time.Since(begin); d != 100*time.Millisecond {
			t.Errorf("there and back took %v", d)
		}
		begin = time.Now()
		if err := l.KeepAlive(t.Context()); err != nil || time.Since(begin) != 50*time.Millisecond {
			t.Errorf("keep alive: %v after %v", err, time.Since(begin))
		}
	})
}

// In silence nothing comes and nothing fails; after it, what was held arrives,
// late: the launch into a cut link that DESIGN 5 warns of.
func TestFaultySilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, l, s := world(t)
		defer done(l, s)
		f.Silence()
		if _, err := io.WriteString(s.Stdin(), "launch"); err != nil {
			t.Fatal(err)
		}
		got := make(chan string)
		go func() {
			b := make([]byte, 6)
			io.ReadFull(s, b)
			got <- string(b)
		}()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		begin := time.Now()
		for what, err := range map[string]error{
			"keep alive": l.KeepAlive(ctx),
			"start":      func() error { _, err := l.Start(ctx, "cat"); return err }(),
			"open":       func() error { _, err := f.Open(ctx, melon); return err }(),
		} {
			if !errors.Is(err, context.DeadlineExceeded) || hosts.ClassOf(err) != hosts.Unreachable {
				t.Errorf("%s: %v", what, err)
			}
		}
		if d := time.Since(begin); d != time.Minute {
			t.Errorf("the first answer came after %v", d)
		}
		select {
		case b := <-got:
			t.Errorf("got %q in silence", b)
		default:
		}
		f.Heal()
		if b := <-got; b != "launch" {
			t.Errorf("got %q", b)
		}
	})
}

// What is held in silence never arrives once the link was closed.
func TestFaultyCloseInSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, l, s := world(t)
		f.Silence()
		io.WriteString(s.Stdin(), "launch")
		read := make(chan error)
		go func() { _, err := s.Read(make([]byte, 1)); read <- err }()
		synctest.Wait()
		l.Close()
		if err := <-read; err == nil {
			t.Error("read something")
		}
		f.Heal()
		if n, err := s.Read(make([]byte, 1)); n != 0 || err == nil {
			t.Errorf("after closing: %d bytes, %v", n, err)
		}
		done(l, s)
	})
}

// A loud cut ends every open link at once and nothing else.
func TestFaultyCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, l, s := world(t)
		defer done(l, s)
		ends := make(chan error)
		go func() { _, err := s.Read(make([]byte, 1)); ends <- err }()
		synctest.Wait()
		f.Cut()
		if err := <-ends; err == nil {
			t.Error("read something")
		}
		if err := l.KeepAlive(t.Context()); hosts.ClassOf(err) != hosts.Unreachable {
			t.Errorf("keep alive: %v", err)
		}
		if _, err := s.Stdin().Write([]byte("x")); err == nil {
			t.Error("wrote into a cut link")
		}
		again, err := f.Open(t.Context(), melon)
		if err != nil {
			t.Fatal(err)
		}
		if err := again.KeepAlive(t.Context()); err != nil {
			t.Error(err)
		}
		again.Close()
		if n := f.Opened(); n != 2 {
			t.Errorf("%d links opened", n)
		}
	})
}

// A planned cut comes in the middle of what is being sent.
func TestFaultyCutAfter(t *testing.T) {
	for _, loud := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			f, l, s := world(t)
			f.CutAfter(4, loud)
			got := make([]byte, 8)
			arrived := make(chan int)
			go func() { n, _ := io.ReadFull(s, got); arrived <- n }()
			io.WriteString(s.Stdin(), "123")
			synctest.Wait()
			io.WriteString(s.Stdin(), "456")
			synctest.Wait()
			if loud {
				if err := l.KeepAlive(t.Context()); err == nil {
					t.Error("the link lives on")
				}
			} else {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				if err := l.KeepAlive(ctx); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("keep alive: %v", err)
				}
				f.Heal()
				io.WriteString(s.Stdin(), "789")
				synctest.Wait()
				s.Stdin().Close()
				if n := <-arrived; string(got[:n]) != "1234789" {
					t.Errorf("arrived: %q", got[:n])
				}
			}
			done(l, s)
			if loud {
				<-arrived
			}
		})
	}
}

// A refusal is passed on in its own class.
func TestFaultyRefuse(t *testing.T) {
	f := hosttest.Faulty(echo{})
	f.Refuse(&hosts.Error{Host: "melon4", Class: hosts.Denied, Err: errors.New("no")})
	if _, err := f.Open(t.Context(), melon); hosts.ClassOf(err) != hosts.Denied {
		t.Errorf("got %v", err)
	}
	f.Refuse(errors.New("connection refused"))
	if _, err := f.Open(t.Context(), melon); hosts.ClassOf(err) != hosts.Unreachable {
		t.Errorf("got %v", err)
	}
	f.Refuse(nil)
	l, err := f.Open(t.Context(), melon)
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
}
