package link

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"dcs-tui/hosts"
	"dcs-tui/hosts/hosttest"
	"dcs-tui/internal/polltest"
)

// TestCommandConformance checks that a command link keeps every promise of hosts.Link, whether the
// command is replaced by the far end (env) or stays in between (a shell that waits).
func TestCommandConformance(t *testing.T) {
	for name, argv := range map[string][]string{
		"becomes it": {"env", "DCS=1"},
		"by a shell": {"sh", "-c", `exec "$@"`, "--"},
	} {
		t.Run(name, func(t *testing.T) {
			hosttest.Conform(t, func(testing.TB) (hosts.Opener, *hosts.Host) {
				return CommandOpener{}, &hosts.Host{Name: "box", Link: "command", Command: argv}
			})
		})
	}
}

// TestProgramThatCannotStartIsMisconfigured checks that a program that cannot be started is
// Misconfigured.
func TestProgramThatCannotStartIsMisconfigured(t *testing.T) {
	for name, argv := range map[string][]string{
		"no command":         nil,
		"no such program":    {"no-such-program-anywhere", "exec"},
		"no such path":       {"/nonexistent/docker", "exec"},
		"not an executable":  {"/etc/passwd"},
		"a directory":        {"/"},
		"a name with spaces": {"docker exec -i box"},
	} {
		l, err := CommandOpener{}.Open(t.Context(), &hosts.Host{Name: "box", Link: "command", Command: argv})
		if err == nil {
			defer l.Close()
			_, err = l.Start(t.Context(), "true")
		}
		if hosts.ClassOf(err) != hosts.Misconfigured {
			t.Errorf("%s: class %v of %v, want Misconfigured", name, hosts.ClassOf(err), err)
		}
	}
}

// sshTo returns a host that is reached by OpenSSH's client: ssh, options, 127.0.0.1, more.
func sshTo(t testing.TB, s *hosttest.SSHD, options, more []string) *hosts.Host {
	t.Helper()
	lookPath(t, "ssh")
	argv := append([]string{"ssh", "-F", s.ConfigFile, "-p", fmt.Sprint(s.Port)}, options...)
	argv = append(append(argv, "127.0.0.1"), more...)
	return commandTo(argv...)
}

func commandTo(argv ...string) *hosts.Host {
	return &hosts.Host{Name: "ws1", Link: "command", Command: argv, Shells: hosts.RemoteShells(argv)}
}

// begin starts command over a new link to h, which is closed at the end of the test. Standard error
// is discarded.
func begin(t *testing.T, h *hosts.Host, command string) hosts.Stream {
	t.Helper()
	l, err := CommandOpener{}.Open(t.Context(), h)
	must(t, err)
	t.Cleanup(func() { l.Close() })
	s := start(t, l, command)
	go io.Copy(io.Discard, s.Stderr())
	return s
}

// runOnNewLink runs command over a new link to h, and returns its output and the error of
// Wait.
func runOnNewLink(t *testing.T, h *hosts.Host, command string) (string, error) {
	t.Helper()
	s := begin(t, h, command)
	out, err := io.ReadAll(s)
	if err != nil {
		t.Error(err)
	}
	return string(out), s.Wait()
}

// arrives checks that special arrives unchanged over a new link to h.
func arrives(t *testing.T, h *hosts.Host) {
	t.Helper()
	if out, err := runOnNewLink(t, h, special); out != specialOut || err != nil {
		t.Errorf("got  %s (%v)\nwant %s", out, err, specialOut)
	}
}

// TestConformanceOfSSH checks that OpenSSH's client keeps the promises of hosts.Link.
func TestConformanceOfSSH(t *testing.T) {
	polltest.Long(t)
	s := hosttest.StartSSHD(t, hosttest.Options{})
	hosttest.Conform(t, func(t testing.TB) (hosts.Opener, *hosts.Host) {
		return CommandOpener{}, sshTo(t, s, nil, nil)
	})
}

// special is a command with every character that has a meaning to a shell. Each of them must arrive
// unchanged.
const special = `exec /bin/sh -c 'printf "%s|" "$1" "a  b" "\$x" "*" "#" "~" ";" "a\\nb" "(" "\"" "{1,2}"' sh 0123abcd`

const specialOut = `0123abcd|a  b|$x|*|#|~|;|a\nb|(|"|{1,2}|`

