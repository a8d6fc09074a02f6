//go:build linux

package remote

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
	"dcs-tui/jobs/attempts"
)

// damages calls f with b cut at every byte, with zeros from there on, and with
// every bit flipped.
func damages(b []byte, f func(what string, at int, bad []byte)) {
	for i := range b {
		f("cut at", i, b[:i])
		f("zeros from", i, append(bytes.Clone(b[:i]), make([]byte, len(b)-i)...))
		for bit := range 8 {
			bad := bytes.Clone(b)
			bad[i] ^= 1 << bit
			f("bit flipped in", i, bad)
		}
	}
}

// still is a helper without a process, for its answers from files. Its supervisor
// is long dead.
func (w *world) still() (*helper, attempts.Claim) {
	w.t.Helper()
	sp, err := makeSpool(w.base, w.run, "melon1")
	if err != nil {
		w.t.Fatal(err)
	}
	h := &helper{open: w.open(), dir: w.runDir, spool: sp, resolved: map[jobs.AttemptID]bool{},
		cfg: slotConfig{Run: w.run, Host: "melon1", Dir: w.runDir, Boot: bootID()}}
	if err := os.MkdirAll(filepath.Dir(w.file("1.1", jobs.FileStatus)), 0o700); err != nil {
		w.t.Fatal(err)
	}
	return h, w.claim("1.1", "melon1")
}

// Promise 3: no damage to a sentinel makes another outcome of it, whether it is
// where it belongs or waits in the spool. Of a dead supervisor it means dead.
func TestEveryByteOfSentinel(t *testing.T) {
	w := newWorld(t)
	h, c := w.still()
	write(t, w.file("1.1", jobs.FileStatus), string(c.Encode()))
	whole := c.EncodeFinished(1, jobs.Outcome{Started: 1, Ended: 2})
	n := 0
	for i, path := range []string{w.file("1.1", jobs.FileStatus), h.spool.path(dirDone, "1.1")} {
		damages(whole[attempts.SentinelAt:], func(what string, at int, bad []byte) {
			if n++; i > 0 && n%7 != 0 {
				return // the same eyes
			}
			if err := os.WriteFile(path, append(bytes.Clone(whole[:attempts.SentinelAt]), bad...), 0o600); err != nil {
				t.Fatal(err)
			}
			if f, err := h.fate(c.Attempt); err != nil || f.State != attempts.Claimed || i == 0 && f.Damaged != (at > 0 || what != "zeros from") {
				t.Fatalf("%s: %s %d: %+v, %v", path, what, at, f, err)
			}
			if n%997 == 0 { // the rest looks at all processes
				if p := h.examine(c.Attempt, pgroup{}); p.Answer != hosts.Dead {
					t.Fatalf("%s: %s %d: %+v", path, what, at, p)
				}
			}
		})
		settle(h.spool, &h.cfg, holder{0, 1, 1})
		if p := h.examine(c.Attempt, pgroup{}); p.Answer != hosts.Dead {
			t.Errorf("%s: %+v", path, p)
		}
	}
	t.Logf("%d damaged sentinels", n)
}

// A damaged sentinel where it belongs does not hide the whole one that waits in the
// spool, and the other way round.
func TestDamageHidesNothing(t *testing.T) {
	w := newWorld(t)
	h, c := w.still()
	whole := string(c.EncodeFinished(1, jobs.Outcome{Exit: 3, Started: 1, Ended: 2}))
	for _, pair := range [][2]string{{whole, whole[:600]}, {whole[:600], whole}, {string(c.Encode()), whole}} {
		write(t, w.file("1.1", jobs.FileStatus), pair[0])
		write(t, h.spool.path(dirDone, "1.1"), pair[1])
		if p := h.examine(c.Attempt, pgroup{}); p.Answer != hosts.HasExited || p.Outcome.Exit != 3 {
			t.Errorf("%+v", p)
		}
	}
}

// Promise 2: no damage to a claim lets its attempt start, whoever finds it, and
// nobody says that it never did. The same for a tombstone.
func TestEveryByteOfClaim(t *testing.T) {
	for _, tombstone := range []bool{false, true} {
		w := newWorld(t)
		h, c := w.still()
		c.Tombstone = tombstone
		path := w.file("1.1", jobs.FileStatus)
		dir, err := openDir(filepath.Dir(path))
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(dir)
		other := c
		other.Tombstone, other.By = false, holder{2, 1 << 22, 4}.String()
		n := 0
		damages(c.Encode()[:attempts.SentinelAt], func(what string, at int, bad []byte) {
			n++
			if what != "cut at" {
				bad = append(bad, make([]byte, attempts.SentinelAt)...)
			}
			if err := os.WriteFile(path, bad, 0o600); err != nil {
				t.Fatal(err)
			}
			for _, temp := range []string{"", h.cfg.temps(holder{2, 1 << 22, 4}).path()} {
				if _, err := makeClaim(dir, temp, &other); !errors.Is(err, errClaimed) {
					t.Fatalf("%s %d: another claim gave %v", what, at, err)
				}
			}
			if entomb(dir, "", other) {
				t.Fatalf("%s %d: it was buried by somebody else", what, at)
			}
			if f, err := h.fate(c.Attempt); err != nil || f.State != attempts.Unreadable || f.Claim != (attempts.Claim{}) {
				t.Fatalf("%s %d: %+v, %v", what, at, f, err)
			}
			if b, err := os.ReadFile(path); err != nil || !bytes.Equal(b, bad) {
				t.Fatalf("%s %d: it was changed to %q, %v", what, at, b, err)
			}
		})
		if p := h.examine(c.Attempt, pgroup{}); p.Answer != hosts.Dead {
			t.Errorf("%+v", p)
		}
		t.Logf("%d damaged claims", n)
	}
}
