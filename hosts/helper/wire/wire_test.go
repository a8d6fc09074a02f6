package wire

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// fill puts a value other than zero in every field that v contains.
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
	if err := NewWriter(&b).Write(msgs...); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// Every field of every message arrives as it was sent, in values and pointers,
// and so do messages whose fields are all zero.
func TestEveryMessageSurvives(t *testing.T) {
	for word, k := range kinds().ofWord {
		t.Run(word, func(t *testing.T) {
			full, zero := reflect.New(k.typ), reflect.New(k.typ)
			n := int64(0)
			fill(full.Elem(), &n)
			in := []hosts.Message{
				full.Interface().(hosts.Message), zero.Interface().(hosts.Message), full.Elem().Interface().(hosts.Message),
			}
			r := NewReader(iotest.OneByteReader(bytes.NewReader(write(t, in...))))
			for i, want := range []reflect.Value{full, zero, full} {
				got, err := r.Read()
				if err != nil {
					t.Fatal(err)
				}
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

// Bytes that are not UTF-8 in commands, paths and stderr lines survive exactly.
func TestAnyBytesSurvive(t *testing.T) {
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	in := &hosts.Launch{Jobs: []hosts.LaunchJob{{Attempt: jobs.AttemptID{Job: 1, N: 1}, Command: string(all), Cwd: "/\xff",
		Params: []jobs.Param{{Name: "x", Value: string(all)}}}}}
	got, err := NewReader(bytes.NewReader(write(t, in))).Read()
	if err != nil || !reflect.DeepEqual(got, in) {
		t.Errorf("got %+v, %v", got, err)
	}
}

// B3: a batch is one write; a batch that cannot be sent leaves the stream good.
func TestBatchIsOneWrite(t *testing.T) {
	var c countWriter
	w := NewWriter(&c)
	if err := w.Write(hosts.Limit{Slots: 1}, &hosts.Limit{Slots: 2}, hosts.Ping{Seq: 3}); err != nil {
		t.Fatal(err)
	}
	huge := hosts.Trouble{Text: strings.Repeat("x", MaxPayload+1)}
	if err := w.Write(hosts.Limit{Slots: 9}, huge); !errors.Is(err, ErrTooLarge) {
		t.Fatalf("huge message: %v", err)
	}
	if err := w.Write(nil); !errors.Is(err, ErrWord) {
		t.Errorf("nil: %v", err)
	}
	if err := w.Write((*hosts.Bye)(nil)); !errors.Is(err, ErrWord) {
		t.Errorf("nil pointer: %v", err)
	}
	if err := w.Write(); err != nil {
		t.Error(err)
	}
	if err := w.Write(hosts.Limit{Slots: 4}); err != nil {
		t.Fatal(err)
	}
	if c.n != 2 {
		t.Errorf("%d writes, want 2", c.n)
	}
	r := NewReader(&c.Buffer)
	for _, want := range []hosts.Message{&hosts.Limit{Slots: 1}, &hosts.Limit{Slots: 2}, &hosts.Ping{Seq: 3}, &hosts.Limit{Slots: 4}} {
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

// A list that is too large for a frame arrives whole, in several messages.
func TestLargeListsAreSplit(t *testing.T) {
	in := &hosts.Launch{Epoch: 3, ExpireUptime: 9}
	for i := range 24 {
		in.Jobs = append(in.Jobs, hosts.LaunchJob{Attempt: jobs.AttemptID{Job: jobs.ID(i + 1), N: 1}, Command: strings.Repeat("x", 1<<20)})
	}
	r := NewReader(bytes.NewReader(write(t, in)))
	var got hosts.Launch
	for {
		m, err := r.Read()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		l := m.(*hosts.Launch)
		got.Epoch, got.ExpireUptime, got.Jobs = l.Epoch, l.ExpireUptime, append(got.Jobs, l.Jobs...)
	}
	if !reflect.DeepEqual(&got, in) {
		t.Errorf("%d jobs arrived", len(got.Jobs))
	}
	one := hosts.Launch{Jobs: []hosts.LaunchJob{{Attempt: jobs.AttemptID{Job: 7, N: 1}, Command: strings.Repeat("x", MaxPayload)}}}
	err := NewWriter(io.Discard).Write(one)
	if !errors.Is(err, ErrTooLarge) || !strings.Contains(err.Error(), "7.1") {
		t.Errorf("one huge job: %v", err)
	}
}

// After a failed write nothing more is written: the far end may have half a frame.
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

// Writers on several goroutines give one unbroken sequence.
func TestConcurrentWrites(t *testing.T) {
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
