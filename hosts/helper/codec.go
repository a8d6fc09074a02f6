package helper

import (
	"encoding/binary"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"sync"
)

var codecs sync.Map // reflect.Type: codec

// Append appends the encoding of v to b. v may consist of the types that messages contain.
func Append(b []byte, v any) []byte { return codecOf(reflect.TypeOf(v)).encode(b, reflect.ValueOf(v)) }

// Decode decodes into *v, which must be zero, what Append encoded. It must use all of b.
func Decode[T any](b []byte, v *T) error {
	c := codecOf(reflect.TypeFor[T]())
	return c.decodeAll(b, reflect.ValueOf(v).Elem())
}

func codecOf(t reflect.Type) codec {
	c, ok := codecs.Load(t)
	if !ok {
		c, _ = codecs.LoadOrStore(t, codecFor(t))
	}
	return c.(codec)
}

func (c *codec) decodeAll(b []byte, v reflect.Value) error {
	d := decoder{b: b}
	c.decode(&d, v)
	if d.err == nil && len(d.b) > 0 {
		d.fail("%d bytes too many", len(d.b))
	}
	return d.err
}

// codec encodes and decodes values of one type.
type codec struct {
	encode   func(b []byte, v reflect.Value) []byte
	decode   func(d *decoder, v reflect.Value)
	shape    string // describes the type in the first line of a stream
	minBytes int    // minimum number of bytes of an encoded value
}

// decoder reads a payload. After the first error it returns zeros.
type decoder struct {
	b   []byte
	err error
}

func (d *decoder) fail(format string, args ...any) {
	if d.err == nil {
		d.err = fmt.Errorf("%w: %s", ErrFormat, fmt.Sprintf(format, args...))
		d.b = nil
	}
}

func (d *decoder) uvarint() uint64 {
	u, n := binary.Uvarint(d.b)
	if n <= 0 {
		d.fail("a number is cut off or too long")
		return 0
	}
	d.b = d.b[n:]
	return u
}

func (d *decoder) varint() int64 {
	u := d.uvarint()
	return int64(u>>1) ^ -int64(u&1)
}

// count reads the number of the following elements, each of at least least bytes. It refuses more
// than fit into the payload, so that the sender cannot make us allocate more than it sends.
func (d *decoder) count(minBytes int) int {
	n := d.uvarint()
	if n > uint64(len(d.b)/max(1, minBytes)) {
		d.fail("%d elements announced, %d bytes left", n, len(d.b))
		return 0
	}
	return int(n)
}

func (d *decoder) bytes(n int) []byte {
	if n > len(d.b) {
		d.fail("%d bytes announced, %d left", n, len(d.b))
		return nil
	}
	p := d.b[:n]
	d.b = d.b[n:]
	return p
}

func (d *decoder) bool() bool {
	p := d.bytes(1)
	if len(p) == 1 && p[0] > 1 {
		d.fail("%d is not yes or no", p[0])
	}
	return len(p) == 1 && p[0] == 1
}

// codecFor derives the codec of t. It panics for a type that no message may contain, which is a
// mistake in package hosts.
func codecFor(t reflect.Type) codec {
	switch t.Kind() {
	case reflect.Bool:
		return codec{encodeBool, func(d *decoder, v reflect.Value) { v.SetBool(d.bool()) }, "bool", 1}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return codec{
			func(b []byte, v reflect.Value) []byte { return binary.AppendVarint(b, v.Int()) },
			func(d *decoder, v reflect.Value) {
				n := d.varint()
				if v.OverflowInt(n) {
					d.fail("%d is too large for a field", n)
				}
				v.SetInt(n)
			}, "int", 1}
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return codec{
			func(b []byte, v reflect.Value) []byte { return binary.AppendUvarint(b, v.Uint()) },
			func(d *decoder, v reflect.Value) {
				n := d.uvarint()
				if v.OverflowUint(n) {
					d.fail("%d is too large for a field", n)
				}
				v.SetUint(n)
			}, "uint", 1}
	case reflect.Float64:
		return codec{
			func(b []byte, v reflect.Value) []byte {
				return binary.LittleEndian.AppendUint64(b, math.Float64bits(v.Float()))
			},
			func(d *decoder, v reflect.Value) {
				if p := d.bytes(8); p != nil {
					v.SetFloat(math.Float64frombits(binary.LittleEndian.Uint64(p)))
				}
			}, "float", 8}
	case reflect.String:
		return codec{
			func(b []byte, v reflect.Value) []byte {
				s := v.String()
				return append(binary.AppendUvarint(b, uint64(len(s))), s...)
			},
			func(d *decoder, v reflect.Value) {
				if p := d.bytes(d.count(1)); len(p) > 0 {
					v.SetString(string(p))
				}
			}, "string", 1}
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return byteSlice
		}
		return sliceOf(t)
	case reflect.Array:
		return arrayOf(t)
	case reflect.Map:
		return mapOf(t)
	case reflect.Pointer:
		return pointerTo(t)
	case reflect.Struct:
		return structOf(t)
	}
	panic("helper: no message may contain a " + t.String())
}

