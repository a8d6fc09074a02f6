package link

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/hosts/hosttest"
	"dcs-tui/internal/polltest"
)

// listen passes every connection to serve and ends with the test.
func listen(t *testing.T, serve func(net.Conn)) *Target {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
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
	return &Target{Alias: "melon4", HostName: "127.0.0.1", Port: l.Addr().(*net.TCPAddr).Port, User: "me"}
}

// TestNetworkFaultsAreUnreachable checks that every network fault on the way to a host is
// Unreachable, with its own message, so that the host is tried again with backoff (B1).
func TestNetworkFaultsAreUnreachable(t *testing.T) {
	s := hosttest.StartSSHD(t, hosttest.Options{})
	t.Run("refused", func(t *testing.T) {
		s.Stop()
		defer func() { must(t, s.Start()) }()
		mustFail(t, NewSSH(SSHOptions{}), target(s), hosts.Unreachable, "refuses connections",
			fmt.Sprint("sshd run there, on port ", s.Port))
	})
	t.Run("no such name", func(t *testing.T) {
		tg := target(s)
		tg.HostName = "no-such-host.invalid"
		mustFail(t, NewSSH(SSHOptions{}), tg, hosts.Unreachable, "no-such-host.invalid")
	})
	t.Run("closes at once", func(t *testing.T) {
		tg := listen(t, func(net.Conn) {})
		mustFail(t, NewSSH(SSHOptions{}), tg, hosts.Unreachable, "closed the connection before", "MaxStartups")
	})
	t.Run("is no ssh server", func(t *testing.T) {
		tg := listen(t, func(c net.Conn) {
			io.WriteString(c, strings.Repeat("HTTP/1.0 400 Bad Request ", 40)+"\r\n")
			io.Copy(io.Discard, c)
		})
		mustFail(t, NewSSH(SSHOptions{}), tg, hosts.Unreachable, "no ssh server", "port")
	})
	t.Run("says nothing", func(t *testing.T) {
		tg := listen(t, func(c net.Conn) { io.Copy(io.Discard, c) })
		const silence = "accepts the connection and then sends nothing"
		// A slow machine may need longer than the first limit to connect.
		for tg.ConnectTimeout = 200 * time.Millisecond; tg.ConnectTimeout < time.Minute; tg.ConnectTimeout *= 2 {
			l, err := NewSSH(SSHOptions{}).dialTarget(contextUnlessStuck(t), "melon4", tg)
			if err == nil {
				l.Close()
				t.Fatal("the link was opened")
			}
			if strings.Contains(err.Error(), silence) || 2*tg.ConnectTimeout > time.Minute {
				checkError(t, err, hosts.Unreachable, silence, tg.ConnectTimeout.String())
				break
			}
		}
	})
	t.Run("says nothing, and the caller gives up", func(t *testing.T) {
		connected := make(chan struct{})
		tg := listen(t, func(c net.Conn) { close(connected); io.Copy(io.Discard, c) })
		ctx, cancel := context.WithCancel(contextUnlessStuck(t))
		go func() { <-connected; cancel() }()
		_, err := NewSSH(SSHOptions{}).dialTarget(ctx, "melon4", tg)
		checkError(t, err, hosts.Unreachable, "canceled")
		if !errors.Is(err, context.Canceled) {
			t.Errorf("not context.Canceled: %v", err)
		}
	})
	t.Run("nothing in common", func(t *testing.T) {
		tg := target(s)
		tg.Ciphers = []string{"aes128-cbc"}
		mustFail(t, NewSSH(SSHOptions{}), tg, hosts.Misconfigured, "cipher", "Ciphers")
	})
}

// TestFirstAddressThatAnswersIsUsed checks that a host with several addresses is reached by the
// first that answers. If none does, the error names every address. An error that needs a person
// ends the search (B5).
func TestFirstAddressThatAnswersIsUsed(t *testing.T) {
	s := hosttest.StartSSHD(t, hosttest.Options{})
	o := opener(t, s)
	h := s.Host("melon4")
	open := func(addresses ...string) error {
		h.Addresses = addresses
		l, err := o.Open(contextUnlessStuck(t), h)
		if err == nil {
			l.Close()
		}
		return err
	}
	if err := open("127.0.0.2", "localhost"); err != nil { // sshd listens on 127.0.0.1 only
		t.Fatal(err)
	}
	checkError(t, open("127.0.0.2", "127.0.0.3"), hosts.Unreachable, "127.0.0.2:", "127.0.0.3:", "refuses connections")
	write(t, s.AuthorizedKeys(), "")
	err := open("127.0.0.1", "localhost")
	checkError(t, err, hosts.Denied, "127.0.0.1")
	if strings.Contains(err.Error(), "localhost") {
		t.Errorf("the search went on: %v", err)
	}
	checkError(t, open(), hosts.Misconfigured, "no address")
}

