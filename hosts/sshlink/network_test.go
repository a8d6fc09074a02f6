package sshlink

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/hosts/hosttest"
	"dcs-tui/hosts/sshconf"
)

// listen gives every connection to serve and ends with the test.
func listen(t *testing.T, serve func(net.Conn)) *sshconf.Target {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { defer c.Close(); serve(c) })
		}
	})
	t.Cleanup(func() { l.Close(); wg.Wait() })
	return &sshconf.Target{Alias: "melon4", HostName: "127.0.0.1", Port: l.Addr().(*net.TCPAddr).Port, User: "me"}
}

// What can be wrong on the way to a host is Unreachable, each with its own
// words, so that the host is tried again with backoff (B1).
func TestUnreachable(t *testing.T) {
	s := hosttest.StartSSHD(t, hosttest.Options{})
	t.Run("refused", func(t *testing.T) {
		s.Stop()
		defer s.Start()
		mustFail(t, New(Options{}), target(s), hosts.Unreachable, "refuses connections", fmt.Sprint("sshd run there, on port ", s.Port))
	})
	t.Run("no such name", func(t *testing.T) {
		tg := target(s)
		tg.HostName = "no-such-host.invalid"
		mustFail(t, New(Options{}), tg, hosts.Unreachable, "no-such-host.invalid")
	})
	t.Run("closes at once", func(t *testing.T) {
		tg := listen(t, func(net.Conn) {})
		mustFail(t, New(Options{}), tg, hosts.Unreachable, "closed the connection before", "MaxStartups")
	})
	t.Run("is no ssh server", func(t *testing.T) {
		tg := listen(t, func(c net.Conn) {
			io.WriteString(c, strings.Repeat("HTTP/1.0 400 Bad Request ", 40)+"\r\n")
			io.Copy(io.Discard, c)
		})
		mustFail(t, New(Options{}), tg, hosts.Unreachable, "no ssh server", "port")
	})
	t.Run("says nothing", func(t *testing.T) {
		tg := listen(t, func(c net.Conn) { io.Copy(io.Discard, c) })
		tg.ConnectTimeout = 200 * time.Millisecond
		mustFail(t, New(Options{}), tg, hosts.Unreachable, "takes the connection and then says nothing", "200ms")
	})
	t.Run("says nothing, and the caller gives up", func(t *testing.T) {
		connected := make(chan struct{})
		tg := listen(t, func(c net.Conn) { close(connected); io.Copy(io.Discard, c) })
		ctx, cancel := context.WithCancel(patient(t))
		go func() { <-connected; cancel() }()
		_, err := New(Options{}).dialTarget(ctx, "melon4", tg)
		checkError(t, err, hosts.Unreachable, "canceled")
		if !errors.Is(err, context.Canceled) {
			t.Errorf("not context.Canceled: %v", err)
		}
	})
	t.Run("nothing in common", func(t *testing.T) {
		tg := target(s)
		tg.Ciphers = []string{"aes128-cbc"}
		mustFail(t, New(Options{}), tg, hosts.Misconfigured, "cipher", "Ciphers")
	})
}

// A host that sits behind several addresses is reached by the first that
// answers; when none does, every one is named. What needs a person stops the
// search (B5).
func TestSeveralAddresses(t *testing.T) {
	s := hosttest.StartSSHD(t, hosttest.Options{})
	o := opener(t, s)
	h := s.Host("melon4")
	h.Addresses = []string{"127.0.0.2", "localhost"} // sshd listens on 127.0.0.1 only
	l, err := o.Open(patient(t), h)
	if err != nil {
		t.Fatal(err)
	}
	l.Close()

	h.Addresses = []string{"127.0.0.2", "127.0.0.3"}
	_, err = o.Open(patient(t), h)
	checkError(t, err, hosts.Unreachable, "127.0.0.2:", "127.0.0.3:", "refuses connections")

	h.Addresses = []string{"127.0.0.1", "localhost"}
	writeFile(t, s.AuthorizedKeys(), "")
	_, err = o.Open(patient(t), h)
	checkError(t, err, hosts.Denied, "127.0.0.1")
	if strings.Contains(err.Error(), "localhost") {
		t.Errorf("the search went on: %v", err)
	}

	h.Addresses = nil
	_, err = o.Open(patient(t), h)
	checkError(t, err, hosts.Misconfigured, "no address")
}

