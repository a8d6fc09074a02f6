package sshconf

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
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

// spoilt tells a wrong file from a wrong host.
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
