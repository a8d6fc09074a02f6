package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dcs-tui/dispatch/control"
	"dcs-tui/hosts/hosttest"
	"dcs-tui/internal/cli/exit"
	"dcs-tui/jobs/journal"
	"dcs-tui/jobs/live"
	"dcs-tui/jobs/runview"
)

// Issue 4.3: a dispatcher on another machine is reached through that machine's sshd,
// with the user's ssh configuration, and is as live as one here; when that does not
// work, it is said what to type instead.
func TestAttachThroughSSH(t *testing.T) {
	sshd := hosttest.StartSSHD(t, hosttest.Options{})
	f := inBackground(t, gated)
	f.until(t, "a job runs", func(p *runview.Picture) bool { return p.Phases[runview.Running] > 0 })
	owner, err := journal.ReadOwner(f.run)
	if err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(t.TempDir(), "config")
	text, err := os.ReadFile(sshd.ConfigFile)
	if err != nil {
		t.Fatal(err)
	}
	alias := fmt.Sprintf("Host melon4 gate\n\tHostName 127.0.0.1\n\tPort %d\n%s", sshd.Port, text)
	if err := os.WriteFile(config, []byte(alias), 0o600); err != nil {
		t.Fatal(err)
	}
	a := newApp()
	for _, via := range []string{"", "gate"} {
		far := a.follow(f.run, func(ctx context.Context, _ *journal.Owner) (*control.Client, error) {
			return a.reachAnywhere(f.run, &attachFlags{via: via, sshConfig: config})(ctx, foreign(t, owner))
		})
		if err := far.first(); err != nil {
			t.Fatal(err)
		}
		pic := far.until(t, "it is live", func(p *runview.Picture) bool { return p.Life == runview.Live && p.Phases[runview.Running] == 1 })
		if pic.Run.UID != f.run.UID() {
			t.Errorf("%+v", pic.Run)
		}
		if via == "gate" {
			if _, err := far.Do(t.Context(), runview.Action{Do: runview.Pause}); err != nil {
				t.Error(err)
			}
			f.until(t, "the other screen sees it", func(p *runview.Picture) bool { return p.Paused })
		}
		far.Close()
	}
	sshd.Stop()
	_, err = a.reachAnywhere(f.run, &attachFlags{sshConfig: config})(t.Context(), foreign(t, owner))
	var p *exit.Problem
	if !errors.As(err, &p) || !strings.Contains(p.Advice, "ssh -t -F "+config+" melon4 dcs-tui attach "+f.run.Dir) ||
		!strings.Contains(p.Advice, "--via NAME r") || !strings.Contains(p.Error(), "on melon4") {
		t.Errorf("%v\n%+v", err, p)
	}
	writeFile(t, ".", "gate", "")
}

// A passphrase that a background dispatcher needs is asked for on the screen, and
// stays there: neither journal nor log nor any other file of the run has it.
func TestPassphraseThroughTheScreen(t *testing.T) {
	const secret = "correct horse 7731"
	sshd := hosttest.StartSSHD(t, hosttest.Options{Passphrase: secret})
	t.Setenv("SSH_AUTH_SOCK", "")
	inventory := filepath.Join(t.TempDir(), "hosts.toml")
	text := fmt.Sprintf("[[host]]\nname = \"ws01\"\naddress = \"127.0.0.1\"\nport = %d\nslots = 1\nwork_dir = %q\n", sshd.Port, t.TempDir())
	if err := os.WriteFile(inventory, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	f := inBackground(t, "true\n", "--hosts", inventory, "--ssh-config", sshd.ConfigFile)
	wrong := f.until(t, "it is asked for", func(p *runview.Picture) bool { return p.Question != nil }).Question
	if !wrong.Secret || !strings.Contains(wrong.Text, sshd.Identity) {
		t.Errorf("%+v", wrong)
	}
	reply := func(q *live.Question, text string) {
		t.Helper()
		if _, err := f.Do(t.Context(), runview.Action{Do: runview.Reply, Number: int(q.ID), Text: text}); err != nil {
			t.Fatal(err)
		}
	}
	reply(wrong, "no")
	q := f.until(t, "it is asked for again", func(p *runview.Picture) bool { return p.Question != nil && p.Question.ID != wrong.ID }).Question
	var refused *runview.Refused
	if _, err := f.Do(t.Context(), runview.Action{Do: runview.Reply, Number: int(wrong.ID), Text: secret}); !errors.As(err, &refused) {
		t.Error(err)
	}
	reply(q, secret)
	f.until(t, "the host works", func(p *runview.Picture) bool { return p.Phases[runview.Succeeded] == 1 && p.Question == nil })
	filepath.WalkDir(f.run.Dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			if b, _ := os.ReadFile(path); bytes.Contains(b, []byte(secret)) {
				t.Errorf("%s has the passphrase", path)
			}
		}
		return nil
	})
}
