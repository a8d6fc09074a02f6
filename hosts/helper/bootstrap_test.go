package helper

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode"
	"unicode/utf8"

	"dcs-tui/hosts"
	"dcs-tui/hosts/link"
	"dcs-tui/internal/polltest"
)

// shellHost is a host for tests: a shell of this machine with its own HOME.
type shellHost struct {
	t     testing.TB
	home  string
	base  string   // the only location before work_dir
	shell string   // text of a script that runs the bootstrap, which is "$3"
	env   []string // environment of the host
	wrap  func(hosts.Stream) hosts.Stream

	mu  sync.Mutex
	log []string
}

func newShellHost(t *testing.T) *shellHost {
	dir := t.TempDir()
	f := &shellHost{t: t, home: filepath.Join(dir, "home"), base: filepath.Join(dir, "base"), shell: `exec "$@"`}
	must(t, os.Mkdir(f.home, 0o700))
	return f
}

// install gives the host the helper, so that nothing is sent.
func (f *shellHost) install() *shellHost {
	own, err := ownBinary()
	must(f.t, err)
	bin := filepath.Join(f.base, "bin")
	must(f.t, os.MkdirAll(bin, 0o700))
	must(f.t, os.Chmod(f.base, 0o700))
	content, err := os.ReadFile("/proc/self/exe")
	must(f.t, err)
	file(f.t, filepath.Join(bin, "dcs-tui-"+own.id), string(content))
	return f
}

// Open creates the link: env VARIABLES sh -c SHELL sh /bin/sh -c BOOTSTRAP.
func (f *shellHost) Open(ctx context.Context, h *hosts.Host) (hosts.Link, error) {
	argv := append([]string{"env", "HOME=" + f.home}, f.env...)
	return wrapped{link.NewLocal(h.Name, nil, append(argv, "/bin/sh", "-c", f.shell, "sh")...), f.wrap}, nil
}

// wrapped is a link whose streams a test can wrap, to intercept what the client and the host
// exchange.
type wrapped struct {
	hosts.Link
	wrap func(hosts.Stream) hosts.Stream
}

func (w wrapped) Start(ctx context.Context, command string) (hosts.Stream, error) {
	s, err := w.Link.Start(ctx, command)
	if err == nil && w.wrap != nil {
		s = w.wrap(s)
	}
	return s, err
}

func (f *shellHost) connector() *Connector {
	return New(Options{Opener: f, Bases: f.base, Log: func(host, line string) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.log = append(f.log, host+": "+line)
	}})
}

func (f *shellHost) connect(c *Connector) (hosts.Worker, error) {
	ctx, cancel := context.WithTimeout(f.t.Context(), polltest.Patience)
	defer cancel()
	return c.Connect(ctx, &hosts.Host{Name: "melon4", Link: "local"},
		&hosts.Open{Run: "r1", Host: "melon4", Cwd: "/data"})
}

// mustServe connects, pings, says goodbye, and returns the hello.
func (f *shellHost) mustServe(c *Connector) *hosts.Hello {
	f.t.Helper()
	w, err := f.connect(c)
	must(f.t, err)
	defer w.Close()
	must(f.t, w.Send(hosts.Ping{Seq: 41}, &hosts.Ping{Seq: 42}, hosts.Bye{}))
	var got []string
	for m := range w.Reports() {
		switch m := m.(type) {
		case *hosts.Heartbeat:
			got = append(got, fmt.Sprint(m.Seq))
		case *hosts.Trouble:
			got = append(got, m.Text)
		}
	}
	if s := strings.Join(got, " "); s != "early 41 42" || w.Err() != nil {
		f.t.Fatalf("reports %q, end %v", s, w.Err())
	}
	return w.Hello()
}