// A burst of hosts behind one busy sshd all get in: no more dials are in the
// making at once than it takes (issue 2: 64 slots on one sshd lose nothing).
func TestBurst(t *testing.T) {
	s := hosttest.StartSSHD(t, hosttest.Options{}) // MaxStartups 10:30:100
	o := New(Options{})
	var wg sync.WaitGroup
	for range 40 {
		wg.Go(func() {
			l, err := o.dialTarget(patient(t), "melon4", target(s))
			if err != nil {
				t.Error(err)
				return
			}
			l.Close()
		})
	}
	wg.Wait()
}

// A server with fewer places than we take refuses some, and says it in words
// that lead there; later all get in.
func TestRefusedBurst(t *testing.T) {
	s := hosttest.StartSSHD(t, hosttest.Options{MaxStartups: "1"})
	o := New(Options{})
	// A stranger who has not logged in takes the only place.
	c, err := net.Dial("tcp", s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.ReadFull(c, make([]byte, 8)); err != nil {
		t.Fatal(err)
	}
	mustFail(t, o, target(s), hosts.Unreachable, "MaxStartups")
	c.Close()
	for {
		l, err := o.dialTarget(patient(t), "melon4", target(s))
		if err == nil {
			l.Close()
			return
		}
		if hosts.ClassOf(err) != hosts.Unreachable || t.Context().Err() != nil {
			t.Fatal(err)
		}
	}
}

// A server that hangs in the middle: a sign of life comes to its limit, a start
// too, and closing frees every call that is blocked.
func TestHungServer(t *testing.T) {
	s := hosttest.StartSSHD(t, hosttest.Options{})
	o := New(Options{})
	l, err := o.dialTarget(patient(t), "melon4", target(s))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	st, err := l.Start(patient(t), "exec cat")
	if err != nil {
		t.Fatal(err)
	}
	s.Pause()
	short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	checkError(t, l.KeepAlive(short), hosts.Unreachable, "no sign of life")
	_, err = l.Start(short, "true")
	checkError(t, err, hosts.Unreachable, "deadline")

	// It was only asleep.
	s.Resume()
	if err := l.KeepAlive(patient(t)); err != nil {
		t.Errorf("after it woke up: %v", err)
	}

	s.Pause()
	ends := make(chan error)
	go func() { ends <- l.KeepAlive(patient(t)) }()
	go func() { _, err := l.Start(patient(t), "true"); ends <- err }()
	go func() { _, err := st.Read(make([]byte, 1)); ends <- err }()
	go func() { ends <- st.Wait() }()
	go func() {
		for {
			if _, err := st.Stdin().Write(make([]byte, 1<<20)); err != nil {
				ends <- err
				return
			}
		}
	}()
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	for range 5 {
		select {
		case err := <-ends:
			if err == nil {
				t.Error("a call on a cut link succeeded")
			}
		case <-patient(t).Done():
			t.Fatal("a call is stuck")
		}
	}
	s.Resume()
}

// A server that never starts a command costs the link, not the caller: the call
// returns by the link's own limit although its context has none.
func TestStartHasALimit(t *testing.T) {
	s := hosttest.StartSSHD(t, hosttest.Options{})
	tg := target(s)
	l, err := New(Options{}).dialTarget(patient(t), "melon4", tg)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	l.(*link).limit = 100 * time.Millisecond
	s.Pause()
	defer s.Resume()
	_, err = l.Start(t.Context(), "true")
	checkError(t, err, hosts.Unreachable, "sshd did not start a command", "100ms")
	checkError(t, l.KeepAlive(t.Context()), hosts.Unreachable, "sshd did not start a command")
}

// When the server's processes die, the link says so by itself.
func TestServerDies(t *testing.T) {
	s := hosttest.StartSSHD(t, hosttest.Options{})
	l, err := New(Options{}).dialTarget(patient(t), "melon4", target(s))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	st, err := l.Start(patient(t), "exec cat")
	if err != nil {
		t.Fatal(err)
	}
	s.Drop()
	if _, err := io.ReadAll(st); err != nil {
		t.Logf("read: %v", err)
	}
	checkError(t, st.Wait(), hosts.Unreachable, "before it was known")
	checkError(t, l.KeepAlive(patient(t)), hosts.Unreachable, "lost")
	_, err = l.Start(patient(t), "true")
	checkError(t, err, hosts.Unreachable)
}
