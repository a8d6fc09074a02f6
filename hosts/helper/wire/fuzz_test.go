package wire

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"reflect"
	"testing"

	"dcs-tui/hosts"
)

// frame builds a stream of one frame with a right checksum.
func frame(word, payload string) []byte {
	head := fmt.Sprintf("1 %s %d", word, len(payload))
	sum := crc32.Checksum([]byte(head+payload), castagnoli)
	return fmt.Appendf(nil, "%s%s %08x\n%s\n", greeting, head, sum, payload)
}

// FuzzStream: no bytes make the reader panic or return a message that would not
// be written back to the same length of payload.
func FuzzStream(f *testing.F) {
	for _, k := range kinds().ofWord {
		v, n := reflect.New(k.typ), int64(0)
		fill(v.Elem(), &n)
		f.Add(write(f, v.Interface().(hosts.Message), hosts.Bye{}))
	}
	f.Add([]byte(greeting + "1 bye 8388608 00000000\n"))
	f.Add([]byte("Last login: never\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		r := NewReader(bytes.NewReader(b))
		for {
			if m, err := r.Read(); err != nil {
				return
			} else if reflect.ValueOf(m).Kind() != reflect.Pointer {
				t.Fatalf("%T is not a pointer", m)
			}
		}
	})
}

// FuzzPayload gets past the checksum: any payload of any word is an error, or a
// message that survives being written and read again.
func FuzzPayload(f *testing.F) {
	for w, k := range kinds().ofWord {
		v, n := reflect.New(k.typ), int64(0)
		fill(v.Elem(), &n)
		f.Add(w, k.enc(nil, v.Elem()))
		f.Add(w, k.enc(nil, reflect.Zero(k.typ)))
		f.Add(w, []byte("\xff\xff\xff\xff\xff\xff\xff\xff\x7f"))
	}
	f.Fuzz(func(t *testing.T, word string, payload []byte) {
		k := kinds().ofWord[word]
		if k == nil {
			return
		}
		m, err := NewReader(bytes.NewReader(frame(word, string(payload)))).Read()
		if err != nil {
			return
		}
		first := write(t, m)
		again, err := NewReader(bytes.NewReader(first)).Read()
		if err != nil {
			t.Fatalf("%+v cannot be read again: %v", m, err)
		}
		if !bytes.Equal(first, write(t, again)) {
			t.Fatalf("%+v became %+v", m, again)
		}
	})
}