// TestBootstrapWorksInEveryLoginShell checks that the bootstrap works in every login shell,
// whatever its rc files print first, and that the second connection sends nothing.
func TestBootstrapWorksInEveryLoginShell(t *testing.T) {
	const noise = "Welcome to melon4\n*** quota: 93% ***\nno newline at the end:"
	for _, c := range []struct{ name, shell string }{
		{"sh", `exec "$@"`},
		{"dash", `cat "$HOME/noise"; exec dash -c "$3"`},
		{"bash", `BASH_ENV="$HOME/rc" exec bash -c "$3"`},
		{"tcsh", `exec tcsh -c "$3"`},
		{"csh", `exec csh -c "$3"`},
		{"zsh", `cat "$HOME/noise"; exec zsh -c "$3"`},
		{"ksh", `cat "$HOME/noise"; exec ksh -c "$3"`},
		{"fish", `cat "$HOME/noise"; exec fish -c "$3"`},
		{"bash for sh", `exec bash --posix -c "exec bash --posix -c ${3#exec /bin/sh -c }"`},
		{"busybox", `mkdir -p "$HOME/bb" && busybox --install -s "$HOME/bb"; PATH="$HOME/bb"; cat "$HOME/noise"; ` +
			`exec sh -c "exec sh -c ${3#exec /bin/sh -c }"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath(strings.Fields(c.name)[0]); err != nil {
				t.Skip("LEFT OUT: ", err)
			}
			f := newShellHost(t)
			f.shell = c.shell
			for name, text := range map[string]string{
				"noise": noise, "rc": `cat "$HOME/noise"`, ".tcshrc": "cat ~/noise\nset history=100\n",
			} {
				file(t, filepath.Join(f.home, name), text)
			}
			conn := f.connector()
			if h := f.mustServe(conn); h.Dir != f.base || h.Spool != "melon4" {
				t.Errorf("the helper runs from %s for %s, want %s", h.Dir, h.Spool, f.base)
			}
			own, _ := ownBinary()
			bin := filepath.Join(f.base, "bin", "dcs-tui-"+own.id)
			first, err := os.Stat(bin)
			if err != nil || first.Mode().Perm() != 0o700 {
				t.Fatalf("the directory of programs: got %v, %v; want mode 0700", first, err)
			}
			f.mustServe(conn)
			if again, err := os.Stat(bin); err != nil || !os.SameFile(first, again) {
				t.Errorf("sent again although it was there: %v", err)
			}
			if list, _ := os.ReadDir(filepath.Join(f.base, "bin")); len(list) != 1 {
				t.Errorf("left behind in bin: %v", list)
			}
			if info, _ := os.Stat(f.base); info.Mode().Perm() != 0o700 {
				t.Errorf("the place has mode %v", info.Mode())
			}
		})
	}
}

// TestUmaskIsPutBack checks that a child of the bootstrap runs with the umask of the login shell.
func TestUmaskIsPutBack(t *testing.T) {
	f := newShellHost(t).install()
	f.shell = `umask 027; exec "$@"`
	if h := f.mustServe(f.connector()); h.BootID != "0027" {
		t.Errorf("the helper's umask is %s, want 0027", h.BootID)
	}
}

// TestBootstrapTextIsPlain checks that the bootstrap contains only characters that every login
// shell passes on unchanged.
func TestBootstrapTextIsPlain(t *testing.T) {
	if s := bootstrapText; strings.ContainsAny(s, "!'\n\r\t") || strings.Contains(s, `\\`) || len(s) > 4000 {
		t.Errorf("%d bytes: %s", len(s), s)
	}
}

// TestUselessLoginShellIsBroken checks that a login shell that refuses, or that never stops printing,
// is Broken, and that the error quotes it without its control characters. A terminal between client
// and host, which would change our bytes, and a PATH without uname are Misconfigured, with advice.
func TestUselessLoginShellIsBroken(t *testing.T) {
	const broken, misconfigured = hosts.Broken, hosts.Misconfigured
	for _, c := range []struct {
		name, shell string
		class       hosts.Class
		want        string
	}{
		{"exits", `echo "This account is \033[1mclosed"; exit 1`, broken,
			`exit code 1; it printed "This account is closed"`},
		{"stderr", `echo "no shell today" >&2; exit 2`, broken, "no shell today"},
		{"no process", `echo "sh: 1: Cannot fork" >&2; echo "Killed" >&2; exit 137`, broken,
			"melon4: no more processes or threads can be started on this host (raise its limits (ulimit -u of"},
		{"no process in a place", `n=${3##* }; echo "$n sys $(uname -sm)"; read -r a; echo "$n skip /tmp: sh: 1: ` +
			`Cannot fork"; echo "$n none"; exit 8`, broken,
			"melon4: no more processes or threads can be started on this host (raise its limits (ulimit -u of"},
		{"noise", `yes "hello	there"`, broken, `never stops printing, more than 64 KiB; it printed "hello there"`},
		{"one long line", `yes | tr -d "\n"`, broken, `never stops printing`},
		{"exits 0", `exit 0`, broken, `ended: exit code 0`},
		{"answers nonsense", `echo "${3##* } what is this"; exec cat`, broken, `answered "what is this"`},
		{"later nonsense", `n=${3##* }; echo "$n sys $(uname -sm)"; echo "$n fish"; exec cat`, broken,
			`answered "fish"`},
		{"terminal", `printf '%s sys Linux x86_64\r\n' "${3##* }"; exec cat`, misconfigured,
			"allocates a terminal on the host (take -t out of the link"},
		{"no uname", `PATH=/opt/none:/opt/nothing; export PATH; exec "$@"`, misconfigured,
			`uname cannot be run there: PATH is "/opt/none:/opt/nothing" ` +
				`(a startup file there may set PATH wrongly; it must contain the directories of the usual programs`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := newShellHost(t)
			f.shell = c.shell
			_, err := f.connect(f.connector())
			if err == nil || hosts.ClassOf(err) != c.class || !strings.Contains(err.Error(), c.want) ||
				!strings.HasPrefix(err.Error(), "melon4: ") {
				t.Errorf("got %v (%v), want %v, %q", err, hosts.ClassOf(err), c.class, c.want)
			}
		})
	}
}

