//go:build linux

package remote

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"dcs-tui/hosts"
	"dcs-tui/internal/polltest"
	"dcs-tui/jobs"
	"dcs-tui/jobs/attempts"
	"dcs-tui/jobs/rundir"
)

// TestJobDamagesItsFiles checks that the outcome of a job is the one that its supervisor saw,
// whatever the job does to its own files, and that a complete sentinel records this outcome in the
// end (promise 3).
func TestJobDamagesItsFiles(t *testing.T) {
	for name, do := range map[string]string{
		"removes its status":            "rm $F.status",
		"empties its status":            ": > $F.status",
		"cuts its status":               "truncate -s 600 $F.status",
		"writes a longer status":        "head -c 1100 /dev/zero | tr '\\0' x > $F.status",
		"spoils its claim":              "printf rubbish | dd of=$F.status conv=notrunc",
		"writes a sentinel":             "printf '%512s' rubbish | dd of=$F.status bs=512 seek=1 conv=notrunc",
		"appends to its status":         "echo rubbish >> $F.status",
		"replaces its status":           "rm $F.status; echo rubbish > $F.status",
		"replaces its status by a copy": "cp $F.status $F.copy; mv $F.copy $F.status",
		"moves it away":                 "mv $F.status $F.elsewhere",
		"replaces it, keeping a link":   "ln $F.status $F.linked; rm $F.status; head -c 1024 /dev/zero > $F.status",
		"puts a link there":             "rm $F.status; ln -s /dev/null $F.status",
		"puts a link to its own there":  "mv $F.status $F.elsewhere; ln -s $F.elsewhere $F.status",
		"puts a pipe there":             "rm $F.status; mkfifo $F.status",
		"puts a directory there":        "rm $F.status; mkdir $F.status",
		"puts a full directory there":   "rm $F.status; mkdir -p $F.status/x/y",
		"removes everything":            "rm $F.*",
		"removes the directory":         "rm -r $DCS_RUN_DIR/attempts",
		"pipes in place of its outputs": "rm $F.out $F.err; mkfifo $F.out $F.err",
		"makes the directory read-only": "chmod 500 $DCS_RUN_DIR/attempts/000",
		"truncates its outputs":         ": > $F.out; : > $F.err",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			f := w.start(w.open())
			f.launch(job("17.2", "F=$DCS_RUN_DIR/attempts/000/17.2; "+do+" 2>/dev/null; exit 7"))
			if o := f.exit("17.2"); o.Exit != 7 || o.Error != "" {
				t.Errorf("reported: %+v, want exit 7", o)
			}
			f.launch(job("18.1", "exit 0"))
			f.exit("18.1") // other jobs continue
			f.hasExited("17.2", 7)
			f.endRun()
			os.Chmod(w.runDir+"/attempts/000", 0o700)
			if f := w.status("17.2"); f.State != attempts.Finished || f.Outcome.Exit != 7 || f.Damaged {
				t.Errorf("status: %+v, want exit 7", f)
			}
		})
	}
}

// TestDamageAfterTheEndHidesNothing checks the same for a child that the job left behind and that
// damages what the supervisor wrote. A damaged sentinel never counts as a success.
func TestDamageAfterTheEndHidesNothing(t *testing.T) {
	polltest.Long(t)
	for name, do := range map[string]string{
		"rubbish":  "echo rubbish > $F.status",
		"empty":    ": > $F.status",
		"cut":      "truncate -s 800 $F.status",
		"emptied":  "truncate -s 512 $F.status; truncate -s 1024 $F.status",
		"longer":   "echo >> $F.status",
		"link":     "rm $F.status; ln -s /dev/zero $F.status",
		"pipe":     "rm $F.status; mkfifo $F.status",
		"other's":  "cp $DCS_RUN_DIR/attempts/000/18.1.status $F.status",
		"one byte": "printf X | dd of=$F.status bs=1 seek=552 conv=notrunc",
		"removed":  "rm $F.status",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			f := w.start(w.open())
			f.launch(job("18.1", "exit 0"))
			f.exit("18.1")
			f.launch(job("17.2", "exit 0"))
			f.exit("17.2")
			f.crash()
			damage := "F=" + strings.TrimSuffix(w.file("17.2", jobs.FileStatus), ".status") + "; DCS_RUN_DIR=" +
				w.runDir + "; " + do
			if out, err := shell(damage); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			g := w.start(w.open())
			g.answers("17.2", hosts.Dead)
		})
	}
}

