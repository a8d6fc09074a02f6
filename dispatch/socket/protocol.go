// Package socket is the Unix socket of a dispatcher, for screens and commands of the
// same user on the same machine. It does what a file cannot do: wake the inbox, accept a
// request while the disk is full or hangs, push the durable position of the journal and
// the content of live.json, say why a job waits, and read output that only a host has.
// Everything else is in the run directory.
//
// Both sides send lines of JSON of bounded length, and docs/formats.md documents them for
// people who write tools. The server sends a Hello first. A client that sends too much,
// reads too little, or stays silent delays nobody else and is disconnected. The last line
// of a server that ends is its goodbye: calls that have no answer by then had no effect.
//
// The package knows nothing of runs and terminals. A Handler carries the calls out.
package socket

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"dcs-tui/jobs"
	"dcs-tui/jobs/live"
)

// Version is the version of the protocol. Raise it when one side would misunderstand the
// other. New fields and new calls do not need that: a server refuses unknown calls.
const Version = 2

// Limits of a connection.
const (
	maxCalls   = 16       // calls in flight
	maxRequest = 32 << 20 // bytes of a line from a client; half a million job ids fit
	maxReply   = 8 << 20  // bytes of a line from a server
	maxHello   = 4096     // bytes of a Hello
	// MaxPiece bounds Read.Limit and Piece.Data, in bytes.
	MaxPiece = 1 << 20
)

// Handler carries out the calls of clients. Its methods are called concurrently. ctx ends
// when the client has gone or has abandoned the call, and at Server.Close. A *RefusedError
// is the caller's fault. ErrNotTaken says that the call had no effect and never will.
type Handler interface {
	// Wake polls the inbox now and returns when the request of this name is recorded.
	Wake(ctx context.Context, name string) error
	// Request accepts a request (see rundir.Request) and returns when it is recorded. A
	// second one of the same name is the same request.
	Request(ctx context.Context, name string, body json.RawMessage) error
	// Why says in a sentence why a job waits or what it is doing.
	Why(ctx context.Context, job jobs.ID) (string, error)
	// Read returns a piece of an output file. The error is fs.ErrNotExist when the file is
	// missing.
	Read(ctx context.Context, r Read) (*Piece, error)
	// Reply answers live.State.Question. An empty text declines to answer.
	Reply(question int64, text string) error
}

// Read asks for a piece of an attempt's output file.
type Read struct {
	Attempt jobs.AttemptID
	File    jobs.File // jobs.FileOut or jobs.FileErr
	Offset  int64     // negative: from the end
	Limit   int       // bytes, at most MaxPiece
}

// Piece is part of an output file.
type Piece struct {
	Offset int64  `json:"offset"`
	Data   []byte `json:"data"`
	Size   int64  `json:"size"`           // of the file now
	Over   bool   `json:"over,omitempty"` // the attempt is over: the file grows no more
}

// Hello is the first line of a server.
type Hello struct {
	V       int    `json:"dcs"`               // Version
	Run     string `json:"run"`               // uid of the run
	Epoch   int    `json:"epoch"`             // of the dispatcher
	Token   string `json:"token,omitempty"`   // of its owner file
	PID     int    `json:"pid"`               // of the dispatcher
	Release string `json:"release"`           // of its program, for people
	Program string `json:"program,omitempty"` // the path of its program
	Error   string `json:"error,omitempty"`   // why the server closes the connection now
}

// request is a line from a client.
type request struct {
	ID       int64           `json:"id"`
	Do       string          `json:"do"`
	Name     string          `json:"name,omitempty"`
	Request  json.RawMessage `json:"request,omitempty"`
	Job      jobs.ID         `json:"job,omitempty"`
	Attempt  jobs.AttemptID  `json:"attempt,omitzero"`
	File     jobs.File       `json:"file,omitempty"`
	Offset   int64           `json:"offset,omitempty"`
	Limit    int             `json:"limit,omitempty"`
	Question int64           `json:"question,omitempty"`
	Text     string          `json:"text,omitempty"`
}

// Values of request.Do. The call with the id of an abandon is not wanted any more. An
// abandon has no answer of its own.
const (
	doWake    = "wake"
	doRequest = "request"
	doFollow  = "follow"
	doWhy     = "why"
	doRead    = "read"
	doReply   = "reply"
	doAbandon = "abandon"
)

