package helper

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode"

	"dcs-tui/hosts"
	"dcs-tui/internal/text"
)

// maxReports is the number of reports, of at most MaxReport bytes each, that may wait for the
// dispatcher. A host with more of them waits.
const maxReports = 16

// worker is a helper that has sent its hello. Two goroutines read and write until the link is
// closed.
type worker struct {
	host          string
	link          hosts.Link
	stream        hosts.Stream
	stderr        *stderrReader
	in            *Reader
	intake        *intake
	out           *Writer // writes into box
	box           *mailbox
	hello         *hosts.Hello
	earlyMessages []hosts.Message // received before the hello

	reports chan hosts.Message
	stop    chan struct{} // closed when the link is being closed

	mu      sync.Mutex
	err     error
	closed  bool
	sentBye bool // Bye was sent, so the end of the helper is no failure
}

var _ hosts.Worker = (*worker)(nil)

func newWorker(s *session) *worker {
	w := &worker{
		host: s.host.Name, link: s.link, stream: s.stream, stderr: s.stderr,
		in: NewReader(s.answers.rest()), intake: &intake{host: s.host.Name,
			allowance: s.c.allowance(s.host.Name)}, box: newMailbox(&s.c.unsent),
		reports: make(chan hosts.Message, maxReports), stop: make(chan struct{}),
	}
	w.out = NewWriter(w.box)
	return w
}

func (w *worker) start() {
	go w.read()
	go w.write()
}

// Hello returns the helper's hello.
func (w *worker) Hello() *hosts.Hello { return w.hello }

// Send queues messages and does not block. If a message is too large (ErrTooLarge), it sends
// nothing of this call. Any other error means that the worker is closed.
func (w *worker) Send(msgs ...hosts.Message) error {
	w.mu.Lock()
	for _, m := range msgs {
		w.intake.asked(m) // before it can be answered
		if m != nil && m.Kind() == (hosts.Bye{}).Kind() {
			w.sentBye = true
		}
	}
	w.mu.Unlock()
	err := w.out.Write(msgs...)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrTooLarge), errors.Is(err, ErrKind):
		return &hosts.Error{Host: w.host, Class: hosts.Misconfigured, Err: err}
	}
	w.end(&hosts.Error{Host: w.host, Class: hosts.Unreachable, Err: err})
	return w.Err()
}

// Reports returns the channel of the host's reports; see hosts.Worker.
func (w *worker) Reports() <-chan hosts.Message { return w.reports }

// KeepAlive requests a keepalive of the link.
func (w *worker) KeepAlive(ctx context.Context) error { return w.link.KeepAlive(ctx) }

// Err returns why the worker ended. It returns nil before the end, and if the helper left because
// of a Bye.
func (w *worker) Err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// Close closes the link. Reports that were received stay in the channel.
func (w *worker) Close() error {
	w.end(&hosts.Error{Host: w.host, Class: hosts.Unreachable, Err: errClosed})
	return nil
}

// end closes everything, once. err is the reason, or nil.
func (w *worker) end(err error) {
	w.mu.Lock()
	if w.closed {
		w.mu.Unlock()
		return
	}
	w.closed, w.err = true, err
	w.mu.Unlock()
	close(w.stop)
	w.box.close(errClosed)
	w.link.Close()
}

// read delivers reports until the stream ends.
func (w *worker) read() {
	defer close(w.reports)
	for _, m := range w.earlyMessages {
		if !w.deliver(m) {
			return
		}
	}
	w.earlyMessages = nil
	for {
		m, err := w.receive()
		if err != nil {
			w.end(w.whyEnded(err))
			return
		}
		if !w.deliver(m) {
			return
		}
	}
}

// receive returns the next message of the host, if the host may send it. Nobody else sees it unbounded.
func (w *worker) receive() (hosts.Message, error) {
	m, err := w.in.Read()
	if err == nil {
		err = w.intake.admit(m, w.in.size)
	}
	if err == nil {
		hosts.Bound(m)
	}
	return m, err
}

func (w *worker) deliver(m hosts.Message) bool {
	select {
	case w.reports <- m:
		return true
	case <-w.stop:
		return false
	}
}

