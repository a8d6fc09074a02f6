package cli

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"dcs-tui/internal/cli/exit"
	"dcs-tui/jobs"
	"dcs-tui/jobs/journal"
	"dcs-tui/jobs/rundir"
	"dcs-tui/jobs/runview"
)

// What is printed to be typed means the same to both shells that read it: the one here
// and the one at the other end of ssh.
func TestAdviceForTwoShells(t *testing.T) {
	for _, dir := range []string{"/nfs/ada/dcs-runs/sweep", "/nfs/ada/my runs/it's $(touch pwned); x"} {
		run := &rundir.Run{Dir: dir}
		var p *exit.Problem
		if err := farError(run, &journal.Owner{Host: "melon4"}, "", "melon4", errors.New("no route to host")); !errors.As(err, &p) {
			t.Fatal(err)
		}
		line, _, _ := strings.Cut(strings.TrimPrefix(p.Advice, "instead: "), "; if ssh")
		// ssh passes on what the first shell makes of it, joined by blanks.
		bin := t.TempDir()
		writeScript(t, bin, "ssh", `shift 2; exec sh -c "$*"`)
		writeScript(t, bin, "dcs-tui", `printf '%s|' "$@"`)
		cmd := exec.Command("sh", "-c", line)
		cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
		cmd.Dir = t.TempDir()
		out, err := cmd.CombinedOutput()
		if err != nil || string(out) != "attach|"+dir+"|" {
			t.Errorf("%s\n%q, %v", line, out, err)
		}
		if names, _ := filepath.Glob(filepath.Join(cmd.Dir, "*")); len(names) > 0 {
			t.Errorf("%s made %v", line, names)
		}
	}
}

// Rule 9: who was told that nothing that runs is touched does not have the run taken
// over, and what runs ended, because its dispatcher has died meanwhile.
func TestCancelOfWhatWaitsNeedsADispatcher(t *testing.T) {
	var refused *runview.Refused
	if _, err := new(follower).act(t.Context(), runview.Action{Do: runview.Cancel, Jobs: jobs.One(1), Waiting: true}); !errors.As(err, &refused) {
		t.Error(err)
	}
}

func writeScript(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+text+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
}

// A cancel that has taken the run over is not cut off because its screen is left: what
// was said to end does.
func TestACancelOutlivesItsScreen(t *testing.T) {
	f := inBackground(t, gated+gated)
	f.until(t, "a job runs", func(p *runview.Picture) bool { return p.Phases[runview.Running] > 0 })
	syscall.Kill(f.process.Load().cmd.Process.Pid, syscall.SIGKILL)
	f.until(t, "it is dead", func(p *runview.Picture) bool { return p.Life == runview.Dead })
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := f.Do(ctx, runview.Action{Do: runview.CancelRun}); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	f.until(t, "all are cancelled", func(p *runview.Picture) bool { return p.Phases[runview.Cancelled] == 2 })
	gone(t, f.run, false) // it takes leave of its host yet, in a directory that is about to be removed
}
