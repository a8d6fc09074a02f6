//go:build linux

package e2e

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"dcs-tui/internal/polltest"
)

// notExecutedYet are the pages whose code blocks have no markers yet.
var notExecutedYet = []string{
	"docs/clients.md", "docs/environments.md", "docs/files.md", "docs/grid.md", "docs/hardness.md", "docs/hosts.md",
	"docs/jobs.md", "docs/owners.md", "docs/protocol.md", "docs/providers.md", "docs/query.md", "docs/queues.md",
	"docs/report.md", "docs/requests.md", "docs/results.md", "docs/retries.md", "docs/run-directory.md", "docs/screen.md",
	"docs/search.md", "docs/sharing.md", "docs/slurm.md", "docs/ssh.md", "docs/standby.md", "docs/trouble.md",
}

// TestPages executes the code blocks of README.md and of the pages in docs/, in the order of each
// page, in a home directory of its own. The hosts are this machine; without -short a real ssh
// server. Each block has a marker, which says how it is executed or why it is not.
func TestPages(t *testing.T) {
	pages, err := filepath.Glob("../../docs/*.md")
	must(t, err)
	var notRun []string
	for _, file := range append([]string{"../../README.md"}, pages...) {
		text, err := os.ReadFile(file)
		must(t, err)
		page := strings.TrimPrefix(file, "../../")
		blocks, problems := pageBlocks(page, string(text))
		isExecuted := !slices.Contains(notExecutedYet, page)
		if page == "docs/design.md" { // it is for developers and has a drawing
			isExecuted = false
		}
		for _, b := range blocks {
			switch {
			case b.marker == "not":
				notRun = append(notRun, b.at()+": "+b.text)
			case b.marker == "" && isExecuted:
				problems = append(problems, b.at()+": this block says neither how it is run nor why it is not")
			}
		}
		if len(problems) > 0 && isExecuted {
			t.Error(strings.Join(problems, "\n"))
			continue
		}
		if !isExecuted || !slices.ContainsFunc(blocks, func(b *pageBlock) bool { return b.marker != "not" }) {
			continue
		}
		t.Run(page, func(t *testing.T) {
			t.Parallel()
			newReader(t, blocks).follow()
		})
	}
	t.Logf("%d blocks cannot be run here:\n%s", len(notRun), strings.Join(notRun, "\n"))
	t.Logf("%d pages are not executed yet: %s", len(notExecutedYet), strings.Join(notExecutedYet, ", "))
}

// reader does what a page says.
type reader struct {
	*lab
	dir     string // working directory
	env     []string
	blocks  []*pageBlock
	printed string // by the last commands
}

// newReader returns a reader of the page with these blocks. The working directory has the
// repository's examples, and all of its files and no program if the page builds the program.
func newReader(t *testing.T, blocks []*pageBlock) *reader {
	t.Helper()
	var l *lab
	if testing.Short() {
		l = &lab{t: t, dir: t.TempDir()}
		t.Cleanup(l.checkNothingLeft)
	} else {
		l = newLab(t, 1)
	}
	r := &reader{lab: l, dir: l.path("work"), blocks: blocks}
	must(t, os.MkdirAll(l.path("home/.config/dcs-tui"), 0o700))
	must(t, os.MkdirAll(l.path("bin"), 0o700))
	must(t, os.MkdirAll(r.dir, 0o700))
	inventory := ""
	builds := slices.ContainsFunc(blocks, func(b *pageBlock) bool { return strings.Contains(b.code, "make build") })
	numHosts := 4
	if builds {
		numHosts = 1 // as for a reader who has no inventory yet
	}
	for i := 1; i <= numHosts; i++ {
		name := fmt.Sprintf("ws%02d", i)
		if len(l.servers) > 0 {
			inventory += l.servers[0].Entry(name, 2)
			continue
		}
		inventory += fmt.Sprintf("[[host]]\nname = %q\nlink = \"local\"\nslots = 2\nyield = false\nnice = 0\nwork_dir = %q\n\n",
			name, l.path("home/.dcs-tui-"+name))
	}
	l.writeFile("home/.config/dcs-tui/hosts.toml", inventory)
	l.writeFile("work/hosts.toml", inventory)
	// A reader at a terminal is asked, and answers yes.
	l.writeFile("bin/dcs-tui", "#!/bin/sh\n[ -z \"$READER_SAYS_YES\" ] || set -- \"$@\" --yes\nexec "+program+" \"$@\"\n")
	must(t, os.Chmod(l.path("bin/dcs-tui"), 0o700))

	r.env = append(os.Environ(), "HOME="+l.path("home"), "XDG_CONFIG_HOME=", "LANG=C.UTF-8", "TERM=dumb",
		"PATH="+l.path("bin")+":"+os.Getenv("PATH"))
	if len(l.servers) > 0 {
		config := fmt.Sprintf("Host ws*\n\tHostName 127.0.0.1\n\tPort %d\n%s", l.servers[0].Port, l.readFile(l.servers[0].ConfigFile))
		r.env = slices.DeleteFunc(l.sshUserEnv(l.writeFile("ssh_config", config)), func(s string) bool {
			return strings.HasPrefix(s, "HOME=") || strings.HasPrefix(s, "XDG_CONFIG_HOME=")
		})
		r.env = append(r.env, "HOME="+l.path("home"), "LANG=C.UTF-8", "TERM=dumb")
	}
	if builds {
		must(t, os.Remove(l.path("work/hosts.toml")))
		if len(l.servers) > 0 {
			for _, name := range []string{"GOCACHE", "GOMODCACHE", "GOPATH"} {
				value, err := exec.Command("go", "env", name).Output()
				must(t, err)
				r.env = append(r.env, name+"="+strings.TrimSpace(string(value)))
			}
			copyFiles(t, r.dir, repositoryFiles(t))
			return r
		}
	}
	l.writeFile("bin/make", "#!/bin/sh\n") // the program is there
	must(t, os.Chmod(l.path("bin/make"), 0o700))
	must(t, os.CopyFS(filepath.Join(r.dir, "examples"), os.DirFS("../../examples")))
	must(t, os.Symlink(l.path("bin/dcs-tui"), filepath.Join(r.dir, "dcs-tui")))
	return r
}