// TestJobWithoutTracesCountsAsStarted checks that a job that removes all traces of its start and
// then kills its supervisor does not count as never started: its remaining processes are ended
// first (promises 2 and 4).
func TestJobWithoutTracesCountsAsStarted(t *testing.T) {
	w := newWorld(t)
	ready, gate := w.fifo("ready"), w.fifo("gate")
	f := w.start(w.open())
	f.mayDie = true
	f.launch(job("17.2", "read x < "+gate+"; rm $DCS_RUN_DIR/attempts/000/17.2.*; (setsid sleep 1000 & echo $! > "+
		ready+"); kill -9 $PPID; sleep 1000"))
	f.started("17.2") // the supervisor has reported the start before it dies
	w.say(gate)
	pid := atoi(t, w.receive(ready))
	if p := f.probed("17.2"); p.Answer != hosts.Dead {
		t.Errorf("%+v, want dead", p)
	}
	if p, ok := readProc(pid); ok && p.state != 'Z' {
		t.Errorf("process %d of it is alive", pid)
	}
}

// TestFilesInPlaceOfOutputs checks that what a job puts into the place of another job's outputs
// neither blocks that job nor gets its output (promise 5).
func TestFilesInPlaceOfOutputs(t *testing.T) {
	for name, put := range map[string]func(path, other string) error{
		"pipe":       func(path, _ string) error { return unix.Mkfifo(path, 0o600) },
		"link":       func(path, other string) error { return os.Symlink(other, path) },
		"other name": func(path, other string) error { return os.Link(other, path) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			f := w.start(w.open())
			other := filepath.Join(t.TempDir(), "other")
			must(t, os.WriteFile(other, []byte("mine"), 0o600))
			must(t, os.MkdirAll(filepath.Dir(w.file("17.1", jobs.FileOut)), 0o700))
			for _, kind := range []jobs.File{jobs.FileOut, jobs.FileErr} {
				must(t, put(w.file("17.1", kind), other))
			}
			f.launch(job("17.1", "echo out; echo err >&2"))
			f.exits("17.1", 0)
			f.endRun()
			if got := w.content("17.1", jobs.FileOut) + w.content("17.1", jobs.FileErr); got != "out\nerr\n" {
				t.Errorf("outputs %q", got)
			}
			if b, err := os.ReadFile(other); string(b) != "mine" {
				t.Errorf("the other file has %q, %v", b, err)
			}
		})
	}
}

// TestPipeBlocksNoReader checks that a pipe in place of an output does not block a reader of that
// output.
func TestPipeBlocksNoReader(t *testing.T) {
	w := newWorld(t)
	f := w.start(w.open())
	w.put("17.2", jobs.FileStatus, nil)
	must(t, unix.Mkfifo(w.file("17.2", jobs.FileOut), 0o600))
	f.send(&hosts.Read{ID: 5, Attempt: attemptID(t, "17.2"), File: jobs.FileOut, Limit: 100})
	if m := await(f, func(*hosts.Chunk) bool { return true }); m.ID != 5 || m.Size != -1 ||
		!strings.Contains(m.Why, "not a regular file") {
		t.Errorf("Read of a pipe: got %+v, want a refusal", m)
	}
}

func shell(text string) (string, error) {
	out, err := exec.Command("sh", "-c", text).CombinedOutput()
	return string(out), err
}

// damages calls f with b truncated at every byte, with b zeroed from every byte on, and with every
// bit of b flipped.
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

// helperWithoutProcess returns a helper that answers from files alone, and a claim whose
// supervisor is long dead.
func (w *world) helperWithoutProcess() (*helper, attempts.Claim) {
	w.t.Helper()
	sp, err := makeSpool(w.base, w.run, "melon1")
	must(w.t, err)
	h := &helper{open: w.open(), dir: w.runDir, disk: rundir.Within(w.runDir), spool: sp,
		resolved: map[jobs.AttemptID]bool{},
		config:   slotConfig{Run: w.run, Host: "melon1", Dir: w.runDir, Boot: bootID()}}
	must(w.t, os.MkdirAll(filepath.Dir(w.file("1.1", jobs.FileStatus)), 0o700))
	return h, w.claim("1.1", "melon1")
}

