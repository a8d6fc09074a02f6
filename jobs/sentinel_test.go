package jobs_test

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"dcs-tui/jobs"
)

var (
	sentID  = jobs.AttemptID{Job: 17, N: 2}
	sentOut = jobs.Outcome{Exit: 3, Started: 1_700_000_000_000_000_001, Ended: 1_700_000_009_999_999_999, CPU: 3 * time.Second, MaxRSSBytes: 1 << 33, LeftChildren: 2}
)

func TestSentinelRoundTrip(t *testing.T) {
	b := jobs.EncodeSentinel("abcdefghijkl", sentID, "melon4", 3, sentOut)
	if len(b) != jobs.SentinelBytes {
		t.Fatalf("%d bytes", len(b))
	}
	o, host, slot, err := jobs.DecodeSentinel(b, "abcdefghijkl", sentID)
	if err != nil || o != sentOut || host != "melon4" || slot != 3 {
		t.Errorf("%+v %s %d %v", o, host, slot, err)
	}
}

// Promise 3: no success without a whole, checksummed sentinel. A file cut at any
// byte, grown, empty, reserved but not written, or with any bit flipped is
// ErrSentinel, and so is the sentinel of another run or attempt.
func TestSentinelDamage(t *testing.T) {
	whole := jobs.EncodeSentinel("abcdefghijkl", sentID, "melon4", 3, jobs.Outcome{})
	try := func(what string, i int, b []byte) {
		t.Helper()
		if _, _, _, err := jobs.DecodeSentinel(b, "abcdefghijkl", sentID); !errors.Is(err, jobs.ErrSentinel) {
			t.Errorf("%s %d: %v", what, i, err)
		}
	}
	for i := range whole {
		try("cut at", i, whole[:i])
		try("zeros from", i, append(bytes.Clone(whole[:i]), make([]byte, len(whole)-i)...))
		for bit := range 8 {
			b := bytes.Clone(whole)
			b[i] ^= 1 << bit
			try("bit flipped in byte", i, b)
		}
	}
	try("grown", 0, append(bytes.Clone(whole), '\n'))
	try("reserved", 0, bytes.Repeat([]byte{' '}, jobs.SentinelBytes))
	if _, _, _, err := jobs.DecodeSentinel(whole, "lkjihgfedcba", sentID); !errors.Is(err, jobs.ErrSentinel) {
		t.Errorf("of another run: %v", err)
	}
	if _, _, _, err := jobs.DecodeSentinel(whole, "abcdefghijkl", jobs.AttemptID{Job: 17, N: 3}); !errors.Is(err, jobs.ErrSentinel) {
		t.Errorf("of another attempt: %v", err)
	}
}

// A sentinel holds everything at its longest: names have at most 64 bytes where they
// are made.
func TestSentinelHoldsTheLongest(t *testing.T) {
	name := strings.Repeat("ü", 32)
	o := jobs.Outcome{Exit: -1 << 31, Signal: "SIGRTMIN+15", Started: -1 << 63, Ended: -1 << 63, CPU: -1 << 63, MaxRSSBytes: 1<<63 - 1,
		TimedOut: true, Stopped: true, DiskFull: true, LeftChildren: 1 << 22, Error: "x"}
	id := jobs.AttemptID{Job: 1<<31 - 1, N: 1<<31 - 1}
	b := jobs.EncodeSentinel(name, id, name, 9999, o)
	if got, host, slot, err := jobs.DecodeSentinel(b, name, id); err != nil || got != o || host != name || slot != 9999 {
		t.Errorf("%+v %s %d %v", got, host, slot, err)
	}
}

func FuzzSentinel(f *testing.F) {
	f.Add(0, "", int64(5), int64(9), true, "", "melon4")
	f.Add(1, "SIGSEGV", int64(-5), int64(9), false, "cannot change to /home/x: no such directory", "m-1.lab")
	f.Add(1, "", int64(0), int64(0), false, strings.Repeat("long \x00\n\"", 200), "h")
	f.Fuzz(func(t *testing.T, exit int, signal string, started, cpu int64, timedOut bool, text, host string) {
		if len(signal) > 16 || len(host) > 12 || !utf8.ValidString(signal) || !utf8.ValidString(text) || !utf8.ValidString(host) {
			return // bounded and clean where they are made
		}
		o := jobs.Outcome{Exit: exit, Signal: signal, Started: jobs.Stamp(started), Ended: jobs.Stamp(started), CPU: time.Duration(cpu), TimedOut: timedOut, Error: text}
		b := jobs.EncodeSentinel("abcdefghijklmnop", sentID, host, 9, o)
		got, h, slot, err := jobs.DecodeSentinel(b, "abcdefghijklmnop", sentID)
		if err != nil || len(b) != jobs.SentinelBytes || h != host || slot != 9 {
			t.Fatalf("%v, %d bytes", err, len(b))
		}
		if (got.Error == "") != (text == "") {
			t.Fatal("an error text vanished: the attempt could pass for a success")
		}
		got.Error, o.Error = "", ""
		if got != o {
			t.Fatalf("%+v became %+v", o, got)
		}
	})
}

func FuzzDecodeSentinel(f *testing.F) {
	f.Add(jobs.EncodeSentinel("abcdefghijkl", sentID, "melon4", 3, sentOut))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		if _, _, _, err := jobs.DecodeSentinel(b, "abcdefghijkl", sentID); err != nil && !errors.Is(err, jobs.ErrSentinel) {
			t.Fatal(err)
		}
		if len(b) != jobs.SentinelBytes {
			return
		}
		// Behind the checksum: what is taken is of this run and attempt.
		c := bytes.Clone(b)
		text := c[:len(c)-9]
		copy(c[len(text):], fmt.Sprintf("%08x\n", crc32.Checksum(text, crc32.MakeTable(crc32.Castagnoli))))
		_, _, _, err := jobs.DecodeSentinel(c, "abcdefghijkl", sentID)
		if err != nil && !errors.Is(err, jobs.ErrSentinel) || err == nil && !bytes.Contains(text, []byte("abcdefghijkl")) && !bytes.Contains(text, []byte(`\u`)) {
			t.Fatalf("%v: %q", err, text)
		}
	})
}