// TestNamesAreResolvedAgain checks that a name is resolved again for each dial, so that a host that
// has moved is found.
func TestNamesAreResolvedAgain(t *testing.T) {
	s := hosttest.StartSSHD(t, hosttest.Options{})
	server, err := net.ListenPacket("udp", "127.0.0.1:0")
	must(t, err)
	var address atomic.Value
	address.Store([]byte{127, 0, 0, 2}) // sshd listens on 127.0.0.1 only
	answered := make(chan bool)
	go func() {
		defer close(answered)
		q := make([]byte, 512)
		for {
			n, from, err := server.ReadFrom(q)
			if err != nil {
				return
			}
			// Header, name, type and class (RFC 1035, 4.1).
			end := 12 + bytes.IndexByte(q[12:n], 0) + 5
			reply := slices.Clone(q[:end])
			copy(reply[2:], []byte{0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0})
			if reply[end-3] == 1 { // type A
				reply[7] = 1
				reply = append(reply, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4)
				reply = append(reply, address.Load().([]byte)...)
			}
			server.WriteTo(reply, from)
		}
	}()
	system := net.DefaultResolver
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", server.LocalAddr().String())
	}}
	defer func() {
		net.DefaultResolver = system
		server.Close()
		<-answered
	}()
	o := opener(t, s)
	h := s.Host("melon4")
	h.Addresses = []string{"melon4.test."}
	_, err = o.Open(contextUnlessStuck(t), h)
	checkError(t, err, hosts.Unreachable, "refuses connections")
	address.Store([]byte{127, 0, 0, 1})
	write(t, s.KnownHosts, strings.ReplaceAll(read(t, s.KnownHosts), "127.0.0.1", "melon4.test."))
	l, err := o.Open(contextUnlessStuck(t), h)
	must(t, err)
	l.Close()
}

// TestNameOfTheSystem checks that a host is reached by a name that only the name service of the system
// knows, such as one of mDNS or LDAP, and that an unknown name is still an error of its own.
func TestNameOfTheSystem(t *testing.T) {
	s := hosttest.StartSSHD(t, hosttest.Options{})
	getent := program(t, "getent",
		"#!/bin/sh\n[ \"$*\" = 'ahosts ws01.invalid' ] && printf '127.0.0.2 STREAM\\n127.0.0.1 STREAM\\n'\n")
	t.Setenv("PATH", filepath.Dir(getent)+":"+os.Getenv("PATH"))
	tg := target(s)
	tg.HostName, tg.HostKeyAlias = "ws01.invalid", "alias"
	tg.KnownHosts = []string{write(t, filepath.Join(t.TempDir(), "known_hosts"),
		strings.ReplaceAll(read(t, s.KnownHosts), fmt.Sprintf("[127.0.0.1]:%d", s.Port), "alias"))}
	if got := mustRun(t, NewSSH(SSHOptions{}), tg, "echo reached"); got != "reached\n" {
		t.Errorf("got %q", got)
	}
	tg.HostName = "ws02.invalid"
	_, err := NewSSH(SSHOptions{}).dialTarget(contextUnlessStuck(t), "melon4", tg)
	if err == nil || hosts.ClassOf(err) != hosts.Unreachable || !strings.Contains(err.Error(), "ws02.invalid") {
		t.Errorf("got %v, want an error about ws02.invalid", err)
	}
}

// TestManyHostsBehindOneServer checks that 40 hosts behind one sshd with default limits are all
// reached. A busy sshd counts a connection as new for a while after its login, so it may drop one.
// That must be an error that a second try can cure. TestDialsToAnAddressAreLimited checks how many
// dials are in progress at once.
func TestManyHostsBehindOneServer(t *testing.T) {
	polltest.Long(t)
	s := hosttest.StartSSHD(t, hosttest.Options{}) // MaxStartups 10:30:100
	o := NewSSH(SSHOptions{})
	var wg sync.WaitGroup
	for range 40 {
		wg.Go(func() { dialAgain(t, o, target(s)) })
	}
	wg.Wait()
}

// TestDroppedAtFirst checks that a host is reached whose sshd drops the first connections.
func TestDroppedAtFirst(t *testing.T) {
	s := hosttest.StartSSHD(t, hosttest.Options{})
	var dials atomic.Int32
	front := listen(t, func(c net.Conn) {
		if dials.Add(1) <= maxCuts {
			return
		}
		back, err := net.Dial("tcp", s.Addr())
		if err != nil {
			t.Error(err)
			return
		}
		defer back.Close()
		go func() { io.Copy(back, c); back.Close() }()
		io.Copy(c, back)
	})
	tg := target(s)
	tg.Port, tg.KnownHosts = front.Port, []string{filepath.Join(t.TempDir(), "known_hosts")}
	write(
		t, tg.KnownHosts[0], strings.ReplaceAll(read(t, s.KnownHosts), strconv.Itoa(s.Port), strconv.Itoa(front.Port)),
	)
	if got := mustRun(t, NewSSH(SSHOptions{}), tg, "echo reached"); got != "reached\n" {
		t.Errorf("got %q", got)
	}
}

