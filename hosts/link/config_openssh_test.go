package link

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"dcs-tui/hosts"
	"dcs-tui/internal/polltest"
)

// needSSH skips the test with a clear message if there is no ssh program.
func needSSH(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("ssh"); err != nil {
		t.Skip("LEFT OUT: no ssh program to compare with; install openssh-client")
	}
}

// TestAgreesWithOpenSSH checks that we interpret what `ssh -G` prints of a configuration like the
// installed OpenSSH itself. The syntax of the file is ssh's matter.
func TestAgreesWithOpenSSH(t *testing.T) {
	needSSH(t)
	for name, c := range map[string]struct {
		text    string
		aliases []string
	}{
		"empty": {"", []string{"a", "A.Example.ORG", "10.0.0.1", "fe80::1"}},
		"match": {`
Match host a.lab,!x*
  User one
Host a
  HostName A.lab
Match host a.lab
  Port 11
Match originalhost a host *.lab user one
  Port 12
Match originalhost A,b !user carol
  Port 13
Match localuser nobody-here
  Port 14
Match all
  HostKeyAlias all
Match host="*.lab"
  ConnectTimeout 7
`, []string{"a", "b", "c", "a.lab", "A", "x.lab"}},
		"match exec": {`
Match host inside exec "test %h = inside"
  HostName in.lab
  User "bob"
  IdentityFile ~/.ssh/in
  UserKnownHostsFile /tmp/kh1 /tmp/kh2
  ProxyJump gate
Match host out* exec "false"
  User never
Match final host *.lab
  HostKeyAlias final
Host inside outside
  Port 2222
`, []string{"inside", "outside"}},
		"match final": {`
Match final host *.lab
  User final
Match canonical
  Port 4
Host foo.lab
  Port 5
  HostName other.%%
Host foo*
  HostName FOO.lab
  IdentityFile ~/.ssh/a
  IdentityFile ~/.ssh/b
`, []string{"foo", "foo2", "bar", "bar.lab"}},
		"files": {`
Host a
  IdentityFile ~/.ssh/one
  IdentityFile "~/.ssh/two"
Host *
  IdentityFile ~/.ssh/one
  IdentityFile /tmp/three
  CertificateFile /tmp/c
  CertificateFile /tmp/d
  UserKnownHostsFile ~/.ssh/kh_%h /tmp/%C%d%i /tmp/%k_%L_%l /tmp/%n_%p_%r_%u
  UserKnownHostsFile /tmp/late
  GlobalKnownHostsFile /etc/one /etc/two
  IdentitiesOnly yes
  IdentityAgent ~/agent_%u_%r
`, []string{"a", "b"}},
		"options": {`
Host a
  StrictHostKeyChecking accept-new
  ConnectTimeout 1m30s
  AddressFamily inet6
  IdentityAgent none
Host b
  StrictHostKeyChecking ask
  ConnectTimeout 10
  AddressFamily inet
Host c
  ConnectTimeout none
  AddressFamily any
  StrictHostKeyChecking yes
`, []string{"a", "b", "c"}},
		"jumps": {`
Host a
  ProxyJump gate
Host b
  ProxyJump bob@gate:2222,other
Host c
  ProxyJump none
Host d
  ProxyCommand none
Host e
  ProxyJump ssh://x@y:7
Host c d
  ProxyJump late
`, []string{"a", "b", "c", "d", "e", "f"}},
	} {
		t.Run(name, func(t *testing.T) {
			file := write(t, filepath.Join(t.TempDir(), "config"), c.text)
			conf, err := LoadSSHConfig(file)
			must(t, err)
			for _, alias := range c.aliases {
				out, err := exec.Command("ssh", "-G", "-T", "-F", file, "--", alias).CombinedOutput()
				if err != nil {
					t.Fatalf("ssh -G %s: %v: %s", alias, err, out)
				}
				got, _, err := resolveAlias(conf, alias)
				if err != nil {
					t.Errorf("%s: %v", alias, err)
					continue
				}
				compare(t, conf.env, alias, got, string(out))
			}
		})
	}
}