func (r *reader) follow() {
	for _, b := range r.blocks {
		if b.has("long") && len(r.servers) == 0 {
			continue
		}
		switch b.marker {
		case "have":
			r.do(b, b.text)
		case "run":
			r.runBlock(b)
		case "file":
			name := filepath.Join(r.dir, b.words[0])
			must(r.t, os.MkdirAll(filepath.Dir(name), 0o700))
			must(r.t, os.WriteFile(name, []byte(b.code), 0o600))
		case "output":
			if missing := printsOutput(r.printed, b.code, b.value("varies"), b.value("maybe")); missing != "" {
				r.t.Errorf("%s: the commands above do not print %q but\n%s", b.at(), missing, r.printed)
			}
		}
	}
}

// runBlock runs the commands of a block, one after another: as a reader does, and so that an
// inventory that one of them writes can be changed before the next one.
func (r *reader) runBlock(b *pageBlock) {
	r.t.Helper()
	r.printed = ""
	command := ""
	for line := range strings.Lines(b.code) {
		command += line
		if exec.Command("/bin/sh", "-nc", command).Run() != nil || strings.HasSuffix(command, "\\\n") {
			continue // the command goes on
		}
		printed := r.printed
		r.do(b, command)
		r.printed = printed + r.printed
		command = ""
	}
	if command != "" {
		r.t.Fatalf("%s: the shell cannot read %q", b.at(), command)
	}
}

// do runs commands, which must succeed, or exit as the marker says.
func (r *reader) do(b *pageBlock, commands string) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), polltest.Patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "/bin/sh", "-euc", commands)
	cmd.Dir, cmd.Env = r.dir, r.env
	if b.has("yes") {
		cmd.Env = append(slices.Clip(r.env), "READER_SAYS_YES=1")
	}
	// A file, because a pipe would be open until programs in the background end.
	out, err := os.CreateTemp(r.lab.dir, "printed")
	must(r.t, err)
	defer out.Close()
	cmd.Stdout, cmd.Stderr = out, out
	code := 0
	if err := cmd.Run(); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			r.t.Fatal(err)
		}
		code = exit.ExitCode()
	}
	printed, err := os.ReadFile(out.Name())
	must(r.t, err)
	r.printed = string(bytes.ToValidUTF8(printed, []byte("?")))
	if want := cmp.Or(b.value("exit"), "0"); fmt.Sprint(code) != want {
		r.t.Fatalf("%s: %s: exit %d, not %s\n%s", b.at(), strings.TrimSpace(commands), code, want, r.printed)
	}
	r.ignoreLoad()
}

// ignoreLoad makes the hosts of a new inventory run jobs whatever the load of this machine is.
func (r *reader) ignoreLoad() {
	r.t.Helper()
	file := filepath.Join(r.dir, "hosts.toml")
	text, err := os.ReadFile(file)
	if err != nil || strings.Contains(string(text), "yield = false") {
		return
	}
	text = []byte(strings.ReplaceAll(string(text), "[[host]]\n", "[[host]]\nyield = false\n"))
	must(r.t, os.WriteFile(file, text, 0o600))
}
