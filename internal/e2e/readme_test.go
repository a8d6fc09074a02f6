//go:build linux

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"dcs-tui/internal/polltest"
)

// TestREADME executes the command blocks of the README and of the first-run page unchanged, in a
// copy of the repository, with hosts called ws01 to ws30 in the user's ssh configuration. It skips
// `make test`, which would run this test.
func TestREADME(t *testing.T) {
	polltest.Long(t)
	l := newLab(t, 1)
	files, err := exec.Command("git", "-C", "../..", "ls-files", "-z", "--cached",
		"--others", "--exclude-standard").Output()
	if err != nil {
		t.Skip("LEFT OUT: this is no git checkout")
	}
	copyFiles(t, l.path("clone"), strings.Split(strings.TrimRight(string(files), "\x00"), "\x00"))

	config := l.readFile(l.servers[0].ConfigFile)
	env := l.sshUserEnv(l.writeFile("ssh_config", fmt.Sprintf("Host ws*\n\tHostName 127.0.0.1\n\tPort %d\n%s",
		l.servers[0].Port, config)))

	if !strings.Contains(l.readFile("../../README.md"), "```\n"+l.readFile("../../examples/train.txt")+"```\n") {
		t.Error("the README does not show examples/train.txt as it is")
	}

	ran := 0
	for _, page := range []string{"README.md", "docs/first-run.md"} {
		for i, block := range strings.Split(l.readFile(filepath.Join("../..", page)), "```sh\n") {
			block, _, closed := strings.Cut(block, "```")
			if i == 0 || !closed || strings.TrimSpace(block) == "make test" {
				continue
			}
			for line := range strings.Lines(block) {
				cmd := exec.Command("/bin/sh", "-euc", line)
				cmd.Dir = l.path("clone")
				cmd.Env = env
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Fatalf("%s: %s: %v\n%s", page, strings.TrimSpace(line), err, out)
				}
				ran++
				ignoreLoad(t, l.path("clone/hosts.toml"))
			}
		}
	}
	if ran < 12 {
		t.Errorf("README.md and docs/first-run.md have only %d commands in sh blocks", ran)
	}
}

func copyFiles(t *testing.T, dir string, names []string) {
	t.Helper()
	for _, name := range names {
		info, err := os.Stat(filepath.Join("../..", name))
		if err != nil {
			continue // removed but not committed yet
		}
		data, err := os.ReadFile(filepath.Join("../..", name))
		must(t, err)
		must(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700))
		must(t, os.WriteFile(filepath.Join(dir, name), data, info.Mode().Perm()))
	}
}

// ignoreLoad makes the hosts of a new inventory run jobs whatever the load of this machine is.
func ignoreLoad(t *testing.T, inventory string) {
	t.Helper()
	text, err := os.ReadFile(inventory)
	if err != nil || strings.Contains(string(text), "yield = false") {
		return
	}
	text = []byte(strings.ReplaceAll(string(text), "[[host]]\n", "[[host]]\nyield = false\n"))
	must(t, os.WriteFile(inventory, text, 0o600))
}
