package control

import (
	"encoding/gob"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"dcs-tui/jobs/runview"
)

// A dispatcher on another machine proves that it is the one of this run: what else may
// listen there under its name, another user's after a boot, is told nothing, and shows
// and asks nothing, a passphrase least of all.
func TestAFarDispatcherProvesItself(t *testing.T) {
	s := serving(t, newFake(), func(o *Options) { o.Secret = "token1" })
	for secret, good := range map[string]bool{"token1": true, "token2": false, "": false} {
		conn, err := net.Dial("unix", s.Address())
		if err != nil {
			t.Fatal(err)
		}
		c, err := NewFarClient(t.Context(), conn, "run1", "v1", secret)
		if good {
			if err != nil {
				t.Fatal(err)
			}
			if _, err := c.Look(t.Context(), runview.Ask{}); err != nil {
				t.Error(err)
			}
			c.Close()
			continue
		}
		if !errors.Is(err, errUnproven) {
			t.Errorf("%q: %v", secret, err)
		}
	}
	if a, b := prove("s", "n1"), prove("s", "n2"); a == b || a == "" {
		t.Error("the proof is no proof")
	}
	// One that knows no secret cannot be reached from afar.
	s = serving(t, newFake())
	conn, err := net.Dial("unix", s.Address())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := NewFarClient(t.Context(), conn, "run1", "v1", "token1"); !errors.Is(err, errUnproven) {
		t.Error(err)
	}
}

// An answer that is not understood is said to be that: it is not the end of a dispatcher.
func TestAnAnswerThatIsNotUnderstood(t *testing.T) {
	ours, theirs := net.Pipe()
	go func() {
		(&Hello{V: Version}).write(theirs)
		gob.NewEncoder(theirs).Encode(struct {
			ID      uint64
			Picture string // another program's
		}{1, "x"})
	}()
	go func() {
		b := make([]byte, 1000)
		for {
			if _, err := theirs.Read(b); err != nil {
				return
			}
		}
	}()
	c, err := NewClient(t.Context(), ours, "", "v1")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Look(t.Context(), runview.Ask{}); err == nil || errors.Is(err, runview.ErrGone) || !strings.Contains(err.Error(), "not understood") {
		t.Error(err)
	}
	c.Close()
	theirs.Close()
}

// What is made for those who look may fail over odd data: that costs them, not the run.
func TestASourceThatCannotBeMade(t *testing.T) {
	told := make(chan string, 2*maxFaults)
	s := serving(t, newFake(), func(o *Options) {
		o.Open = func() (runview.Source, func(), error) { panic("odd data\nwhere it was") }
		o.Fault = func(text string) { told <- text }
	})
	for range 2 * maxFaults { // as a screen would
		if _, err := dial(t, s).Look(t.Context(), runview.Ask{}); err == nil || !strings.Contains(err.Error(), "odd data;") {
			t.Error(err)
		}
	}
	if text := <-told; !strings.Contains(text, "odd data") || len(told) >= maxFaults {
		t.Errorf("%d more than %s", len(told), text)
	}
}

// Where the usual place cannot be used, because somebody was there first, the next is.
func TestTheNextPlaceForSockets(t *testing.T) {
	var where []string
	for range 2 {
		base, err := os.MkdirTemp("", "dcs")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.RemoveAll(base) })
		where = append(where, base)
	}
	if err := os.WriteFile(dirOf(where[0], os.Geteuid()), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := listen(where...)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if dir := filepath.Dir(filepath.Dir(l.Addr().String())); dir != where[1] {
		t.Error(dir)
	}
	if _, err := listen(where[0]); err == nil || !strings.Contains(err.Error(), "no directory") {
		t.Error(err)
	}
}

// A call that ends because the dispatcher does says so, however it ends.
func TestACallAtTheEnd(t *testing.T) {
	for range 50 {
		f := newFake()
		s := serving(t, f)
		c := dial(t, s)
		failed := make(chan error)
		go func() {
			_, err := c.Look(t.Context(), runview.Ask{After: 1, Wait: time.Minute})
			failed <- err
		}()
		soon(t, "it waits", func() bool { return f.waiting.Load() == 1 })
		go s.Close()
		if err := <-failed; !errors.Is(err, runview.ErrGone) {
			t.Fatal(err)
		}
		c.Close()
	}
}