// TestCheckOfHostWithoutDirectory checks that a check can use a host that lacks the directory of the
// jobs, which a run with files that are sent does not need.
func TestCheckOfHostWithoutDirectory(t *testing.T) {
	t.Parallel()
	f := newShellHost(t).install()
	f.env = []string{"DCS_FAKE=cwd"}
	w, err := f.connector().Connect(t.Context(), &hosts.Host{Name: "melon4", Link: "local"},
		&hosts.Open{Run: "r1", Host: "melon4", Cwd: "/data", Check: true})
	must(t, err)
	defer w.Close()
	if got := w.Hello().CwdError; got != "no such directory" {
		t.Errorf("the hello reports %q", got)
	}
}

// TestHelpersThatCannotServe checks that each fault of a helper is an error of the right class that
// describes it, and that the helper's last lines of standard error are in the host's log (D9).
func TestHelpersThatCannotServe(t *testing.T) {
	for _, c := range []struct {
		how   string
		class hosts.Class
		want  string
	}{
		{"dies", hosts.Broken, "the helper ended: exit code 3: no spool here"},
		{
			"threads",
			hosts.Broken,
			"melon4: no more processes or threads can be started on this host (raise its limits (ulimit -u of",
		},
		{"forks", hosts.Broken, "the helper ended: exit code 3: the spool is gone"},
		{"old", hosts.Misconfigured, "the helper speaks version 99"},
		{"workdir", hosts.Misconfigured,
			"work_dir cannot be used: mkdir /proc/nowhere: no such file or directory; set work_dir for this host"},
		// This fault goes away without a person.
		{"full", hosts.Broken, "no job can be run here, its files could not be written: no space left on device"},
		{
			"cwd",
			hosts.Misconfigured,
			"jobs cannot run in /data there: no such directory " +
				"(in a new run, send the files of jobs with --send, " +
				"or name a directory that every host has with --cwd)",
		},
		{"fatal", hosts.Misconfigured, "spool cannot be made"},
		{"fenced", hosts.Broken, "another dispatcher has taken this run over (its epoch is 7)"},
	} {
		t.Run(c.how, func(t *testing.T) {
			t.Parallel()
			f := newShellHost(t).install()
			f.env = []string{"DCS_FAKE=" + c.how}
			_, err := f.connect(f.connector())
			if err == nil || hosts.ClassOf(err) != c.class || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v (%v), want %v, %q", err, hosts.ClassOf(err), c.class, c.want)
			}
			var fenced *hosts.FencedError
			if errors.As(err, &fenced) != (c.how == "fenced") || fenced != nil &&
				(fenced.By != 7 || fenced.Host != "melon4") {
				t.Errorf("fenced: %+v", fenced)
			}
			if c.how == "dies" && (len(f.log) != 1 || f.log[0] != "melon4: no spool here") {
				t.Errorf("log: %q", f.log)
			}
		})
	}
}

