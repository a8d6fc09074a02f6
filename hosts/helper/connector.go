package helper

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"dcs-tui/hosts"
)

// Options configure a Connector.
type Options struct {
	Opener hosts.Opener
	// Log is called with each line that a helper writes to standard error, without control
	// characters. It is called from several goroutines and should not block. It may be nil.
	Log func(host, line string)
	// Bases replaces the directories /var/tmp/dcs-UID and /tmp/dcs-UID. It contains absolute paths
	// joined by colons. work_dir is tried last in any case.
	Bases string
	// Programs are the programs for hosts, compressed: linux-amd64.gz and so on. For other hosts, or
	// if it is nil, this process's program is copied to hosts of its own kind.
	Programs fs.FS
}

const (
	connectTimeout = 20 * time.Second // for everything up to the hello, except for sending the program
	stallTimeout   = time.Minute      // without progress while the program is sent
)

// Connector makes Workers. It is safe for concurrent use.
type Connector struct {
	opt      Options
	timeout  time.Duration // connectTimeout; less in a test
	binaries *binaries
	standbys *binaries    // for hosts that start a standby: whole programs, not only the helper
	unsent   atomic.Int64 // bytes queued in the mailboxes of all hosts

	mu         sync.Mutex
	allowances map[string]*allowance // by host
}

var _ hosts.Connector = (*Connector)(nil)

// New returns a Connector.
func New(o Options) *Connector {
	return &Connector{opt: o, timeout: connectTimeout, binaries: newBinaries(o.Programs), standbys: wholeBinaries(),
		allowances: map[string]*allowance{}}
}

// allowance returns what a host may send.
func (c *Connector) allowance(host string) *allowance {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := c.allowances[host]
	if a == nil {
		a = newAllowance()
		c.allowances[host] = a
	}
	return a
}

// Connect opens a link to h, copies the helper there if necessary, sends open, and receives the
// hello. ctx counts only until Connect returns. Errors are of the classes of package hosts, or a
// *hosts.FencedError if another dispatcher has taken the run over.
func (c *Connector) Connect(ctx context.Context, h *hosts.Host, open *hosts.Open) (hosts.Worker, error) {
	if err := checkLines(h, open); err != nil {
		return nil, err
	}
	go c.binaries.prepare() // while the link is being opened
	if p, ok := c.opt.Opener.(hosts.Preparer); ok {
		p.Prepare(ctx, h)
	}
	s := newSession(ctx, c, h, open)
	w, err := s.connect()
	if err = s.finish(err); err != nil {
		return nil, err
	}
	w.start()
	return w, nil
}

// session is one Connect in progress. All fields but step are owned by the goroutine that called
// Connect.
type session struct {
	c    *Connector
	host *hosts.Host
	open *hosts.Open

	ctx     context.Context // canceled by the caller or the deadline
	cancel  context.CancelCauseFunc
	timer   *time.Timer            // the deadline
	step    atomic.Pointer[string] // what we are waiting for
	release func() bool            // stops closing the link when ctx ends

	link    hosts.Link
	stream  hosts.Stream
	answers *answers
	stderr  *stderrReader
	binary  *program
	skipped []string // directories that the bootstrap cannot use, with the reasons
}

// stepTimeoutError is the cause of ctx when a step took too long.
type stepTimeoutError struct{ step string }

func (e *stepTimeoutError) Error() string { return "no answer in time while " + e.step }

func newSession(ctx context.Context, c *Connector, h *hosts.Host, open *hosts.Open) *session {
	o := *open
	o.Version = hosts.ProtocolVersion
	s := &session{c: c, host: h, open: &o, release: func() bool { return true }}
	s.ctx, s.cancel = context.WithCancelCause(ctx)
	s.setStep("opening the link")
	s.timer = time.AfterFunc(c.timeout, func() { s.cancel(&stepTimeoutError{*s.step.Load()}) })
	return s
}

// stepShell is the step until the first answer of the bootstrap.
const stepShell = "waiting for the login shell"

// setStep records the step for the error if it takes too long.
func (s *session) setStep(step string) { s.step.Store(&step) }

