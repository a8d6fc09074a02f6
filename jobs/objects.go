package jobs

import (
	"bytes"
	"strconv"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
)

// objectReader reads JSON objects member by member, in less time than json.Unmarshal.
// Its callers know the usual members only. Whatever else it finds, invalid text too, makes it fail.
// json.Unmarshal then reads the object.
type objectReader struct {
	decoder jsontext.Decoder
	input   bytes.Buffer
	text    []byte // memory of the last text that has escapes
	failed  bool
}

// objectReaders holds idle readers. Those of different cores must not share cache lines.
var objectReaders = sync.Pool{New: func() any { return new(objectReader) }}

// readObject reads b, which must hold one object and nothing else, and reports whether it did not
// fail. It calls member with the name of each member, whose value member reads. member reports
// whether it knows the name.
func readObject(b []byte, member func(r *objectReader, name []byte) bool) bool {
	r := objectReaders.Get().(*objectReader)
	defer objectReaders.Put(r)
	r.input, r.failed = *bytes.NewBuffer(b), false
	r.decoder.Reset(&r.input)
	r.readMembers(member)
	return !r.failed && r.decoder.InputOffset() == int64(len(b))
}

// readMembers reads an object.
func (r *objectReader) readMembers(member func(r *objectReader, name []byte) bool) {
	start, err := r.decoder.ReadToken()
	r.failed = r.failed || err != nil || start.Kind() != '{'
	for !r.failed && r.decoder.PeekKind() != '}' {
		if name := r.readValue('"'); name != nil {
			r.failed = !member(r, name[1:len(name)-1]) || r.failed
		}
	}
	if !r.failed {
		_, err = r.decoder.ReadToken()
		r.failed = err != nil
	}
}

// readList reads a list. It calls item for each item, which item reads.
func (r *objectReader) readList(item func()) {
	start, err := r.decoder.ReadToken()
	r.failed = r.failed || err != nil || start.Kind() != '['
	for !r.failed && r.decoder.PeekKind() != ']' {
		item()
	}
	if !r.failed {
		_, err = r.decoder.ReadToken()
		r.failed = err != nil
	}
}

// readValue returns the next value if it is of the kind. It is valid until the next read.
func (r *objectReader) readValue(kind jsontext.Kind) jsontext.Value {
	v, err := r.decoder.ReadValue()
	if err != nil || v.Kind() != kind {
		r.failed = true
		return nil
	}
	return v
}

// readText returns the next value, a text. It is valid until the next read.
func (r *objectReader) readText() []byte {
	v := r.readValue('"')
	switch {
	case v == nil:
		return nil
	case bytes.IndexByte(v, '\\') < 0:
		return v[1 : len(v)-1]
	}
	r.text, _ = jsontext.AppendUnquote(r.text[:0], v)
	return r.text
}

// readNumber sets n to the next value, a whole number.
func readNumber[T ~int | ~int64](r *objectReader, n *T) {
	if v := r.readValue('0'); v != nil {
		i, err := strconv.ParseInt(string(v), 10, 64)
		*n, r.failed = T(i), err != nil
	}
}
