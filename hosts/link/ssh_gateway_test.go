package link

import (
	"context"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/hosts/hosttest"
)

// lab is two gateways, one behind the other, and a host behind both.
type lab struct{ outer, inner, host *hosttest.SSHD }

func newLab(t *testing.T) lab {
	outer := hosttest.StartSSHD(t, hosttest.Options{})
	return lab{outer, hosttest.StartSSHD(t, hosttest.Options{With: outer}), hosttest.StartSSHD(t, hosttest.Options{With: outer})}
}

func gatewayTarget(s *hosttest.SSHD, name string) *Target {
	t := target(s)
	t.Alias = name
	return t
}

// logins counts the connections that a server has accepted.
func logins(t *testing.T, s *hosttest.SSHD) int {
	t.Helper()
	b, err := os.ReadFile(s.LogFile())
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(string(b), "Accepted publickey for")
}

// TestTwoGateways checks that hosts behind one or two gateways are reached by dialing through them
// (K14). The hosts share one connection to each gateway, which ends with the last of them.
func TestTwoGateways(t *testing.T) {
	lab := newLab(t)
	o := NewSSH(SSHOptions{})
	far := target(lab.host)
	far.Jumps = []*Target{gatewayTarget(lab.outer, "outer"), gatewayTarget(lab.inner, "inner")}
	near := target(lab.inner)
	near.Jumps = far.Jumps[:1]

	var mu sync.Mutex
	var links []hosts.Link
	var wg sync.WaitGroup
	for i := range 12 {
		wg.Go(func() {
			tg := far
			if i%3 == 0 {
				tg = near
			}
			l, err := o.dialTarget(patient(t), "melon4", tg)
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			links = append(links, l)
		})
	}
	wg.Wait()
	for _, l := range links {
		if out := run(t, l, "echo here"); out != "here\n" {
			t.Errorf("got %q", out)
		}
		if err := l.KeepAlive(patient(t)); err != nil {
			t.Error(err)
		}
	}
	if n := len(o.gateways.all); n != 2 {
		t.Errorf("%d gateways in use, want 2", n)
	}
	if n := logins(t, lab.outer); n != 1 {
		t.Errorf("%d logins at the outer gateway, want 1", n)
	}
	if n := logins(t, lab.inner); n != 1+4 {
		t.Errorf("%d logins at the inner gateway, want 1 as a gateway and 4 as a host", n)
	}
	for _, l := range links {
		l.Close()
		l.Close()
	}
	if n := len(o.gateways.all); n != 0 {
		t.Errorf("%d gateways left", n)
	}
	// A later link makes new connections.
	if out := mustRun(t, o, far, "echo again"); out != "again\n" {
		t.Errorf("got %q", out)
	}
}

// TestGatewayTrouble checks that a fault of a gateway is reported for the gateway, with its class.
func TestGatewayTrouble(t *testing.T) {
	lab := newLab(t)
	tg := target(lab.host)
	gw := gatewayTarget(lab.outer, "gate")
	tg.Jumps = []*Target{gw}
	o := NewSSH(SSHOptions{})

	t.Run("wrong key", func(t *testing.T) {
		gw := *gw
		gw.IdentityFiles = []string{newKey(t, "ed25519", "")}
		tg := *tg
		tg.Jumps = []*Target{&gw}
		mustFail(t, o, &tg, hosts.Denied, "gateway gate: ", "refuses every key")
	})
	t.Run("unknown host key", func(t *testing.T) {
		gw := *gw
		gw.KnownHosts = nil
		tg := *tg
		tg.Jumps = []*Target{&gw}
		mustFail(t, o, &tg, hosts.HostKey, "gateway gate: ", "not known in any file")
	})
	t.Run("host off", func(t *testing.T) {
		lab.host.Stop()
		defer lab.host.Start()
		mustFail(t, o, tg, hosts.Unreachable, "gateway gate cannot reach", lab.host.Addr())
	})
	t.Run("gateway off", func(t *testing.T) {
		lab.outer.Stop()
		defer lab.outer.Start()
		mustFail(t, o, tg, hosts.Unreachable, "gateway gate: ", "refuses connections")
	})
	t.Run("no forwarding", func(t *testing.T) {
		strict := hosttest.StartSSHD(t, hosttest.Options{With: lab.outer, Config: []string{"AllowTcpForwarding no"}})
		tg := *tg
		tg.Jumps = []*Target{gatewayTarget(strict, "strict")}
		mustFail(t, o, &tg, hosts.Misconfigured, "gateway strict does not let us through", "AllowTcpForwarding")
	})
	t.Run("host key behind it", func(t *testing.T) {
		tg := *tg
		tg.KnownHosts = nil
		mustFail(t, o, &tg, hosts.HostKey, "ssh -p", " -J "+lab.outer.User+"@127.0.0.1:")
	})
	if n := len(o.gateways.all); n != 0 {
		t.Errorf("%d gateways left", n)
	}
}

// TestGatewayDies checks that a gateway that dies ends the links through it, and that the next link
// makes a new connection.
func TestGatewayDies(t *testing.T) {
	lab := newLab(t)
	tg := target(lab.host)
	tg.Jumps = []*Target{gatewayTarget(lab.outer, "gate")}
	o := NewSSH(SSHOptions{})
	l, err := o.dialTarget(patient(t), "melon4", tg)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	lab.outer.Drop()
	l.(*sshLink).c.client.Wait()
	l.(*sshLink).c.via.conn.client.Wait()
	checkError(t, l.KeepAlive(patient(t)), hosts.Unreachable, "lost")
	for {
		// A separate goroutine removes the dead connection.
		next, err := o.dialTarget(patient(t), "melon4", tg)
		if err == nil {
			run(t, next, "true")
			next.Close()
			return
		}
		checkError(t, err, hosts.Unreachable, "gate")
		if t.Failed() || t.Context().Err() != nil {
			return
		}
	}
}

// TestGatewayHangs checks that a gateway that hangs blocks nobody. Dialing through it has a limit,
// closing a link through it returns, and the gateway is given up after that.
func TestGatewayHangs(t *testing.T) {
	lab := newLab(t)
	tg := target(lab.host)
	tg.Jumps = []*Target{gatewayTarget(lab.outer, "gate")}
	o := NewSSH(SSHOptions{})
	l, err := o.dialTarget(patient(t), "melon4", tg)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	st, err := l.Start(patient(t), "exec cat")
	if err != nil {
		t.Fatal(err)
	}
	lab.outer.Pause()
	defer lab.outer.Resume()
	quick := *tg
	quick.ConnectTimeout = 100 * time.Millisecond
	mustFail(t, o, &quick, hosts.Unreachable, "through gate", "no answer within 100ms")
	short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	checkError(t, l.KeepAlive(short), hosts.Unreachable, "sshd does not respond")

	read := make(chan error)
	go func() { _, err := st.Read(make([]byte, 1)); read <- err }()
	l.Close()
	if err := <-read; err == nil {
		t.Error("read something")
	}
}