// whyEnded explains the end of the helper's stream.
func (w *worker) whyEnded(err error) error {
	select {
	case <-w.stop: // closed by us
		return err
	default:
	}
	err = endError(w.host, true, w.stream, w.stderr, err)
	w.mu.Lock()
	bye := w.sentBye
	w.mu.Unlock()
	if exit, ok := errors.AsType[*hosts.ExitError](err); ok && bye && *exit == (hosts.ExitError{}) {
		return nil
	}
	return err
}

// write writes what Send has queued. After an error it gives the reader some time to find the
// reason.
func (w *worker) write() {
	err := w.box.run(w.stream.Stdin(), w.stop)
	if err == nil {
		return
	}
	err = fmt.Errorf("cannot write to the helper: %w", err)
	w.box.close(err)
	select {
	case <-w.stop:
	case <-time.After(2 * lastWait):
		w.end(&hosts.Error{Host: w.host, Class: hosts.Unreachable, Err: err})
	}
}

// Limits on the bytes that are queued for hosts. They bound memory: a host that reads nothing is
// detected by its silence.
const (
	maxUnsent     = 256 << 20 // for all hosts together
	maxUnsentSure = 1 << 20   // guaranteed to each host, in addition to one message of any size
)

var errClosed = errors.New("the link was closed")

// mailbox is the io.Writer between Send, which must not block, and the stream, which may. It queues
// bytes up to a limit. One goroutine runs it.
type mailbox struct {
	wake        chan struct{} // capacity 1: there are bytes
	unsentOfAll *atomic.Int64 // bytes queued in the mailboxes of all hosts

	mu      sync.Mutex
	buf     []byte
	writing int   // bytes that are being written
	err     error // set by close
}

func newMailbox(all *atomic.Int64) *mailbox {
	return &mailbox{wake: make(chan struct{}, 1), unsentOfAll: all}
}

// Write queues all of p or nothing.
func (b *mailbox) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err != nil {
		return 0, b.err
	}
	have := len(b.buf) + b.writing
	all := b.unsentOfAll.Add(int64(len(p)))
	if have > 0 && have+len(p) > maxUnsentSure && all > maxUnsent {
		b.unsentOfAll.Add(-int64(len(p)))
		return 0, fmt.Errorf("the host does not read what is sent: %d MiB are waiting, %d MiB for all hosts together",
			have>>20, all>>20)
	}
	b.buf = append(b.buf, p...)
	select {
	case b.wake <- struct{}{}:
	default:
	}
	return len(p), nil
}

// close drops what is queued. Further calls of Write return err.
func (b *mailbox) close(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err == nil {
		b.err = err
	}
	b.unsentOfAll.Add(-int64(len(b.buf)))
	b.buf = nil
}

// flush writes what is queued now.
func (b *mailbox) flush(w io.Writer) error {
	b.mu.Lock()
	p := b.buf
	b.buf, b.writing = nil, len(p)
	b.mu.Unlock()
	if len(p) == 0 {
		return nil
	}
	_, err := w.Write(p)
	b.unsentOfAll.Add(-int64(len(p)))
	b.mu.Lock()
	b.writing = 0
	b.mu.Unlock()
	return err
}

// run writes what is queued until stop is closed or a write fails.
func (b *mailbox) run(w io.Writer, stop <-chan struct{}) error {
	for {
		select {
		case <-stop:
			return nil
		case <-b.wake:
			if err := b.flush(w); err != nil {
				return err
			}
		}
	}
}

// stderrReader reads the far end's standard error to its end. It logs each line, and keeps what
// explains the end best: the first line of a crash or, without one, the last line.
type stderrReader struct {
	log       func(line string) // may be nil
	allowance *allowance
	cut       func() error  // ends the link
	done      chan struct{} // closed at the end of the stream, or when too much was read

	mu    sync.Mutex
	over  bool   // too much was read
	crash string // the first line of a crash
	last  string // the last line
	full  bool   // a line reports that no process or thread could be started
}

// listen starts a stderrReader. It cuts the link if the host has used up its allowance.
func listen(r io.Reader, log func(line string), a *allowance, cut func() error) *stderrReader {
	l := &stderrReader{log: log, allowance: a, cut: cut, done: make(chan struct{})}
	go l.run(r)
	return l
}

func (l *stderrReader) run(r io.Reader) {
	defer close(l.done)
	b := bufio.NewReaderSize(r, maxLine)
	for {
		line, err := b.ReadSlice('\n')
		if !l.allowance.keep(len(line)) {
			l.mu.Lock()
			l.over = true
			l.mu.Unlock()
			l.cut()
			return
		}
		if s := clean(string(line)); s != "" {
			l.add(s)
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return
		}
	}
}

