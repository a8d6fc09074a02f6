package client

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/hosts/locallink"
)

// far is a host for tests: a shell of this machine with a HOME of its own.
type far struct {
	t     testing.TB
	home  string
	base  string   // the only place before work_dir
	shell string   // text of a script that runs the bootstrap, which is "$3"
	env   []string // of the far side
	wrap  func(hosts.Stream) hosts.Stream

	mu  sync.Mutex
	log []string
}

func newFar(t *testing.T) *far {
	dir := t.TempDir()
	f := &far{t: t, home: filepath.Join(dir, "home"), base: filepath.Join(dir, "base"), shell: `exec "$@"`}
	if err := os.Mkdir(f.home, 0o700); err != nil {
		t.Fatal(err)
	}
	return f
}

// Open makes the link: env VARIABLES sh -c SHELL sh /bin/sh -c BOOTSTRAP.
func (f *far) Open(ctx context.Context, h *hosts.Host) (hosts.Link, error) {
	argv := append([]string{"env", "HOME=" + f.home}, f.env...)
	return wrapped{locallink.New(h.Name, nil, append(argv, "/bin/sh", "-c", f.shell, "sh")...), f.wrap}, nil
}

// wrapped lets a test stand between the client and the far side.
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

func (f *far) connector() *Connector {
	return New(Options{Opener: f, Bases: f.base, Log: func(host, line string) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.log = append(f.log, host+": "+line)
	}})
}

func (f *far) connect(c *Connector) (hosts.Worker, error) {
	ctx, cancel := context.WithTimeout(f.t.Context(), 2*time.Minute)
	defer cancel()
	return c.Connect(ctx, &hosts.Host{Name: "melon4", Link: "local"}, &hosts.Open{Run: "r1", Host: "melon4", Cwd: "/data"})
}

