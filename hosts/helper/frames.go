package helper

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"reflect"
	"strconv"
	"strings"
	"sync"

	"dcs-tui/hosts"
)

// MaxPayload is the maximum number of bytes in the payload of a frame.
const MaxPayload = 8 << 20

// Writer writes messages as frames. It is safe for concurrent use.
type Writer struct {
	mu  sync.Mutex
	w   io.Writer
	seq int64
	err error // of an earlier write, after which the stream may end inside a frame
}

// NewWriter returns a Writer on w, which begins with the first message written.
func NewWriter(w io.Writer) *Writer { return &Writer{w: w} }

// Write writes all messages, structs of package hosts or pointers to them, in order and with one
// call to the underlying writer. A list (Launch, Exits, Probed …) that is too large for a frame is
// split into several messages. If a message cannot be sent (ErrTooLarge, ErrKind), Write sends
// nothing of this call and the Writer remains usable. After an error of the underlying writer every
// further Write returns that error.
func (w *Writer) Write(msgs ...hosts.Message) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return w.err
	}
	b, seq := []byte(nil), w.seq
	if seq == 0 {
		b = append(b, kinds().greeting...)
	}
	var err error
	for _, m := range msgs {
		if b, seq, err = appendMessage(b, seq, m); err != nil {
			return err
		}
	}
	if seq == w.seq {
		return nil
	}
	w.seq = seq
	_, w.err = w.w.Write(b)
	return w.err
}

// appendMessage appends the frame or frames of m, whose numbers follow seq, to b.
func appendMessage(b []byte, seq int64, m hosts.Message) ([]byte, int64, error) {
	v := reflect.ValueOf(m)
	if v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	if !v.IsValid() {
		return b, seq, fmt.Errorf("%w: none at all", ErrKind)
	}
	k := kinds().byType[v.Type()]
	if k == nil {
		return b, seq, fmt.Errorf("%w: %T", ErrKind, m)
	}
	p := k.encode(nil, v)
	if len(p) > k.maxPayload {
		one, two, ok := splitMessage(v)
		if !ok {
			return b, seq, fmt.Errorf("%w: %s of %d bytes, at most %d can be sent", ErrTooLarge,
				describeMessage(v.Interface()), len(p), k.maxPayload)
		}
		b, seq, err := appendMessage(b, seq, one)
		if err != nil {
			return b, seq, err
		}
		return appendMessage(b, seq, two)
	}
	seq++
	start := len(b)
	b = appendHeader(b, seq, k.name, int64(len(p)))
	sum := crc32.Update(crc32.Checksum(b[start:], castagnoli), castagnoli, p)
	b = fmt.Appendf(b, " %08x\n", sum)
	b = append(b, p...)
	return append(b, '\n'), seq, nil
}

// maxHeader is the maximum number of bytes in the first line of a frame.
const maxHeader = 80

// Reader reads frames. It is not safe for concurrent use. It reads ahead, so nobody else can read
// what follows the frames.
type Reader struct {
	r       *bufio.Reader
	seq     int64
	size    int // bytes in the payload of the last frame
	greeted bool
	err     error
}

// NewReader returns a Reader on r. Its buffer is small, because a dispatcher has one for each host.
// Large payloads bypass it.
func NewReader(r io.Reader) *Reader { return &Reader{r: bufio.NewReaderSize(r, 4<<10)} }

// Read returns the next message as a pointer to a struct of package hosts. It returns io.EOF if the
// stream ends after a complete frame or before the first, an error that wraps io.ErrUnexpectedEOF
// if it ends inside a frame, one of this package's errors if the stream is malformed, and otherwise
// the error of the underlying reader. After an error it returns the same error again.
func (r *Reader) Read() (hosts.Message, error) {
	if r.err != nil {
		return nil, r.err
	}
	m, err := r.read()
	r.err = err
	return m, err
}

func (r *Reader) read() (hosts.Message, error) {
	if !r.greeted {
		line, err := r.line()
		if err != nil {
			return nil, err
		}
		if string(line)+"\n" != kinds().greeting {
			if !bytes.HasPrefix(line, []byte("dcs-wire ")) {
				return nil, fmt.Errorf("%w: the stream begins with %q", ErrFormat, line)
			}
			return nil, fmt.Errorf("%w: it says %q, ours is %q", ErrVersion, line,
				kinds().greeting[:len(kinds().greeting)-1])
		}
		r.greeted = true
	}
	line, err := r.line()
	if err != nil {
		return nil, err
	}
	k, n, sum, err := r.header(line)
	if err != nil {
		return nil, err
	}
	crc := crc32.Checksum(line[:len(line)-9], castagnoli) // before the next read, which overwrites line
	p, err := r.body(n)
	if err != nil {
		return nil, err
	}
	if crc32.Update(crc, castagnoli, p) != sum {
		return nil, fmt.Errorf("%w, frame %d (%s)", ErrChecksum, r.seq, k.name)
	}
	v := reflect.New(k.typ)
	if err := k.decodeAll(p, v.Elem()); err != nil {
		return nil, fmt.Errorf("frame %d (%s): %w", r.seq, k.name, err)
	}
	return v.Interface().(hosts.Message), nil
}

