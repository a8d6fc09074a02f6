package attempts_test

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"dcs-tui/jobs"
	"dcs-tui/jobs/attempts"
)

var (
	mine  = attempts.Claim{Run: run, Attempt: attemptID(17, 2), Host: "melon4", By: "3.4711.88123", Boot: "b", At: 4}
	ended = jobs.Outcome{Exit: 3, Started: 1_700_000_000_000_000_001, Ended: 1_700_000_009_999_999_999,
		CPU: 3 * time.Second, MaxRSSBytes: 1 << 33, LeftChildren: 2}
)

// TestStatusRoundTrip checks that a status file returns what was written to it, before and after
// the attempt has ended.
func TestStatusRoundTrip(t *testing.T) {
	tomb := mine
	tomb.Tombstone = true
	for name, c := range map[string]struct {
		content []byte
		want    attempts.Fate
	}{
		"running":   {mine.Encode(), attempts.Fate{State: attempts.Claimed, Claim: mine}},
		"tombstone": {tomb.Encode(), attempts.Fate{State: attempts.NeverStarts, Claim: tomb}},
		"ended": {mine.EncodeFinished(3, ended), attempts.Fate{State: attempts.Finished, Claim: mine, Slot: 3,
			Outcome: ended}},
	} {
		t.Run(name, func(t *testing.T) {
			c.want.Attempt, c.want.Host = mine.Attempt, "melon4"
			if got := attempts.Decode(c.content, run, mine.Attempt); got != c.want ||
				len(c.content) != attempts.StatusBytes {
				t.Errorf("%s: got %d bytes that say %+v, want %+v", name, len(c.content), got, c.want)
			}
		})
	}
	running, whole := mine.Encode(), mine.EncodeFinished(3, ended)
	if reserved := running[attempts.SentinelAt:]; !bytes.Equal(reserved, make([]byte, 512)) {
		t.Errorf("the reserved bytes are %q, want zeros", reserved)
	}
	if !bytes.Equal(whole[:attempts.SentinelAt], running[:attempts.SentinelAt]) ||
		!bytes.Equal(whole[attempts.SentinelAt:], mine.Sentinel(3, ended)) {
		t.Error("a file that is filled in place differs from one that is written at once")
	}
}

// TestUnfinishedIsNoOutcome checks promise 3: there is no success without a complete sentinel with
// a valid checksum. A status file has no outcome if it is cut at any byte, extended, unfinished,
// partly filled, or has any bit flipped in its second block. Nor has that of another run or
// attempt.
func TestUnfinishedIsNoOutcome(t *testing.T) {
	whole := mine.EncodeFinished(3, jobs.Outcome{})
	try := func(what string, i int, b []byte, want attempts.State) {
		t.Helper()
		if f := attempts.Decode(b, run, mine.Attempt); f.State != want || !f.Damaged && i > 0 {
			t.Errorf("%s %d: got state %d, damaged %v, want state %d", what, i, f.State, f.Damaged, want)
		}
	}
	for i := range whole {
		state := attempts.Claimed
		if i < attempts.SentinelAt {
			state = attempts.Unreadable
		}
		try("cut at", i, whole[:i], state)
		if i <= attempts.SentinelAt {
			continue
		}
		try("zeros from", i, append(bytes.Clone(whole[:i]), make([]byte, len(whole)-i)...), attempts.Claimed)
		try("zeros up to", i, append(append(bytes.Clone(whole[:attempts.SentinelAt]),
			make([]byte, i-attempts.SentinelAt)...), whole[i:]...), attempts.Claimed)
		for bit := range 8 {
			b := bytes.Clone(whole)
			b[i] ^= 1 << bit
			try("bit flipped in byte", i, b, attempts.Claimed)
		}
	}
	try("grown", 1, append(bytes.Clone(whole), '\n'), attempts.Claimed)
	try("blanks", 1, append(bytes.Clone(whole[:attempts.SentinelAt]),
		bytes.Repeat([]byte{' '}, 512)...), attempts.Claimed)
	try("unfinished", 0, mine.Encode(), attempts.Claimed)
	try("all zeros", 0, make([]byte, attempts.StatusBytes), attempts.Unreadable)
	if f := attempts.Decode(whole, "another", mine.Attempt); f.State != attempts.Unreadable {
		t.Errorf("of another run: %+v", f)
	}
	if f := attempts.Decode(whole, run, attemptID(17, 3)); f.State != attempts.Unreadable {
		t.Errorf("of another attempt: %+v", f)
	}
}

// TestDamagedClaimIsIgnored checks that a claim that is cut anywhere, or has any bit flipped, is
// ignored, and that the sentinel after it still counts.
func TestDamagedClaimIsIgnored(t *testing.T) {
	running, whole := mine.Encode(), mine.EncodeFinished(3, ended)
	for i := range attempts.SentinelAt {
		if f := attempts.Decode(running[:i], run, mine.Attempt); f.State != attempts.Unreadable ||
			f.Claim != (attempts.Claim{}) {
			t.Errorf("cut at %d: %+v", i, f)
		}
		for bit := range 8 {
			b, e := bytes.Clone(running), bytes.Clone(whole)
			b[i] ^= 1 << bit
			e[i] ^= 1 << bit
			if f := attempts.Decode(b, run, mine.Attempt); f.State != attempts.Unreadable ||
				f.Claim != (attempts.Claim{}) {
				t.Errorf("bit %d of byte %d flipped: %+v", bit, i, f)
			}
			if f := attempts.Decode(e, run, mine.Attempt); f.State != attempts.Finished || f.Outcome != ended ||
				f.Host != "melon4" {
				t.Errorf("bit %d of byte %d flipped, and it has ended: %+v", bit, i, f)
			}
		}
	}
	c := mine
	for _, c.By = range []string{"", "1.2", "1.2.3.4", "1.-2.3", "a.b.c"} {
		if f := attempts.Decode(c.Encode(), run, mine.Attempt); f.State != attempts.Unreadable {
			t.Errorf("by %q is accepted", c.By)
		}
	}
}