// TestCrashedHelperEndsTheReports checks that a helper that crashes after hello ends the reports,
// and that Err quotes the first line of the crash.
func TestCrashedHelperEndsTheReports(t *testing.T) {
	for how, want := range map[string]string{
		"panics": "panic: the helper is broken (this is a defect of dcs-tui: please report it with the lines that " +
			"follow it in dispatcher.log)",
		"aborts": "SIGABRT: abort",
	} {
		t.Run(how, func(t *testing.T) {
			f := newShellHost(t).install()
			f.env = []string{"DCS_FAKE=" + how}
			w, err := f.connect(f.connector())
			must(t, err)
			defer w.Close()
			must(t, w.Send(hosts.Ping{Seq: 1}))
			for range w.Reports() {
			}
			if err := w.Err(); hosts.ClassOf(err) != hosts.Broken ||
				!strings.HasSuffix(fmt.Sprint(err), "exit code 2: "+want) {
				t.Errorf("ended with %v, want %q", err, want)
			}
			if err := w.Send(hosts.Ping{Seq: 2}); err == nil {
				t.Error("Send works after the end")
			}
			f.mu.Lock()
			defer f.mu.Unlock()
			if !strings.Contains(strings.Join(f.log, "\n"), "goroutine ") {
				t.Errorf("the log holds no stack: %q", f.log)
			}
		})
	}
}

// startingWith returns a host whose bash reads rc as its startup file, and a counter of the bytes
// sent to it.
func startingWith(t *testing.T, rc string) (*shellHost, *counter) {
	t.Helper()
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("LEFT OUT: ", err)
	}
	f, sent := newShellHost(t).install(), &counter{}
	f.shell = `BASH_ENV="$HOME/rc" exec bash -c "$3"`
	f.wrap = func(s hosts.Stream) hosts.Stream { return tapped{s, sent} }
	file(t, filepath.Join(f.home, "rc"), rc)
	return f, sent
}

// TestStartupFileThatLooksAtItsInput checks that a startup file that reads standard input takes
// nothing that is meant for the bootstrap, because nothing has been sent yet.
func TestStartupFileThatLooksAtItsInput(t *testing.T) {
	for name, rc := range map[string]string{
		"a line":     "read -r -t 0.3 x && echo \"$x\" > \"$HOME/taken\"",
		"many bytes": "timeout 0.3 cat > \"$HOME/taken\"",
		"a shell":    "timeout 0.3 sh -c 'while read -r x; do echo \"$x\"; done' > \"$HOME/taken\"",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, _ := startingWith(t, rc)
			f.mustServe(f.connector())
			if taken, err := os.ReadFile(filepath.Join(f.home, "taken")); err == nil && len(taken) > 0 {
				t.Errorf("it took %q", taken)
			}
		})
	}
}

// TestStartupFileThatWaitsForInput checks that a startup file that waits for input gets none, and
// that the error names the cause.
func TestStartupFileThatWaitsForInput(t *testing.T) {
	for name, rc := range map[string]string{
		"asks":      `printf 'Which project? '; read -r x`,
		"a shell":   `exec sh`,
		"all of it": `cat > "$HOME/taken"`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, sent := startingWith(t, rc)
			c := f.connector()
			shown := "a startup file there"
			if name == "asks" {
				shown = `it printed "Which project?"`
			}
			var err error
			// A slow machine may need longer than the first limit to start the shell.
			for c.timeout = time.Second; c.timeout < time.Minute; c.timeout *= 2 {
				if _, err = f.connect(c); strings.Contains(fmt.Sprint(err), shown) {
					break
				}
			}
			if hosts.ClassOf(err) != hosts.Unreachable ||
				!strings.Contains(err.Error(), "while waiting for the login shell") ||
				!strings.Contains(err.Error(), "a startup file there, such as .bashrc, may read standard input") {
				t.Errorf("got %v", err)
			}
			if name == "asks" && !strings.Contains(err.Error(), `it printed "Which project?"`) {
				t.Errorf("its question is not quoted: %v", err)
			}
			if sent.n != 0 {
				t.Errorf("%d bytes were sent to it", sent.n)
			}
		})
	}
}

// TestLimitOfTheAddressSpace checks that a limit of the address space that is too small for a Go
// program is named, and that a larger one is no obstacle.
func TestLimitOfTheAddressSpace(t *testing.T) {
	f, _ := startingWith(t, "ulimit -v 600000")
	_, err := f.connect(f.connector())
	if hosts.ClassOf(err) != hosts.Misconfigured ||
		!strings.Contains(err.Error(), "limited to 600000 kB (ulimit -v)") ||
		!strings.Contains(err.Error(), "needs 1000000 kB") {
		t.Errorf("got %v", err)
	}
	f, _ = startingWith(t, "ulimit -v 4000000")
	f.mustServe(f.connector())
}