// connect performs all steps.
func (s *session) connect() (*worker, error) {
	link, err := s.c.opt.Opener.Open(s.ctx, s.host)
	if err != nil {
		return nil, err
	}
	s.link = link
	s.release = context.AfterFunc(s.ctx, func() { link.Close() })
	if err = s.begin(); err != nil {
		return nil, err
	}
	if err = s.followBootstrap(); err != nil {
		return nil, err
	}
	return s.hello()
}

// begin starts the bootstrap and sends its lines. It sends nothing before the first answer, because
// a startup file may be reading until then.
func (s *session) begin() error {
	var random [16]byte
	rand.Read(random[:]) // never fails
	nonce := hex.EncodeToString(random[:])
	s.setStep("starting a shell")
	stream, err := s.link.Start(s.ctx, bootstrap(nonce))
	if err != nil {
		return s.hostError(hosts.Unreachable, "", err)
	}
	s.stream = stream
	var log func(string)
	if s.c.opt.Log != nil {
		host, write := s.host.Name, s.c.opt.Log // the worker keeps log, and must not keep s
		log = func(line string) { write(host, line) }
	}
	s.stderr = listen(stream.Stderr(), log, s.c.allowance(s.host.Name), s.link.Close)
	s.answers = newAnswers(stream, nonce)
	s.setStep(stepShell)
	kernel, machine, err := s.system()
	if err != nil {
		return err
	}
	s.setStep("choosing the program for it")
	binaries := s.c.binaries
	if s.open.Standby {
		binaries = s.c.standbys
	}
	var advice string
	if s.binary, advice, err = binaries.forSystem(kernel, machine); err != nil {
		return s.hostError(hosts.Misconfigured, advice, err)
	}
	lines := fmt.Sprintf("%s\n%d\n%s\n%s/%s\n%s\n", s.binary.id, s.binary.size,
		cmp.Or(s.open.WorkDir, s.host.WorkDir), s.open.Run, s.open.Host, s.c.opt.Bases)
	if _, err := io.WriteString(stream.Stdin(), lines); err != nil {
		// What the far end printed last explains more than the write error.
		if _, _, err2 := s.answers.next(); err2 != nil {
			err = err2
		}
		return s.explainEnd(err)
	}
	return nil
}

// system reads the first answer: the output of uname on the host.
func (s *session) system() (kernel, machine string, err error) {
	word, rest, err := s.answers.next()
	if err != nil {
		return "", "", s.explainEnd(err)
	}
	if word == "path" {
		return "", "", s.hostError(hosts.Misconfigured,
			"a startup file there may set PATH wrongly; it must contain the directories of the usual programs, "+
				"such as /usr/bin:/bin",
			fmt.Errorf("uname cannot be run there: PATH is %q", clean(rest)))
	}
	kernel, machine, ok := strings.Cut(rest, " ")
	if word != "sys" || !ok {
		return "", "", s.hostError(hosts.Broken, "", fmt.Errorf("the shell answered %q where it should name its system",
			clean(word+" "+rest)))
	}
	return clean(kernel), clean(machine), nil
}

// checkLines refuses values that do not fit into a line of the bootstrap.
func checkLines(h *hosts.Host, open *hosts.Open) error {
	for what, v := range map[string]string{"work_dir": open.WorkDir + h.WorkDir, "the host's name": open.Host,
		"the run's uid": open.Run} {
		if strings.ContainsAny(v, "\n\r\x00") {
			return &hosts.Error{Host: h.Name, Class: hosts.Misconfigured,
				Err: fmt.Errorf("%s %q contains a line break or NUL", what, v)}
		}
	}
	return nil
}