// TestCommandSurvivesRemoteShells checks that our command arrives unchanged, whichever shells run
// at the far end, and however many of them split it.
func TestCommandSurvivesRemoteShells(t *testing.T) {
	for _, shell := range []string{"/bin/sh", "/bin/bash", "/bin/tcsh", "/bin/zsh", "/usr/bin/fish"} {
		t.Run(filepath.Base(shell), func(t *testing.T) {
			if _, err := os.Stat(shell); err != nil {
				t.Skip("LEFT OUT: ", err)
			}
			if shell != "/bin/tcsh" {
				polltest.Long(t) // tcsh quotes least like sh
			}
			s := hosttest.StartSSHD(t, hosttest.Options{Shell: shell})
			master := filepath.Join(t.TempDir(), "master")
			inner := fmt.Sprintf("ssh -F %s -p %d 127.0.0.1", s.ConfigFile, s.Port)
			for name, h := range map[string]*hosts.Host{
				"directly": sshTo(t, s, nil, nil),
				"by a path": commandTo(
					append([]string{lookPath(t, "ssh")}, sshTo(t, s, nil, nil).Command[1:]...)...,
				),
				"below another program": commandTo(
					append([]string{"env", "X=1"}, sshTo(t, s, nil, nil).Command...)...,
				),
				"into a container":           sshTo(t, s, nil, []string{"env", "X=1"}),
				"from a gateway":             sshTo(t, s, nil, strings.Fields(inner)),
				"from the second gateway":    sshTo(t, s, nil, strings.Fields(inner+" "+inner)),
				"by a shell of this machine": commandTo("sh", "-c", "exec "+inner+` "$3"`, "sh"),
				// it only forwards
				"through a jump host": sshTo(t, s, []string{"-J", fmt.Sprint("localhost:", s.Port)}, nil),
				"shared connection": sshTo(t, s, []string{
					"-S", master, "-o", "BatchMode=yes", "-o", "PubkeyAuthentication=no",
				}, nil),
			} {
				t.Run(name, func(t *testing.T) {
					if name == "shared connection" {
						openMaster(t, s, master)
					}
					arrives(t, h)
				})
			}
		})
	}
}

func lookPath(t testing.TB, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		hosttest.LeaveOut(t, "%v", err)
	}
	return path
}

// openMaster opens a shared connection, as a person with a second factor does. It closes the
// connection at the end of the test.
func openMaster(t *testing.T, s *hosttest.SSHD, socket string) {
	t.Helper()
	ssh := func(args ...string) {
		args = append([]string{
			"-F", s.ConfigFile, "-p", fmt.Sprint(s.Port), "-S", socket,
		}, append(args, "127.0.0.1")...)
		if out, err := exec.Command("ssh", args...).CombinedOutput(); err != nil {
			t.Errorf("ssh %s: %v: %s", strings.Join(args, " "), err, out)
		}
	}
	ssh("-M", "-N", "-f", "-o", "ControlPersist=yes")
	t.Cleanup(func() { ssh("-O", "exit") })
}

// TestWhySSHFailed checks that an error of ssh has the right class, quotes ssh, and gives advice.
func TestWhySSHFailed(t *testing.T) {
	banner := write(t, filepath.Join(t.TempDir(), "banner"),
		"Access is monitored.\nConnections from outside: ask us. Permission denied to strangers!\n")
	s := hosttest.StartSSHD(t, hosttest.Options{Config: []string{"Banner " + banner}})
	gate := hosttest.StartSSHD(t, hosttest.Options{})
	none := filepath.Join(t.TempDir(), "none")
	changed := filepath.Join(t.TempDir(), "changed")
	write(t, changed, fmt.Sprintf("[127.0.0.1]:%d %s", s.Port, read(t, gate.HostKey()+".pub")))
	for _, c := range []struct {
		name    string
		options []string
		class   hosts.Class
		want    []string
	}{
		{"no key", []string{"-o", "PubkeyAuthentication=no"}, hosts.Denied,
			[]string{
				"Permission denied (publickey",
				"true` must log in without a question",
				"ControlMaster",
				"Kerberos ticket",
			}},
		{"refused by the gateway", []string{"-o", fmt.Sprintf("ProxyCommand=ssh -F %s -o PubkeyAuthentication=no "+
			"-p %d -W %%h:%%p 127.0.0.1", gate.ConfigFile, gate.Port)}, hosts.Denied,
			[]string{"Permission denied (publickey", "'ProxyCommand=ssh -F "}},
		{"unknown host key", []string{"-o", "UserKnownHostsFile=" + none}, hosts.HostKey,
			[]string{"host key is known for [127.0.0.1]", "compare the fingerprint"}},
		{"would ask", []string{"-o", "UserKnownHostsFile=" + none, "-o", "StrictHostKeyChecking=ask"}, hosts.HostKey,
			[]string{"Host key verification failed", "in a terminal once"}},
		{"changed host key", []string{"-o", "UserKnownHostsFile=" + changed}, hosts.HostKey,
			[]string{"REMOTE HOST IDENTIFICATION HAS CHANGED!", "ask who runs it"}},
		{"wrong port", []string{"-o", "Port=1"}, hosts.Unreachable, []string{"Connection refused"}},
		{
			"no such name",
			[]string{"-o", "HostName=no-such-host.invalid"},
			hosts.Unreachable,
			[]string{"Could not resolve hostname"},
		},
		{
			"behind a gateway",
			[]string{"-J", s.Addr(), "-o", "HostName=127.0.0.2", "-o", "Port=1"},
			hosts.Unreachable,
			[]string{"open failed: connect failed"},
		},
		{
			"bad option",
			[]string{"-o", "NoSuchOption=1"},
			hosts.Misconfigured,
			[]string{"Bad configuration option: nosuchoption", "correct the link in the inventory"},
		},
		{"bad flag", []string{"-?"}, hosts.Misconfigured, []string{"correct the link"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := sshTo(t, s, nil, nil)
			// ssh uses the first value of an option.
			h.Command = append([]string{"ssh"}, append(c.options, h.Command[1:]...)...)
			_, err := runOnNewLink(t, h, "true")
			if err == nil || hosts.ClassOf(err) != c.class || !strings.HasPrefix(err.Error(), "ws1: ssh says: ") {
				t.Fatalf("%v (%v)", err, hosts.ClassOf(err))
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q is not in %v", want, err)
				}
			}
		})
	}
}

