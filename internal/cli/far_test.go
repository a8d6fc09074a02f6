package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dcs-tui/hosts/hosttest"
	"dcs-tui/jobs/live"
	"dcs-tui/jobs/runview"
)

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