// crashLine matches the first line that the Go runtime prints in a crash. Many lines follow.
var crashLine = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(panic: |fatal error: |runtime: |runtime/cgo: |unexpected fault address |` +
		`SIG[A-Z0-9]+: )`)
})

// isCut reports whether the link was cut because the host printed too much.
func (l *stderrReader) isCut() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.over
}

func (l *stderrReader) add(s string) {
	if l.log != nil {
		l.log(s)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last = s
	l.full = l.full || IsProcessLimit(s)
	if l.crash == "" && crashLine().MatchString(s) {
		l.crash = s
	}
}

// ErrProcessLimit is the error of a host where the helper, or the shell that starts it, ended because
// it could not start a process or a thread.
var ErrProcessLimit = errors.New("no more processes or threads can be started on this host")

// limitAdvice is the advice for ErrProcessLimit.
const limitAdvice = "raise its limits (ulimit -u of the user, pids.max of its control group), " +
	"or end other processes there"

// limitLine matches what the Go runtime, its thread library, shells, and timeout print when they
// cannot start a thread or a process.
var limitLine = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^runtime: failed to create new OS thread .*errno=11\)|` +
		`^runtime: may need to increase max user processes|` +
		`^runtime/cgo: pthread_create failed: |(?i:\bfork\b.*: resource temporarily unavailable|\b(?:cannot|` +
		`can't) fork\b)`)
})

// IsProcessLimit reports whether a line printed by another program means that a process or a thread
// could not be started. Shells and the Go runtime exit with the same status after other errors, so
// only their text tells. No other function reads it. Our own processes check the limits themselves.
func IsProcessLimit(line string) bool { return !isPanic(line) && limitLine().MatchString(line) }

// endedAtLimit reports whether a command that ended with exit did so because no process or thread
// could be started. The Go runtime ends a helper with one exit status; a shell has any.
func (l *stderrReader) endedAtLimit(isHelper bool, exit *hosts.ExitError) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if isHelper {
		return IsProcessLimit(l.crash) && (exit.Code == 2 || exit.Signal == "SIGABRT")
	}
	return l.full
}

// isDefect reports whether a panic of our program ended the far end.
func (l *stderrReader) isDefect() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return isPanic(l.crash)
}

// ExplainCrash returns what is worth showing of the output of a supervisor that has ended: one
// sentence or line if it crashed, without the stacks, and otherwise all of it.
func ExplainCrash(output string) string {
	first, _, _ := strings.Cut(output, "\n")
	switch {
	case IsProcessLimit(first):
		return ErrProcessLimit.Error()
	case isPanic(first):
		return first + " (this is a defect of dcs-tui: please report it)"
	}
	return output
}

func isPanic(crash string) bool { return strings.HasPrefix(crash, "panic: ") }

// output quotes the line that best explains the end of the helper, for an error. It is "" if there
// is none.
func (l *stderrReader) output() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch line := cmp.Or(l.crash, l.last); {
	case line == "":
		return ""
	case IsProcessLimit(line):
		return ": " + ErrProcessLimit.Error()
	default:
		return ": " + line
	}
}

// escapes are the control sequences of terminals: CSI, OSC, and two-character ones.
var escapes = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile("\x1b(\\[[0-?]*[ -/]*[@-~]|\\][^\x07\x1b]*(\x07|\x1b\\\\)?|[ -/]*[0-~])")
})

// maxLine is the maximum number of bytes of a host's line that are shown or logged.
const maxLine = 4 << 10

// clean converts a host's output to one printable line of valid UTF-8: without control sequences,
// control characters, and characters that change the direction of text, and with at most maxLine
// bytes. Unlike text.Clean it shows nothing in their place: the colors and titles of startup files
// would hide the text.
func clean(s string) string {
	s = escapes().ReplaceAllString(s, "")
	s = strings.Map(func(r rune) rune {
		switch {
		case r == '\t':
			return ' '
		case unicode.IsControl(r), unicode.Is(unicode.Cf, r):
			return -1
		}
		return r // what is not UTF-8 comes as U+FFFD
	}, s)
	return text.ShortenBytes(strings.TrimRight(s, " "), maxLine)
}