// finish ends the session. After an error it closes the link and returns a *hosts.Error. Otherwise
// the worker owns the link.
func (s *session) finish(err error) error {
	s.timer.Stop()
	// The deadline or the caller may have been faster and is closing the link. An error that is
	// certain remains the reason nevertheless.
	if (!s.release() || s.ctx.Err() != nil) && !isCertain(err) {
		cause, advice := context.Cause(s.ctx), ""
		if late := (*stepTimeoutError)(nil); errors.As(cause, &late) && late.step == stepShell {
			advice = "a startup file there, such as .bashrc, may read standard input, ask something or hang; " +
				"let it do so in interactive shells only"
			if s.host.Link == "command" { // it may not have reached the host
				advice = "the host may be out of reach, or " + advice
			}
			if link, ok := s.link.(hosts.Explainer); ok {
				if why, how := link.ExplainSilence(); why != "" {
					cause, advice = fmt.Errorf("%w; %s", cause, why), how
				}
			}
		}
		err = &hosts.Error{Host: s.host.Name, Class: hosts.Unreachable,
			Err: fmt.Errorf("gave up connecting: %w%s", cause, s.output()), Advice: advice}
	}
	if err != nil && s.link != nil {
		s.link.Close()
	}
	s.cancel(nil)
	return err
}

// output quotes what the far end printed for an error.
func (s *session) output() string {
	if s.answers == nil {
		return ""
	}
	return s.stderr.output() + s.answers.output()
}

// isCertain reports whether more time would not change err, or err names who did not answer.
func isCertain(err error) bool {
	_, fenced := errors.AsType[*hosts.FencedError](err)
	return err != nil && (fenced || hosts.ClassOf(err).Permanent() || errors.Is(err, hosts.ErrUnanswered))
}

// maxEarly is the number of reports that may precede the hello.
const maxEarly = 100

// hello sends Open, receives Hello, and checks it.
func (s *session) hello() (*worker, error) {
	s.setStep("waiting for the helper's hello")
	w := newWorker(s)
	if err := w.out.Write(s.open); err != nil {
		return nil, s.hostError(hosts.Misconfigured, "", err)
	}
	if err := w.box.flush(s.stream.Stdin()); err != nil {
		if _, err2 := w.in.Read(); err2 != nil {
			err = err2
		}
		return nil, s.helperEnded(err)
	}
	for w.hello == nil {
		m, err := w.receive()
		if err != nil {
			return nil, s.helperEnded(err)
		}
		switch m := m.(type) {
		case *hosts.Hello:
			w.hello = m
			if s.open.Check {
				for _, why := range s.skipped {
					m.Warnings = append(m.Warnings, "another directory is used for the program and the spool: "+why)
				}
			}
		case *hosts.Trouble:
			if m.Fatal {
				return nil, s.hostError(hosts.Misconfigured, "", errors.New(clean(m.Text)))
			}
			w.earlyMessages = append(w.earlyMessages, m)
		default:
			w.earlyMessages = append(w.earlyMessages, m)
		}
		if len(w.earlyMessages) > maxEarly {
			return nil, s.hostError(hosts.Broken, "", errors.New("the helper sent a report before its hello message"))
		}
	}
	if err := s.checkHello(w.hello); err != nil {
		return nil, err
	}
	return w, nil
}

func (s *session) helperEnded(err error) error {
	if errors.Is(err, ErrVersion) {
		return s.hostError(hosts.Misconfigured, s.rebuildAdvice(), err)
	}
	return endError(s.host.Name, true, s.stream, s.stderr, err)
}

// rebuildAdvice returns the advice for a program of another build.
func (s *session) rebuildAdvice() string {
	return "build " + s.binary.name + " again from the sources of this dcs-tui"
}

// checkHello returns an error for a helper that answers but cannot be used.
func (s *session) checkHello(h *hosts.Hello) error {
	switch {
	case h.Version != hosts.ProtocolVersion:
		return s.hostError(hosts.Misconfigured, s.rebuildAdvice(),
			fmt.Errorf("the helper speaks version %d, we speak %d", h.Version, hosts.ProtocolVersion))
	case h.FencedBy > 0:
		return &hosts.FencedError{Host: s.host.Name, By: h.FencedBy}
	case h.Error != "" && h.Passing:
		return s.hostError(hosts.Broken, "", errors.New(clean(h.Error)))
	case h.Error != "":
		return s.hostError(hosts.Misconfigured, "", errors.New(clean(h.Error)))
	case h.CwdError != "" && !s.open.Check: // a check reports it: jobs can still run there, with their files sent
		return s.hostError(hosts.Misconfigured,
			"in a new run, send the files of jobs with --send, or name a directory that every host has with --cwd",
			fmt.Errorf("jobs cannot run in %s there: %s", s.open.Cwd, clean(h.CwdError)))
	}
	return nil
}