// TestExitStatusOfTheCommand checks that the exit status of the command is distinguished from a
// failure of ssh. After login, a message of a program at the far end is not taken for one of ssh.
func TestExitStatusOfTheCommand(t *testing.T) {
	s := hosttest.StartSSHD(t, hosttest.Options{})
	for command, code := range map[string]int{
		"echo 'some trouble' >&2; exit 1":                                                  1,
		"echo 'some trouble' >&2; exit 8":                                                  8,
		"echo 'some trouble' >&2; exit 126":                                                126,
		"echo 'some trouble' >&2; exit 255":                                                255,
		"echo 'git@example.org: Permission denied (publickey).' >&2; echo ready; exit 255": 255,
	} {
		_, err := runOnNewLink(t, sshTo(t, s, nil, nil), command)
		if want := (&hosts.ExitError{Code: code}); err == nil || err.Error() != want.Error() {
			t.Errorf("%s: got %v, want %v", command, err, want)
		}
	}
}

// TestSSHConnectionBreaks checks that a connection that breaks after login makes the host
// unreachable.
func TestSSHConnectionBreaks(t *testing.T) {
	s := hosttest.StartSSHD(t, hosttest.Options{})
	st := begin(t, sshTo(t, s, nil, nil), "echo ready; exec cat")
	if _, err := io.ReadFull(st, make([]byte, len("ready\n"))); err != nil {
		t.Fatal(err)
	}
	s.Drop()
	if err := st.Wait(); hosts.ClassOf(err) != hosts.Unreachable || !strings.Contains(err.Error(), "ws1: ssh says: ") {
		t.Errorf("%v (%v)", err, hosts.ClassOf(err))
	}
}

// TestSSHAsksNobody checks that ssh can neither ask on a terminal nor start an askpass program.
func TestSSHAsksNobody(t *testing.T) {
	s := hosttest.StartSSHD(t, hosttest.Options{Passphrase: "secret"})
	asked := filepath.Join(t.TempDir(), "asked")
	askpass := program(t, "askpass", "#!/bin/sh\n: > "+asked+"\necho secret\n")
	t.Setenv("DISPLAY", ":99")
	t.Setenv("SSH_ASKPASS", askpass)
	t.Setenv("SSH_ASKPASS_REQUIRE", "force")
	if _, err := runOnNewLink(t, sshTo(t, s, nil, nil), "true"); hosts.ClassOf(err) != hosts.Denied {
		t.Errorf("got error %v, want Denied", err)
	}
	if _, err := os.Stat(asked); err == nil {
		t.Error("it asked for the passphrase")
	}
	if out, err := runOnNewLink(
		t, commandTo("sh", "-c", `(: < /dev/tty) 2>/dev/null && echo "there is a terminal"; true`), "",
	); out != "" || err != nil {
		t.Errorf("got %s%v, want no terminal", out, err)
	}
}

// TestSharedConnectionThatMayHangIsNamed checks that the explanation of a silent ssh names the shared
// connection that it uses, with the command that ends it, and nothing if there is none.
func TestSharedConnectionThatMayHangIsNamed(t *testing.T) {
	needSSH(t)
	socket := filepath.Join(t.TempDir(), "cm")
	listener, err := net.Listen("unix", socket)
	must(t, err)
	defer listener.Close()
	for path, want := range map[string][2]string{
		socket: {"ssh uses the shared connection " + socket + " (ControlMaster), which may hang",
			"`ssh -O exit -o ControlPath=" + socket + " ws01` ends that connection"},
		socket + "-missing": {"", ""},
		"none":              {"", ""},
	} {
		argv := []string{"ssh", "-o", "ControlPath=" + path, "ws01"}
		h := &hosts.Host{Name: "ws01", Link: "command", Shells: 1, Command: argv}
		l, err := CommandOpener{}.Open(t.Context(), h)
		must(t, err)
		cause, advice := l.(hosts.Explainer).ExplainSilence()
		if got := [2]string{cause, advice}; got != want {
			t.Errorf("%s: got %q, want %q", path, got, want)
		}
	}
}
