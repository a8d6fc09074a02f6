package journal

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"dcs-tui/jobs/rundir"
)

// TestHeartbeatRestoresARemovedOwnerFile checks that the next heartbeat writes the owner file again
// if it was removed.
func TestHeartbeatRestoresARemovedOwnerFile(t *testing.T) {
	r := newRun(t)
	j, _, _ := mustTake(t, r, TakeOptions{})
	must(t, os.Remove(r.Path(rundir.OwnerFile)))
	if err := j.writer.close(); err != nil { // as after a stale handle
		t.Fatal(err)
	}
	must(t, j.SetSocket("/tmp/elsewhere"))
	if o, err := ReadOwner(r); err != nil || o == nil || o.Socket != "/tmp/elsewhere" {
		t.Errorf("ReadOwner: got %v, %v; want the new socket", o, err)
	}
	if err := j.Close(); err != nil {
		t.Error(err)
	}
	if o, err := ReadOwner(r); err != nil || !o.Left || o.Liveness() != Dead {
		t.Errorf("after Close: %+v, %v", o, err)
	}
}

// TestOwnerFileIsReadBack checks that the owner file has a fixed size and is read back unchanged,
// and that a text that does not fit is refused.
func TestOwnerFileIsReadBack(t *testing.T) {
	o, err := (&TakeOptions{Token: "token",
		Now: func() time.Time { return time.Date(2026, 3, 14, 15, 2, 0, 0, time.UTC) }}).owner(3)
	must(t, err)
	b, err := o.encode()
	if err != nil || len(b) != ownerBytes {
		t.Fatalf("%d bytes, %v", len(b), err)
	}
	got, err := decodeOwner(b)
	if err != nil || !reflect.DeepEqual(got, o) {
		t.Errorf("decodeOwner: got %+v, %v; want the owner unchanged", got, err)
	}
	if o.Liveness() != Alive {
		t.Error("this process is not alive")
	}
	o.Socket = strings.Repeat("x", ownerBytes)
	if _, err := o.encode(); err == nil {
		t.Error("a name that does not fit was written")
	}
}

// FuzzDecodeOwner checks that no owner file causes a panic.
func FuzzDecodeOwner(f *testing.F) {
	o := &Owner{V: 1, Host: "melon1", process: process{PID: 3}}
	b, err := o.encode()
	must(f, err)
	f.Add(b)
	f.Add([]byte("{}"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if o, err := decodeOwner(b); err == nil {
			_ = o.String()
			_ = o.Liveness()
		}
	})
}

// TestOwnerFileHoldsTheProblem checks that the file owner holds the problem that keeps a dispatcher
// from launching. The text is bounded and disappears when the problem ends. A text that does not
// fit is dropped, but the heartbeat is still written.
func TestOwnerFileHoldsTheProblem(t *testing.T) {
	r := newRun(t)
	j, _, _ := mustTake(t, r, TakeOptions{})
	must(t, j.SetSocket(strings.Repeat("a", 100)))
	for _, c := range []struct{ text, want string }{
		{"no space left on device\x1b[31m", "no space left on device␛[31m"}, {strings.Repeat("ä", 500),
			strings.Repeat("ä", maxProblem-1) + "…"},
		{strings.Repeat("\U0001f600", 500), ""}, {"", ""},
	} {
		t.Run(c.text, func(t *testing.T) {
			heartbeat := j.writer.owner.Heartbeat
			must(t, j.SetProblem(c.text))
			o, err := ReadOwner(r)
			if err != nil || o.Problem != c.want || o.Heartbeat != heartbeat+1 {
				t.Errorf("%q: %+v, %v", c.text, o, err)
			}
		})
	}
}

// TestDamagedOwnerFileNamesNoOther checks the owner file cut at any byte, extended, or with any bit
// flipped. It names nobody or the same owner, never another one, and proves neither life nor death.
// The owner's next heartbeat repairs it.
func TestDamagedOwnerFileNamesNoOther(t *testing.T) {
	m, r := inMemory(t)
	j, _, _ := mustTake(t, r, TakeOptions{Force: true, Who: machine("melon1"), Token: "token"})
	path := r.Path(rundir.OwnerFile)
	whole, err := rundir.ReadFile(m, path)
	must(t, err)
	try := func(what string, at int, content []byte) {
		t.Helper()
		putFile(t, r, path, content)
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
		if err := j.Heartbeat(); err != nil {
			t.Fatalf("%s %d: a heartbeat: %v", what, at, err)
		}
		if o, err := ReadOwner(r); err != nil || o.Token != "token" || o.Host != "melon1" {
			t.Fatalf("%s %d: after a heartbeat it says %+v, %v", what, at, o, err)
		}
	}
	for i := range whole {
		try("cut at", i, whole[:i])
		for bit := range 8 {
			try("bit flipped in byte", i, flipped(whole, 8*i+bit))
		}
	}
	try("grown", 0, append(bytes.Clone(whole), whole...))
}

// TestTakeFromTheTornButWriting checks that a file owner that is incomplete but changes counts as a
// heartbeat. The wait restarts, and an owner that keeps writing is not declared dead.
func TestTakeFromTheTornButWriting(t *testing.T) {
	for writes, want := range map[int]time.Duration{1: 5*time.Second + StaleAfter, 9: 15 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			r, _ := foreign(t)
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
					putFile(t, r, r.Path(rundir.OwnerFile), fmt.Appendf(nil, "torn %d", i))
				}
			}()
			waited, err := timedTake(t, r, TakeOptions{})
			if waited < want || waited > want+2*watchInterval || (err == nil) != (writes == 1) {
				t.Errorf("%d writes: %v after %s, want %s", writes, err, waited, want)
			}
			stop()
			synctest.Wait()
		})
	}
}

// TestWatchedOwnerIsNotWaitedForAgain checks X1 and E7: an owner that the caller has watched for
// StaleAfter is not waited for again, even if its process exists on this machine. One that has sent
// a heartbeat since then is.
func TestWatchedOwnerIsNotWaitedForAgain(t *testing.T) {
	for _, where := range []string{"here", "elsewhere"} {
		for _, heartbeats := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				r := newRun(t)
				old, _, _ := mustTake(t, r, TakeOptions{})
				if where == "elsewhere" {
					old.writer.owner.Boot = "another-boot"
				}
				must(t, old.Heartbeat())
				watched, err := ReadOwner(r)
				must(t, err)
				if heartbeats {
					must(t, old.Heartbeat())
				}
				switch waited, err := timedTake(t, r, TakeOptions{Silent: watched}); {
				case !heartbeats && (err != nil || waited > watchInterval):
					t.Errorf("%s, silent: %v after %s, want it taken at once", where, err, waited)
				case heartbeats && err == nil && waited < StaleAfter:
					t.Errorf("%s, with a newer sign of life: taken after %s", where, waited)
				}
			})
		}
	}
}
