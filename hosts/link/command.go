package link

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/internal/text"
)

// CommandOpener opens links through the command that the inventory gives a host.
type CommandOpener struct{}

// Open returns a link at once. The command runs with Start for the first time.
func (CommandOpener) Open(ctx context.Context, h *hosts.Host) (hosts.Link, error) {
	if err := ctx.Err(); err != nil {
		return nil, &hosts.Error{Host: h.Name, Class: hosts.Unreachable, Err: err}
	}
	if len(h.Command) == 0 { // NewLocal would run on this machine
		return nil, &hosts.Error{
			Host:   h.Name,
			Class:  hosts.Misconfigured,
			Err:    errors.New("there is no command to reach it"),
			Advice: `set link = "COMMAND …" in the inventory`,
		}
	}
	inner := NewLocal(h.Name, withoutAskpass(os.Environ()), h.Command...)
	if h.Shells == 0 {
		return inner, nil
	}
	return &commandLink{Link: inner, host: h}, nil
}

// withoutAskpass returns env without the variables that make ssh start an askpass
// program. With 100 hosts it would open 100 windows, and again at each attempt. Older
// versions of ssh know only the first of the two variables.
func withoutAskpass(env []string) []string {
	env = slices.DeleteFunc(slices.Clone(env), func(v string) bool {
		return strings.HasPrefix(v, "SSH_ASKPASS=") || strings.HasPrefix(v, "SSH_ASKPASS_REQUIRE=")
	})
	return append(env, "SSH_ASKPASS_REQUIRE=never")
}

// commandLink is the Link of a command, such as ssh, that joins its arguments.
type commandLink struct {
	hosts.Link
	host *hosts.Host
}

// Start runs command, quoted once for each shell that will split it.
func (l *commandLink) Start(ctx context.Context, command string) (hosts.Stream, error) {
	for range l.host.Shells {
		command = hosts.ShellQuote(command)
	}
	s, err := l.Link.Start(ctx, command)
	if err != nil {
		return nil, err
	}
	return &commandStream{Stream: s, host: l.host, stderr: newStderrTail(s.Stderr())}, nil
}

// controlTimeout bounds the question for the ControlPath. Tests lengthen it.
var controlTimeout = 2 * time.Second

// ExplainSilence names the shared connection (ControlMaster) that ssh uses, which may hang.
func (l *commandLink) ExplainSilence() (cause, advice string) {
	argv := l.host.Command
	if filepath.Base(argv[0]) != "ssh" {
		return "", ""
	}
	ctx, cancel := context.WithTimeout(context.Background(), controlTimeout)
	defer cancel()
	out, err := exec.CommandContext(ctx, argv[0], append([]string{"-G"}, argv[1:]...)...).Output()
	if err != nil {
		return "", ""
	}
	path := parseSettings(string(out)).first("controlpath")
	info, err := os.Stat(path)
	if err != nil || info.Mode().Type() != os.ModeSocket {
		return "", ""
	}
	exit := append([]string{argv[0], "-O", "exit"}, argv[1:]...)
	return "ssh uses the shared connection " + path + " (ControlMaster), which may hang",
		"`" + commandLine(exit) + "` ends that connection"
}

// sshFailed is the exit status of ssh when it could not run the command, or when the
// connection broke.
const sshFailed = 255

// stderrDelay bounds how long Wait waits for the end of standard error after ssh has
// ended. A shared connection that ssh left in the background may hold it open.
const stderrDelay = time.Second

// commandStream is a command that ssh runs. ssh reports on standard error why it failed.
type commandStream struct {
	hosts.Stream
	host     *hosts.Host
	stderr   *stderrTail
	loggedIn atomic.Bool // output came from the far end
}

func (s *commandStream) Read(p []byte) (int, error) {
	n, err := s.Stream.Read(p)
	if n > 0 {
		s.loggedIn.Store(true)
	}
	return n, err
}

func (s *commandStream) Stderr() io.Reader { return s.stderr }

// Wait returns an *Error that quotes ssh if ssh failed, and the error of the command
// otherwise.
func (s *commandStream) Wait() error {
	err := s.Stream.Wait()
	var exit *hosts.ExitError
	if !errors.As(err, &exit) || exit.Code != sshFailed {
		return err
	}
	closedWithin(s.stderr.ended, stderrDelay)
	if why := explainSSH(s.host, s.stderr.lines(), s.loggedIn.Load()); why != nil {
		return why
	}
	return err
}