// mustServe connects, pings, says goodbye, and returns the hello.
func (f *far) mustServe(c *Connector) *hosts.Hello {
	f.t.Helper()
	w, err := f.connect(c)
	if err != nil {
		f.t.Fatal(err)
	}
	defer w.Close()
	if err := w.Send(hosts.Ping{Seq: 41}, &hosts.Ping{Seq: 42}, hosts.Bye{}); err != nil {
		f.t.Fatal(err)
	}
	var got []string
	for m := range w.Reports() {
		switch m := m.(type) {
		case *hosts.Beat:
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

// The bootstrap works below every login shell, whatever its rc files print
// first, and the second connection sends nothing.
func TestLoginShells(t *testing.T) {
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
		{"busybox", `mkdir -p "$HOME/bb" && busybox --install -s "$HOME/bb"; PATH="$HOME/bb"; cat "$HOME/noise"; exec sh -c "exec sh -c ${3#exec /bin/sh -c }"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := exec.LookPath(strings.Fields(c.name)[0]); err != nil {
				t.Skip("LEFT OUT: ", err)
			}
			f := newFar(t)
			f.shell = c.shell
			for name, text := range map[string]string{
				"noise": noise, "rc": `cat "$HOME/noise"`, ".tcshrc": "cat ~/noise\nset history=100\n",
			} {
				if err := os.WriteFile(filepath.Join(f.home, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			conn := f.connector()
			if h := f.mustServe(conn); h.Dir != f.base || h.Spool != "melon4" {
				t.Errorf("the helper runs from %s for %s, want %s", h.Dir, h.Spool, f.base)
			}
			own, _ := ownBinary()
			bin := filepath.Join(f.base, "bin", "dcs-tui-"+own.hash)
			first, err := os.Stat(bin)
			if err != nil || first.Mode().Perm() != 0o700 {
				t.Fatalf("%v %v", first, err)
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

// A child of the bootstrap runs with the umask that the login shell gave.
func TestUmaskIsPutBack(t *testing.T) {
	f := newFar(t)
	f.shell = `umask 027; exec "$@"`
	if h := f.mustServe(f.connector()); h.BootID != "0027" {
		t.Errorf("the helper's umask is %s, want 0027", h.BootID)
	}
}

// The text keeps to what every login shell passes on unchanged.
func TestBootstrapTextIsPlain(t *testing.T) {
	if s := bootstrapText; strings.ContainsAny(s, "!'\n\r\t") || strings.Contains(s, `\\`) || len(s) > 4000 {
		t.Errorf("%d bytes: %s", len(s), s)
	}
}

// A login shell that refuses, or has no end of things to say, is Broken, and the
// error quotes it without its control characters.
func TestUselessLoginShells(t *testing.T) {
	for _, c := range []struct{ name, shell, want string }{
		{"exits", `echo "This account is \033[1mclosed"; exit 1`, `exit code 1; it printed "This account is closed"`},
		{"stderr", `echo "no shell today" >&2; exit 2`, "no shell today"},
		{"noise", `yes "hello	there"`, `prints without end, more than 64 KiB; it printed "hello there"`},
		{"one long line", `yes | tr -d "\n"`, `prints without end`},
		{"exits 0", `exit 0`, `ended: exit code 0`},
		{"answers nonsense", `echo "${3##* } what is this"; exec cat`, `answered "what is this"`},
		{"later nonsense", `n=${3##* }; echo "$n sys $(uname -sm)"; echo "$n fish"; exec cat`, `answered "fish"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFar(t)
			f.shell = c.shell
			_, err := f.connect(f.connector())
			if err == nil || hosts.ClassOf(err) != hosts.Broken || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "melon4: ") {
				t.Errorf("got %v (%v), want broken, %q", err, hosts.ClassOf(err), c.want)
			}
		})
	}
}

// What is wrong with a helper is an error of the right class that says so; its
// last words are in the host's log (D9).
func TestHelpersThatCannotServe(t *testing.T) {
	for _, c := range []struct {
		how   string
		class hosts.Class
		want  string
	}{
		{"dies", hosts.Broken, "the helper ended: exit code 3: no spool here"},
		{"old", hosts.Misconfigured, "the helper speaks version 99"},
		{"workdir", hosts.Misconfigured, "work_dir cannot be used: mkdir /proc/nowhere: no such file or directory; set work_dir for this host"},
		{"full", hosts.Broken, "no job can be run here, its files could not be written: no space left on device"}, // passes by itself: issue 3.6
		{"cwd", hosts.Misconfigured, "jobs cannot run in /data there: no such directory (name a directory that every host has with --cwd)"},
		{"fatal", hosts.Misconfigured, "spool cannot be made"},
		{"fenced", hosts.Broken, "another dispatcher has taken this run over (its epoch is 7)"},
	} {
		t.Run(c.how, func(t *testing.T) {
			f := newFar(t)
			f.env = []string{"DCS_FAKE=" + c.how}
			_, err := f.connect(f.connector())
			if err == nil || hosts.ClassOf(err) != c.class || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v (%v), want %v, %q", err, hosts.ClassOf(err), c.class, c.want)
			}
			var fenced *hosts.FencedError
			if errors.As(err, &fenced) != (c.how == "fenced") || fenced != nil && (fenced.By != 7 || fenced.Host != "melon4") {
				t.Errorf("fenced: %+v", fenced)
			}
			if c.how == "dies" && (len(f.log) != 1 || f.log[0] != "melon4: no spool here") {
				t.Errorf("log: %q", f.log)
			}
		})
	}
}

// A helper that crashes after hello ends the reports, and Err quotes the first line of
// the crash.
func TestHelperCrashes(t *testing.T) {
	for how, want := range map[string]string{"panics": "panic: the helper is broken", "aborts": "SIGABRT: abort"} {
		t.Run(how, func(t *testing.T) {
			f := newFar(t)
			f.env = []string{"DCS_FAKE=" + how}
			w, err := f.connect(f.connector())
			if err != nil {
				t.Fatal(err)
			}
			defer w.Close()
			if err := w.Send(hosts.Ping{Seq: 1}); err != nil {
				t.Fatal(err)
			}
			for range w.Reports() {
			}
			if err := w.Err(); hosts.ClassOf(err) != hosts.Broken || !strings.HasSuffix(fmt.Sprint(err), "exit code 2: "+want) {
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
