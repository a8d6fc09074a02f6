// Package socket implements the Unix socket of a dispatcher, for screens and commands of the same
// user on the same machine. It does what files cannot: wake the inbox, accept a request while the
// disk is full or hangs, push the durable position of the journal and the content of live.json,
// explain why a job waits, and read output that only a host has. Everything else is in the run
// directory. Listen starts a Server, and Dial returns a Client.
//
// Both sides send lines of JSON of bounded length, which docs/reference/socket.md documents. The
// server sends a Hello first. A client that sends too much or reads too slowly is disconnected and
// delays nobody else. The last line of a server that ends is its goodbye: calls without an answer
// by then had no effect.
//
// The package knows nothing about runs and terminals. A Handler carries out the calls.
package socket

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"dcs-tui/internal/platform"
	"dcs-tui/jobs"
	"dcs-tui/jobs/live"
)

const (
	maxRequest = 32 << 20 // bytes of a line from a client; half a million job ids fit
	maxReply   = 8 << 20  // bytes of a line from a server
	maxHello   = 4096     // bytes of a Hello
	// MaxPiece bounds Read.Limit and Piece.Data, in bytes.
	MaxPiece = 1 << 20
)

// Handler carries out the calls of clients. Its methods are called concurrently. ctx ends when the
// client has disconnected or abandoned the call, and at Server.Close. A *RefusedError means that
// the caller is at fault. ErrNotTaken means that the call had no effect and never will.
type Handler interface {
	// Wake polls the inbox now and returns when the request of this name is recorded.
	Wake(ctx context.Context, name string) error
	// Request accepts a request (see action.Request) and returns when it is recorded. A
	// second one of the same name is the same request.
	Request(ctx context.Context, name string, body json.RawMessage) error
	// Why explains in a sentence why a job waits or what it is doing.
	Why(ctx context.Context, job jobs.ID) (string, error)
	// Read returns a part of an output file. The error is fs.ErrNotExist if the file is missing.
	Read(ctx context.Context, r Read) (*Piece, error)
	// Reply answers live.State.Question. An empty text declines to answer.
	Reply(question int64, text string) error
}

// Read asks for a part of an attempt's output file.
type Read struct {
	Attempt jobs.AttemptID `json:"attempt,omitzero"`
	File    jobs.File      `json:"file,omitempty"`   // jobs.FileOut or jobs.FileErr
	Offset  int64          `json:"offset,omitempty"` // negative: from the end
	Limit   int            `json:"limit,omitempty"`  // bytes, at most MaxPiece
}

// Piece is part of an output file.
type Piece struct {
	Offset int64  `json:"offset"`
	Data   []byte `json:"data"`
	Size   int64  `json:"size"` // current size of the file
	// The attempt has ended, so the file does not grow any more.
	Over bool `json:"over,omitempty"`
}

// ReadPiece calls read, which reads a part of an output file and returns the size of the file, and
// makes the answer. a is the attempt before the read; nil: there is no such attempt.
func ReadPiece(r Read, a *jobs.Attempt, read func() (data []byte, size int64, err error)) (*Piece, error) {
	switch {
	case r.File != jobs.FileOut && r.File != jobs.FileErr:
		return nil, Refusef("an attempt has no output file %q; the files are %q and %q", string(r.File),
			jobs.FileOut, jobs.FileErr)
	case a == nil:
		return nil, Refusef("there is no attempt %s", r.Attempt)
	}
	over := !a.State.Open()
	if over && a.Started == 0 && a.Outcome == nil {
		return nil, Refusef("attempt %s has never started, so it has printed nothing", r.Attempt)
	}
	data, size, err := read()
	switch {
	case errors.Is(err, fs.ErrNotExist) && !over: // the attempt has not started yet
		return &Piece{}, nil
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("the output of %s, which ran on %s, does not exist any more: %w", r.Attempt, a.Host, err)
	case err != nil:
		return nil, err
	}
	at := r.Offset
	if at < 0 {
		at = max(0, size+at)
	}
	return &Piece{Offset: at, Data: data, Size: size, Over: over}, nil
}

