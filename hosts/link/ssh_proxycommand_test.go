package link

import (
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"dcs-tui/hosts"
	"dcs-tui/hosts/hosttest"
	"dcs-tui/internal/polltest"
)

// bashProxy is a ProxyCommand that connects to the host, and leaves a process behind that the end of
// the command alone does not end.
const bashProxy = `bash -c 'exec 3<>/dev/tcp/%h/%p; cat <&3 & exec cat >&3'`

// openProxied opens a link to s through the ProxyCommand, as the configuration of ssh gives it.
func openProxied(t *testing.T, s *hosttest.SSHD, command string, lines ...string) (hosts.Link, error) {
	t.Helper()
	text := fmt.Sprintf("Host melon4\nHostName 127.0.0.1\nPort %d\nProxyCommand %s\n%s\n%s",
		s.Port, command, strings.Join(lines, "\n"), read(t, s.ConfigFile))
	config, err := LoadSSHConfig(write(t, filepath.Join(t.TempDir(), "config"), text))
	must(t, err)
	h := hostNamed("melon4")
	h.Addresses = []string{"melon4"}
	l, err := NewSSH(SSHOptions{Config: config}).Open(contextUnlessStuck(t), h)
	if err == nil {
		t.Cleanup(func() { l.Close() })
	}
	return l, err
}

// TestProxyCommandIsTheConnection checks that a host is reached through its ProxyCommand, whose
// processes end with the link.
func TestProxyCommandIsTheConnection(t *testing.T) {
	s := hosttest.StartSSHD(t, hosttest.Options{})
	fifo := filepath.Join(t.TempDir(), "fifo")
	must(t, unix.Mkfifo(fifo, 0o600))
	alive, err := os.OpenFile(fifo, os.O_RDONLY|unix.O_NONBLOCK, 0)
	must(t, err)
	defer alive.Close()
	words := filepath.Join(t.TempDir(), "words")
	l, err := openProxied(t, s, strings.Replace(bashProxy, "exec", fmt.Sprintf("exec 4>%s; echo %%n %%h %%p "+
		"%%r %%%% >%s; exec", fifo, words), 1))
	must(t, err)
	if got := run(t, l, "echo reached; head -c 1000000 /dev/zero | wc -c"); got != "reached\n1000000\n" {
		t.Errorf("got %q", got)
	}
	if got, want := read(t, words), fmt.Sprintf("melon4 127.0.0.1 %d %s %%\n", s.Port, s.User); got != want {
		t.Errorf("tokens: got %q, want %q", got, want)
	}
	must(t, l.Close())
	must(t, alive.SetReadDeadline(time.Now().Add(polltest.Patience))) // it only ends a failing test
	if _, err := alive.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("a process of the ProxyCommand still runs: %v", err)
	}
}

// TestProxyCommandFailures checks that the error for a ProxyCommand that ends or says nothing
// quotes its standard error, and that only a command that cannot run needs a person.
func TestProxyCommandFailures(t *testing.T) {
	s := hosttest.StartSSHD(t, hosttest.Options{})
	for command, want := range map[string]struct {
		class hosts.Class
		words []string
	}{
		"echo no tunnel to %h >&2; exit 3": {
			hosts.Unreachable,
			[]string{"ProxyCommand failed", "exit code 3", "no tunnel to 127.0.0.1"},
		},
		"/nonexistent/tunnel %h": {
			hosts.Misconfigured,
			[]string{"ProxyCommand failed", "/nonexistent/tunnel", "must log in"},
		},
		"true":                          {hosts.Unreachable, []string{"closed the connection"}},
		"exec >&-; exec sleep 100":      {hosts.Unreachable, []string{"closed the connection"}},
		"echo slow >&2; exec sleep 100": {hosts.Unreachable, []string{"ProxyCommand passes nothing on", "slow"}},
		"echo hello; exec sleep 100":    {hosts.Unreachable, []string{"ProxyCommand passes nothing on"}},
	} {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			// A slow machine may need longer than the first limit to start the command.
			var err error
			for limit := 1; limit < 60; limit *= 2 {
				_, err = openProxied(t, s, "sh -c '"+command+"'", fmt.Sprint("ConnectTimeout ", limit))
				if err == nil {
					t.Fatal("the link was opened")
				}
				if !slices.ContainsFunc(want.words, func(w string) bool { return !strings.Contains(err.Error(), w) }) {
					break
				}
			}
			checkError(t, err, want.class, want.words...)
		})
	}
}

// TestGatewayWithProxyCommand checks that a gateway is reached through its own ProxyCommand.
func TestGatewayWithProxyCommand(t *testing.T) {
	gw := hosttest.StartSSHD(t, hosttest.Options{})
	s := hosttest.StartSSHD(t, hosttest.Options{With: gw})
	text := fmt.Sprintf("Host gate\nHostName 127.0.0.1\nPort %d\nProxyCommand %s\n%s",
		gw.Port, bashProxy, read(t, s.ConfigFile))
	config, err := LoadSSHConfig(write(t, filepath.Join(t.TempDir(), "config"), text))
	must(t, err)
	h := s.Host("melon4")
	h.Jump = []string{"gate"}
	l, err := NewSSH(SSHOptions{Config: config}).Open(contextUnlessStuck(t), h)
	must(t, err)
	defer l.Close()
	if got := run(t, l, "echo reached"); got != "reached\n" {
		t.Errorf("got %q", got)
	}
}

// TestProxyCommandThatCannotBeRun checks that ProxyUseFdpass, and values that the shell would
// interpret, are refused by name.
func TestProxyCommandThatCannotBeRun(t *testing.T) {
	c := config(t, "Host a\nProxyUseFdpass yes\nProxyCommand x\nHost b\nHostName $(reboot)\nProxyCommand x %h\n"+
		"Host c\nProxyCommand x %z\nHost d\nProxyUseFdpass yes\n")
	refuses(t, c, hostNamed("m"), "a", "ProxyUseFdpass", "ssh -F "+c.path+" {name}")
	refuses(t, c, hostNamed("m"), "b", `"$(reboot)" cannot stand for %h in the ProxyCommand`)
	refuses(t, c, hostNamed("m"), "c", "ProxyCommand: the token %z")
	if _, _, err := c.Resolve(t.Context(), hostNamed("m"), "d"); err != nil {
		t.Errorf("ProxyUseFdpass without a ProxyCommand: %v", err)
	}
}

// TestServerThatSaysWhyItHangsUp checks that the line of a server that closes the connection before
// the protocol begins is quoted, and that such a server is dialed once, unless it is only busy.
func TestServerThatSaysWhyItHangsUp(t *testing.T) {
	for said, want := range map[string]struct {
		dials int32
		word  string
	}{
		"Not allowed at this time\r\n": {1, `said "Not allowed at this time"`},
		"Exceeded MaxStartups\r\n":     {1 + maxCuts, "MaxStartups"},
	} {
		t.Run(said, func(t *testing.T) {
			t.Parallel()
			var dials atomic.Int32
			tg := listen(t, func(c net.Conn) { dials.Add(1); io.WriteString(c, said) })
			mustFail(t, NewSSH(SSHOptions{}), tg, hosts.Unreachable, want.word)
			if got := dials.Load(); got != want.dials {
				t.Errorf("dialed %d times, want %d", got, want.dials)
			}
		})
	}
}
