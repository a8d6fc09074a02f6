//go:build linux

package remote

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// Promise 3: whatever a job does to its own files, its outcome is the one that its
// supervisor saw, and a whole sentinel says so in the end.
func TestJobDamagesItsFiles(t *testing.T) {
	for name, do := range map[string]string{
		"removes the reservation":        "rm $F.reserved",
		"empties the reservation":        ": > $F.reserved",
		"writes into the reservation":    "printf '%600s' rubbish > $F.reserved",
		"replaces the reservation":       "rm $F.reserved; echo rubbish > $F.reserved",
		"moves it away":                  "mv $F.reserved $F.elsewhere",
		"replaces it, keeping a link":    "ln $F.reserved $F.linked; rm $F.reserved; head -c 512 /dev/zero > $F.reserved",
		"puts a link there":              "rm $F.reserved; ln -s /dev/null $F.reserved",
		"puts a pipe there":              "rm $F.reserved; mkfifo $F.reserved",
		"puts a directory there":         "rm $F.reserved; mkdir $F.reserved",
		"writes a sentinel":              "echo rubbish > $F.exit",
		"writes an empty sentinel":       ": > $F.exit",
		"makes a link of the sentinel":   "ln -s /dev/zero $F.exit",
		"makes a pipe of the sentinel":   "mkfifo $F.exit",
		"removes the claim":              "rm $F.claim",
		"empties the claim":              ": > $F.claim",
		"makes a pipe of the claim":      "rm $F.claim; mkfifo $F.claim",
		"removes everything":             "rm $F.*",
		"removes the directory":          "rm -r $DCS_RUN_DIR/attempts",
		"pipes in place of its outputs":  "rm $F.out $F.err; mkfifo $F.out $F.err",
		"makes the directory read-only":  "chmod 500 $DCS_RUN_DIR/attempts/000",
		"steals the name of the claim":   "rm $F.claim; ln -s /etc/passwd $F.claim",
		"truncates its outputs":          ": > $F.out; : > $F.err",
		"makes a directory of the claim": "rm $F.claim; mkdir $F.claim",
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
			f.exit("18.1") // others' work goes on
			if p := f.probe("17.2"); p.Answer != hosts.HasExited || p.Outcome.Exit != 7 {
				t.Errorf("asked: %+v, want exit 7", p)
			}
			f.bye()
			os.Chmod(w.runDir+"/attempts/000", 0o700)
			o, _, _, err := jobs.DecodeSentinel([]byte(w.content("17.2", jobs.FileExit)), w.run, attemptID(t, "17.2"))
			if err != nil || o.Exit != 7 {
				t.Errorf("sentinel: %+v, %v", o, err)
			}
		})
	}
}

// The same from behind: a child that the job left behind damages what its
// supervisor wrote. What is not whole any more is no success for anybody.
func TestDamageAfterTheEnd(t *testing.T) {
	for name, do := range map[string]string{
		"rubbish":  "echo rubbish > $F.exit",
		"empty":    ": > $F.exit",
		"cut":      "truncate -s 300 $F.exit",
		"link":     "rm $F.exit; ln -s /dev/zero $F.exit",
		"pipe":     "rm $F.exit; mkfifo $F.exit",
		"other's":  "cp $DCS_RUN_DIR/attempts/000/18.1.exit $F.exit",
		"one byte": "printf X | dd of=$F.exit bs=1 seek=40 conv=notrunc",
		"removed":  "rm $F.exit",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			f := w.start(w.open())
			f.launch(job("18.1", "exit 0"))
			f.exit("18.1")
			f.launch(job("17.2", "exit 0"))
			f.exit("17.2")
			f.kill9()
			damage := "F=" + strings.TrimSuffix(w.file("17.2", jobs.FileExit), ".exit") + "; DCS_RUN_DIR=" + w.runDir + "; " + do
			if out, err := shell(damage); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			g := w.start(w.open())
			if p := g.probe("17.2"); p.Answer != hosts.Dead {
				t.Errorf("asked: %+v, want dead", p)
			}
			g.bye()
		})
	}
}

// Promises 2 and 4: a job that removes all traces of its start and then kills its
// supervisor is not taken for one that never started: what is left of it ends first.
func TestTracelessDeath(t *testing.T) {
	w := newWorld(t)
	ready, gate := w.fifo("ready"), w.fifo("gate")
	f := w.start(w.open())
	f.mayDie = true
	f.launch(job("17.2", "read x < "+gate+"; rm $DCS_RUN_DIR/attempts/000/17.2.*; (setsid sleep 1000 & echo $! > "+ready+"); kill -9 $PPID; sleep 1000"))
	await(f, func(*hosts.Started) bool { return true }) // the supervisor has said so before it dies
	w.say(gate)
	pid := atoi(t, w.hear(ready))
	if p := f.probed("17.2"); p.Answer != hosts.Dead {
		t.Errorf("%+v, want dead", p)
	}
	if p, ok := readProc(pid); ok && p.state != 'Z' {
		t.Errorf("process %d of it is alive", pid)
	}
	f.bye()
}

// A pipe in place of an output keeps nobody who wants to read it.
func TestReadOfPipe(t *testing.T) {
	w := newWorld(t)
	f := w.start(w.open())
	w.put("17.2", jobs.FileClaim, nil)
	if err := unix.Mkfifo(w.file("17.2", jobs.FileOut), 0o600); err != nil {
		t.Fatal(err)
	}
	f.send(&hosts.Read{ID: 5, Attempt: attemptID(t, "17.2"), File: jobs.FileOut, Limit: 100})
	if m := await(f, func(*hosts.Chunk) bool { return true }); m.ID != 5 || m.Size != -1 || !strings.Contains(m.Why, "ordinary") {
		t.Errorf("%+v", m)
	}
	f.bye()
}

func shell(text string) (string, error) {
	out, err := exec.Command("sh", "-c", text).CombinedOutput()
	return string(out), err
}
