package link

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/hosts/hosttest"
	"dcs-tui/internal/polltest"
)

// lab is two gateways, one behind the other, and a host behind both.
type lab struct{ outer, inner, host *hosttest.SSHD }

func newLab(t *testing.T) lab {
	outer := hosttest.StartSSHD(t, hosttest.Options{})
	return lab{
		outer,
		hosttest.StartSSHD(t, hosttest.Options{With: outer}),
		hosttest.StartSSHD(t, hosttest.Options{With: outer}),
	}
}

func gatewayTarget(s *hosttest.SSHD, name string) *Target {
	t := target(s)
	t.Alias = name
	return t
}

// targetBehind returns the target of a server behind gateways.
func targetBehind(s *hosttest.SSHD, gateways ...*Target) *Target {
	t := target(s)
	t.Jumps = gateways
	return t
}

// logins counts the connections that a server has accepted. It waits until there are at least as many
// as wanted: the log is written a moment after a login.
func logins(t *testing.T, s *hosttest.SSHD, wanted int) (n int) {
	t.Helper()
	polltest.Within(polltest.Patience, func() bool {
		n = strings.Count(read(t, s.LogFile()), "Accepted publickey for")
		return n >= wanted
	})
	return n
}

// TestGatewaysAreDialedThrough checks that hosts behind one or two gateways are reached by dialing
// through them (K14). The hosts share one connection to each gateway, which ends with the last of
// them.
func TestGatewaysAreDialedThrough(t *testing.T) {
	lab := newLab(t)
	o := NewSSH(SSHOptions{})
	far := targetBehind(lab.host, gatewayTarget(lab.outer, "outer"), gatewayTarget(lab.inner, "inner"))
	near := targetBehind(lab.inner, far.Jumps[0])

	links := make([]hosts.Link, 12)
	var wg sync.WaitGroup
	for i := range links {
		wg.Go(func() {
			tg := far
			if i%3 == 0 {
				tg = near
			}
			var err error
			if links[i], err = o.dialTarget(contextUnlessStuck(t), "melon4", tg); err != nil {
				t.Error(err)
			}
		})
	}
	if wg.Wait(); t.Failed() {
		return
	}
	for _, l := range links {
		if out := run(t, l, "echo here"); out != "here\n" {
			t.Errorf("got %q", out)
		}
		if err := l.KeepAlive(contextUnlessStuck(t)); err != nil {
			t.Error(err)
		}
	}
	// At the inner gateway, one login is as a gateway and four are as a host.
	if n, outer, inner := len(o.gateways.byChain), logins(t, lab.outer, 1), logins(t, lab.inner, 1+4); n != 2 ||
		outer != 1 || inner != 1+4 {
		t.Errorf("%d gateways in use, %d and %d logins, want 2, 1 and 5", n, outer, inner)
	}
	for _, l := range links {
		l.Close()
		l.Close()
	}
	if n := len(o.gateways.byChain); n != 0 {
		t.Errorf("%d gateways left", n)
	}
	// A later link makes new connections.
	if out := mustRun(t, o, far, "echo again"); out != "again\n" {
		t.Errorf("got %q", out)
	}
}

// TestFaultOfAGatewayIsReportedForIt checks that a fault of a gateway is reported for the gateway,
// with its class.
func TestFaultOfAGatewayIsReportedForIt(t *testing.T) {
	lab := newLab(t)
	tg := targetBehind(lab.host, gatewayTarget(lab.outer, "gate"))
	o := NewSSH(SSHOptions{})

	t.Run("wrong key", func(t *testing.T) {
		gw := gatewayTarget(lab.outer, "gate")
		gw.IdentityFiles = []string{newKey(t, "ed25519", "")}
		mustFail(t, o, targetBehind(lab.host, gw), hosts.Denied, "gateway gate: ", "refuses every key")
	})
	t.Run("unknown host key", func(t *testing.T) {
		gw := gatewayTarget(lab.outer, "gate")
		gw.KnownHosts = nil
		mustFail(t, o, targetBehind(lab.host, gw), hosts.HostKey, "gateway gate: ", "not known in any file")
	})
	t.Run("host off", func(t *testing.T) {
		lab.host.Stop()
		defer func() { must(t, lab.host.Start()) }()
		mustFail(t, o, tg, hosts.Unreachable, "gateway gate cannot reach", lab.host.Addr())
	})
	t.Run("gateway off", func(t *testing.T) {
		lab.outer.Stop()
		defer func() { must(t, lab.outer.Start()) }()
		mustFail(t, o, tg, hosts.Unreachable, "gateway gate: ", "refuses connections")
	})
	t.Run("no forwarding", func(t *testing.T) {
		strict := hosttest.StartSSHD(t, hosttest.Options{With: lab.outer, Config: []string{"AllowTcpForwarding no"}})
		mustFail(t, o, targetBehind(lab.host, gatewayTarget(strict, "strict")), hosts.Misconfigured,
			"gateway strict does not let us through", "AllowTcpForwarding")
	})
	t.Run("host key behind it", func(t *testing.T) {
		tg := *tg
		tg.KnownHosts = nil
		mustFail(t, o, &tg, hosts.HostKey, "is not known in any file")
	})
	if n := len(o.gateways.byChain); n != 0 {
		t.Errorf("%d gateways left", n)
	}
}

// TestDeadGatewayEndsItsLinks checks that a gateway that dies ends the links through it, and that
// the next link makes a new connection.
func TestDeadGatewayEndsItsLinks(t *testing.T) {
	lab := newLab(t)
	tg := targetBehind(lab.host, gatewayTarget(lab.outer, "gate"))
	o := NewSSH(SSHOptions{})
	l := dial(t, o, tg)
	lab.outer.Drop()
	l.(*sshLink).conn.client.Wait()
	l.(*sshLink).conn.gateway.conn.client.Wait()
	checkError(t, l.KeepAlive(contextUnlessStuck(t)), hosts.Unreachable, "lost")
	// A separate goroutine removes the dead connection.
	if next := dialAgain(t, o, tg); next != nil {
		run(t, next, "true")
	}
}

// TestHungGatewayBlocksNobody checks that a gateway that hangs blocks nobody. Dialing through it
// has a limit, closing a link through it returns, and the gateway is given up after that.
func TestHungGatewayBlocksNobody(t *testing.T) {
	lab := newLab(t)
	tg := targetBehind(lab.host, gatewayTarget(lab.outer, "gate"))
	o := NewSSH(SSHOptions{})
	l := dial(t, o, tg)
	st := start(t, l, "exec cat")
	lab.outer.Pause()
	defer lab.outer.Resume()
	short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	checkError(t, l.KeepAlive(short), hosts.Unreachable, "sshd does not respond")
	quick := *tg
	quick.ConnectTimeout = 100 * time.Millisecond
	mustFail(t, o, &quick, hosts.Unreachable, "through gate", "no answer within 100ms") // the gateway is given up later

	read := make(chan error)
	go func() { _, err := st.Read(make([]byte, 1)); read <- err }()
	l.Close()
	if err := <-read; err == nil {
		t.Error("read something")
	}
}