// TestStatusHoldsTheLongest checks that a status file has space for the longest values. Names have
// at most 64 bytes, which is checked where they are created.
func TestStatusHoldsTheLongest(t *testing.T) {
	name := strings.Repeat("ü", 32)
	o := jobs.Outcome{Exit: -1 << 31, Signal: "SIGRTMIN+15", Started: -1 << 63, Ended: -1 << 63, CPU: -1 << 63,
		MaxRSSBytes: 1<<63 - 1,
		TimedOut:    true, Stopped: true, DiskFull: true, LeftChildren: 1 << 22, Error: "x",
		ProcessLimit: jobs.ProcessLimit{Kind: jobs.LimitSystem, Max: 1 << 22}}
	c := attempts.Claim{Tombstone: true, Run: name, Attempt: attemptID(1<<31-1, 1<<31-1), Host: name,
		By: "9999.9999999.18446744073709551615", Boot: name, At: -1 << 63}
	if got, want := attempts.Decode(c.EncodeFinished(9999, o), name, c.Attempt),
		(attempts.Fate{Attempt: c.Attempt, State: attempts.Finished,
			Claim: c, Host: name, Slot: 9999, Outcome: o}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// FuzzOutcome checks that every outcome fits into the status file and is read back unchanged,
// except for a long error.
func FuzzOutcome(f *testing.F) {
	f.Add(0, "", int64(5), int64(9), true, "", "melon4")
	f.Add(1, "SIGSEGV", int64(-5), int64(9), false, "cannot change to /home/x: no such directory", "m-1.lab")
	f.Add(1, "", int64(0), int64(0), false, strings.Repeat("long \x00\n\"", 200), "h")
	f.Fuzz(func(t *testing.T, exit int, signal string, started, cpu int64, timedOut bool, text, host string) {
		if len(signal) > 16 || len(host) > 12 || !utf8.ValidString(signal) || !utf8.ValidString(text) ||
			!utf8.ValidString(host) {
			return // bounded and sanitized where they are created
		}
		o := jobs.Outcome{Exit: exit, Signal: signal, Started: jobs.Stamp(started), Ended: jobs.Stamp(started),
			CPU: time.Duration(cpu), TimedOut: timedOut, Error: text}
		c := mine
		c.Host = host
		b := c.EncodeFinished(9, o)
		got := attempts.Decode(b, run, c.Attempt)
		if got.State != attempts.Finished || len(b) != attempts.StatusBytes || got.Host != host || got.Slot != 9 {
			t.Fatalf("%+v, %d bytes", got, len(b))
		}
		if (got.Outcome.Error == "") != (text == "") {
			t.Fatal("an error text vanished: the attempt could pass for a success")
		}
		got.Outcome.Error, o.Error = "", ""
		if got.Outcome != o {
			t.Fatalf("%+v became %+v", o, got.Outcome)
		}
	})
}

// FuzzDecode checks that only what the checksums cover is decoded from any status file: a claim
// that encodes to the same bytes, and an outcome of this run and attempt.
func FuzzDecode(f *testing.F) {
	tomb := mine
	tomb.Tombstone = true
	f.Add(mine.Encode())
	f.Add(tomb.Encode())
	f.Add(mine.EncodeFinished(3, ended))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		attempts.Decode(b, run, mine.Attempt)
		if len(b) != attempts.StatusBytes {
			return
		}
		b = bytes.Clone(b)
		// After the checksums.
		for _, block := range [][]byte{b[:attempts.SentinelAt], b[attempts.SentinelAt:]} {
			text := block[:len(block)-9]
			copy(block[len(text):], fmt.Sprintf("%08x\n", crc32.Checksum(text, crc32.MakeTable(crc32.Castagnoli))))
		}
		got := attempts.Decode(b, run, mine.Attempt)
		end := b[attempts.SentinelAt:]
		if got.State == attempts.Finished && !bytes.Contains(end, []byte(run)) && !bytes.Contains(end, []byte(`\u`)) {
			t.Fatalf("%+v: %q", got, end)
		}
		if c := got.Claim; c != (attempts.Claim{}) && attempts.Decode(c.Encode(), run, mine.Attempt).Claim != c {
			t.Fatalf("%+v does not survive", c)
		}
	})
}

// BenchmarkStatus measures the CPU time that the status file of a job costs.
func BenchmarkStatus(b *testing.B) {
	for b.Loop() {
		if f := attempts.Decode(slices.Concat(mine.Encode()[:attempts.SentinelAt], mine.Sentinel(3, ended)), run,
			mine.Attempt); f.State != attempts.Finished {
			b.Fatal(f)
		}
	}
}