// lastWait bounds the wait, after the end of a stream, for the exit status of its command and its
// last output.
var lastWait = 2 * time.Second // tests lengthen it

// hostError returns an error about the host, unless err is one already.
func (s *session) hostError(class hosts.Class, advice string, err error) error {
	return withClass(s.host.Name, class, advice, err)
}

func withClass(host string, class hosts.Class, advice string, err error) error {
	if _, already := errors.AsType[*hosts.Error](err); already {
		return err
	}
	return &hosts.Error{Host: host, Class: class, Err: err, Advice: advice}
}

// explainEnd explains why the bootstrap's output ended or was not understood.
func (s *session) explainEnd(err error) error {
	if errors.Is(err, errNoise) {
		return s.hostError(hosts.Broken, "its login shell should print nothing when it is not interactive",
			fmt.Errorf("the login shell %w, more than %d KiB%s", err, maxNoise>>10, s.answers.output()))
	}
	if errors.Is(err, errTerminal) {
		return s.hostError(hosts.Misconfigured,
			"take -t out of the link, and RequestTTY out of the ssh configuration", err)
	}
	how := endError(s.host.Name, false, s.stream, s.stderr, err)
	if e := (*hosts.Error)(nil); errors.As(how, &e) && e.Class == hosts.Broken && !errors.Is(e, ErrProcessLimit) {
		e.Err = fmt.Errorf("%w%s", e.Err, s.answers.output())
		e.Advice = "a command such as `true` must work over this link"
	}
	return how
}

// endError converts the end of a stream to an error about the host: Broken if the command is known
// to have ended, Unreachable if the link was cut. isHelper reports whether the command was the helper;
// otherwise it was the login shell or the bootstrap.
func endError(host string, isHelper bool, stream hosts.Stream, stderr *stderrReader, err error) error {
	if stderr.isCut() {
		return refusal(host, fmt.Errorf("%w%s", errTooMuchText, stderr.output()))
	}
	if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return withClass(host, readClass(err), "", err)
	}
	who := "the login shell"
	if isHelper {
		who = "the helper"
	}
	limit := time.NewTimer(lastWait)
	defer limit.Stop()
	state := make(chan error, 1)
	go func() { state <- stream.Wait() }()
	select {
	case err = <-state:
	case <-limit.C:
		return withClass(host, hosts.Broken, "", fmt.Errorf("%s closed its output but still runs%s", who,
			stderr.output()))
	}
	select { // standard error is read by another goroutine
	case <-stderr.done:
	case <-limit.C:
	}
	var exit *hosts.ExitError
	var known *hosts.Error
	switch {
	case errors.As(err, &known): // the link knows why
		return err
	case err == nil:
		return withClass(host, hosts.Broken, "", fmt.Errorf("%s ended: %w%s", who, &hosts.ExitError{}, stderr.output()))
	case errors.As(err, &exit) && stderr.endedAtLimit(isHelper, exit): // exit is not 0
		return withClass(host, hosts.Broken, limitAdvice, ErrProcessLimit)
	case errors.As(err, &exit) && isHelper && stderr.isDefect():
		return withClass(host, hosts.Broken, defectAdvice, fmt.Errorf("%s ended: %w%s", who, exit, stderr.output()))
	case errors.As(err, &exit):
		return withClass(host, hosts.Broken, "", fmt.Errorf("%s ended: %w%s", who, exit, stderr.output()))
	}
	return withClass(host, hosts.Unreachable, "", fmt.Errorf("the link was cut: %w", err))
}

// defectAdvice is the advice after a panic of the helper.
const defectAdvice = "this is a defect of dcs-tui: please report it with the lines that follow it in dispatcher.log"

// readClass returns the class of a read error.
func readClass(err error) hosts.Class {
	for _, e := range []error{ErrFormat, ErrGap, ErrKind, ErrChecksum, ErrTooLarge} {
		if errors.Is(err, e) {
			return hosts.Broken
		}
	}
	if errors.Is(err, ErrVersion) {
		return hosts.Misconfigured
	}
	return hosts.Unreachable
}
