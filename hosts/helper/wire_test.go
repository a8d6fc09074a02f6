package helper

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// fill sets every field that v contains to a nonzero value.
func fill(v reflect.Value, n *int64) {
	*n++
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(-*n)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(uint64(*n % 200))
	case reflect.Float64:
		v.SetFloat(float64(*n) / 3)
	case reflect.String:
		v.SetString(fmt.Sprintf("text\xff\x00\n%d", *n))
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(v.Index(0), n)
		fill(v.Index(1), n)
	case reflect.Array:
		for i := range v.Len() {
			fill(v.Index(i), n)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for _, key := range []string{"2.1", "1.1"} {
			e := reflect.New(v.Type().Elem()).Elem()
			fill(e, n)
			v.SetMapIndex(reflect.ValueOf(key), e)
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), n)
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), n)
		}
	default:
		panic(v.Type())
	}
}

func write(t testing.TB, msgs ...hosts.Message) []byte {
	t.Helper()
	var b bytes.Buffer
	must(t, NewWriter(&b).Write(msgs...))
	return b.Bytes()
}

// TestEveryMessageSurvives checks that every field of every message arrives as it was sent, in
// values and pointers, also text that is not UTF-8. The same holds for messages whose fields are
// all zero.
func TestEveryMessageSurvives(t *testing.T) {
	for word, k := range kinds().byKind {
		t.Run(word, func(t *testing.T) {
			full, zero := reflect.New(k.typ), reflect.New(k.typ)
			n := int64(0)
			fill(full.Elem(), &n)
			in := []hosts.Message{
				full.Interface().(hosts.Message),
				zero.Interface().(hosts.Message),
				full.Elem().Interface().(hosts.Message),
			}
			r := NewReader(iotest.OneByteReader(bytes.NewReader(write(t, in...))))
			for i, want := range []reflect.Value{full, zero, full} {
				got, err := r.Read()
				must(t, err)
				if !reflect.DeepEqual(got, want.Interface()) {
					t.Errorf("message %d: got %+v, want %+v", i, got, want.Interface())
				}
			}
			if _, err := r.Read(); err != io.EOF {
				t.Errorf("at the end: %v, want io.EOF", err)
			}
		})
	}
}

// TestBatchIsOneWrite checks that a batch is one write, and that a batch that cannot be sent does
// not damage the stream (B3).
func TestBatchIsOneWrite(t *testing.T) {
	var c countWriter
	w := NewWriter(&c)
	must(t, w.Write(hosts.Limit{Slots: 1}, &hosts.Limit{Slots: 2}, hosts.Ping{Seq: 3}))
	huge := hosts.Trouble{Text: strings.Repeat("x", MaxPayload+1)}
	if err := w.Write(hosts.Limit{Slots: 9}, huge); !errors.Is(err, ErrTooLarge) {
		t.Fatalf("huge message: %v", err)
	}
	if err := w.Write(nil); !errors.Is(err, ErrKind) {
		t.Errorf("nil: %v", err)
	}
	if err := w.Write((*hosts.Bye)(nil)); !errors.Is(err, ErrKind) {
		t.Errorf("nil pointer: %v", err)
	}
	if err := w.Write(); err != nil {
		t.Error(err)
	}
	must(t, w.Write(hosts.Limit{Slots: 4}))
	if c.n != 2 {
		t.Errorf("%d writes, want 2", c.n)
	}
	r := NewReader(&c.Buffer)
	for _, want := range []hosts.Message{&hosts.Limit{Slots: 1}, &hosts.Limit{Slots: 2}, &hosts.Ping{Seq: 3},
		&hosts.Limit{Slots: 4}} {
		if got, err := r.Read(); err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("got %+v, %v, want %+v", got, err, want)
		}
	}
}

type countWriter struct {
	bytes.Buffer
	n int
}

func (c *countWriter) Write(p []byte) (int, error) { c.n++; return c.Buffer.Write(p) }

// TestLargeListsAreSplit checks that a list that is too large for a frame arrives complete, in
// several messages.
func TestLargeListsAreSplit(t *testing.T) {
	in := &hosts.Launch{Epoch: 3, ExpireUptime: 9}
	for i := range 24 {
		in.Jobs = append(in.Jobs, hosts.LaunchJob{Attempt: jobs.AttemptID{Job: jobs.ID(i + 1), N: 1},
			Command: strings.Repeat("x", 1<<20)})
	}
	r := NewReader(bytes.NewReader(write(t, in)))
	var got hosts.Launch
	for {
		m, err := r.Read()
		if err == io.EOF {
			break
		}
		must(t, err)
		l := m.(*hosts.Launch)
		got.Epoch, got.ExpireUptime, got.Jobs = l.Epoch, l.ExpireUptime, append(got.Jobs, l.Jobs...)
	}
	if !reflect.DeepEqual(&got, in) {
		t.Errorf("%d jobs arrived", len(got.Jobs))
	}
	one := hosts.Launch{Jobs: []hosts.LaunchJob{{Attempt: jobs.AttemptID{Job: 7, N: 1},
		Command: strings.Repeat("x", MaxPayload)}}}
	err := NewWriter(io.Discard).Write(one)
	if !errors.Is(err, ErrTooLarge) || !strings.Contains(err.Error(), "7.1") {
		t.Errorf("one huge job: %v", err)
	}
}

