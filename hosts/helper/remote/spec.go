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

// A spec file: the fields of hosts.LaunchJob in order, sealed.
const specMagic = "DCS4"

// What is sealed: the magic, which names kind and version, CRC-32C and length of
// what follows (4 bytes each, little-endian), then numbers as varints, texts and
// lists with their length before them. Any bytes survive. What stands behind is
// of no meaning: files are used again, and may have been longer.
const sealHeader = 12

var (
	errSpec    = errors.New("damaged job specification in the spool")
	errSeal    = errors.New("damaged")
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
)

// appendSpec adds the encoding of j to b.
func appendSpec(b []byte, j *hosts.LaunchJob) []byte {
	start := len(b)
	b = beginSeal(b, specMagic)
	b = binary.AppendVarint(b, int64(j.Attempt.Job))
	b = binary.AppendVarint(b, int64(j.Attempt.N))
	b = appendText(b, j.Command)
	b = appendText(b, j.Cwd)
	b = appendText(b, j.Setup)
	b = binary.AppendVarint(b, int64(j.Timeout))
	b = binary.AppendVarint(b, int64(j.Slots))
	b = binary.AppendVarint(b, int64(j.Restart))
	b = binary.AppendVarint(b, j.Mem)
	b = appendEnv(b, j.Env)
	b = binary.AppendUvarint(b, uint64(len(j.Params)))
	for _, v := range j.Params {
		b = appendText(appendText(b, v.Name), v.Value)
	}
	b = binary.AppendUvarint(b, uint64(len(j.GPUs)))
	for _, g := range j.GPUs {
		b = binary.AppendVarint(b, int64(g))
	}
	half := int64(0)
	if j.HalfGPU {
		half = 1
	}
	b = binary.AppendVarint(b, half)
	if f := j.Files; f != nil {
		b = binary.AppendUvarint(b, uint64(len(f.Return)))
		for _, p := range f.Return {
			b = appendText(b, p)
		}
		own := int64(0)
		if f.Own {
			own = 1
		}
		b = binary.AppendVarint(b, own)
	}
	endSeal(b[start:])
	return b
}

func beginSeal(b []byte, magic string) []byte {
	return append(append(b, magic...), "\x00\x00\x00\x00\x00\x00\x00\x00"...)
}

// endSeal fills in the header of what beginSeal began at the beginning of b.
func endSeal(b []byte) {
	body := b[sealHeader:]
	binary.LittleEndian.PutUint32(b[8:], uint32(len(body)))
	binary.LittleEndian.PutUint32(b[4:], crc32.Checksum(body, castagnoli))
}

// unseal checks the header and returns the fields; anything wrong is errSeal.
func unseal(b []byte, magic string) (*specReader, error) {
	if len(b) < sealHeader || string(b[:len(magic)]) != magic {
		return nil, fmt.Errorf("%w: %d bytes, no header", errSeal, len(b))
	}
	body := b[sealHeader:]
	n := binary.LittleEndian.Uint32(b[8:])
	if uint64(n) > uint64(len(body)) {
		return nil, fmt.Errorf("%w: %d bytes of %d", errSeal, len(body), n)
	}
	body = body[:n]
	if crc32.Checksum(body, castagnoli) != binary.LittleEndian.Uint32(b[4:]) {
		return nil, fmt.Errorf("%w: wrong checksum", errSeal)
	}
	return &specReader{b: body}, nil
}

func appendEnv(b []byte, env []jobs.EnvVar) []byte {
	b = binary.AppendUvarint(b, uint64(len(env)))
	for _, v := range env {
		b = appendText(appendText(b, v.Name), v.Value)
	}
	return b
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// parseSpec reads what appendSpec wrote; anything else is errSpec.
func parseSpec(b []byte) (*hosts.LaunchJob, error) {
	r, err := unseal(b, specMagic)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errSpec, err)
	}
	j := &hosts.LaunchJob{}
	j.Attempt.Job = jobs.ID(r.int())
	j.Attempt.N = int(r.int())
	j.Command, j.Cwd, j.Setup = r.text(), r.text(), r.text()
	j.Timeout = time.Duration(r.int())
	j.Slots = int(r.int())
	j.Restart = int(r.int())
	j.Mem = r.int()
	j.Env = r.env()
	for range r.count(2) {
		j.Params = append(j.Params, jobs.Param{Name: r.text(), Value: r.text()})
	}
	for range r.count(1) {
		j.GPUs = append(j.GPUs, int(r.int()))
	}
	j.HalfGPU = r.int() == 1
	if len(r.b) > 0 {
		j.Files = &hosts.JobFiles{}
		for range r.count(1) {
			j.Files.Return = append(j.Files.Return, r.text())
		}
		j.Files.Own = r.int() == 1
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

func (r *specReader) env() (env []jobs.EnvVar) {
	for range r.count(2) {
		env = append(env, jobs.EnvVar{Name: r.text(), Value: r.text()})
	}
	return env
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