// silentLink is a link whose far end says nothing, and that knows why.
type silentLink struct{ *memLink }

func (l silentLink) Open(context.Context, *hosts.Host) (hosts.Link, error) { return l, nil }
func (silentLink) ExplainSilence() (cause, advice string) {
	return "it goes through a hanging tunnel", "end the tunnel"
}

// TestSilentLinkExplainsItself checks that the error for a host that does not answer contains what
// the link knows about the cause.
func TestSilentLinkExplainsItself(t *testing.T) {
	c := New(Options{Opener: silentLink{newMemLink()}})
	c.timeout = 100 * time.Millisecond
	_, err := c.Connect(t.Context(), &hosts.Host{Name: "ws01", Link: "command"}, &hosts.Open{})
	if err == nil || !strings.Contains(err.Error(),
		"waiting for the login shell; it goes through a hanging tunnel (end the tunnel)") {
		t.Errorf("got %v, want the explanation of the link", err)
	}
}

// handshake returns everything that a working host sends. deploy reports whether the host needs the
// binary.
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
	NewWriter(&b).Write(append([]hosts.Message{hello}, more...)...)
	return b.Bytes()
}

// memConnector returns a Connector that connects over l and has size bytes to send as its program.
func memConnector(t *testing.T, l *memLink, size int) *Connector {
	path := filepath.Join(t.TempDir(), "program")
	must(t, os.WriteFile(path, bytes.Repeat([]byte("x"), size), 0o600))
	b, err := loadBinary(path, "our own program")
	must(t, err)
	t.Cleanup(func() { b.close() })
	c := New(Options{Opener: l})
	c.binaries.own = func() (*program, error) { return b, nil }
	return c
}

func memConnect(ctx context.Context, c *Connector) (hosts.Worker, error) {
	return c.Connect(ctx, &hosts.Host{Name: "melon4"}, &hosts.Open{Run: "r1", Host: "melon4"})
}

// TestHandshakeCutAtEachByte checks that a link that is cut after any number of bytes of the
// handshake returns an error of the right class, and never hangs or returns a worker. The cut is
// visible because the far end died, or silent. A silent cut is found within the deadline.
func TestHandshakeCutAtEachByte(t *testing.T) {
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
						if w != nil || err == nil || hosts.ClassOf(err) != cut.class ||
							!strings.HasPrefix(err.Error(), "melon4: ") {
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

// TestHandshakeReturnsAWorker checks that the complete handshake returns a worker.
func TestHandshakeReturnsAWorker(t *testing.T) {
	for _, deploy := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			l := newMemLink()
			l.script = func(n string) []byte { return handshake(n, deploy, hosts.Heartbeat{Seq: 3}) }
			w, err := memConnect(t.Context(), memConnector(t, l, 1000))
			must(t, err)
			if m := <-w.Reports(); m.(*hosts.Heartbeat).Seq != 3 {
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

// TestCheckNamesSkippedDirectories checks that a check warns about a directory that cannot be used for the
// spool, such as one on a full disk, and that a run, which needs no repair, does not.
func TestCheckNamesSkippedDirectories(t *testing.T) {
	for _, isCheck := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			l := newMemLink()
			l.script = func(n string) []byte { return handshake(n, true) }
			w, err := memConnector(t, l, 1000).Connect(t.Context(), &hosts.Host{Name: "melon4"},
				&hosts.Open{Run: "r1", Host: "melon4", Check: isCheck})
			must(t, err)
			defer w.Close()
			warnings := strings.Join(w.Hello().Warnings, "; ")
			if strings.Contains(warnings, "/var/tmp/dcs-1: is full") != isCheck {
				t.Errorf("a check: %t, warnings %q", isCheck, warnings)
			}
		})
	}
}

// TestEachStepHasADeadline checks that each step that gets no answer ends at its deadline, and that
// the error names the step.
func TestEachStepHasADeadline(t *testing.T) {
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

// TestSlowUploadGoesOn checks that a slow upload may take as long as it makes progress.
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
		must(t, err)
		if took := time.Since(start); took < 10*time.Minute {
			t.Errorf("took only %v", took)
		}
		w.Close()
	})
}

