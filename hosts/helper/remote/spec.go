//go:build linux

package remote

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// A spec file: the magic, CRC-32C and length of what follows (4 bytes each,
// little-endian), then the fields of hosts.LaunchJob in order, numbers as varints,
// texts and lists with their length before them. Any bytes survive. What stands
// behind is of no meaning: files are used again, and may have been longer.
const (
	specMagic  = "DCS1"
	specHeader = 12
)

var (
	errSpec    = errors.New("damaged job specification in the spool")
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
)

// appendSpec adds the encoding of j to b.
func appendSpec(b []byte, j *hosts.LaunchJob) []byte {
	start := len(b)
	b = append(b, specMagic+"\x00\x00\x00\x00\x00\x00\x00\x00"...)
	b = binary.AppendVarint(b, int64(j.Attempt.Job))
	b = binary.AppendVarint(b, int64(j.Attempt.N))
	b = appendText(b, j.Command)
	b = appendText(b, j.Cwd)
	b = appendText(b, j.Setup)
	b = binary.AppendVarint(b, int64(j.Timeout))
	b = binary.AppendVarint(b, int64(j.Slots))
	b = binary.AppendUvarint(b, uint64(len(j.Env)))
	for _, v := range j.Env {
		b = appendText(appendText(b, v.Name), v.Value)
	}
	b = binary.AppendUvarint(b, uint64(len(j.Params)))
	for _, v := range j.Params {
		b = appendText(appendText(b, v.Name), v.Value)
	}
	b = binary.AppendUvarint(b, uint64(len(j.GPUs)))
	for _, g := range j.GPUs {
		b = binary.AppendVarint(b, int64(g))
	}
	body := b[start+specHeader:]
	binary.LittleEndian.PutUint32(b[start+8:], uint32(len(body)))
	binary.LittleEndian.PutUint32(b[start+4:], crc32.Checksum(body, castagnoli))
	return b
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// parseSpec reads what appendSpec wrote; anything else is errSpec.
func parseSpec(b []byte) (*hosts.LaunchJob, error) {
	if len(b) < specHeader || string(b[:4]) != specMagic {
		return nil, fmt.Errorf("%w: %d bytes, no header", errSpec, len(b))
	}
	body := b[specHeader:]
	if n := binary.LittleEndian.Uint32(b[8:]); uint64(n) > uint64(len(body)) {
		return nil, fmt.Errorf("%w: %d bytes of %d", errSpec, len(body), n)
	} else {
		body = body[:n]
	}
	if crc32.Checksum(body, castagnoli) != binary.LittleEndian.Uint32(b[4:]) {
		return nil, fmt.Errorf("%w: wrong checksum", errSpec)
	}
	r := specReader{b: body}
	j := &hosts.LaunchJob{}
	j.Attempt.Job = jobs.ID(r.int())
	j.Attempt.N = int(r.int())
	j.Command, j.Cwd, j.Setup = r.text(), r.text(), r.text()
	j.Timeout = time.Duration(r.int())
	j.Slots = int(r.int())
	for range r.count(2) {
		j.Env = append(j.Env, jobs.EnvVar{Name: r.text(), Value: r.text()})
	}
	for range r.count(2) {
		j.Params = append(j.Params, jobs.Param{Name: r.text(), Value: r.text()})
	}
	for range r.count(1) {
		j.GPUs = append(j.GPUs, int(r.int()))
	}
	if r.bad || len(r.b) != 0 {
		return nil, fmt.Errorf("%w: wrong length", errSpec)
	}
	return j, nil
}

// specReader reads fields until the first that does not fit.
type specReader struct {
	b   []byte
	bad bool
}

func (r *specReader) int() int64 {
	v, n := binary.Varint(r.b)
	return v * r.advance(n)
}

// advance skips n bytes and returns 1, or marks the rest as bad and returns 0.
func (r *specReader) advance(n int) int64 {
	if n <= 0 || r.bad {
		r.bad, r.b = true, nil
		return 0
	}
	r.b = r.b[n:]
	return 1
}

func (r *specReader) text() string {
	v, n := binary.Uvarint(r.b)
	if r.advance(n) == 0 || v > uint64(len(r.b)) {
		r.bad, r.b = true, nil
		return ""
	}
	s := string(r.b[:v])
	r.b = r.b[v:]
	return s
}

// count reads the length of a list whose entries take at least min bytes each,
// so that a damaged number cannot ask for more memory than the file has bytes.
func (r *specReader) count(min int) int {
	v, n := binary.Uvarint(r.b)
	if r.advance(n) == 0 || v > uint64(len(r.b)/min) {
		r.bad, r.b = true, nil
		return 0
	}
	return int(v)
}
