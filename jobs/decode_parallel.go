package jobs

import (
	"bytes"
	"runtime"
	"sync"
	"sync/atomic"
)

const (
	// AheadBlock is the size of the blocks in which files should be read, in bytes.
	AheadBlock = 512 << 10
	minAhead   = 2 << 10  // size of the smallest block whose lines are decoded ahead, in bytes
	partSize   = 16 << 10 // number of bytes that a core decodes at a time
)

// Cores is the number of cores that decode lines ahead. It stays the same when GOMAXPROCS changes.
var Cores = runtime.GOMAXPROCS(0)

// ParallelDecoder decodes the lines of a block on all cores while the first of them are already
// used. Decoding takes most of the time of reading a run. The zero value is ready. It is not safe
// for concurrent use.
type ParallelDecoder[T any] struct {
	parts    []decoderPart[T] // of the block, in the order of its lines
	next     int              // index of the part with the next line
	line     int              // index of that line in the part
	decoding sync.WaitGroup
}

// decoderPart is a part of a block, which one core decodes.
type decoderPart[T any] struct {
	text    []byte
	values  []T
	decoded chan struct{} // closed when values are complete
}

// Decode starts to decode a block, which ends with a newline. It calls decode for each line,
// without its newline. v is a zero value. Calls with different values of core, from 0 to Cores-1,
// run at the same time, also while lines are taken. The block must not change until the last line
// was taken. A small block is not decoded.
func (a *ParallelDecoder[T]) Decode(block []byte, decode func(core int, line []byte, v *T)) {
	a.decoding.Wait() // if not all lines of the previous block were taken
	a.next, a.line = 0, 0
	if len(block) < minAhead {
		a.parts = nil // a reader that follows a run needs no memory for large blocks
		return
	}
	a.parts = a.parts[:0]
	for len(block) > 0 {
		end := min(partSize, len(block))
		end += bytes.IndexByte(block[end-1:], '\n')
		if len(a.parts) == cap(a.parts) {
			a.parts = append(a.parts, decoderPart[T]{})
		} else { // keep the memory of its values
			a.parts = a.parts[:len(a.parts)+1]
		}
		p := &a.parts[len(a.parts)-1]
		p.text, p.values, p.decoded = block[:end], p.values[:0], make(chan struct{})
		block = block[end:]
	}
	parts, taken := a.parts, new(atomic.Int64)
	for core := range min(Cores, len(parts)) {
		a.decoding.Go(func() {
			for i := taken.Add(1); int(i) <= len(parts); i = taken.Add(1) {
				p := &parts[i-1]
				for line := range bytes.Lines(p.text) {
					p.values = append(p.values, *new(T))
					decode(core, line[:len(line)-1], &p.values[len(p.values)-1])
				}
				close(p.decoded)
			}
		})
	}
}

// Take returns what was decoded from the next line of the block, or nil if the block was not
// decoded. The value is valid until the next call of Decode.
func (a *ParallelDecoder[T]) Take() *T {
	for ; a.next < len(a.parts); a.next++ {
		p := &a.parts[a.next]
		<-p.decoded
		if a.line < len(p.values) {
			a.line++
			return &p.values[a.line-1]
		}
		a.line = 0
	}
	return nil
}
