package link

import (
	"bytes"
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
	"unicode"
)

// Bounds of asking.
const (
	askTimeout = 10 * time.Second // one `ssh -G`; a `Match exec` in it may run anything
	askAtOnce  = 4                // programs at a time, when many hosts are resolved together
	maxWords   = 1000             // bytes of ssh's own words in an error
)

// nobody is the host that no configuration speaks of.
const nobody = "dcs-tui.invalid"

// openSSH asks the user's ssh program.
type openSSH struct {
	program string
	path    string // for -F; "": the usual files
	system  string // the file for everybody
	timeout time.Duration
	run     func(args []string) (*settings, error) // runs `ssh -G`; the fuzzer replaces it
	places  chan struct{}

	mu    sync.Mutex
	asked map[string]*answer
}

// answer is one `ssh -G`, run or running.
type answer struct {
	done     chan struct{}
	settings *settings
	err      error
}

// refused is what ssh says when it gives no settings: file and line of what is
// wrong, or what it has against this host.
type refused struct {
	words string
	whole bool // the configuration is wrong, whatever the host
}

func (e *refused) Error() string {
	if e.whole {
		return "ssh refuses the configuration: " + e.words
	}
	return "ssh says: " + e.words
}

func newOpenSSH(program, path, system string) *openSSH {
	o := &openSSH{program: program, path: path, system: system, timeout: askTimeout,
		places: make(chan struct{}, askAtOnce), asked: map[string]*answer{}}
	o.run = o.runProgram
	return o
}

// settings asks for one host. The identity of the inventory is not handed over:
// ssh leaves out of its answer a key that is not there, and nothing else in it
// depends on the key.
func (o *openSSH) settings(q query) (*settings, error) {
	if o.program == "" {
		return nil, errors.New("there is no ssh program, which resolves names by your ssh configuration: install the OpenSSH client (openssh-client)")
	}
	usual, err := o.ask("-F", "/dev/null", "--", nobody)
	if err != nil {
		return nil, err
	}
	var args []string
	if o.path != "" {
		args = append(args, "-F", o.path)
	}
	if q.user != "" {
		args = append(args, "-l", q.user)
	}
	if q.port != 0 {
		args = append(args, "-p", strconv.Itoa(q.port))
	}
	if q.jump != "" {
		args = append(args, "-J", q.jump)
	}
	s, err := o.ask(append(args, "--", q.alias)...)
	if err != nil {
		return nil, err
	}
	return &settings{values: s.values, order: s.order, usual: usual}, nil
}

// forEverybody reports whether the system's own file sets a directive so for every
// host. Then it is the distribution's choice and not the user's.
func (o *openSSH) forEverybody(keyword, value string) bool {
	if o.path != "" {
		return false
	}
	s, err := o.ask("-F", o.system, "--", nobody)
	return err == nil && s.text(keyword) == value
}

// ask runs `ssh -G` once for each list of arguments. What may go better the next
// time (no answer in time, no process) is not kept.
func (o *openSSH) ask(args ...string) (*settings, error) {
	key := fmt.Sprintf("%q", args)
	o.mu.Lock()
	a := o.asked[key]
	if a != nil {
		o.mu.Unlock()
		<-a.done
		return a.settings, a.err
	}
	a = &answer{done: make(chan struct{})}
	o.asked[key] = a
	o.mu.Unlock()

	o.places <- struct{}{}
	a.settings, a.err = o.run(args)
	<-o.places
	if says := (*refused)(nil); a.err != nil && !errors.As(a.err, &says) {
		o.mu.Lock()
		delete(o.asked, key)
		o.mu.Unlock()
	}
	close(a.done)
	return a.settings, a.err
}

func (o *openSSH) runProgram(args []string) (*settings, error) {
	ctx, cancel := context.WithTimeout(context.Background(), o.timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, o.program, append([]string{"-G", "-T"}, args...)...)
	// A Match exec that hangs is ended with the ssh that started it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second // one that left the group may still hold the pipe
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if ctx.Err() != nil {
		return nil, fmt.Errorf("`%s -G` did not answer within %v; does a Match exec in the ssh configuration hang?", o.program, o.timeout)
	}
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		if words := ownWords(stderr.String()); words != "" {
			return nil, &refused{words, spoilt().MatchString(stderr.String())}
		}
	}
	if err != nil && !errors.Is(err, exec.ErrWaitDelay) {
		return nil, fmt.Errorf("`%s -G`: %w", o.program, err)
	}
	s := parseSettings(string(out))
	if s.values["hostname"] == nil {
		return nil, fmt.Errorf("`%s -G` does not print the settings of a host; is it OpenSSH 6.8 or later?", o.program)
	}
	return s, nil
}

