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
	"regexp"
	"slices"
	"strings"
	"testing"

	"dcs-tui/internal/polltest"
	"dcs-tui/internal/progtest"
)

// TestPages executes the code blocks of README.md and of the pages in docs/, in the order of each
// page, in a home directory of its own. The hosts are this machine; without -short a real ssh
// server. Each block has a marker, which says how it is executed or why it is not.
func TestPages(t *testing.T) {
	var pages []string
	for _, pattern := range []string{"docs/*.md", "docs/reference/*.md", "docs/internals/*.md"} {
		files, err := filepath.Glob("../../" + pattern)
		must(t, err)
		pages = append(pages, files...)
	}
	var notRun []string
	for _, file := range append([]string{"../../README.md"}, pages...) {
		text, err := os.ReadFile(file)
		must(t, err)
		page := strings.TrimPrefix(file, "../../")
		blocks, problems := pageBlocks(page, string(text))
		for _, b := range blocks {
			switch {
			case b.marker == "not":
				notRun = append(notRun, b.at()+": "+b.text)
			case b.marker == "tested":
				problems = append(problems, findTest(b)...)
			case b.marker == "":
				problems = append(problems, b.at()+": this block says neither how it is run nor why it is not")
			}
		}
		if len(problems) > 0 {
			t.Error(strings.Join(problems, "\n"))
			continue
		}
		if !slices.ContainsFunc(blocks, func(b *pageBlock) bool { return b.marker != "not" && b.marker != "tested" }) {
			continue
		}
		t.Run(page, func(t *testing.T) {
			t.Parallel()
			r := newReader(t, blocks)
			r.follow()
			r.checkRunDirectories()
		})
	}
	t.Logf("%d blocks cannot be run here:\n%s", len(notRun), strings.Join(notRun, "\n"))
}

// findTest returns what is wrong with a marker that names a test.
func findTest(b *pageBlock) []string {
	dir, name, _ := strings.Cut(b.text, " ")
	files, _ := filepath.Glob(filepath.Join("../..", dir, "*_test.go"))
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err == nil && strings.Contains(string(text), "func "+name+"(") && strings.Contains(string(text), b.page) {
			return nil
		}
	}
	return []string{fmt.Sprintf("%s: %s has no file with the test %s that reads the page", b.at(), dir, name)}
}

// reader does what a page says.
type reader struct {
	*lab
	dir     string // working directory
	env     []string
	blocks  []*pageBlock
	printed string // by the last commands
}

// newReader returns a reader of the page with these blocks. The working directory has the program,
// the examples, and an inventory. One who builds the program has no inventory there, and one of one
// host elsewhere, so that the load of this machine does not matter.
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
	for _, dir := range []string{"home/.config/dcs-tui", "bin", "work"} {
		must(t, os.MkdirAll(l.path(dir), 0o700))
	}
	if !slices.ContainsFunc(blocks, func(b *pageBlock) bool { return strings.Contains(b.code, "make build") }) {
		l.writeFile("work/hosts.toml", r.inventory(4))
	} else {
		l.writeFile("home/.config/dcs-tui/hosts.toml", r.inventory(1))
		if blocks[0].page == "README.md" && len(l.servers) > 0 { // one page really builds it
			copyFiles(t, r.dir, repositoryFiles(t))
		} else {
			r.script("make", ":")
		}
	}
	if l.numFiles("work/examples") == 0 {
		must(t, os.CopyFS(l.path("work/examples"), os.DirFS("../../examples")))
		must(t, os.Symlink(l.path("bin/dcs-tui"), l.path("work/dcs-tui")))
	}
	// A reader at a terminal is asked, and answers yes.
	r.script("dcs-tui", `case "$READER_SAYS_YES" in "${1-none}") set -- "$@" --yes ;; esac; exec `+program+` "$@"`)
	r.env = append(append(os.Environ(), progtest.HomeEnv(l.path("home"))...), "LANG=C.UTF-8", "TERM=dumb",
		"PATH="+l.path("bin")+":"+os.Getenv("PATH"), "REPOSITORY="+l.repoPath("."),
		"PYTHONDONTWRITEBYTECODE=1", "GOFLAGS="+os.Getenv("GOFLAGS")+" -buildvcs=false")
	if len(l.servers) == 0 {
		return r
	}
	ssh, err := exec.LookPath("ssh")
	must(t, err)
	config := l.writeFile("ssh_config", fmt.Sprintf("Host ws*\n\tHostName 127.0.0.1\n\tPort %d\n%s", l.servers[0].Port,
		l.readFile(l.servers[0].ConfigFile)))
	r.script("ssh", "exec "+ssh+" -F "+config+` "$@"`)
	for _, name := range []string{"GOENV", "GOCACHE", "GOMODCACHE", "GOPATH"} { // the home directory is another one
		value, err := exec.Command("go", "env", name).Output()
		must(t, err)
		r.env = append(r.env, name+"="+strings.TrimSpace(string(value)))
	}
	return r
}

