package link

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"dcs-tui/internal/text"
	"dcs-tui/internal/trust"
)

const (
	askTimeout      = 10 * time.Second // of one `ssh -G`; a `Match exec` in the configuration may run anything
	maxSSHProcesses = 8                // concurrent `ssh -G` processes
	maxStderr       = 1000             // bytes of ssh's standard error in an error

	// answerLifetime is how long an answer of `ssh -G` is used. Hosts that are dialed together
	// share the answer for their gateway. Each later connection asks again, because the
	// result of a `Match exec` may have changed.
	answerLifetime = 5 * time.Second
)

// unknownHost is a name that no configuration mentions.
const unknownHost = "dcs-tui.invalid"

// SSHConfig resolves hosts by the user's ssh configuration, which it reads with `ssh -G`. An answer
// is used for answerLifetime, so a change of the files affects the next connection. It is safe for
// concurrent use.
type SSHConfig struct {
	env          *environment
	program      string // path of ssh; "": it is not installed
	path         string // absolute, for all hosts; "": that of the host, or the usual files
	timeout      time.Duration
	run          func(args []string) (settings, error) // runs `ssh -G`; tests replace it
	processSlots chan struct{}                         // holds one element for each process

	mu      sync.Mutex
	answers map[string]*answer // by the arguments
}

// answer is what `ssh -G` printed.
type answer struct {
	ready    chan struct{} // closed when the other fields are valid
	settings settings
	err      error
	at       time.Time
}

// LoadSSHConfig returns the configuration in the file at path; "" means that of a host (SSHConfig),
// or ~/.ssh/config and /etc/ssh/ssh_config, each if it exists. With a path the system's file is ignored,
// as with `ssh -F`. The path must be a readable file. Its content is read by ssh when a
// host is resolved.
func LoadSSHConfig(path string) (*SSHConfig, error) {
	program, _ := exec.LookPath("ssh") // a missing program matters only when a host is resolved
	return newSSHConfig(path, currentEnvironment(), program)
}

func newSSHConfig(path string, env *environment, program string) (*SSHConfig, error) {
	if path != "" {
		var err error
		if path, err = checkReadable(path); err != nil {
			return nil, fmt.Errorf("ssh configuration: %w", err)
		}
	}
	c := &SSHConfig{env: env, program: program, path: path, timeout: askTimeout,
		processSlots: make(chan struct{}, maxSSHProcesses), answers: map[string]*answer{}}
	c.run = c.runSSH
	return c, nil
}

// checkReadable returns the absolute path, because ssh takes a file named "none" for no
// file at all. It refuses what cannot be read repeatedly: `ssh -F` accepts a directory,
// each question would drain a pipe, and ssh reads /dev/zero until memory is used up.
func checkReadable(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	null, err := os.Stat(os.DevNull)
	if !info.Mode().IsRegular() && (err != nil || !os.SameFile(info, null)) {
		return "", fmt.Errorf("%s is not an ssh configuration file", path)
	}
	// ssh checks only ~/.ssh/config. This file can have a ProxyCommand, too.
	if _, err := trust.Check(info, path, trust.Strict); err != nil {
		return "", err
	}
	return filepath.Abs(path)
}

// settings maps keywords in lower case to their values, as `ssh -G` prints them.
type settings map[string][]string

func parseSettings(text string) settings {
	s := settings{}
	for line := range strings.Lines(text) {
		keyword, value, _ := strings.Cut(strings.TrimRight(line, "\r\n"), " ")
		if value != "" {
			keyword = strings.ToLower(keyword)
			s[keyword] = append(s[keyword], value)
		}
	}
	return s
}

// first returns the first value of a keyword, or "" if there is none.
func (s settings) first(keyword string) string {
	if v := s[keyword]; len(v) > 0 {
		return v[0]
	}
	return ""
}

// NoSSHError reports that the program ssh, which does something, was not found in $PATH.
func NoSSHError(does string) error {
	if os.Getenv("PATH") == "" {
		return fmt.Errorf("PATH is not set, so that ssh, which %s, is not found: "+
			"set it, for example to /usr/bin:/bin", does)
	}
	return fmt.Errorf("there is no ssh program, which %s: install the OpenSSH client (openssh-client)", does)
}

// settingsOf returns the settings of a host, without those that are OpenSSH's defaults, other than
// the user: ssh knows the name of the current user better than a static Go program does. The
// identity of the inventory is not passed: ssh leaves a key that does not exist out of its
// answer, and nothing else in the answer depends on the key.
func (c *SSHConfig) settingsOf(ctx context.Context, q request) (settings, error) {
	if c.program == "" {
		return nil, NoSSHError("resolves names by your ssh configuration")
	}
	defaults, err := c.query(ctx, true, "-F", "/dev/null", "--", unknownHost)
	if err != nil {
		return nil, err
	}
	args, err := q.options()
	if err != nil {
		return nil, err
	}
	all, err := c.query(ctx, false, append(args, "--", q.alias)...)
	if err != nil {
		return nil, err
	}
	s := settings{}
	for keyword, values := range all {
		if keyword == "hostname" || keyword == "user" || !slices.Equal(values, defaults[keyword]) {
			s[keyword] = values
		}
	}
	return s, nil
}

// options returns the options with which ssh makes the same connection, without the identity.
func (q request) options() (args []string, err error) {
	if q.config != "" {
		args = append(args, "-F", q.config)
	}
	if q.user != "" {
		args = append(args, "-l", q.user)
	}
	if q.port != 0 {
		args = append(args, "-p", strconv.Itoa(q.port))
	}
	if q.jump != nil {
		jump, err := jumpOption(q.jump)
		if err != nil {
			return nil, err
		}
		args = append(args, "-J", jump)
	}
	return args, nil
}