func encodeBool(b []byte, v reflect.Value) []byte {
	if v.Bool() {
		return append(b, 1)
	}
	return append(b, 0)
}

var byteSlice = codec{
	func(b []byte, v reflect.Value) []byte {
		p := v.Bytes()
		return append(binary.AppendUvarint(b, uint64(len(p))), p...)
	},
	func(d *decoder, v reflect.Value) {
		if p := d.bytes(d.count(1)); len(p) > 0 {
			v.SetBytes(slices.Clone(p))
		}
	}, "bytes", 1}

func sliceOf(t reflect.Type) codec {
	e := codecFor(t.Elem())
	return codec{
		func(b []byte, v reflect.Value) []byte {
			n := v.Len()
			b = binary.AppendUvarint(b, uint64(n))
			for i := range n {
				b = e.encode(b, v.Index(i))
			}
			return b
		},
		func(d *decoder, v reflect.Value) {
			n := d.count(e.minBytes)
			if n == 0 {
				return
			}
			s := reflect.MakeSlice(t, n, n)
			for i := 0; i < n && d.err == nil; i++ {
				e.decode(d, s.Index(i))
			}
			v.Set(s)
		}, "[]" + e.shape, 1}
}

func arrayOf(t reflect.Type) codec {
	e, n := codecFor(t.Elem()), t.Len()
	return codec{
		func(b []byte, v reflect.Value) []byte {
			for i := range n {
				b = e.encode(b, v.Index(i))
			}
			return b
		},
		func(d *decoder, v reflect.Value) {
			for i := range n {
				e.decode(d, v.Index(i))
			}
		}, fmt.Sprintf("[%d]%s", n, e.shape), n * e.minBytes}
}

// mapOf encodes entries in the order of their keys, which are strings, so that equal messages have
// equal bytes.
func mapOf(t reflect.Type) codec {
	if t.Key() != reflect.TypeFor[string]() {
		panic("helper: no message may contain a " + t.String())
	}
	k, e := codecFor(t.Key()), codecFor(t.Elem())
	return codec{
		func(b []byte, v reflect.Value) []byte {
			keys := v.MapKeys()
			slices.SortFunc(keys, func(x, y reflect.Value) int { return strings.Compare(x.String(), y.String()) })
			b = binary.AppendUvarint(b, uint64(len(keys)))
			for _, key := range keys {
				b = e.encode(k.encode(b, key), v.MapIndex(key))
			}
			return b
		},
		func(d *decoder, v reflect.Value) {
			n := d.count(k.minBytes + e.minBytes)
			if n == 0 {
				return
			}
			m, last := reflect.MakeMap(t), ""
			for i := 0; i < n && d.err == nil; i++ {
				key, val := reflect.New(t.Key()).Elem(), reflect.New(t.Elem()).Elem()
				k.decode(d, key)
				e.decode(d, val)
				if i > 0 && key.String() <= last {
					d.fail("keys out of order")
				}
				last = key.String()
				m.SetMapIndex(key, val)
			}
			v.Set(m)
		}, "map" + e.shape, 1}
}

func pointerTo(t reflect.Type) codec {
	e := codecFor(t.Elem())
	return codec{
		func(b []byte, v reflect.Value) []byte {
			if v.IsNil() {
				return append(b, 0)
			}
			return e.encode(append(b, 1), v.Elem())
		},
		func(d *decoder, v reflect.Value) {
			if d.bool() {
				p := reflect.New(t.Elem())
				e.decode(d, p.Elem())
				v.Set(p)
			}
		}, "*" + e.shape, 1}
}

func structOf(t reflect.Type) codec {
	n := t.NumField()
	fields := make([]codec, n)
	shape, minBytes := t.Name()+"{", 0
	for i := range n {
		if !t.Field(i).IsExported() {
			panic("helper: no message may contain a " + t.String())
		}
		fields[i] = codecFor(t.Field(i).Type)
		shape += t.Field(i).Name + " " + fields[i].shape + ";"
		minBytes += fields[i].minBytes
	}
	return codec{
		func(b []byte, v reflect.Value) []byte {
			for i := range fields {
				b = fields[i].encode(b, v.Field(i))
			}
			return b
		},
		func(d *decoder, v reflect.Value) {
			for i := range fields {
				if d.err != nil {
					return
				}
				fields[i].decode(d, v.Field(i))
			}
		}, shape + "}", minBytes}
}