// TestServerThatRefusesSomeConnections checks that a server that allows fewer unauthenticated
// connections than we open refuses some, with a message that points to the cause, and that all
// hosts connect later.
func TestServerThatRefusesSomeConnections(t *testing.T) {
	s := hosttest.StartSSHD(t, hosttest.Options{Config: []string{"MaxStartups 1"}})
	o := NewSSH(SSHOptions{})
	// Another client that has not logged in takes the only place.
	c, err := net.Dial("tcp", s.Addr())
	must(t, err)
	defer c.Close()
	if _, err := io.ReadFull(c, make([]byte, 8)); err != nil {
		t.Fatal(err)
	}
	mustFail(t, o, target(s), hosts.Unreachable, "MaxStartups")
	c.Close()
	dialAgain(t, o, target(s))
}

// TestCallsEndAtTheirLimitsIfAServerHangs checks that, if a server hangs, a heartbeat and a start
// end at their limits, and that closing the link unblocks every call.
func TestCallsEndAtTheirLimitsIfAServerHangs(t *testing.T) {
	s := hosttest.StartSSHD(t, hosttest.Options{})
	o := NewSSH(SSHOptions{})
	l := dial(t, o, target(s))
	st := start(t, l, "exec cat")
	s.Pause()
	short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	checkError(t, l.KeepAlive(short), hosts.Unreachable, "sshd does not respond")
	_, err := l.Start(short, "true")
	checkError(t, err, hosts.Unreachable, "deadline")

	// The server was only suspended.
	s.Resume()
	if err := l.KeepAlive(contextUnlessStuck(t)); err != nil {
		t.Errorf("after it woke up: %v", err)
	}

	s.Pause()
	ends := make(chan error)
	go func() { ends <- l.KeepAlive(contextUnlessStuck(t)) }()
	go func() { _, err := l.Start(contextUnlessStuck(t), "true"); ends <- err }()
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
		case <-contextUnlessStuck(t).Done():
			t.Fatal("a call is stuck")
		}
	}
	s.Resume()
}

// TestStartHasALimit checks that a server that never starts a command does not block the caller.
// The call returns at the link's own limit, although its context has none, and the link ends.
func TestStartHasALimit(t *testing.T) {
	s := hosttest.StartSSHD(t, hosttest.Options{})
	l := dial(t, NewSSH(SSHOptions{}), target(s))
	l.(*sshLink).timeout = 100 * time.Millisecond
	s.Pause()
	defer s.Resume()
	_, err := l.Start(t.Context(), "true")
	checkError(t, err, hosts.Unreachable, "sshd did not start a command", "100ms")
	checkError(t, l.KeepAlive(t.Context()), hosts.Unreachable, "sshd did not start a command")
}

// TestLinkEndsWithItsServer checks that the link ends by itself when the server's processes die.
func TestLinkEndsWithItsServer(t *testing.T) {
	s := hosttest.StartSSHD(t, hosttest.Options{})
	l := dial(t, NewSSH(SSHOptions{}), target(s))
	st := start(t, l, "exec cat")
	s.Drop()
	if _, err := io.ReadAll(st); err != nil {
		t.Logf("read: %v", err)
	}
	checkError(t, st.Wait(), hosts.Unreachable, "ended while the command ran")
	checkError(t, l.KeepAlive(contextUnlessStuck(t)), hosts.Unreachable, "lost")
	_, err := l.Start(contextUnlessStuck(t), "true")
	checkError(t, err, hosts.Unreachable)
}

// TestDialsToAnAddressAreLimited checks that at most eight dials to one address are in progress,
// that one that had to wait starts after a jitter, that another address is not affected, and that a
// dial that gives up, also during its jitter, keeps no turn.
func TestDialsToAnAddressAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l dialLimits
		acquire := func(ctx context.Context, name string) chan error {
			done := make(chan error, 1)
			go func() { _, err := l.acquire(ctx, name); done <- err }()
			synctest.Wait()
			return done
		}
		var leave func()
		for range maxDials {
			var err error
			if leave, err = l.acquire(t.Context(), "gate"); err != nil {
				t.Fatal(err)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		canceled, waits := acquire(ctx, "gate"), acquire(t.Context(), "gate")
		cancel()
		if err := <-canceled; !errors.Is(err, context.Canceled) {
			t.Errorf("a dial that gave up: got %v, want canceled", err)
		}
		if err := <-acquire(t.Context(), "another gate"); err != nil {
			t.Errorf("another address: %v", err)
		}
		if len(waits) > 0 {
			t.Error("the ninth dial has begun")
		}
		left := time.Now()
		leave()
		if err := <-waits; err != nil || time.Since(left) == 0 || time.Since(left) >= maxJitter {
			t.Errorf("a dial that waited: %v after %v, "+
				"want a start within %v, but not at once", err, time.Since(left), maxJitter)
		}
		ctx, cancel = context.WithCancel(t.Context())
		jitters := acquire(ctx, "gate")
		leave() // its turn begins, and with it the jitter
		synctest.Wait()
		cancel()
		if err := <-jitters; !errors.Is(err, context.Canceled) {
			t.Errorf("a dial that gave up during its jitter: got %v, want canceled", err)
		}
		if err := <-acquire(t.Context(), "gate"); err != nil {
			t.Errorf("the turn was not released: %v", err)
		}
	})
}