// compare checks a target against the output of ssh -G.
func compare(t *testing.T, env *environment, alias string, got *Target, printed string) {
	t.Helper()
	said := map[string][]string{}
	for line := range strings.Lines(printed) {
		k, v, _ := strings.Cut(strings.TrimSpace(line), " ")
		said[k] = append(said[k], v)
	}
	f := fileSettings{env: env, tokens: env.tokens(got)}
	paths := func(list []string) string {
		out := []string{}
		for _, one := range list {
			out = append(out, f.expandPath(one, ""))
		}
		return strings.Join(out, " ")
	}
	check := func(what, is string, want ...string) {
		t.Helper()
		if w := strings.Join(want, " "); is != w {
			t.Errorf("ssh %s: %s is %q, OpenSSH says %q", alias, what, is, w)
		}
	}
	check("hostname", got.HostName, said["hostname"]...)
	check("user", got.User, said["user"]...)
	check("port", strconv.Itoa(got.Port), said["port"]...)
	check("hostkeyalias", got.HostKeyAlias, said["hostkeyalias"]...)
	check("addressfamily",
		map[string]string{"tcp": "any", "tcp4": "inet", "tcp6": "inet6"}[got.Network], said["addressfamily"]...)
	timeout := "none"
	if got.ConnectTimeout > 0 {
		timeout = fmt.Sprint(int(got.ConnectTimeout.Seconds()))
	}
	check("connecttimeout", timeout, said["connecttimeout"]...)
	check("identitiesonly", map[bool]string{true: "yes", false: "no"}[got.IdentitiesOnly], said["identitiesonly"]...)
	if agent := said["identityagent"]; len(agent) > 0 && agent[0] != "none" {
		check("identityagent", got.IdentityAgent, agent...)
	} else if len(agent) > 0 {
		check("identityagent", got.IdentityAgent, "")
	}
	if strict := said["stricthostkeychecking"][0]; (strict == "accept-new") != got.AcceptNew {
		t.Errorf("ssh %s: accepts new keys %v, OpenSSH says %s", alias, got.AcceptNew, strict)
	}
	if got.Explicit {
		check("identityfile", strings.Join(got.IdentityFiles, " "), paths(said["identityfile"]))
	} else {
		for _, one := range got.IdentityFiles {
			if !slices.Contains(strings.Fields(paths(said["identityfile"])), one) {
				t.Errorf("ssh %s: %s is not among OpenSSH's usual identities", alias, one)
			}
		}
	}
	check("certificatefile", strings.Join(got.CertificateFiles, " "), paths(said["certificatefile"]))
	known := strings.Fields(said["userknownhostsfile"][0] + " " + said["globalknownhostsfile"][0])
	check("known hosts", strings.Join(got.KnownHosts, " "), paths(known))

	var jumps, want []string
	for _, j := range got.Jumps {
		jumps = append(jumps, fmt.Sprintf("%s@%s:%d", j.User, j.Alias, j.Port))
	}
	if spec := said["proxyjump"]; len(spec) > 0 && spec[0] != "none" {
		for one := range strings.SplitSeq(spec[0], ",") {
			g, err := parseJump(one)
			must(t, err)
			if g.user == "" {
				g.user = env.user
			}
			if g.port == 0 {
				g.port = 22
			}
			want = append(want, fmt.Sprintf("%s@%s:%d", g.user, g.alias, g.port))
		}
	}
	check("proxyjump", strings.Join(jumps, " "), want...)
}

// TestInventoryCountsAsOptions checks that settings of the inventory count like command line
// options of ssh.
func TestInventoryCountsAsOptions(t *testing.T) {
	needSSH(t)
	file := write(t, filepath.Join(t.TempDir(), "config"), `
Match user carol
  HostKeyAlias for-carol
Host !other !gw* *
  User bob
  Port 99
  IdentityFile /tmp/one
  ProxyJump other
  UserKnownHostsFile /tmp/%r_%p_%h
`)
	conf, err := LoadSSHConfig(file)
	must(t, err)
	h := &hosts.Host{
		Name:     "m",
		User:     "carol",
		Port:     2222,
		Identity: write(t, filepath.Join(t.TempDir(), "key"), "k"),
		Jump:     []string{"me@gw:2", "carol@gw2:99"},
	}
	out, err := exec.Command(
		"ssh", "-G", "-T", "-F", file, "-l", h.User, "-p", "2222", "-i", h.Identity, "-J", strings.Join(h.Jump, ","),
		"melon",
	).Output()
	must(t, err)
	got, _, err := conf.Resolve(t.Context(), h, "melon")
	must(t, err)
	compare(t, conf.env, "melon", got, string(out))
}