// TestWriteErrorSticks checks that nothing is written after a failed write, because the far end may
// have received half a frame.
func TestWriteErrorSticks(t *testing.T) {
	broken := errors.New("cut")
	w := NewWriter(errWriter{broken})
	if err := w.Write(hosts.Bye{}); err != broken {
		t.Fatal(err)
	}
	if err := w.Write(hosts.Bye{}); err != broken {
		t.Fatal(err)
	}
}

type errWriter struct{ err error }

func (e errWriter) Write([]byte) (int, error) { return 0, e.err }

// TestConcurrentWritesDoNotMix checks that writers on several goroutines do not mix their frames.
func TestConcurrentWritesDoNotMix(t *testing.T) {
	var b bytes.Buffer
	w := NewWriter(&b)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 100 {
				if err := w.Write(hosts.Ping{Seq: int64(100*i + j)}, hosts.Bye{}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	r, n := NewReader(&b), 0
	for ; ; n++ {
		if _, err := r.Read(); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if n != 1600 {
		t.Errorf("%d messages, want 1600", n)
	}
}

var greeting = kinds().greeting

// TestDamageIsNamed checks that each kind of damage has its own error, and that the error is
// permanent.
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
		{"unknown kind", greeting + strings.Replace(first, "bye", "boo", 1), ErrKind},
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

// TestEveryBitFlipIsSeen checks that a single changed bit never yields a message that was not sent,
// and that a stream that is cut at any byte ends in EOF or ErrUnexpectedEOF.
func TestEveryBitFlipIsSeen(t *testing.T) {
	in := &hosts.Exits{Jobs: []hosts.ExitedJob{{Attempt: jobs.AttemptID{Job: 17, N: 2}, Slot: 3,
		Outcome: jobs.Outcome{Exit: 1, LastLine: "no"}}}}
	good := write(t, in, hosts.Limit{Slots: 2})
	for i := len(greeting); i < len(good); i++ {
		r := NewReader(bytes.NewReader(good[:i]))
		var err error
		for err == nil {
			_, err = r.Read()
		}
		if err != io.EOF && !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Fatalf("cut at byte %d: %v", i, err)
		}
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

// TestInvalidPayloadIsAnError checks that a valid frame with an invalid payload is an error, not a
// panic.
func TestInvalidPayloadIsAnError(t *testing.T) {
	for name, c := range map[string]struct{ word, payload string }{
		"too short":      {"bye", ""},
		"too long":       {"bye", "\x01\x01\x01"},
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

// frame returns a stream of one frame with a correct checksum.
func frame(word, payload string) []byte {
	head := fmt.Sprintf("1 %s %d", word, len(payload))
	sum := crc32.Checksum([]byte(head+payload), castagnoli)
	return fmt.Appendf(nil, "%s%s %08x\n%s\n", greeting, head, sum, payload)
}

// FuzzStream checks that no bytes make the reader panic or return a message that would be written
// back with another length of payload.
func FuzzStream(f *testing.F) {
	for _, k := range kinds().byKind {
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

// FuzzPayload bypasses the checksum and checks that any payload of any word is an error, or a
// message that does not change when it is written and read again.
func FuzzPayload(f *testing.F) {
	for w, k := range kinds().byKind {
		v, n := reflect.New(k.typ), int64(0)
		fill(v.Elem(), &n)
		f.Add(w, k.encode(nil, v.Elem()))
		f.Add(w, k.encode(nil, reflect.Zero(k.typ)))
		f.Add(w, []byte("\xff\xff\xff\xff\xff\xff\xff\xff\x7f"))
	}
	f.Fuzz(func(t *testing.T, word string, payload []byte) {
		k := kinds().byKind[word]
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

const batch = 100

func benchLaunch() *hosts.Launch {
	l := &hosts.Launch{Epoch: 1, ExpireUptime: time.Hour}
	for i := range batch {
		l.Jobs = append(l.Jobs, hosts.LaunchJob{
			Attempt: jobs.AttemptID{Job: jobs.ID(i + 1000),
				N: 1}, Command: "python3 sweep.py --rate 0.01 --seed 1234 > out.1234",
			Params: []jobs.Param{{Name: "rate", Value: "0.01"}}, Timeout: time.Hour, Slots: 1})
	}
	return l
}

func benchExits() *hosts.Exits {
	e := &hosts.Exits{}
	for i := range batch {
		e.Jobs = append(e.Jobs, hosts.ExitedJob{Attempt: jobs.AttemptID{Job: jobs.ID(i + 1000), N: 1}, Slot: 3,
			Outcome: jobs.Outcome{Exit: 1, Started: 1790000000123456789, Ended: 1790000001123456789, CPU: time.Second,
				MaxRSSBytes: 1 << 30, LastLine: "Traceback: something is wrong"}})
	}
	return e
}

// BenchmarkFrames measures the cost of a job in ns/job, in each direction, in batches of 100.
func BenchmarkFrames(b *testing.B) {
	for name, m := range map[string]hosts.Message{"Launch": benchLaunch(), "Exits": benchExits()} {
		b.Run(name+"/write", func(b *testing.B) {
			w := NewWriter(io.Discard)
			b.ReportAllocs()
			for b.Loop() {
				_ = w.Write(m)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*batch), "ns/job")
		})
		b.Run(name+"/read", func(b *testing.B) {
			var buf bytes.Buffer
			w := NewWriter(&buf)
			const rounds = 50
			for range rounds {
				_ = w.Write(m)
			}
			b.ReportAllocs()
			for b.Loop() {
				r := NewReader(bytes.NewReader(buf.Bytes()))
				for range rounds {
					if _, err := r.Read(); err != nil {
						b.Fatal(err)
					}
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*batch*rounds), "ns/job")
		})
	}
}
