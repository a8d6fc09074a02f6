package journal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
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

// TestOwnerProblem checks that the file owner holds the problem that keeps a dispatcher from
// launching. The text is bounded and disappears when the problem ends. A text that does not fit is
// dropped, but the heartbeat is still written.
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

// TestOwnerEveryByte checks the owner file cut at any byte, extended, or with any bit flipped. It
// names nobody or the same owner, never another one, and proves neither life nor death. The owner's
// next heartbeat repairs it.
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
		now, err := readOwnerFile(r)
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

// TestTakeFromTheTornButWriting checks that a file owner that is incomplete but changes counts as a
// heartbeat. The wait restarts, and an owner that keeps writing is not declared dead.
func TestTakeFromTheTornButWriting(t *testing.T) {
	for writes, want := range map[int]time.Duration{1: 5*time.Second + StaleAfter, 9: 15 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			r, old := foreign(t)
			crash(t, old)
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			go func() {
				time.Sleep(watchInterval / 2) // virtual time; no write while somebody reads
				for i := range writes {
					select {
					case <-ctx.Done():
						return
					case <-time.After(5 * time.Second):
					}
					if err := os.WriteFile(r.Path(rundir.OwnerFile), fmt.Appendf(nil, "torn %d", i), 0o600); err != nil {
						t.Error(err)
					}
				}
			}()
			began := time.Now()
			j, _, _, err := Take(t.Context(), r, TakeOptions{})
			if waited := time.Since(began); waited < want || waited > want+2*watchInterval || (err == nil) != (writes == 1) {
				t.Errorf("%d writes: %v after %s, want %s", writes, err, waited, want)
			}
			if err == nil {
				crash(t, j)
			}
			stop()
			synctest.Wait()
		})
	}
}

// TestTakeFromTheWatched checks X1 and E7: an owner that the caller has watched for StaleAfter is
// not waited for again, even if its process exists on this machine. One that has sent a heartbeat
// since then is.
func TestTakeFromTheWatched(t *testing.T) {
	for _, where := range []string{"here", "elsewhere"} {
		for _, beats := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				r := newRun(t)
				old, _, _ := take1(t, r, TakeOptions{})
				if where == "elsewhere" {
					old.beats.owner.Boot = "another-boot"
				}
				if err := old.Beat(); err != nil {
					t.Fatal(err)
				}
				watched, err := ReadOwner(r)
				if err != nil {
					t.Fatal(err)
				}
				if beats {
					if err := old.Beat(); err != nil {
						t.Fatal(err)
					}
				}
				began := time.Now()
				j, _, _, err := Take(t.Context(), r, TakeOptions{Silent: watched})
				switch waited := time.Since(began); {
				case !beats && (err != nil || waited > watchInterval):
					t.Errorf("%s, silent: %v after %s, want it taken at once", where, err, waited)
				case beats && err == nil && waited < StaleAfter:
					t.Errorf("%s, with a newer sign of life: taken after %s", where, waited)
				}
				if err == nil {
					crash(t, j)
				}
				crash(t, old)
			})
		}
	}
}

// TestProcessName checks X2: the name of a process identifies it as the owner file does, and
// contains only characters that a file name may contain. The name of a process on another machine,
// or an invalid name, proves nothing.
func TestProcessName(t *testing.T) {
	p := proc{"/proc"}
	me, err := p.self()
	if err != nil {
		t.Skip(err)
	}
	past, far, far2 := me, me, me
	past.Start--
	far.Boot = "c0ffee00-0000-4000-8000-000000000000"
	far2.PIDNS = "pid:[1]"
	for name, want := range map[string]Life{
		ProcessName(): Alive, past.name(): Dead, far.name(): Unsure, far2.name(): Unsure,
		"": Unsure, "1.2": Unsure, "." + past.name(): Unsure, past.name() + ".x": Unsure, "+" + past.name(): Unsure, "-1.0.1.x": Unsure, "../../1": Unsure,
	} {
		if got := ProcessLife(name); got != want {
			t.Errorf("%q: %v, want %v", name, got, want)
		}
	}
}