// TestConnectHonoursContext checks that the caller's ctx ends Connect at once, and that it has no
// effect after Connect has returned.
func TestConnectHonoursContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(3*time.Second, cancel)
		l := newMemLink()
		start := time.Now()
		if _, err := memConnect(ctx, memConnector(t, l, 1000)); !errors.Is(err, context.Canceled) ||
			time.Since(start) != 3*time.Second {
			t.Errorf("got %v after %v", err, time.Since(start))
		}
		ctx, cancel = context.WithCancel(t.Context())
		l = newMemLink()
		l.script = func(n string) []byte { return handshake(n, false) }
		w, err := memConnect(ctx, memConnector(t, l, 1000))
		must(t, err)
		cancel()
		synctest.Wait()
		if err := w.Send(hosts.Ping{}); err != nil {
			t.Errorf("ctx of Connect still counts: %v", err)
		}
		w.Close()
	})
}

// TestHostCannotControlTheTerminal checks that what a host prints cannot control the terminal or
// hide itself.
func TestHostCannotControlTheTerminal(t *testing.T) {
	for in, want := range map[string]string{
		"plain  text ":                       "plain  text",
		"\x1b[1;31mred\x1b[0m":               "red",
		"\x1b]0;title\x07after":              "after",
		"\x1b]8;;http://x\x1b\\link":         "link",
		"\x1b(Bx\x1b=y\x1bcz":                "xyz",
		"tab\there\r\n":                      "tab here",
		"bell\x07 nul\x00 del\x7f c1\u009b!": "bell nul del c1!",
		"evil\u202etxt.exe":                  "eviltxt.exe",
		"not utf-8: \xff\xfe":                "not utf-8: \uFFFD\uFFFD",
		"é 日本":                               "é 日本",
		"\x1b":                               "",
	} {
		t.Run(in, func(t *testing.T) {
			if got := clean(in); got != want {
				t.Errorf("clean(%q) = %q, want %q", in, got, want)
			}
		})
	}
}

// FuzzClean checks that any bytes become one bounded, printable line.
func FuzzClean(f *testing.F) {
	f.Add("\x1b[31mred\x1b[0m\r\n")
	f.Add("\x1b]0;title")
	f.Add(strings.Repeat("日", 3000))
	f.Fuzz(func(t *testing.T, in string) {
		out := clean(in)
		if len(out) > maxLine || !utf8.ValidString(out) || strings.ContainsFunc(out, unicode.IsControl) {
			t.Errorf("clean(%q) = %q", in, out)
		}
	})
}

// FuzzAnswers checks that reading the far end's answers ends, whatever it prints, and that a line
// without the nonce is never an answer.
func FuzzAnswers(f *testing.F) {
	f.Add("Welcome\nN0 sys Linux x86_64\nN0 have /tmp\nN0 go\n")
	f.Add("no newline: N0 sys Linux x86_64\r\n")
	f.Add(strings.Repeat("x", maxNoise+1))
	f.Add(strings.Repeat("x\n", maxNoise))
	f.Fuzz(func(t *testing.T, in string) {
		a := newAnswers(strings.NewReader(in), "N0")
		for n := 0; ; n++ {
			_, rest, err := a.next()
			if err != nil {
				if !errors.Is(err, io.EOF) && !errors.Is(err, errNoise) && !errors.Is(err, errTerminal) {
					t.Error(err)
				}
				break
			}
			if n >= strings.Count(in, "N0 ") || strings.Contains(rest, "\n") {
				t.Fatalf("answer %d %q out of %q", n, rest, in)
			}
		}
		if a.bytesRead > 2*maxNoise {
			t.Errorf("read %d bytes", a.bytesRead)
		}
	})
}

// TestLinesOfStderrAreBounded checks that a bounded number of bounded lines of a helper's standard
// error is kept, and that the panic is found among the lines that follow it.
func TestLinesOfStderrAreBounded(t *testing.T) {
	n := 0
	long := strings.Repeat("y", 10*maxLine)
	text := "panic: lost in time\n" + strings.Repeat("goroutine\n", 100) + strings.Repeat("z", 100) + "\n" + long +
		"\nlast"
	l := listen(strings.NewReader(text), func(line string) {
		if n++; len(line) > maxLine {
			t.Errorf("a line of %d bytes", len(line))
		}
	}, newAllowance(), nil)
	<-l.done
	if got := l.output(); got != ": panic: lost in time" {
		t.Errorf("output %q", got)
	}
	if n != 113 {
		t.Errorf("%d lines logged, want 113", n)
	}
	l = listen(strings.NewReader(strings.Repeat(long+"\n", 100)+"last\n\n"), nil, newAllowance(), nil)
	<-l.done
	if kept := len(l.crash) + len(l.last); kept > 2*maxLine || l.output() != ": last" {
		t.Errorf("%d bytes kept, output %q", kept, l.output())
	}
}

