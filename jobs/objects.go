package jobs

import (
	"bytes"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
)

// objectReader reads JSON objects member by member, in less time than json.Unmarshal. Its callers
// ask for the usual members only, in the order in which this program writes them. Whatever else it
// finds makes it fail: other members, repeated ones, another order, and invalid text. json.Unmarshal
// then reads the object.
type objectReader struct {
	decoder jsontext.Decoder
	input   bytes.Buffer
	name    []byte // of the next member, if isNamed
	isNamed bool   // the name of the next member was read
	text    []byte // memory of the last text that has escapes
	failed  bool
}

// objectReaders holds idle readers. Those of different cores must not share cache lines.
var objectReaders = sync.Pool{New: func() any { return new(objectReader) }}

// readObject reads b, which must hold one object and nothing else, and reports whether it did not
// fail. members reads the members.
func readObject(b []byte, members func(r *objectReader)) bool {
	r := objectReaders.Get().(*objectReader)
	defer objectReaders.Put(r)
	r.input, r.isNamed, r.failed = *bytes.NewBuffer(b), false, false
	r.decoder.Reset(&r.input, repeatedNames)
	r.readMembers(members)
	return !r.failed && r.decoder.InputOffset() == int64(len(b))
}

// repeatedNames makes a decoder remember no names: an objectReader takes no repeated ones.
var repeatedNames = jsontext.AllowDuplicateNames(true)

// readMembers reads an object.
func (r *objectReader) readMembers(members func(r *objectReader)) {
	r.readDelimiter('{')
	members(r)
	r.readDelimiter('}') // fails if a member is left
}

// has reports whether the next member has the name. The caller then reads its value.
func (r *objectReader) has(name string) bool {
	if !r.isNamed {
		if r.failed || r.decoder.PeekKind() != '"' {
			return false
		}
		v := r.readValue('"')
		if r.failed {
			return false
		}
		r.name, r.isNamed = v[1:len(v)-1], true
	}
	if string(r.name) != name {
		return false
	}
	r.isNamed = false
	return true
}

// readList reads a list. It calls item for each item, which item reads.
func (r *objectReader) readList(item func()) {
	r.readDelimiter('[')
	for !r.failed && r.decoder.PeekKind() != ']' {
		item()
	}
	r.readDelimiter(']')
}

func (r *objectReader) readDelimiter(kind jsontext.Kind) {
	if r.failed || r.isNamed {
		r.failed = true
		return
	}
	token, err := r.decoder.ReadToken()
	r.failed = err != nil || token.Kind() != kind
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

// readString sets s to the value of the next member, a text, if that has the name.
func (r *objectReader) readString(name string, s *string) {
	if r.has(name) {
		*s = string(r.readText())
	}
}

// readNumber sets n to the value of the next member, a whole number, if that has the name.
func readNumber[T ~int | ~int64](r *objectReader, name string, n *T) {
	if !r.has(name) {
		return
	}
	token, err := r.decoder.ReadToken()
	if err != nil || token.Kind() != '0' {
		r.failed = true
		return
	}
	i, err := token.Int()
	*n, r.failed = T(i), r.failed || err != nil
}