// damaged tells a wrong file from a wrong host.
var spoilt = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`: terminating, |Bad owner or permissions|Too many recursive configuration includes`)
})

// ownWords makes one line of what ssh printed, each sentence once: it reads a
// file twice for `Match final`, and ends with a count.
func ownWords(stderr string) string {
	var lines []string
	for line := range strings.Lines(stderr) {
		line = strings.TrimSpace(strings.Map(func(r rune) rune {
			if unicode.IsControl(r) || r == unicode.ReplacementChar {
				return ' '
			}
			return r
		}, line))
		if line != "" && !strings.Contains(line, ": terminating, ") && !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	words := strings.Join(lines, "; ")
	if len(words) > maxWords {
		words = strings.ToValidUTF8(words[:maxWords], "") + " …"
	}
	return words
}

// SSHConfig resolves hosts by the user's ssh configuration. Answers are kept: a file that
// changes later is not read again for the same question. It is safe for concurrent use.
type SSHConfig struct {
	env *environment
	ssh *openSSH
}

// query is one question to the configuration: what would be written after `ssh`.
type query struct {
	alias string
	user  string // "": not said
	port  int    // 0: not said
	jump  string // the value of -J; "": not said
}

// LoadSSHConfig returns the configuration in the file at path; "" means ~/.ssh/config and
// /etc/ssh/ssh_config, each if it exists. With a path the system's file is ignored,
// as with `ssh -F`. The path must be a readable file. Its content is read by ssh when a
// host is resolved.
func LoadSSHConfig(path string) (*SSHConfig, error) {
	env, err := thisUser()
	if err != nil {
		return nil, fmt.Errorf("ssh configuration: %w", err)
	}
	program, _ := exec.LookPath("ssh") // a missing program matters only when a host is resolved
	return load(path, env, systemFile, program)
}

// systemFile is the configuration for everybody.
const systemFile = "/etc/ssh/ssh_config"

// load has the parts of LoadSSHConfig that tests change; program "" means no ssh.
func load(path string, env *environment, system, program string) (*SSHConfig, error) {
	if path != "" {
		var err error
		if path, err = readable(path); err != nil {
			return nil, fmt.Errorf("ssh configuration: %w", err)
		}
	}
	return &SSHConfig{env: env, ssh: newOpenSSH(program, path, system)}, nil
}

// readable returns the absolute path, because ssh takes a file named "none" for no file
// at all. It refuses everything that cannot be read again and again: `ssh -F` accepts a
// directory, each question would drain a pipe, and ssh reads /dev/zero until memory is
// used up.
func readable(path string) (string, error) {
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
	return filepath.Abs(path)
}

// settings is what the configuration contains about one host, keyword by keyword in
// lower case, in the form in which `ssh -G` prints it.
type settings struct {
	values map[string][]string
	order  []string  // the keywords
	usual  *settings // what is said of any host without a configuration; nil: nothing
}

// parseSettings reads the "keyword value" lines that `ssh -G` prints.
func parseSettings(text string) *settings {
	s := &settings{values: map[string][]string{}}
	for line := range strings.Lines(text) {
		keyword, value, _ := strings.Cut(strings.TrimRight(line, "\r\n"), " ")
		if value != "" {
			s.add(strings.ToLower(keyword), value)
		}
	}
	return s
}

func (s *settings) add(keyword, value string) {
	if s.values[keyword] == nil {
		s.order = append(s.order, keyword)
	}
	s.values[keyword] = append(s.values[keyword], value)
}

// list returns the values of a directive, nil when they are the usual ones: what
// the user spelled out and OpenSSH does anyway is no wish of its own.
func (s *settings) list(keyword string) []string {
	v := s.values[keyword]
	if s.usual != nil && slices.Equal(v, s.usual.values[keyword]) {
		return nil
	}
	return v
}

// text returns the first value of a directive, "" when it is the usual one.
func (s *settings) text(keyword string) string {
	if v := s.list(keyword); len(v) > 0 {
		return v[0]
	}
	return ""
}

// isNone reports whether a value means nothing at all.
func isNone(value string) bool { return strings.EqualFold(value, "none") }

// isOff and isOn know both spellings: the file's and that of `ssh -G`.
func isOff(value string) bool {
	switch strings.ToLower(value) {
	case "", "no", "false", "off":
		return true
	}
	return false
}

func isOn(value string) bool { return !isOff(value) }