// TestDamagedSentinelKeepsTheOutcome checks that no damage to a sentinel changes the outcome,
// whether the sentinel is in its final place or in the spool (promise 3). If the supervisor is
// dead, the answer for a damaged sentinel is "dead".
func TestDamagedSentinelKeepsTheOutcome(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h, c := w.helperWithoutProcess()
	write(t, w.file("1.1", jobs.FileStatus), string(c.Encode()))
	whole := c.EncodeFinished(1, jobs.Outcome{Started: 1, Ended: 2})
	n := 0
	for i, path := range []string{w.file("1.1", jobs.FileStatus), h.spool.path(dirDone, "1.1")} {
		damages(whole[attempts.SentinelAt:], func(what string, at int, bad []byte) {
			if n++; i > 0 && n%7 != 0 {
				return // the same code reads both files, so a sample is enough
			}
			must(t, os.WriteFile(path, append(bytes.Clone(whole[:attempts.SentinelAt]), bad...), 0o600))
			if f, err := h.readFate(c.Attempt); err != nil || f.State != attempts.Claimed || i == 0 &&
				f.Damaged != (at > 0 || what != "zeros from") {
				t.Fatalf("%s: %s %d: %+v, %v", path, what, at, f, err)
			}
			if n%997 == 0 { // examine scans all processes, which is slow
				if p := settledFate(h, c.Attempt); p.Answer != hosts.Dead {
					t.Fatalf("%s: %s %d: %+v", path, what, at, p)
				}
			}
		})
		placeKeptFiles(h.spool, &h.config, holder{0, 1, 1})
		if p := settledFate(h, c.Attempt); p.Answer != hosts.Dead {
			t.Errorf("%s: %+v", path, p)
		}
	}
	t.Logf("%d damaged sentinels", n)
}

// TestDamageHidesNothing checks that a damaged sentinel in its final place does not hide a complete
// one in the spool, and vice versa.
func TestDamageHidesNothing(t *testing.T) {
	w := newWorld(t)
	h, c := w.helperWithoutProcess()
	whole := string(c.EncodeFinished(1, jobs.Outcome{Exit: 3, Started: 1, Ended: 2}))
	for _, pair := range [][2]string{{whole, whole[:600]}, {whole[:600], whole}, {string(c.Encode()), whole}} {
		write(t, w.file("1.1", jobs.FileStatus), pair[0])
		write(t, h.spool.path(dirDone, "1.1"), pair[1])
		if p := settledFate(h, c.Attempt); p.Answer != hosts.HasExited || p.Outcome.Exit != 3 {
			t.Errorf("settleFate: got %+v, want exit code 3", p)
		}
	}
}

// settledFate asks for the fate of an attempt until it is known, as a dispatcher does. It is not
// known while a process of the machine does not answer.
func settledFate(h *helper, id jobs.AttemptID) (p hosts.ProbedJob) {
	polltest.Within(polltest.Patience, func() bool {
		p = h.settleFate(id, pgroup{})
		return p.Answer != hosts.Unknown
	})
	return p
}

// TestDamagedClaimNeverStarts checks that a damaged claim never lets its attempt start, and that no
// host answers "never started" for it (promise 2). The same holds for a tombstone.
func TestDamagedClaimNeverStarts(t *testing.T) {
	polltest.Long(t)
	t.Parallel()
	for _, tombstone := range []bool{false, true} {
		w := newWorld(t)
		h, c := w.helperWithoutProcess()
		c.Tombstone = tombstone
		path := w.file("1.1", jobs.FileStatus)
		dir, err := openDir(filepath.Dir(path))
		must(t, err)
		defer unix.Close(dir)
		other := c
		other.Tombstone, other.By = false, holder{2, 1 << 22, 4}.String()
		n := 0
		damages(c.Encode()[:attempts.SentinelAt], func(what string, at int, bad []byte) {
			n++
			if what != "cut at" {
				bad = append(bad, make([]byte, attempts.SentinelAt)...)
			}
			must(t, os.WriteFile(path, bad, 0o600))
			temp := ""
			if n%61 == 0 { // a temporary file is fsynced, which is slow
				temp = h.config.temps(holder{2, 1 << 22, 4}).path()
			}
			if _, err := makeClaim(dir, temp, &other); !errors.Is(err, errClaimed) {
				t.Fatalf("%s %d: another claim gave %v", what, at, err)
			}
			if ensureTombstone(dir, "", other) {
				t.Fatalf("%s %d: it was buried by somebody else", what, at)
			}
			if f, err := h.readFate(c.Attempt); err != nil || f.State != attempts.Unreadable ||
				f.Claim != (attempts.Claim{}) {
				t.Fatalf("%s %d: %+v, %v", what, at, f, err)
			}
			if b, err := os.ReadFile(path); err != nil || !bytes.Equal(b, bad) {
				t.Fatalf("%s %d: it was changed to %q, %v", what, at, b, err)
			}
		})
		if p := settledFate(h, c.Attempt); p.Answer != hosts.Dead {
			t.Errorf("settleFate: got %+v, want Dead", p)
		}
		t.Logf("%d damaged claims", n)
	}
}