// TestRefusedFileHasTheMessageOfSSH checks that a file that ssh refuses is an error with ssh's own
// message, with file and line, and that the error is the same for every host.
func TestRefusedFileHasTheMessageOfSSH(t *testing.T) {
	c := config(t, "Match final all\nHost a\n  Bogus directive\n  Port 0\n")
	var said []string
	for _, alias := range []string{"a", "b"} {
		_, w, err := resolveAlias(c, alias)
		if err == nil || len(w) > 0 {
			t.Fatalf("%s: %v, %v", alias, w, err)
		}
		said = append(said, err.Error())
	}
	if said[0] != said[1] || !strings.HasPrefix(said[0], "ssh says: ") || strings.Contains(said[0], "terminating") ||
		strings.Count(said[0], "line 3: ") != 1 || strings.Count(said[0], "line 4: ") != 1 ||
		!strings.Contains(said[0], "config") {
		t.Errorf("messages: got %q, want the same one twice, with each line once", said)
	}
}

// TestHostIsRefusedWithoutSSH checks that, without an ssh program, a host is refused, and that the
// error names what to install, or that PATH is missing.
func TestHostIsRefusedWithoutSSH(t *testing.T) {
	c, err := newSSHConfig("", configLab(t), "")
	must(t, err)
	refuses(t, c, hostNamed("m"), "a", "install the OpenSSH client")
	t.Setenv("PATH", "")
	refuses(t, c, hostNamed("m"), "a", "PATH is not set")
}

// TestDeviceAsAFileIsRefused checks that a path that is not a file, such as a device without an
// end, is refused before ssh is called.
func TestDeviceAsAFileIsRefused(t *testing.T) {
	for file, want := range map[string]string{
		t.TempDir():         "is not an ssh configuration file",
		"/dev/zero":         "is not an ssh configuration file",
		"/nonexistent/file": "no such file",
	} {
		if _, err := newSSHConfig(file, configLab(t), "/nonexistent/ssh"); err == nil ||
			!strings.Contains(err.Error(), file) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", file, err, want)
		}
	}
}

// fakeSSH returns a configuration whose ssh program is a stand-in that runs script, and a function
// that returns the arguments of each call of it.
func fakeSSH(t *testing.T, path, script string) (*SSHConfig, func() []string) {
	t.Helper()
	log := filepath.Join(t.TempDir(), "log")
	ssh := program(t, "ssh", "#!/bin/sh\necho \"$*\" >>"+log+"\n"+script+"\n")
	c, err := newSSHConfig(path, configLab(t), ssh)
	must(t, err)
	return c, func() []string {
		data, _ := os.ReadFile(log)
		return strings.Split(strings.TrimSpace(string(data)), "\n")
	}
}

// TestInventoryReachesSSHAsOptions checks that settings of the inventory reach ssh as its own
// options. If no configuration file is named, ssh itself finds the usual files.
func TestInventoryReachesSSHAsOptions(t *testing.T) {
	for path, f := range map[string]string{"": "", "/dev/null": "-F /dev/null "} {
		c, log := fakeSSH(t, path, "echo hostname x")
		h := &hosts.Host{
			Name:     "m",
			User:     "carol",
			Port:     2222,
			Identity: "/k",
			Jump:     []string{"me@gw:2", "ssh://[fe80::1]"},
		}
		got, w, err := c.Resolve(t.Context(), h, "melon")
		if err != nil || len(w) > 0 || len(got.Jumps) != 2 || strings.Join(got.IdentityFiles, " ") != "/k" ||
			!got.Explicit {
			t.Fatalf("Resolve: got %+v, warnings %v, %v; want 2 jumps and the key /k", got, w, err)
		}
		if _, _, err := c.Resolve(t.Context(), &hosts.Host{Name: "n", Jump: []string{}}, "other"); err != nil {
			t.Fatal(err)
		}
		want := []string{
			"-G -T -F /dev/null -- dcs-tui.invalid",
			"-G -T " + f + "-l carol -p 2222 -J me@gw:2,[fe80::1] -- melon",
			"-G -T " + f + "-l me -p 2 -- gw",
			"-G -T " + f + "-J me@gw:2 -- fe80::1",
			"-G -T " + f + "-J none -- other",
		}
		if is := strings.Join(log(), "\n"); is != strings.Join(want, "\n") {
			t.Errorf("asked\n%s\nwant\n%s", is, strings.Join(want, "\n"))
		}
	}
}