// script writes a script that is in the reader's PATH.
func (r *reader) script(name, text string) {
	r.t.Helper()
	must(r.t, os.Chmod(r.writeFile("bin/"+name, "#!/bin/sh\n"+text+"\n"), 0o700))
}

// inventory returns an inventory of the hosts ws01 to ws0n.
func (r *reader) inventory(n int) (text string) {
	for i := 1; i <= n; i++ {
		name := fmt.Sprintf("ws%02d", i)
		if len(r.servers) > 0 {
			text += r.servers[0].Entry(name, 2)
			continue
		}
		text += fmt.Sprintf("[[host]]\nname = %q\nlink = \"local\"\nslots = 2\nyield = false\n"+
			"nice = 0\nwork_dir = %q\n\n",
			name, r.path("home/.dcs-tui-"+name))
	}
	return text
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
		case "inventory":
			text := b.code
			if !strings.Contains(text, "[[") {
				text = "[[host]]\nname = \"ws01\"\n" + text
			}
			must(r.t, os.WriteFile(filepath.Join(r.dir, "inventory.toml"), []byte(text), 0o600))
			r.do(b, "dcs-tui hosts list --hosts inventory.toml")
		case "output":
			missing := printsKeys(r.printed, b.code)
			if !b.has("keys") {
				missing = printsOutput(r.printed, b.code, b.value("varies"), b.value("maybe"))
			}
			if missing != "" {
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
	ctx, cancel := context.WithTimeout(context.Background(), 6*polltest.Patience) // some commands build programs
	defer cancel()
	cmd := exec.CommandContext(ctx, "/bin/sh", "-euc", commands)
	cmd.Dir, cmd.Env = r.dir, r.env
	if b.value("yes") != "" {
		cmd.Env = append(slices.Clip(r.env), "READER_SAYS_YES="+b.value("yes"))
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

// checkRunDirectories checks that docs/reference/run-directory.md lists each file of the runs of the page.
func (r *reader) checkRunDirectories() {
	r.t.Helper()
	page := r.readFile("../../docs/reference/run-directory.md")
	_, table, _ := strings.Cut(page, "## The files\n")
	_, table, _ = strings.Cut(table, "|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	var patterns []string
	for line := range strings.Lines(table) {
		for i, name := range strings.Split(strings.Split(line, " | ")[0], "`") {
			if i%2 == 0 {
				continue
			}
			if strings.HasPrefix(name, ".") { // another ending
				name = strings.TrimSuffix(patterns[len(patterns)-1], filepath.Ext(patterns[len(patterns)-1])) + name
			} else {
				name = regexp.QuoteMeta(name)
				name = placeholder.ReplaceAllString(name, ".+")
				name = digits.ReplaceAllString(name, `\d+`)
			}
			patterns = append(patterns, name)
		}
	}
	if len(patterns) < 20 {
		r.t.Fatalf("the table of docs/reference/run-directory.md lists only %q", patterns)
	}
	documented := regexp.MustCompile("^(" + strings.Join(patterns, "|") + ")$")
	must(r.t, filepath.WalkDir(r.dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.Name() != "run.toml" {
			return nil // some other test's program may remove files
		}
		dir := filepath.Dir(path)
		return filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
			name, _ := filepath.Rel(dir, path)
			if err != nil || d.IsDir() || strings.HasPrefix(d.Name(), ".") { // a temporary file
				return nil
			}
			if !documented.MatchString(name) && !documented.MatchString(filepath.Dir(name)+"/") {
				r.t.Errorf("docs/reference/run-directory.md does not list the file %s of a run", name)
			}
			return nil
		})
	}))
}

var (
	placeholder = regexp.MustCompile(`<[a-z]+>`)
	digits      = regexp.MustCompile(`\d+`)
)