const (
	maxStderrLine = 400      // bytes of a quoted line
	maxStderrTail = 16 << 10 // bytes that are kept
)

// stderrTail passes on the standard error of a command and keeps its last bytes.
type stderrTail struct {
	r     io.Reader
	ended chan struct{} // closed at the end of r
	once  sync.Once

	mu   sync.Mutex
	kept []byte
}

func newStderrTail(r io.Reader) *stderrTail { return &stderrTail{r: r, ended: make(chan struct{})} }

func (w *stderrTail) Read(p []byte) (int, error) {
	n, err := w.r.Read(p)
	w.mu.Lock()
	w.kept = append(w.kept, p[:n]...)
	if over := len(w.kept) - maxStderrTail; over > 0 {
		w.kept = slices.Delete(w.kept, 0, over)
	}
	w.mu.Unlock()
	if err != nil {
		w.once.Do(func() { close(w.ended) })
	}
	return n, err
}

func (w *stderrTail) lines() (lines []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for line := range bytes.Lines(w.kept) {
		if s := text.Clean(strings.TrimSpace(string(line)), maxStderrLine); s != "" {
			lines = append(lines, s)
		}
	}
	return lines
}

// sshFailure is a reason for which OpenSSH's client fails.
type sshFailure struct {
	line   *regexp.Regexp
	class  hosts.Class
	advice string // %s is the command to type by hand
}

// sshFailures lists the reasons for which OpenSSH's client fails. The first row that matches
// any line applies: after a refusal by a gateway ssh prints another line, about the closed
// connection.
var sshFailures = sync.OnceValue(func() []sshFailure {
	return []sshFailure{
		{regexp.MustCompile(`REMOTE HOST IDENTIFICATION HAS CHANGED`), hosts.HostKey,
			"the connection may be intercepted, or the machine was reinstalled: ask who runs it; " +
				"`%s` shows the line of known_hosts"},
		{regexp.MustCompile(`^No .*host key is known for|^Host key verification failed|` +
			`^Host key for .* has changed`), hosts.HostKey,
			"run `%s` in a terminal once, compare the fingerprint, and answer yes"},
		{regexp.MustCompile(`Permission denied \(|Too many authentication failures|^No more authentication methods|` +
			`^Authentication failed`), hosts.Denied,
			"`%s` must log in without a question, because ssh has no terminal here: add the key to ssh-agent, " +
				"get a Kerberos ticket, " +
				"or, for a password or a second factor, open a shared connection first (ControlMaster)"},
		{regexp.MustCompile(`Bad configuration option|terminating, \d+ bad|Bad owner or permissions|^usage: |` +
			`^unknown option|^Missing argument|` +
			`Cannot execute command-line and remote command|^command-line(:| line) |no argument after keyword`),
			hosts.Misconfigured,
			"correct the link in the inventory, or the ssh configuration, until `%s` works"},
		{regexp.MustCompile(`^(ssh|kex_exchange_identification|ssh_exchange_identification|banner exchange|` +
			`client_loop|mux_client_\w+|channel \d+): |` +
			`^(Connection (to|closed|reset|timed out)|Shared connection to|Received disconnect|Disconnected|` +
			`Timeout, server|Control socket|stdio forwarding failed)`), hosts.Unreachable, ""},
	}
})

// explainSSH returns an error that quotes the line with which ssh explains its failure, or
// nil if there is none. Programs at the far end write to the same stream, so once ssh
// has logged in, only rows of class Unreachable apply.
func explainSSH(h *hosts.Host, lines []string, loggedIn bool) error {
	for _, failure := range sshFailures() {
		if loggedIn && failure.class != hosts.Unreachable {
			continue
		}
		for _, line := range lines {
			if !failure.line.MatchString(line) {
				continue
			}
			e := &hosts.Error{
				Host:  h.Name,
				Class: failure.class,
				Err:   fmt.Errorf("ssh says: %s", strings.Trim(line, "@ ")),
			}
			if failure.advice != "" {
				e.Advice = fmt.Sprintf(failure.advice, commandLine(h.Command)+" true")
			}
			return e
		}
	}
	return nil
}

// commandLine returns argv as a person types it.
func commandLine(argv []string) string {
	return strings.Join(text.Each(argv, text.ShellWord), " ")
}
