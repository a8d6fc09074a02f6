package wire

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

var greeting = kinds().greeting

// Each kind of damage is told apart from the others and sticks.
func TestDamageIsNamed(t *testing.T) {
	one := string(write(t, hosts.Bye{End: true}))
	first := one[len(greeting):]
	var b bytes.Buffer
	w := NewWriter(&b)
	_ = w.Write(hosts.Bye{})
	b.Reset()
	_ = w.Write(hosts.Bye{End: true})
	second := b.String()
	for _, c := range []struct {
		name, stream string
		want         error
	}{
		{"empty", "", io.EOF},
		{"greeting only", greeting, io.EOF},
		{"another version", kinds().greetingFor(hosts.ProtocolVersion + 1), ErrVersion},
		{"another shape", "dcs-wire 1 00000000\n", ErrVersion},
		{"noise", "Welcome to melon4\n", ErrFormat},
		{"endless line", strings.Repeat("x", 200<<10), ErrFormat},
		{"cut greeting", greeting[:5], io.ErrUnexpectedEOF},
		{"cut header", greeting + first[:4], io.ErrUnexpectedEOF},
		{"cut payload", greeting + first[:len(first)-2], io.ErrUnexpectedEOF},
		{"cut newline", greeting + first[:len(first)-1], io.ErrUnexpectedEOF},
		{"frame missing", greeting + second, ErrGap},
		{"frame repeated", greeting + first + first, ErrGap},
		{"unknown word", greeting + strings.Replace(first, "bye", "boo", 1), ErrWord},
		{"other word", greeting + strings.Replace(first, "bye", "limit", 1), ErrChecksum},
		{"payload changed", greeting + strings.Replace(first, "\x01", "\x00", 1), ErrChecksum},
		{"too large", greeting + "1 bye 9000000 00000000\n", ErrTooLarge},
		{"negative", greeting + "1 bye -1 00000000\n", ErrFormat},
		{"leading zero", greeting + "01 bye 1 00000000\n", ErrFormat},
		{"no numbers", greeting + "a b c deadbeef\n", ErrFormat},
		{"newline missing", greeting + first[:len(first)-1] + "x", ErrFormat},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := NewReader(strings.NewReader(c.stream))
			var err error
			for n := 0; err == nil && n < 10; n++ {
				_, err = r.Read()
			}
			if !errors.Is(err, c.want) {
				t.Fatalf("got %v, want %v", err, c.want)
			}
			if _, again := r.Read(); again != err {
				t.Errorf("then %v", again)
			}
		})
	}
}

// One changed bit anywhere is never taken for a message that was not sent.
func TestEveryBitFlipIsSeen(t *testing.T) {
	in := &hosts.Exits{Jobs: []hosts.ExitedJob{{Attempt: jobs.AttemptID{Job: 17, N: 2}, Slot: 3, Outcome: jobs.Outcome{Exit: 1, LastLine: "no"}}}}
	good := write(t, in, hosts.Limit{Slots: 2})
	for i := len(greeting); i < len(good); i++ {
		for bit := range 8 {
			bad := bytes.Clone(good)
			bad[i] ^= 1 << bit
			r := NewReader(bytes.NewReader(bad))
			m1, err := r.Read()
			if err == nil && !reflect.DeepEqual(m1, in) {
				t.Fatalf("byte %d bit %d: read %+v", i, bit, m1)
			}
			if err == nil {
				_, err = r.Read()
			}
			if err == nil {
				t.Fatalf("byte %d bit %d: not seen", i, bit)
			}
		}
	}
}

// A payload that is well framed but wrong inside is an error, not a panic.
func TestWrongPayloads(t *testing.T) {
	for name, c := range map[string]struct{ word, payload string }{
		"too short":      {"bye", ""},
		"too long":       {"bye", "\x01\x01"},
		"not a bool":     {"bye", "\x07"},
		"long number":    {"limit", strings.Repeat("\xff", 11)},
		"huge count":     {"exits", "\xff\xff\xff\xff\xff\xff\xff\xff\x7f"},
		"huge string":    {"trouble", "\x02\x02\xff\xff\xff\x7f"},
		"answer above 8": {"probed", "\x01\x02\x02\xff\x7f\x00\x00\x00\x00"},
	} {
		t.Run(name, func(t *testing.T) {
			r := NewReader(bytes.NewReader(frame(c.word, c.payload)))
			if m, err := r.Read(); !errors.Is(err, ErrFormat) {
				t.Errorf("got %+v, %v", m, err)
			}
		})
	}
}

// Random cuts of the stream end in EOF or ErrUnexpectedEOF and nothing else.
func TestCutAnywhere(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	good := write(t, hosts.Exits{Jobs: make([]hosts.ExitedJob, 3)}, hosts.Chunk{Bulk: make([]byte, 5000)}, hosts.Bye{})
	for range 300 {
		r := NewReader(bytes.NewReader(good[:rng.IntN(len(good))]))
		var err error
		for err == nil {
			_, err = r.Read()
		}
		if err != io.EOF && !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Fatal(err)
		}
	}
}
