package journal

import (
	"bytes"
	"errors"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"dcs-tui/jobs/rundir"
	"dcs-tui/jobs/rundir/memdisk"
)

func TestBeatSurvivesRemovedFile(t *testing.T) {
	r := newRun(t)
	j, _, _ := take1(t, r, TakeOptions{})
	if err := os.Remove(r.Path(rundir.OwnerFile)); err != nil {
		t.Fatal(err)
	}
	if err := j.beats.close(); err != nil { // as after a stale handle
		t.Fatal(err)
	}
	if err := j.SetSocket("/tmp/elsewhere"); err != nil {
		t.Fatal(err)
	}
	if o, err := ReadOwner(r); err != nil || o == nil || o.Socket != "/tmp/elsewhere" {
		t.Errorf("%v, %v", o, err)
	}
	if err := j.Close(); err != nil {
		t.Error(err)
	}
	if o, err := ReadOwner(r); err != nil || !o.Left || o.Life() != Dead {
		t.Errorf("after Close: %+v, %v", o, err)
	}
}

func TestOwnerFile(t *testing.T) {
	o, err := (&TakeOptions{Token: "token",
		Now: func() time.Time { return time.Date(2026, 3, 14, 15, 2, 0, 0, time.UTC) }}).owner(3)
	if err != nil {
		t.Fatal(err)
	}
	b, err := o.encode()
	if err != nil || len(b) != ownerBytes {
		t.Fatalf("%d bytes, %v", len(b), err)
	}
	got, err := decodeOwner(b)
	if err != nil || !reflect.DeepEqual(got, o) {
		t.Errorf("%+v, %v", got, err)
	}
	if o.Life() != Alive {
		t.Error("this process is not alive")
	}
	for i := range b {
		if _, err := decodeOwner(b[:i]); !errors.Is(err, errOwnerTorn) {
			t.Errorf("cut at %d: %v", i, err)
		}
		c := bytes.Clone(b)
		c[i] ^= 4
		if _, err := decodeOwner(c); !errors.Is(err, errOwnerTorn) {
			t.Errorf("byte %d changed: %v", i, err)
		}
	}
	o.Socket = strings.Repeat("x", ownerBytes)
	if _, err := o.encode(); err == nil {
		t.Error("a name that does not fit was written")
	}
}

func FuzzDecodeOwner(f *testing.F) {
	o := &Owner{V: 1, Host: "melon1", process: process{PID: 3}}
	b, err := o.encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte("{}"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if o, err := decodeOwner(b); err == nil {
			_ = o.String()
			_ = o.Life()
		}
	})
}

func FuzzParseStat(f *testing.F) {
	const line = "1234 (a ) b (c)) S 1 1234 1234 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 987654 0 0"
	f.Add([]byte(line))
	f.Add([]byte("1 (x"))
	f.Add([]byte{})
	if state, start, err := parseStat([]byte(line)); state != 'S' || start != 987654 || err != nil {
		f.Fatalf("%c %d %v", state, start, err)
	}
	f.Fuzz(func(t *testing.T, b []byte) { _, _, _ = parseStat(b) })
}

// What keeps a dispatcher from launching can be read in the file owner, bounded, and
// is gone when it is over; a text that does not fit costs the text, not the beat.
func TestOwnerProblem(t *testing.T) {
	r := newRun(t)
	j, _, _ := take1(t, r, TakeOptions{})
	if err := j.SetSocket(strings.Repeat("a", 100)); err != nil {
		t.Fatal(err)
	}
	defer crash(t, j)
	for _, c := range []struct{ text, want string }{
		{"no space left on device\x1b[31m", "no space left on device␛[31m"}, {strings.Repeat("ä", 500), strings.Repeat("ä", maxProblem-1) + "…"},
		{strings.Repeat("\U0001f600", 500), ""}, {"", ""},
	} {
		beat := j.beats.owner.Beat
		if err := j.SetProblem(c.text); err != nil {
			t.Fatal(err)
		}
		o, err := ReadOwner(r)
		if err != nil || o.Problem != c.want || o.Beat != beat+1 {
			t.Errorf("%q: %+v, %v", c.text, o, err)
		}
	}
}

// The owner file cut at any byte, grown, or with any bit flipped: it names nobody,
// or the same owner, never another, and proves neither life nor death; the owner's
// next beat mends it.
func TestOwnerEveryByte(t *testing.T) {
	m := memdisk.New().Mount("a")
	r := simulated(t, m)
	j, _, _ := take1(t, r, TakeOptions{Force: true, Who: machine("melon1"), Token: "token"})
	path := r.Path(rundir.OwnerFile)
	whole, err := rundir.ReadFile(m, path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := m.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	try := func(what string, at int, content []byte) {
		t.Helper()
		if err := f.Truncate(int64(len(content))); err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteAt(content, 0); err != nil {
			t.Fatal(err)
		}
		if o, err := ReadOwner(r); err == nil || o != nil || !strings.Contains(err.Error(), path) {
			t.Fatalf("%s %d: read as %+v, %v", what, at, o, err)
		}
		now, err := look(r)
		if err != nil || now.owner != nil || now.content == nil {
			t.Fatalf("%s %d: %+v, %v", what, at, now, err)
		}
		if at%16 != 0 {
			return
		}
		if err := j.Beat(); err != nil {
			t.Fatalf("%s %d: a beat: %v", what, at, err)
		}
		if o, err := ReadOwner(r); err != nil || o.Token != "token" || o.Host != "melon1" {
			t.Fatalf("%s %d: after a beat it says %+v, %v", what, at, o, err)
		}
	}
	for i := range whole {
		try("cut at", i, whole[:i])
		for bit := range 8 {
			c := bytes.Clone(whole)
			c[i] ^= 1 << bit
			try("bit flipped in byte", i, c)
		}
	}
	try("grown", 0, append(bytes.Clone(whole), whole...))
	crash(t, j)
}