// outOfThreads is the output of a Go program that cannot start another thread.
const outOfThreads = "runtime: failed to create new OS thread (have 5 already; errno=11)\nfatal error: newosproc\n"

// TestCrashIsQuotedByItsFirstLine checks that the first line of a crash is quoted, however long the
// stacks and registers after it are.
func TestCrashIsQuotedByItsFirstLine(t *testing.T) {
	stacks := "\n" + strings.Repeat("goroutine 7 [select]:\nmain.wait(0xc0000b2000)\n\t/src/wait.go:17 +0x4f\n", 3000)
	registers := "rax    0x0\nrip    0x46e2a1\nfs     0x0\ngs     0x0\n"
	const denied = "ws01: Permission denied (publickey).\n"
	for text, want := range map[string]string{
		"panic: no such job\n" + stacks: "panic: no such job",
		"panic: first [recovered]\n\tpanic: second\n" +
			stacks: "panic: first [recovered]",
		"reading the spool\nfatal error: all goroutines are asleep - deadlock!\n" +
			stacks: "fatal error: all goroutines are asleep - deadlock!",
		"SIGABRT: abort\nPC=0x46e2a1 m=0 sigcode=0\n" + stacks +
			registers: "SIGABRT: abort",
		"SIGQUIT: quit\nPC=0x46e2a1 m=0 sigcode=0\n" + stacks + registers: "SIGQUIT: quit",
		"unexpected fault address 0x7f01\nfatal error: fault\n[signal SIGBUS: bus error]\n" +
			stacks: "unexpected fault address 0x7f01",
		outOfThreads: "no more processes or threads can be started on this host",
		"Warning: Permanently added 'ws01'\n" + denied: strings.TrimSpace(denied),
		"runtime is 3 hours\nnot found\n":              "not found",
	} {
		t.Run(text, func(t *testing.T) {
			l := listen(strings.NewReader(text), nil, newAllowance(), nil)
			<-l.done
			if got := l.output(); got != ": "+want {
				t.Errorf("of %.40q it quotes %q, want %q", text, got, want)
			}
		})
	}
}

// TestProcessLimitIsRecognized checks that what the Go runtime and shells print when they cannot start
// a thread or a process is told from other lines, and from panics of our own code.
func TestProcessLimitIsRecognized(t *testing.T) {
	for line, want := range map[string]bool{
		"runtime: failed to create new OS thread (have 5 already; errno=11)":   true,
		"runtime: failed to create new OS thread (have 5 already; errno=12)":   false,
		"runtime: may need to increase max user processes (ulimit -u)":         true,
		"runtime/cgo: pthread_create failed: Resource temporarily unavailable": true,
		"dcs-tui: 1: Cannot fork":                                                  true, // dash
		"bash: fork: retry: Resource temporarily unavailable":                      true,
		"sh: can't fork: Resource temporarily unavailable":                         true, // busybox
		"ksh: fork: cannot fork [Resource temporarily unavailable]":                true,
		"zsh:1: fork failed: resource temporarily unavailable":                     true,
		"timeout: fork system call failed: Resource temporarily unavailable":       true,
		"panic: fork/exec /bin/sh: resource temporarily unavailable":               false,
		"read: Resource temporarily unavailable":                                   false,
		"fatal error: all goroutines are asleep - deadlock!":                       false,
		"fork me on the web":                                                       false,
		"SIGABRT: abort":                                                           false,
		"ssh: connect to host pitchfork port 22: Resource temporarily unavailable": false,
	} {
		t.Run(line, func(t *testing.T) {
			if got := IsProcessLimit(line); got != want {
				t.Errorf("%q: %v, want %v", line, got, want)
			}
		})
	}
	for output, want := range map[string]string{
		outOfThreads: "no more processes or threads can be started on this host",
		"panic: no slot\n\ngoroutine 1 [running]:\n": "panic: no slot " +
			"(this is a defect of dcs-tui: please report it)",
		"a line\nanother\n": "a line\nanother\n",
	} {
		t.Run(output, func(t *testing.T) {
			if got := ExplainCrash(output); got != want {
				t.Errorf("of %q it shows %q, want %q", output, got, want)
			}
		})
	}
}