// Hello is the first line of a server.
type Hello struct {
	V       int    `json:"dcs"`               // of jobs.FormatSocket
	Run     string `json:"run"`               // uid of the run
	Epoch   int    `json:"epoch"`             // of the dispatcher
	Token   string `json:"token,omitempty"`   // of its owner file
	PID     int    `json:"pid"`               // of the dispatcher
	Release string `json:"release"`           // of its program, for people
	Program string `json:"program,omitempty"` // the path of its program
	Error   string `json:"error,omitempty"`   // why the server closes the connection now
}

// request is a line from a client. Do is wake, request, why, read, reply, follow, or abandon.
// abandon withdraws the call of the same id and has no answer of its own.
type request struct {
	ID      int64           `json:"id"`
	Do      string          `json:"do"`
	Name    string          `json:"name,omitempty"`
	Request json.RawMessage `json:"request,omitempty"`
	Job     jobs.ID         `json:"job,omitempty"`
	Read
	Question int64  `json:"question,omitempty"`
	Text     string `json:"text,omitempty"`
}

// reply is a line from a server after its Hello: an answer, a push, or the goodbye.
type reply struct {
	ID      int64         `json:"id,omitempty"`
	Text    string        `json:"text,omitempty"`  // result of why
	Piece   *Piece        `json:"piece,omitempty"` // result of read
	Error   string        `json:"error,omitempty"`
	Code    string        `json:"code,omitempty"` // the kind of Error; see errorCodes
	Durable *live.Durable `json:"durable,omitempty"`
	Live    *live.State   `json:"live,omitempty"`
	Goodbye bool          `json:"goodbye,omitempty"`
}

var (
	// ErrGone is the error of calls on a connection that has ended. Unless the error is
	// ErrNotTaken, too, the call may have been carried out.
	ErrGone = errors.New("the connection to the dispatcher has ended")
	// ErrNotTaken marks an error of a call that had no effect and never will: it was not sent, or
	// the dispatcher ended before accepting it.
	ErrNotTaken = errors.New("the dispatcher did not accept the request")
	// ErrUnresponsive is the error if a dispatcher does not answer in time. It may hang or be
	// stopped.
	ErrUnresponsive = errors.New("the dispatcher does not respond")
)

// RefusedError is the error of a call that can never be carried out.
type RefusedError struct{ Why string }

// Error returns the reason.
func (e *RefusedError) Error() string { return e.Why }

// Refused marks the error for packages that use the socket through an interface.
func (e *RefusedError) Refused() bool { return true }

// Refusef returns a *RefusedError.
func Refusef(format string, args ...any) error { return &RefusedError{fmt.Sprintf(format, args...)} }

// errorCodes lists the errors that the client receives unchanged.
var errorCodes = map[string]error{"gone": ErrGone, "not_taken": ErrNotTaken, "not_exist": fs.ErrNotExist}

// remoteError is an error that the server returned.
type remoteError struct {
	text string
	kind error
}

func (e *remoteError) Error() string { return e.text }
func (e *remoteError) Unwrap() error { return e.kind }

// errorReply returns the answer of a call that failed.
func errorReply(err error) *reply {
	r := &reply{Error: err.Error()}
	if _, ok := errors.AsType[*RefusedError](err); ok {
		r.Code = "refused"
	}
	for code, kind := range errorCodes {
		if errors.Is(err, kind) {
			r.Code = code
		}
	}
	return r
}

// err returns the error of the call.
func (r *reply) err() error {
	switch {
	case r.Error == "" && r.Code == "":
		return nil
	case r.Code == "refused":
		return &RefusedError{r.Error}
	}
	return &remoteError{r.Error, errorCodes[r.Code]}
}

// lines sends and receives the lines of a connection. One goroutine may receive.
type lines struct {
	net.Conn
	limited io.LimitedReader // limits the line that is being received
	decoder *json.Decoder
	sending chan struct{} // holds a value while a line is sent
	encoder *json.Encoder
}

func newLines(c net.Conn) *lines {
	l := &lines{Conn: c, limited: io.LimitedReader{R: c}, sending: make(chan struct{}, 1), encoder: json.NewEncoder(c)}
	l.decoder = json.NewDecoder(&l.limited)
	l.encoder.SetEscapeHTML(false) // escapes would make requests longer
	return l
}

