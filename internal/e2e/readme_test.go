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
	files, err := exec.Command("git", "-C", "../..", "ls-files", "-z", "--cached", "--others", "--exclude-standard").Output()
	if err != nil {
		t.Skip("LEFT OUT: this is no git checkout")
	}
	copyFiles(t, l.path("clone"), strings.Split(strings.TrimRight(string(files), "\x00"), "\x00"))

	config, err := os.ReadFile(l.sshd[0].ConfigFile)
	if err != nil {
		t.Fatal(err)
	}
	l.file("ssh_config", fmt.Sprintf("Host ws*\n\tHostName 127.0.0.1\n\tPort %d\n%s", l.sshd[0].Port, config))
	ssh, err := exec.LookPath("ssh")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(l.path("bin"), 0o700); err != nil {
		t.Fatal(err)
	}
	l.file("bin/ssh", fmt.Sprintf("#!/bin/sh\nexec %s -F %s \"$@\"\n", ssh, l.path("ssh_config")))
	if err := os.Chmod(l.path("bin/ssh"), 0o700); err != nil {
		t.Fatal(err)
	}

	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	template, err := os.ReadFile("../../examples/train.txt")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(readme), "```\n"+string(template)+"```\n") {
		t.Error("the README does not show examples/train.txt as it is")
	}

	ran := 0
	for _, page := range []string{"README.md", "docs/first-run.md"} {
		text, err := os.ReadFile(filepath.Join("../..", page))
		if err != nil {
			t.Fatal(err)
		}
		for i, block := range strings.Split(string(text), "```sh\n") {
			block, _, closed := strings.Cut(block, "```")
			if i == 0 || !closed || strings.TrimSpace(block) == "make test" {
				continue
			}
			for line := range strings.Lines(block) {
				cmd := exec.Command("/bin/sh", "-euc", line)
				cmd.Dir = l.path("clone")
				cmd.Env = append(os.Environ(), "PATH="+l.path("bin")+":"+os.Getenv("PATH"))
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
		if err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, info.Mode().Perm()); err != nil {
			t.Fatal(err)
		}
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
	if err := os.WriteFile(inventory, text, 0o600); err != nil {
		t.Fatal(err)
	}
}
