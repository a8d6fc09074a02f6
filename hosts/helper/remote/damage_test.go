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
	"dcs-tui/jobs/attempts"
)

// Promise 3: whatever a job does to its own files, its outcome is the one that its
// supervisor saw, and a whole sentinel says so in the end.
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
			f.exit("18.1") // others' work goes on
			if p := f.probe("17.2"); p.Answer != hosts.HasExited || p.Outcome.Exit != 7 {
				t.Errorf("asked: %+v, want exit 7", p)
			}
			f.bye()
			os.Chmod(w.runDir+"/attempts/000", 0o700)
			if f := w.status("17.2"); f.State != attempts.Finished || f.Outcome.Exit != 7 || f.Damaged {
				t.Errorf("status: %+v, want exit 7", f)
			}
		})
	}
}

// The same from behind: a child that the job left behind damages what its
// supervisor wrote. What is not whole any more is no success for anybody.
func TestDamageAfterTheEnd(t *testing.T) {
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
			f.kill9()
			damage := "F=" + strings.TrimSuffix(w.file("17.2", jobs.FileStatus), ".status") + "; DCS_RUN_DIR=" + w.runDir + "; " + do
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
	w.put("17.2", jobs.FileStatus, nil)
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