// receive decodes the next line, of which at most limit bytes are read.
func (l *lines) receive(v any, limit int64) error {
	l.limited.N = limit
	err := l.decoder.Decode(v)
	if errors.Is(err, io.ErrUnexpectedEOF) && l.limited.N <= 0 {
		return errors.New("the line is too long")
	}
	return err
}

// send sends a line. When ctx ends, the other side has byeTimeout to read the rest. After an error
// a part of the line may have been sent, so the connection must be closed.
func (l *lines) send(ctx context.Context, v any) error {
	l.sending <- struct{}{} // bounded by the ctx of the current sender
	defer func() { <-l.sending }()
	l.SetWriteDeadline(time.Time{})
	expired := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		l.SetWriteDeadline(time.Now().Add(byeTimeout))
		close(expired)
	})
	err := l.encoder.Encode(v)
	if !stop() {
		<-expired
	}
	return err
}

const (
	// defaultBase holds the directories of sockets. XDG_RUNTIME_DIR replaces it if it is full, or
	// if another user has created our directory there.
	defaultBase  = "/tmp"
	dirPrefix    = "dcs-"
	socketSuffix = ".sock"
	minStaleAge  = time.Minute // a younger socket may not be listening yet
)

// socketDir returns the directory of a user's sockets.
func socketDir(base string, uid int) string { return filepath.Join(base, fmt.Sprint(dirPrefix, uid)) }

// checkDir returns an error if another user could have created a socket in the directory.
func checkDir(dir string, uid int) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !info.IsDir():
		return fmt.Errorf("%s is not a directory; it should be the directory of your sockets: "+
			"find out who created it, and remove it", dir)
	case !ok || int(owner.Uid) != uid:
		return fmt.Errorf("%s belongs to user %d and not to you, so it is not used for sockets", dir, owner.Uid)
	case info.Mode().Perm() != 0o700:
		return fmt.Errorf("%s is open to others (mode %#o): check its content, then run: chmod 700 %s", dir,
			info.Mode().Perm(), dir)
	}
	return nil
}

// listen creates a socket in base, or in the first default base where that is possible.
func listen(base string) (*net.UnixListener, error) {
	if base != "" {
		return listenIn(base)
	}
	l, err := listenIn(defaultBase)
	if dir := os.Getenv("XDG_RUNTIME_DIR"); err != nil && filepath.IsAbs(dir) {
		if l, err := listenIn(dir); err == nil {
			return l, nil
		}
	}
	return l, err
}

// listenIn creates a socket with a random name in our directory. It creates or checks that
// directory.
func listenIn(base string) (*net.UnixListener, error) {
	dir := socketDir(base, os.Geteuid())
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	if err := checkDir(dir, os.Geteuid()); err != nil {
		return nil, err
	}
	removeStaleSockets(dir)
	path := filepath.Join(dir, strings.ToLower(rand.Text()[:12])+socketSuffix)
	if len(path) > platform.MaxSocketPath {
		return nil, fmt.Errorf("%s is too long for the path of a socket", path)
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, err
	}
	// Until here the socket is protected only by the mode of the directory.
	if err := os.Chmod(path, 0o600); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

// removeStaleSockets removes the sockets of killed dispatchers, as far as possible.
func removeStaleSockets(dir string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || info.Mode().Type() != fs.ModeSocket || !strings.HasSuffix(e.Name(), socketSuffix) ||
			time.Since(info.ModTime()) < minStaleAge {
			continue
		}
		path := filepath.Join(dir, e.Name())
		// A socket in use with a full backlog answers EAGAIN.
		conn, err := net.DialTimeout("unix", path, time.Second)
		if err == nil {
			conn.Close()
		} else if errors.Is(err, syscall.ECONNREFUSED) {
			os.Remove(path)
		}
	}
}

// checkPeer returns an error if the process at the other end belongs neither to this user nor to
// root.
func checkPeer(conn *net.UnixConn, user int) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	peer := 0
	var failed error
	if err := raw.Control(func(fd uintptr) {
		peer, failed = platform.PeerUID(int(fd))
	}); err != nil {
		return err
	}
	switch {
	case failed != nil:
		return fmt.Errorf("the user at the other end of the socket is unknown: %w", failed)
	case peer != user && peer != 0:
		return fmt.Errorf("the program at the other end of the socket belongs to user %d, "+
			"who is neither user %d nor root", peer, user)
	}
	return nil
}