// TestEqualCallsOfSSHAreShared checks that hosts that are resolved at the same time share equal
// calls of ssh.
func TestEqualCallsOfSSHAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := newSSHConfig("", configLab(t), "ssh")
		must(t, err)
		var asked atomic.Int32
		c.run = func(args []string) (settings, error) {
			asked.Add(1)
			time.Sleep(time.Second)
			return parseSettings("hostname " + args[len(args)-1] + ".lab\nproxyjump none\n"), nil
		}
		var wg sync.WaitGroup
		for i := range 40 {
			wg.Go(func() {
				got, _, err := resolveAlias(c, fmt.Sprint("h", i%4))
				if err != nil || got.HostName != fmt.Sprintf("h%d.lab", i%4) {
					t.Errorf("got %+v, %v; want the name of its own host", got, err)
				}
			})
		}
		wg.Wait()
		if n := asked.Load(); n != 5 {
			t.Errorf("asked %d times for 4 hosts and the defaults", n)
		}
	})
}

// TestChangedAnswerIsUsed checks that a connection asks ssh again, so that a Match exec whose result
// has changed applies, and that the defaults are asked for again, too.
func TestChangedAnswerIsUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := newSSHConfig("", configLab(t), "ssh")
		must(t, err)
		atHome := false
		c.run = func([]string) (settings, error) {
			if atHome {
				return parseSettings("hostname gate.example.org\n"), nil
			}
			return parseSettings("hostname ws01.lab\n"), nil
		}
		for _, want := range []string{"ws01.lab", "gate.example.org"} {
			got, _, err := resolveAlias(c, "ws01")
			if err != nil || got.HostName != want {
				t.Errorf("got %+v, %v; want %s", got, err, want)
			}
			atHome = true
			time.Sleep(2 * answerLifetime)
		}
	})
}

// TestMatchExecThatHangsDelaysNoOtherHost checks that hosts whose Match exec does not return delay no
// other host, that at most maxSSHProcesses run at once, and that such a host is tried again.
func TestMatchExecThatHangsDelaysNoOtherHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := newSSHConfig("", configLab(t), "ssh")
		must(t, err)
		var running, most atomic.Int32
		c.run = func(args []string) (settings, error) {
			defer running.Add(-1)
			if n := running.Add(1); n > most.Load() {
				most.Store(n)
			}
			if strings.HasPrefix(args[len(args)-1], "hangs") {
				time.Sleep(c.timeout)
				return nil, &transientError{errors.New("no answer")}
			}
			time.Sleep(3 * time.Second)
			return parseSettings("hostname x\n"), nil
		}
		start := time.Now()
		var wg sync.WaitGroup
		for i := range 27 {
			name := fmt.Sprint("ws", i)
			if i < 3 {
				name = fmt.Sprint("hangs", i)
			}
			wg.Go(func() {
				_, _, err := resolveAlias(c, name)
				if hangs := i < 3; hangs != IsTransient(err) {
					t.Errorf("%s: %v", name, err)
				}
				// Five processes are left for 24 answers of three seconds each.
				if took := time.Since(start); i >= 3 && took > 20*time.Second {
					t.Errorf("%s was resolved after %v", name, took)
				}
			})
		}
		wg.Wait()
		if most.Load() != maxSSHProcesses {
			t.Errorf("%d processes at once, want %d", most.Load(), maxSSHProcesses)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, _, err := c.Resolve(ctx, hostNamed("m"), "hangs0"); !IsTransient(err) ||
			!errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want the end of the caller's time", err)
		}
		time.Sleep(c.timeout) // until the process has ended
	})
}

