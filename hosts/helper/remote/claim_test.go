//go:build linux

package remote

import (
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
		if err := makeClaim(fd, temp(), &mine); err != nil {
			t.Fatalf("network %v: %v", network, err)
		}
		if err := makeClaim(fd, temp(), &other); !errors.Is(err, errClaimed) {
			t.Errorf("network %v: a second claim gave %v", network, err)
		}
		if err := makeClaim(fd, temp(), &mine); err != nil {
			t.Errorf("our own claim again: %v", err)
		}
		if err := bury(fd, mine); err != nil {
			t.Fatal(err)
		}
		b, _ := os.ReadFile(filepath.Join(dir, "1.1.claim"))
		if c, err := attempts.ParseClaim(b); err != nil || !c.Tombstone || c.Host != "a" {
			t.Errorf("network %v: buried claim %q, %v", network, b, err)
		}
		if names, _ := os.ReadDir(dir); len(names) != 1 {
			t.Errorf("network %v: %v is left", network, names)
		}
		res, err := reserve(fd, mine.Attempt, network)
		if err != nil {
			t.Fatal(err)
		}
		unix.Close(res)
		if st, err := os.Stat(filepath.Join(dir, "1.1.reserved")); err != nil || st.Size() != jobs.SentinelBytes {
			t.Errorf("network %v: reserved %v, %v", network, st, err)
		}
	}
}

// DESIGN 5: what a prober concludes from files alone. Dead only on proof.
func TestProbeOfFiles(t *testing.T) {
	w := newWorld(t)
	f := w.start(w.open())
	id := attemptID(t, "1.1")
	mine := attempts.Claim{Run: w.run, Attempt: id, Host: "melon1", By: holder{1, 1 << 22, 3}.String(), Boot: bootID(), At: 4}
	rebooted, elsewhere := mine, mine
	rebooted.Boot = "another"
	elsewhere.Host = "melon2"
	good := jobs.EncodeSentinel(w.run, id, "melon1", 1, jobs.Outcome{Exit: 3, Started: 1, Ended: 2})
	bad := append([]byte(nil), good...)
	bad[20] ^= 1
	for _, c := range []struct {
		name     string
		claim    []byte
		sentinel []byte
		want     hosts.Answer
		why      string
	}{
		{"sentinel", mine.Append(nil), good, hosts.HasExited, ""},
		{"no sentinel, supervisor gone", mine.Append(nil), nil, hosts.Dead, "supervisor died"},
		{"damaged sentinel", mine.Append(nil), bad, hosts.Dead, "damaged"},
		{"empty sentinel", mine.Append(nil), []byte{}, hosts.Dead, "damaged"},
		{"rebooted", rebooted.Append(nil), nil, hosts.Dead, "rebooted"},
		{"another host's", elsewhere.Append(nil), nil, hosts.Unknown, "melon2"},
		{"empty claim", []byte{}, nil, hosts.Dead, ""},
	} {
		os.RemoveAll(filepath.Dir(w.file("1.1", jobs.FileClaim)))
		if err := os.MkdirAll(filepath.Dir(w.file("1.1", jobs.FileClaim)), 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, w.file("1.1", jobs.FileClaim), string(c.claim))
		if c.sentinel != nil {
			write(t, w.file("1.1", jobs.FileExit), string(c.sentinel))
		}
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