// query returns what `ssh -G` prints for args. Calls with the same arguments share one process,
// which the end of ctx does not end. If ctx ends first, the error is transient. A query that all hosts
// share is urgent: it does not wait behind those for each of many hosts.
func (c *SSHConfig) query(ctx context.Context, urgent bool, args ...string) (settings, error) {
	key := strings.Join(args, "\x00")
	c.mu.Lock()
	a := c.answers[key]
	if a == nil || a.isOld() {
		a = &answer{ready: make(chan struct{})}
		c.answers[key] = a
		go func() {
			if !urgent {
				c.processSlots <- struct{}{}
				defer func() { <-c.processSlots }()
			}
			a.settings, a.err = c.run(args)
			a.at = time.Now()
			close(a.ready)
			time.AfterFunc(answerLifetime, func() { c.forget(key, a) })
		}()
	}
	c.mu.Unlock()
	select {
	case <-a.ready:
		return a.settings, a.err
	case <-ctx.Done():
		return nil, &transientError{fmt.Errorf("`%s -G` has not answered: %w", c.program, context.Cause(ctx))}
	}
}

// forget drops an answer that is not used any more, because that of each host takes 10 KiB.
func (c *SSHConfig) forget(key string, a *answer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.answers[key] == a {
		delete(c.answers, key)
	}
}

// isOld reports whether the answer must not be used for another connection.
func (a *answer) isOld() bool {
	select {
	case <-a.ready:
		_, transient := errors.AsType[*transientError](a.err)
		return transient || time.Since(a.at) > answerLifetime
	default:
		return false
	}
}

// transientError is the failure of a query whose repetition may succeed. Without it the cause is in
// the configuration.
type transientError struct{ err error }

func (e *transientError) Error() string { return e.err.Error() }
func (e *transientError) Unwrap() error { return e.err }

func (c *SSHConfig) runSSH(args []string) (settings, error) {
	ctx, cancel := context.WithTimeout(context.Background(), c.timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, c.program, append([]string{"-G", "-T"}, args...)...)
	// A Match exec that hangs is ended with the ssh that started it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second // a process that left the group may still hold the pipe
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if ctx.Err() != nil {
		return nil, &transientError{
			fmt.Errorf("`%s -G` did not answer within %v; does a Match exec in the ssh configuration hang?",
				c.program, c.timeout),
		}
	}
	if _, ok := errors.AsType[*exec.ExitError](err); ok {
		if text := summarize(stderr.String()); text != "" {
			return nil, errors.New("ssh says: " + text)
		}
	}
	if err != nil && !errors.Is(err, exec.ErrWaitDelay) {
		return nil, &transientError{fmt.Errorf("`%s -G`: %w", c.program, err)}
	}
	s := parseSettings(string(out))
	if s["hostname"] == nil {
		return nil, fmt.Errorf("`%s -G` does not print the settings of a host; is it OpenSSH 6.8 or later?", c.program)
	}
	return s, nil
}

// summarize joins the lines of ssh's standard error, each once: ssh reads a file twice for
// `Match final`, and ends with a count.
func summarize(stderr string) string {
	var lines []string
	for line := range strings.Lines(stderr) {
		line = strings.TrimSpace(line)
		if line != "" && !strings.Contains(line, ": terminating, ") && !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	return text.Clean(strings.Join(lines, "; "), maxStderr)
}

// maxInclude is how deep ssh lets files include files.
const maxInclude = 16

// SSHAliases returns the names of the Host lines of an ssh configuration file, in their order
// and without patterns; path "" means ~/.ssh/config. Files that it includes are read, too.
// The error is that of the file itself: included files that cannot be read are skipped, as
// ssh does.
func SSHAliases(path string) ([]string, error) {
	env := currentEnvironment()
	dir := filepath.Join(env.home, ".ssh")
	path = cmp.Or(path, filepath.Join(dir, "config"))
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var names []string
	var read func(data []byte, depth int)
	read = func(data []byte, depth int) {
		for line := range bytes.Lines(data) {
			words := configWords(string(line))
			if len(words) < 2 {
				continue
			}
			switch strings.ToLower(words[0]) {
			case "host":
				for _, name := range words[1:] {
					if !strings.ContainsAny(name, "*?!") && !slices.Contains(names, name) {
						names = append(names, name)
					}
				}
			case "include":
				for _, pattern := range words[1:] {
					pattern = env.expandTilde(pattern)
					if !filepath.IsAbs(pattern) {
						pattern = filepath.Join(dir, pattern)
					}
					files, _ := filepath.Glob(pattern) // a malformed pattern matches no file
					for _, file := range files {
						if data, err := os.ReadFile(file); err == nil && depth < maxInclude {
							read(data, depth+1)
						}
					}
				}
			}
		}
	}
	read(data, 0)
	return names, nil
}

// configLine matches a line of an ssh configuration: a keyword, blanks or one "=", and the rest.
var configLine = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^\s*([^\s=#"]+)(?:\s*=\s*|\s+)(.*)`)
})

// configWord matches a word that may be quoted, or a comment to the end of the line.
var configWord = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`"([^"]*)"?|(#.*)|\S+`) })

// configWords returns the keyword and the words of a line of an ssh configuration.
func configWords(line string) (words []string) {
	m := configLine().FindStringSubmatch(line)
	if m == nil {
		return nil
	}
	words = m[1:2]
	for _, word := range configWord().FindAllStringSubmatch(m[2], -1) {
		if word[2] != "" {
			break
		}
		words = append(words, cmp.Or(word[1], word[0]))
	}
	return words
}