// message is a line from a server after its Hello: an answer, a push, or the goodbye.
type message struct {
	ID      int64         `json:"id,omitempty"`
	Text    string        `json:"text,omitempty"`  // of why
	Piece   *Piece        `json:"piece,omitempty"` // of read
	Error   string        `json:"error,omitempty"`
	Code    string        `json:"code,omitempty"` // of Error; see errorCodes
	Durable *live.Durable `json:"durable,omitempty"`
	Live    *live.State   `json:"live,omitempty"`
	Goodbye bool          `json:"goodbye,omitempty"`
}

var (
	// ErrGone is the error of calls on a connection that has ended. Unless the error is
	// ErrNotTaken too, the call may have been carried out.
	ErrGone = errors.New("the connection to the dispatcher has ended")
	// ErrNotTaken marks an error of a call that had no effect and never will: it was not
	// sent, or the dispatcher ended before it took it.
	ErrNotTaken = errors.New("the dispatcher did not take the request")
	// ErrUnresponsive is the error when a dispatcher does not answer in time. It may hang or
	// be stopped.
	ErrUnresponsive = errors.New("the dispatcher does not respond")
)

// RefusedError says why a call was refused: it asks for something impossible.
type RefusedError struct{ Why string }

func (e *RefusedError) Error() string { return e.Why }

// Refused marks the error for packages that know the socket as an interface only.
func (e *RefusedError) Refused() bool { return true }

// Refusef returns a *RefusedError.
func Refusef(format string, args ...any) error { return &RefusedError{fmt.Sprintf(format, args...)} }

const codeRefused = "refused"

// errorCodes are the kinds of errors that keep their identity on the way.
var errorCodes = map[string]error{"gone": ErrGone, "not_taken": ErrNotTaken, "not_exist": fs.ErrNotExist}

// remoteError is an error of the other side.
type remoteError struct{ code, text string }

func (e *remoteError) Error() string   { return e.text }
func (e *remoteError) Is(t error) bool { return errorCodes[e.code] == t }

// fail makes the message the answer of a call that failed.
func (m *message) fail(err error) {
	*m = message{ID: m.ID, Error: err.Error()}
	var refused *RefusedError
	if errors.As(err, &refused) {
		m.Error, m.Code = refused.Why, codeRefused
	}
	for code, is := range errorCodes {
		if errors.Is(err, is) {
			m.Code = code
		}
	}
	if m.Error == "" {
		m.Error = "unknown error"
	}
}

// err returns the error that fail was given.
func (m *message) err() error {
	switch {
	case m.Error == "" && m.Code == "":
		return nil
	case m.Code == codeRefused:
		return &RefusedError{m.Error}
	}
	return &remoteError{m.Code, m.Error}
}

// VersionError says that the dispatcher speaks another version of the protocol.
type VersionError struct{ Theirs Hello }

func (e *VersionError) Error() string {
	program := e.Theirs.Program
	if program == "" {
		program = "the program that dispatches the run"
	}
	return fmt.Sprintf("the dispatcher of this run is dcs-tui %s, which speaks version %d of the socket protocol, and this program speaks version %d; use %s",
		e.Theirs.Release, e.Theirs.V, Version, program)
}

var errTooLong = errors.New("line is too long")

// readLine reads a line of at most limit bytes, without its end. The result is valid until
// the next read.
func readLine(r *bufio.Reader, limit int) ([]byte, error) {
	line, err := r.ReadSlice('\n')
	var whole []byte
	for errors.Is(err, bufio.ErrBufferFull) && len(whole) <= limit {
		whole = append(whole, line...)
		line, err = r.ReadSlice('\n')
	}
	if whole != nil {
		line = append(whole, line...)
	}
	switch {
	case len(bytes.TrimSuffix(line, []byte("\n"))) > limit:
		return nil, errTooLong
	case errors.Is(err, io.EOF) && len(line) > 0:
		return nil, io.ErrUnexpectedEOF
	case err != nil:
		return nil, err
	}
	return line[:len(line)-1], nil
}

// encode returns v as a line.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // it would make requests longer
	err := e.Encode(v)
	return b.Bytes(), err
}
