//go:build linux

package remote

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
	"dcs-tui/jobs/attempts"
)

// P2: the second claim loses, on a local and on a network file system; there a
// repeat of our own, whose first answer was lost, wins.
func TestClaim(t *testing.T) {
	for _, network := range []bool{false, true} {
		dir := t.TempDir()
		fd, err := openat(unix.AT_FDCWD, dir, unix.O_RDONLY|unix.O_DIRECTORY, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(fd)
		temp := func() string {
			if !network {
				return ""
			}
			return temps{dir, "a", holder{1, 2, 3}}.path()
		}
		mine := attempts.Claim{Run: "r", Attempt: jobs.AttemptID{Job: 1, N: 1}, Host: "a", By: holder{1, 2, 3}.String(), Boot: "b", At: 4}
		other := mine
		other.Host = "c"
		claim := func(c *attempts.Claim) error {
			status, err := makeClaim(fd, temp(), c)
			if err == nil {
				b := make([]byte, attempts.StatusBytes+1)
				if n, err := preadAll(status, "status", b); err != nil || string(b[:n]) != string(c.Encode()) {
					t.Errorf("network %v: opened a file with %q, %v", network, b[:n], err)
				}
				unix.Close(status)
			}
			return err
		}
		if err := claim(&mine); err != nil {
			t.Fatalf("network %v: %v", network, err)
		}
		if err := claim(&other); !errors.Is(err, errClaimed) {
			t.Errorf("network %v: a second claim gave %v", network, err)
		}
		if err := claim(&mine); err != nil {
			t.Errorf("our own claim again: %v", err)
		}
		if err := bury(fd, mine); err != nil {
			t.Fatal(err)
		}
		b, _ := os.ReadFile(filepath.Join(dir, "1.1.status"))
		if f := attempts.Decode(b, "r", mine.Attempt); f.State != attempts.NeverStarts || f.Host != "a" {
			t.Errorf("network %v: buried claim %q", network, b)
		}
		if names, _ := os.ReadDir(dir); len(names) != 1 {
			t.Errorf("network %v: %v is left", network, names)
		}
	}
}

// DESIGN 5: what a prober concludes from files alone. Dead only on proof.
func TestProbeOfFiles(t *testing.T) {
	w := newWorld(t)
	f := w.start(w.open())
	mine := w.claim("1.1", "melon1")
	rebooted, elsewhere := mine, mine
	rebooted.Boot = "another"
	elsewhere.Host = "melon2"
	good := mine.EncodeFinished(1, jobs.Outcome{Exit: 3, Started: 1, Ended: 2})
	bad := bytes.Clone(good)
	bad[attempts.SentinelAt+20] ^= 1
	for _, c := range []struct {
		name   string
		status []byte
		want   hosts.Answer
		why    string
	}{
		{"sentinel", good, hosts.HasExited, ""},
		{"no sentinel, supervisor gone", mine.Encode(), hosts.Dead, "supervisor died"},
		{"damaged sentinel", bad, hosts.Dead, "sentinel is damaged"},
		{"cut behind the claim", good[:attempts.SentinelAt], hosts.Dead, "sentinel is damaged"},
		{"torn while it was filled", append(bytes.Clone(good[:700]), make([]byte, attempts.StatusBytes-700)...), hosts.Dead, "sentinel is damaged"},
		{"rebooted", rebooted.Encode(), hosts.Dead, "rebooted"},
		{"another host's", elsewhere.Encode(), hosts.Unknown, "melon2"},
		{"empty", nil, hosts.Dead, "claim is damaged"},
		{"only zeros", make([]byte, attempts.StatusBytes), hosts.Dead, "claim is damaged"},
	} {
		w.put("1.1", jobs.FileStatus, c.status)
		if p := f.probe("1.1"); p.Answer != c.want || !strings.Contains(p.Why, c.why) {
			t.Errorf("%s: %v (%s), want %v (%s)", c.name, p.Answer, p.Why, c.want, c.why)
		}
	}
	f.bye()
}

// DESIGN 5: what waited when the host was rebooted never starts: its lease was
// counted in another boot's clock.
func TestRebootWithdraws(t *testing.T) {
	w := newWorld(t)
	gate, ready := w.fifo("gate"), w.fifo("ready")
	open := w.open()
	open.Slots = 1
	f := w.start(open)
	f.launch(job("1.1", "echo up > "+ready+"; read x < "+gate), job("2.1", "echo two"))
	w.hear(ready)
	f.probe("2.1") // the whole launch is in the spool
	f.kill9()
	write(t, w.spool().path(fileBoot), "another\n")
	g := w.start(open)
	g.withdrawn("2.1")
	w.say(gate)
	g.exit("1.1")
	if p := g.probe("2.1"); p.Answer != hosts.NeverStarted {
		t.Errorf("%v, want never started", p.Answer)
	}
	g.bye()
}

// DESIGN 5: the beat file of a host, once for all its supervisors.
func TestBeatFile(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "attempts"), 0o700); err != nil {
		t.Fatal(err)
	}
	ctl, err := openControl(dir)
	if err != nil {
		t.Fatal(err)
	}
	w := &watch{slot: &slot{ctl: ctl, cfg: &slotConfig{Dir: dir, Host: "melon1", Boot: "b"}}}
	read := func() string {
		b, err := os.ReadFile(attempts.BeatFile(dir, "melon1"))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	w.touch()
	first := read()
	w.touch()
	if read() != first || !strings.HasSuffix(first, " b\n") {
		t.Errorf("touched twice within %v, or wrong: %q, %q", beatEvery, first, read())
	}
	ctl.at(ctlBeat).Store(int64(uptime() - beatEvery))
	w.touch()
	if read() <= first {
		t.Errorf("%q does not follow %q", read(), first)
	}
}
