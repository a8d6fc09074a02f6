package wire

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"reflect"
	"strconv"

	"dcs-tui/hosts"
)

// maxLine is the most bytes of a frame's first line.
const maxLine = 80

// readStep is how much memory is taken before bytes are there to fill it.
const readStep = 256 << 10

// Reader reads frames. It is not safe for concurrent use. It reads ahead: what
// follows the frames on the same stream is lost to others.
type Reader struct {
	r       *bufio.Reader
	seq     int64
	greeted bool
	err     error
	payload []byte
}

// NewReader returns a Reader on r.
func NewReader(r io.Reader) *Reader { return &Reader{r: bufio.NewReaderSize(r, 64<<10)} }

// Read returns the next message, always as a pointer to a struct of package
// hosts (*hosts.Launch …). It returns io.EOF when the stream ends after a whole
// frame (or before the first), an error wrapping io.ErrUnexpectedEOF when it
// ends inside one, one of this package's errors when the stream is not as
// written, else the underlying reader's. It keeps returning the first error.
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
			return nil, fmt.Errorf("%w: it says %q, ours is %q", ErrVersion, line, kinds().greeting[:len(kinds().greeting)-1])
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
	crc := crc32.Checksum(line[:len(line)-9], castagnoli) // line is in r's buffer: before the next read
	p, err := r.body(n)
	if err != nil {
		return nil, err
	}
	if crc32.Update(crc, castagnoli, p) != sum {
		return nil, fmt.Errorf("%w, frame %d (%s)", ErrChecksum, r.seq, k.word)
	}
	v := reflect.New(k.typ)
	d := decoder{b: p}
	k.dec(&d, v.Elem())
	if d.err == nil && len(d.b) > 0 {
		d.fail("%d bytes too many", len(d.b))
	}
	if d.err != nil {
		return nil, fmt.Errorf("frame %d (%s): %w", r.seq, k.word, d.err)
	}
	return v.Interface().(hosts.Message), nil
}

// line returns the next line without its newline, valid until the next read.
func (r *Reader) line() ([]byte, error) {
	line, err := r.r.ReadSlice('\n')
	switch {
	case errors.Is(err, io.EOF) && len(line) > 0:
		return nil, fmt.Errorf("the stream ends inside a frame: %w", io.ErrUnexpectedEOF)
	case err != nil && !errors.Is(err, bufio.ErrBufferFull):
		return nil, err
	case err != nil || len(line) > maxLine:
		return nil, fmt.Errorf("%w: a line of %d bytes or more: %q …", ErrFormat, len(line), line[:maxLine])
	}
	return line[:len(line)-1], nil
}

// header takes "SEQ WORD LEN CRC" apart and checks SEQ, WORD and LEN. Numbers
// must be written as Writer writes them.
func (r *Reader) header(line []byte) (k *kind, n int, sum uint32, err error) {
	f := bytes.Split(line, []byte{' '})
	if len(f) != 4 || len(f[3]) != 8 {
		return nil, 0, 0, fmt.Errorf("%w: %q", ErrFormat, line)
	}
	seq, ok1 := number(f[0])
	size, ok2 := number(f[2])
	crc, err := strconv.ParseUint(string(f[3]), 16, 32)
	if !ok1 || !ok2 || err != nil || string(appendHex(nil, uint32(crc))) != string(f[3]) {
		return nil, 0, 0, fmt.Errorf("%w: %q", ErrFormat, line)
	}
	if seq != r.seq+1 {
		return nil, 0, 0, fmt.Errorf("%w: number %d came after number %d", ErrGap, seq, r.seq)
	}
	if k = kinds().ofWord[string(f[1])]; k == nil {
		return nil, 0, 0, fmt.Errorf("%w: %q (frame %d)", ErrWord, f[1], seq)
	}
	if size > MaxPayload {
		return nil, 0, 0, fmt.Errorf("%w: frame %d (%s) announces %d bytes, at most %d are taken", ErrTooLarge, seq, k.word, size, MaxPayload)
	}
	r.seq = seq
	return k, int(size), uint32(crc), nil
}

// number reads digits without sign or leading zero.
func number(b []byte) (int64, bool) {
	n, err := strconv.ParseInt(string(b), 10, 64)
	return n, err == nil && b[0] >= '0' && b[0] <= '9' && (b[0] != '0' || len(b) == 1)
}

// body reads n bytes and the newline after them. The slice is valid until the
// next call. Memory grows with what has arrived, not with what was announced.
func (r *Reader) body(n int) ([]byte, error) {
	p := r.payload[:0]
	for len(p) < n+1 {
		step := min(n+1-len(p), readStep)
		if cap(p)-len(p) < step {
			p = append(make([]byte, 0, min(n+1, max(2*cap(p), len(p)+step, 4096))), p...)
		}
		got, err := io.ReadFull(r.r, p[len(p):len(p)+step])
		p = p[:len(p)+got]
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return nil, fmt.Errorf("the stream ends inside frame %d: %w", r.seq, io.ErrUnexpectedEOF)
		}
		if err != nil {
			return nil, err
		}
	}
	if r.payload = p; cap(p) > keepBuffer {
		r.payload = nil
	}
	if p[n] != '\n' {
		return nil, fmt.Errorf("%w: frame %d is longer or shorter than it says", ErrFormat, r.seq)
	}
	return p[:n], nil
}