// line returns the next line without its newline. It is valid until the next read.
func (r *Reader) line() ([]byte, error) {
	line, err := r.r.ReadSlice('\n')
	switch {
	case errors.Is(err, io.EOF) && len(line) > 0:
		return nil, fmt.Errorf("the stream ends inside a frame: %w", io.ErrUnexpectedEOF)
	case err != nil && !errors.Is(err, bufio.ErrBufferFull):
		return nil, err
	case err != nil || len(line) > maxHeader:
		return nil, fmt.Errorf("%w: a line of %d bytes or more: %q …", ErrFormat, len(line), line[:maxHeader])
	}
	return line[:len(line)-1], nil
}

// header parses "SEQ WORD LEN CRC" and checks SEQ, WORD, and LEN. It accepts only
// what Writer writes.
func (r *Reader) header(line []byte) (k *kind, n int, sum uint32, err error) {
	seq, word, size, sum, ok := parseHeader(string(line))
	if !ok {
		return nil, 0, 0, fmt.Errorf("%w: %q", ErrFormat, line)
	}
	if seq != r.seq+1 {
		return nil, 0, 0, fmt.Errorf("%w: number %d came after number %d", ErrGap, seq, r.seq)
	}
	k = kinds().byKind[word]
	if k == nil {
		return nil, 0, 0, fmt.Errorf("%w: %q (frame %d)", ErrKind, word, seq)
	}
	if size > int64(k.maxPayload) {
		return nil, 0, 0, fmt.Errorf("%w: frame %d (%s) announces %d bytes, at most %d are taken", ErrTooLarge, seq,
			k.name, size, k.maxPayload)
	}
	r.seq, r.size = seq, int(size)
	return k, int(size), sum, nil
}

func parseHeader(line string) (seq int64, word string, size int64, sum uint32, ok bool) {
	first, rest, _ := strings.Cut(line, " ")
	word, rest, _ = strings.Cut(rest, " ")
	third, fourth, _ := strings.Cut(rest, " ")
	seq, err1 := strconv.ParseInt(first, 10, 64)
	size, err2 := strconv.ParseInt(third, 10, 64)
	wide, err3 := strconv.ParseUint(fourth, 16, 32)
	sum = uint32(wide)
	ok = errors.Join(err1, err2, err3) == nil && size >= 0 && word != "" &&
		line == string(fmt.Appendf(appendHeader(nil, seq, word, size), " %08x", sum))
	return seq, word, size, sum, ok
}

// appendHeader appends the first line of a frame up to its checksum.
func appendHeader(b []byte, seq int64, word string, size int64) []byte {
	b = append(strconv.AppendInt(b, seq, 10), ' ')
	b = append(append(b, word...), ' ')
	return strconv.AppendInt(b, size, 10)
}

// body reads n bytes and the newline after them. Memory grows with what has arrived, not with what
// was announced.
func (r *Reader) body(n int) ([]byte, error) {
	var b bytes.Buffer
	b.Grow(min(n+1, 64<<10) + bytes.MinRead)
	_, err := io.CopyN(&b, r.r, int64(n+1))
	if errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("the stream ends inside frame %d: %w", r.seq, io.ErrUnexpectedEOF)
	}
	if err != nil {
		return nil, err
	}
	p, whole := bytes.CutSuffix(b.Bytes(), []byte("\n"))
	if !whole {
		return nil, fmt.Errorf("%w: frame %d is longer or shorter than it says", ErrFormat, r.seq)
	}
	return p, nil
}

// splitMessage splits a message with a list Jobs, or without one with a list Attempts, into two
// messages that together mean the same. ok is false if that is impossible.
func splitMessage(m reflect.Value) (one, two hosts.Message, ok bool) {
	field := "Jobs"
	if !m.FieldByName(field).IsValid() {
		field = "Attempts"
	}
	switch m.Interface().(type) {
	case hosts.List, hosts.Inspect:
		return nil, nil, false
	}
	list := m.FieldByName(field)
	if !list.IsValid() || list.Len() < 2 {
		return nil, nil, false
	}
	half := func(from, to int, last bool) hosts.Message {
		part := reflect.New(m.Type())
		part.Elem().Set(m)
		part.Elem().FieldByName(field).Set(list.Slice(from, to))
		if l, ok := part.Interface().(*hosts.Listed); ok {
			l.Last = l.Last && last
		}
		return part.Interface().(hosts.Message)
	}
	n := list.Len()
	return half(0, n/2, false), half(n/2, n, true), true
}

// describeMessage describes a message for people.
func describeMessage(m any) string {
	switch m := m.(type) {
	case hosts.Launch:
		if len(m.Jobs) == 1 {
			return fmt.Sprintf("the launch of %s", m.Jobs[0].Attempt)
		}
	case hosts.Exits:
		if len(m.Jobs) == 1 {
			return fmt.Sprintf("the outcome of %s", m.Jobs[0].Attempt)
		}
	}
	if m, ok := m.(hosts.Message); ok {
		return fmt.Sprintf("a message %q", m.Kind())
	}
	return "a message"
}

// Errors of malformed streams. All errors of Reader wrap one of them, except for io.EOF,
// io.ErrUnexpectedEOF, and errors of the underlying reader. None is recoverable: close the channel.
var (
	ErrVersion  = errors.New("the other side is another build of dcs-tui")
	ErrFormat   = errors.New("not a frame")
	ErrGap      = errors.New("frames are missing or repeated")
	ErrKind     = errors.New("unknown kind of message")
	ErrChecksum = errors.New("frame damaged: wrong checksum")
	ErrTooLarge = errors.New("message too large")
)