// TestManyHostsWaitOnceForSSH checks that a host that has waited for its turn among many, as at the
// start of a run, does not wait again when it is dialed, and that answers are forgotten.
func TestManyHostsWaitOnceForSSH(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := newSSHConfig("", configLab(t), "ssh")
		must(t, err)
		c.run = func([]string) (settings, error) {
			time.Sleep(time.Second)
			return parseSettings("hostname x\n"), nil
		}
		o := NewSSH(SSHOptions{Config: c})
		var wg sync.WaitGroup
		for i := range 50 * maxSSHProcesses {
			wg.Go(func() {
				h := hostNamed(fmt.Sprint("ws", i))
				h.Addresses = []string{h.Name}
				o.Prepare(t.Context(), h)
				prepared := time.Now()
				if _, _, err := c.Resolve(t.Context(), h, h.Name); err != nil {
					t.Error(err)
				}
				if took := time.Since(prepared); took > 2*time.Second {
					t.Errorf("%s was resolved %v after it was prepared", h.Name, took)
				}
			})
		}
		wg.Wait()
		time.Sleep(2 * answerLifetime)
		synctest.Wait()
		if n := len(c.answers); n > 0 {
			t.Errorf("%d answers are kept", n)
		}
	})
}

// TestUnknownKeywordIsReported checks that a keyword of a later OpenSSH that is set and unknown to
// us is reported.
func TestUnknownKeywordIsReported(t *testing.T) {
	c, _ := fakeSSH(t, "", `echo hostname x; echo newthing off; case "$*" in *melon) echo laterthing on;; esac`)
	if _, w, err := resolveAlias(c, "melon"); err != nil || len(w) != 1 ||
		!strings.Contains(w[0], `"laterthing" in the ssh configuration is unknown`) {
		t.Errorf("warnings: got %v, %v; want one about laterthing", w, err)
	}
}

// TestSSHThatHangs checks that an ssh that hangs is ended together with the commands of its Match
// exec, and that the result is an error.
func TestSSHThatHangs(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	must(t, unix.Mkfifo(fifo, 0o600))
	alive, err := os.OpenFile(fifo, os.O_RDONLY|unix.O_NONBLOCK, 0)
	must(t, err)
	defer alive.Close()
	c, _ := fakeSSH(t, "", "exec 3>"+fifo+"; sleep 1000 & sleep 1000")
	c.timeout = 200 * time.Millisecond
	refuses(t, c, hostNamed("m"), "m", "did not answer within 200ms")
	// The pipe ends when the last of these processes ends. The deadline only ends a failing test.
	must(t, alive.SetReadDeadline(time.Now().Add(polltest.Patience)))
	if _, err := alive.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("something still runs: %v", err)
	}
}

// TestSSHThatFails checks that a program that is not ssh, or an ssh that fails, is an error. It is
// called again at once only if the cause may have passed.
func TestSSHThatFails(t *testing.T) {
	for script, want := range map[string]struct {
		text      string
		transient bool
	}{
		"echo hello":                         {"is it OpenSSH 6.8 or later?", false},
		"exit 3":                             {"exit status 3", true},
		"echo 'no such thing' >&2; exit 255": {"ssh says: no such thing", false},
	} {
		t.Run(want.text, func(t *testing.T) {
			c, log := fakeSSH(t, "", script)
			for range 2 {
				_, _, err := c.Resolve(t.Context(), hostNamed("m"), "m")
				if err == nil || !strings.Contains(err.Error(), want.text) || IsTransient(err) != want.transient {
					t.Errorf("got %v, transient %t; want %q, %t", err, IsTransient(err), want.text, want.transient)
				}
			}
			if again := len(log()) > 1; again != want.transient {
				t.Errorf("asked %d times", len(log()))
			}
		})
	}
	c, err := newSSHConfig("", configLab(t), "/nonexistent/ssh")
	must(t, err)
	refuses(t, c, hostNamed("m"), "a", "/nonexistent/ssh")
}

// TestKnownHostsFilesMayHaveBlanks checks file names with blanks in a list that ssh prints without
// quotes.
func TestKnownHostsFilesMayHaveBlanks(t *testing.T) {
	file := write(t, filepath.Join(t.TempDir(), "my known hosts"), "")
	c := config(t, "UserKnownHostsFile /a \""+file+"\" /b\n")
	got, _, err := resolveAlias(c, "x")
	if err != nil || strings.Join(got.KnownHosts[:3], "|") != "/a|"+file+"|/b" {
		t.Errorf("got %+v, %v; want the three files of known hosts in order", got, err)
	}
}
