package control

import (
	"bufio"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"reflect"
	"time"

	"dcs-tui/jobs"
	"dcs-tui/jobs/runview"
)

// The bounds of a connection.
const (
	maxCalls   = 16        // under way at once
	maxRequest = 32 << 20  // bytes of a request: half a million single jobs fit
	maxReply   = 256 << 20 // bytes of an answer
	maxPiece   = 1 << 20   // bytes of a Read
	maxWait    = time.Minute
	maxWhy     = 1000 // bytes of Action.Why
)

// op is what a request asks for.
type op uint8

const (
	opLook op = iota + 1
	opMatch
	opWeigh
	opRead
	opDo
	opTakeBack // the call ID is not wanted any more
	opTakeIn   // the request Name, which waits in the run directory
)

// request is a call on its way.
type request struct {
	ID     uint64
	Op     op
	Ask    runview.Ask
	Filter string
	Which  jobs.Ranges
	Read   runview.Read
	Action runview.Action
	Zeros  []string // see zeros
	Name   string   // of opTakeIn
}

// ErrLeaving is runview.ErrLeaving.
var ErrLeaving = runview.ErrLeaving

// fault is what kind of error an answer is.
type fault uint8

const (
	noFault fault = iota
	faultRefused
	faultGone
	faultLeaving
	faultOther
)

// reply is the answer to a call.
type reply struct {
	ID      uint64
	Fault   fault
	Text    string
	Picture *runview.Picture
	Which   jobs.Ranges
	Weight  runview.Weight
	Piece   *runview.Piece
	Answer  *runview.Answer
}

// fail makes the reply that of an error.
func (r *reply) fail(err error) {
	var refused *runview.Refused
	switch {
	case errors.As(err, &refused):
		r.Fault, r.Text = faultRefused, refused.Why
	case errors.Is(err, ErrLeaving):
		r.Fault = faultLeaving
	case errors.Is(err, runview.ErrGone):
		r.Fault = faultGone
	default:
		r.Fault, r.Text = faultOther, err.Error()
	}
}

// err is the error that fail was given, as far as it can travel.
func (r *reply) err() error {
	switch r.Fault {
	case noFault:
		return nil
	case faultRefused:
		return &runview.Refused{Why: r.Text}
	case faultGone:
		return runview.ErrGone
	case faultLeaving:
		return ErrLeaving
	}
	return errors.New(r.Text)
}

// goodbye is the last message of a server that ends. Every call that it began has its
// answer before it: what was not answered was not taken.
func goodbye() *reply { return &reply{Fault: faultLeaving} }

func (r *reply) isGoodbye() bool { return r.ID == 0 && r.Fault == faultLeaving }

// errLeft is what is left of a connection after a goodbye.
var errLeft = fmt.Errorf("%w: %w", runview.ErrGone, ErrLeaving)

// zeros names the fields of a change that are set to zero: gob leaves out what is
// zero, also behind a pointer, where it means something.
func zeros(c *runview.Change) (names []string) {
	if c == nil {
		return nil
	}
	v := reflect.ValueOf(c).Elem()
	for i := range v.NumField() {
		f := v.Field(i)
		if f.Kind() == reflect.Pointer && !f.IsNil() && (f.Elem().IsZero() || f.Elem().Kind() == reflect.Slice && f.Elem().Len() == 0) {
			names = append(names, v.Type().Field(i).Name)
		}
	}
	return names
}

// restore sets the fields that zeros named.
func restore(c *runview.Change, names []string) {
	for _, name := range names {
		if c == nil {
			return
		}
		f := reflect.ValueOf(c).Elem().FieldByName(name)
		if f.IsValid() && f.Kind() == reflect.Pointer && f.IsNil() {
			f.Set(reflect.New(f.Type().Elem()))
		}
	}
}

// bound keeps what is not ours to decide within what one call may cost.
func (r *request) bound() {
	r.Ask.Wait = min(max(0, r.Ask.Wait), maxWait)
	if w := r.Ask.Jobs; w != nil {
		w.Rows = min(max(0, w.Rows), runview.MaxRows)
	}
	if w := r.Ask.Events; w != nil {
		w.Rows = min(max(0, w.Rows), runview.MaxRows)
	}
	r.Read.Limit = min(max(0, r.Read.Limit), maxPiece)
	r.Action.Why = r.Action.Why[:min(len(r.Action.Why), maxWhy)] // it is kept in the journal
}

// errTooLong: a message is longer than it may be.
var errTooLong = errors.New("a message is too long")

// messages reads gob messages that have a bound.
type messages struct {
	r    *bufio.Reader
	dec  *gob.Decoder
	left int64
}

func newMessages(r *bufio.Reader) *messages {
	m := &messages{r: r}
	m.dec = gob.NewDecoder(m)
	return m
}

// next reads a message of at most limit bytes.
func (m *messages) next(into any, limit int64) error {
	m.left = limit
	return m.dec.Decode(into)
}

// Read and ReadByte are for gob, which reads no further than it must from whoever
// has both.
func (m *messages) Read(p []byte) (int, error) {
	if m.left <= 0 {
		return 0, errTooLong
	}
	n, err := m.r.Read(p[:min(int64(len(p)), m.left)])
	m.left -= int64(n)
	return n, err
}

// ReadByte reads one byte.
func (m *messages) ReadByte() (byte, error) {
	if m.left <= 0 {
		return 0, errTooLong
	}
	m.left--
	return m.r.ReadByte()
}

var _ io.ByteReader = (*messages)(nil)
