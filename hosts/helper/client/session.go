package client

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"time"

	"dcs-tui/hosts"
)

// session is one Connect under way. Its fields belong to the goroutine that
// called Connect, but for step.
type session struct {
	c    *Connector
	host *hosts.Host
	open *hosts.Open

	ctx     context.Context // ended by the caller or the deadline
	cancel  context.CancelCauseFunc
	timer   *time.Timer            // the deadline
	step    atomic.Pointer[string] // what we are waiting for
	release func() bool            // takes the link out of ctx's hands

	link    hosts.Link
	stream  hosts.Stream
	answers *answers
	words   *lastWords
	binary  *binary
}

// errLate is the cause of ctx's end when a step took too long.
type errLate struct{ step string }

func (e *errLate) Error() string { return "no answer in time while " + e.step }

func newSession(ctx context.Context, c *Connector, h *hosts.Host, open *hosts.Open) *session {
	o := *open
	o.Version = hosts.ProtocolVersion
	s := &session{c: c, host: h, open: &o, release: func() bool { return true }}
	s.ctx, s.cancel = context.WithCancelCause(ctx)
	s.at("opening the link")
	s.timer = time.AfterFunc(c.opt.ConnectTimeout, func() { s.cancel(&errLate{*s.step.Load()}) })
	return s
}

// stepShell lasts until the first answer of the bootstrap.
const stepShell = "waiting for the login shell"

// at notes what we are waiting for, for the error when it does not come.
func (s *session) at(step string) { s.step.Store(&step) }

// connect goes through all steps.
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
	if err = s.arrive(); err != nil {
		return nil, err
	}
	return s.hello()
}

// begin starts the bootstrap and sends it what it needs. It sends nothing before the
// first answer: until then a startup file may be reading.
func (s *session) begin() error {
	var random [16]byte
	rand.Read(random[:]) // never fails
	nonce := hex.EncodeToString(random[:])
	s.at("starting a shell")
	stream, err := s.link.Start(s.ctx, bootstrap(nonce))
	if err != nil {
		return s.fail(hosts.Unreachable, "", err)
	}
	s.stream = stream
	var log func(string)
	if s.c.opt.Log != nil {
		log = func(line string) { s.c.opt.Log(s.host.Name, line) }
	}
	s.words = listen(stream.Stderr(), log)
	s.answers = newAnswers(stream, nonce)
	s.at(stepShell)
	kernel, machine, err := s.system()
	if err != nil {
		return err
	}
	s.at("choosing the program for it")
	if s.binary, err = s.c.binaries.forSystem(kernel, machine); err != nil {
		return s.noBinary(err)
	}
	lines := fmt.Sprintf("%s\n%d\n%s\n%s/%s\n%s\n", s.binary.hash, s.binary.size,
		s.workDir(), s.open.Run, s.open.Host, s.c.opt.Bases)
	if _, err := io.WriteString(stream.Stdin(), lines); err != nil {
		// What the far end said before it went explains more than the write error.
		if _, _, err2 := s.answers.next(); err2 != nil {
			err = err2
		}
		return s.ended(err)
	}
	return nil
}

// system reads the first answer, which is the output of uname on the host.
func (s *session) system() (kernel, machine string, err error) {
	word, rest, err := s.answers.next()
	if err != nil {
		return "", "", s.ended(err)
	}
	if word == "path" {
		return "", "", s.fail(hosts.Misconfigured, "a startup file there may set PATH wrongly; it must contain the directories of the usual programs, such as /usr/bin:/bin",
			fmt.Errorf("uname cannot be run there: PATH is %q", clean(rest)))
	}
	kernel, machine, ok := strings.Cut(rest, " ")
	if word != "sys" || !ok {
		return "", "", s.fail(hosts.Broken, "", fmt.Errorf("the shell answered %q where it should say its system", clean(word+" "+rest)))
	}
	return clean(kernel), clean(machine), nil
}

func (s *session) workDir() string {
	if s.open.WorkDir != "" {
		return s.open.WorkDir
	}
	return s.host.WorkDir
}

// checkLines refuses what cannot travel as a line of the bootstrap.
func checkLines(h *hosts.Host, open *hosts.Open) error {
	for what, v := range map[string]string{"work_dir": open.WorkDir + h.WorkDir, "the host's name": open.Host, "the run's uid": open.Run} {
		if strings.ContainsAny(v, "\n\r\x00") {
			return &hosts.Error{Host: h.Name, Class: hosts.Misconfigured, Err: fmt.Errorf("%s %q contains a line break or NUL", what, v)}
		}
	}
	return nil
}

// finish ends the session: with an error it cuts the link and says why in the
// words of hosts.Error; otherwise the link is the worker's.
func (s *session) finish(err error) error {
	s.timer.Stop()
	// The deadline or the caller may have been faster: then the link is being
	// closed. What is known for certain stays the reason all the same.
	if (!s.release() || s.ctx.Err() != nil) && !certain(err) {
		cause, advice := context.Cause(s.ctx), ""
		if late := (*errLate)(nil); errors.As(cause, &late) && late.step == stepShell {
			advice = "a startup file there, such as .bashrc, may read standard input, ask something or hang; let it do so in interactive shells only"
			if s.host.Link == "command" { // the command may not have reached the host
				advice = "the host may be out of reach, or " + advice
			}
		}
		err = &hosts.Error{Host: s.host.Name, Class: hosts.Unreachable,
			Err: fmt.Errorf("gave up connecting: %w%s", cause, s.said()), Advice: advice}
	}
	if err != nil && s.link != nil {
		s.link.Close()
	}
	s.cancel(nil)
	return err
}

// said quotes what the far end printed, for an error.
func (s *session) said() string {
	if s.answers == nil {
		return ""
	}
	return s.words.said() + s.answers.said()
}

// certain says that err would be the same after any other time of waiting, or that it
// names who was waited for.
func certain(err error) bool {
	var fenced *hosts.FencedError
	return err != nil && (hosts.ClassOf(err).Permanent() || errors.As(err, &fenced) || errors.Is(err, hosts.ErrUnanswered))
}
