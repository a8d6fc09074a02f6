package wire

import (
	"fmt"
	"hash/crc32"
	"io"
	"reflect"
	"strconv"
	"sync"

	"dcs-tui/hosts"
)

// MaxPayload is the most bytes that the payload of one frame may have.
const MaxPayload = 8 << 20

// keepBuffer is how large a buffer may grow and still be kept for the next use.
const keepBuffer = 256 << 10

// Writer writes messages as frames. It is safe for concurrent use.
type Writer struct {
	mu      sync.Mutex
	w       io.Writer
	seq     int64
	err     error  // of an earlier write: the stream may be cut inside a frame
	batch   []byte // frames of one Write, kept for reuse
	payload []byte
}

// NewWriter returns a Writer on w, which begins with the first message written.
func NewWriter(w io.Writer) *Writer { return &Writer{w: w} }

// Write hands all messages, structs of package hosts or pointers to them, to the
// underlying writer in one call and in order. A list (Launch, Exits, Probed …)
// that is too large for one frame is sent as several messages. A message that
// cannot be sent (ErrTooLarge, ErrWord) makes Write send nothing of the batch,
// and the stream stays good. After an error of the underlying writer every
// further Write fails with that error.
func (w *Writer) Write(msgs ...hosts.Message) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return w.err
	}
	b, seq := w.batch[:0], w.seq
	if seq == 0 {
		b = append(b, kinds().greeting...)
	}
	var err error
	for _, m := range msgs {
		if b, seq, err = w.append(b, seq, m); err != nil {
			return err
		}
	}
	if seq == w.seq {
		return nil
	}
	w.seq = seq
	_, err = w.w.Write(b)
	w.err = err
	if w.batch = b; cap(b) > keepBuffer {
		w.batch = nil
	}
	return err
}

// append adds the frame (or frames) of m to b. The caller holds mu.
func (w *Writer) append(b []byte, seq int64, m hosts.Message) ([]byte, int64, error) {
	v := reflect.ValueOf(m)
	if v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	if !v.IsValid() {
		return b, seq, fmt.Errorf("%w: none at all", ErrWord)
	}
	k := kinds().ofType[v.Type()]
	if k == nil {
		return b, seq, fmt.Errorf("%w: %T", ErrWord, m)
	}
	p := k.enc(w.payload[:0], v)
	if w.payload = p; cap(p) > keepBuffer {
		w.payload = nil
	}
	if len(p) > MaxPayload {
		one, two, ok := halves(v.Interface())
		if !ok {
			return b, seq, fmt.Errorf("%w: %s of %d bytes, at most %d can be sent", ErrTooLarge, what(v.Interface()), len(p), MaxPayload)
		}
		b, seq, err := w.append(b, seq, one)
		if err != nil {
			return b, seq, err
		}
		return w.append(b, seq, two)
	}
	seq++
	start := len(b)
	b = strconv.AppendInt(b, seq, 10)
	b = append(b, ' ')
	b = append(b, k.word...)
	b = append(b, ' ')
	b = strconv.AppendInt(b, int64(len(p)), 10)
	sum := crc32.Update(crc32.Checksum(b[start:], castagnoli), castagnoli, p)
	b = append(b, ' ')
	b = appendHex(b, sum)
	b = append(b, '\n')
	b = append(b, p...)
	return append(b, '\n'), seq, nil
}

func appendHex(b []byte, u uint32) []byte {
	const digits = "0123456789abcdef"
	for s := 28; s >= 0; s -= 4 {
		b = append(b, digits[u>>s&15])
	}
	return b
}
