package cli

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// TestHelpFitsTheTerminal checks that the help of every command fits the terminal: lines break
// between words, and no word is lost or cut.
func TestHelpFitsTheTerminal(t *testing.T) {
	words := func(s string) string { return strings.Join(strings.Fields(s), " ") }
	for _, width := range []int{0, 80, 100, 120} {
		root := newApp().root()
		setUpHelp(root, width)
		forEachCommand(root, func(cmd *cobra.Command) {
			var b bytes.Buffer
			cmd.SetOut(&b)
			must(t, cmd.Help())
			help := words(b.String())
			want := []string{words(cmd.Long)}
			cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
				if !f.Hidden {
					_, usage := pflag.UnquoteUsage(f)
					want = append(want, words(usage))
				}
			})
			for _, text := range want {
				if !strings.Contains(help, text) {
					t.Errorf("%s, %d columns: %q is missing in\n%s", cmd.CommandPath(), width, text, b.String())
				}
			}
			examples := strings.Split(cmd.Example, "\n")
			for row := range strings.SplitSeq(b.String(), "\n") {
				if len([]rune(row)) > width && width > 0 && !slices.Contains(examples, row) {
					t.Errorf("%s, %d columns: %q", cmd.CommandPath(), width, row)
				}
			}
		})
	}
}

// TestHelpIsComplete checks that the help of every command has one short paragraph and examples,
// and that the flags of a command with more than a few flags are grouped.
func TestHelpIsComplete(t *testing.T) {
	const maxUngrouped, maxLong = 6, 500
	root := newApp().root()
	forEachCommand(root, func(cmd *cobra.Command) {
		if cmd.Hidden {
			return
		}
		if cmd.Short == "" || cmd.Long == "" || cmd.Example == "" {
			t.Errorf("%s: the help has the short text %q, the long text %q, and the examples %q", cmd.CommandPath(),
				cmd.Short, cmd.Long, cmd.Example)
		}
		if long := cmd.Long; len(long) > maxLong || strings.Contains(long, "\n\n") || strings.HasSuffix(long, "\n") {
			t.Errorf("%s: the long help has %d characters, want one paragraph of at most %d:\n%s", cmd.CommandPath(),
				len(long), maxLong, long)
		}
		n, loose := 0, []string(nil)
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if f.Hidden {
				return
			}
			n++
			if f.Annotations[flagGroup] == nil {
				loose = append(loose, f.Name)
			}
		})
		if n > maxUngrouped && len(loose) > 0 {
			t.Errorf("%s has %d flags, and these are in no group: %v", cmd.CommandPath(), n, loose)
		}
	})
}

var updateCommands = flag.Bool("update", false, "write docs/commands")

// TestCommandsAreDocumented checks that docs/commands has one page for each command, with its help.
func TestCommandsAreDocumented(t *testing.T) {
	const dir = "../../docs/commands"
	pages := commandPages()
	if *updateCommands {
		must(t, os.RemoveAll(dir))
		must(t, os.MkdirAll(dir, 0o755))
		for name, page := range pages {
			must(t, os.WriteFile(filepath.Join(dir, name), page, 0o644))
		}
	}
	const update = "go test ./internal/cli -run TestCommandsAreDocumented -args -update"
	for name, want := range pages {
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("docs/commands/%s is not the help of the command (%v): %s", name, err, update)
		}
	}
	files, err := os.ReadDir(dir)
	must(t, err)
	for _, f := range files {
		if pages[f.Name()] == nil {
			t.Errorf("docs/commands/%s is about no command: %s", f.Name(), update)
		}
	}
}

// TestEachFlagIsOnAPage checks that a page that is written by hand mentions each flag.
func TestEachFlagIsOnAPage(t *testing.T) {
	files, err := filepath.Glob("../../docs/*.md")
	must(t, err)
	reference, err := filepath.Glob("../../docs/reference/*.md")
	must(t, err)
	var pages []byte
	for _, file := range slices.Concat(files, reference, []string{"../../README.md"}) {
		page, err := os.ReadFile(file)
		must(t, err)
		pages = append(pages, page...)
	}
	missing := map[string]bool{}
	forEachCommand(newApp().root(), func(cmd *cobra.Command) {
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if cmd.Hidden || f.Hidden || f.Name == "help" || f.Name == "version" || missing[f.Name] {
				return
			}
			if !regexp.MustCompile("--" + regexp.QuoteMeta(f.Name) + `($|[^\w-])`).Match(pages) {
				missing[f.Name] = true
				t.Errorf("no page of docs/ mentions --%s of %s", f.Name, cmd.CommandPath())
			}
		})
	})
}

// commandPages returns the help of all commands that are not hidden, as Markdown by file
// name, and an index.
func commandPages() map[string][]byte {
	pages, shorts := map[string][]byte{}, map[string]string{}
	root := newApp().root()
	setUpHelp(root, 100)
	forEachCommand(root, func(cmd *cobra.Command) {
		if cmd.Hidden || cmd.HasSubCommands() {
			return
		}
		var help bytes.Buffer
		cmd.SetOut(&help)
		cmd.InitDefaultHelpFlag()
		_ = cmd.Help() // a buffer accepts all writes
		path := strings.TrimPrefix(cmd.CommandPath(), "dcs-tui ")
		shorts[path] = cmd.Short
		pages[pageOf(path)] = fmt.Appendf(nil, "# %s\n\n```text\n%s\n```\n", path, strings.TrimSpace(help.String()))
	})
	index := []byte("# Commands\n\nThese pages are made from the help of the program (`dcs-tui COMMAND --help`).\n" +
		"\n| | |\n|---|---|\n")
	for _, path := range slices.Sorted(maps.Keys(shorts)) {
		index = fmt.Appendf(index, "| [%s](%s) | %s |\n", path, pageOf(path), shorts[path])
	}
	pages["README.md"] = index
	return pages
}

func pageOf(path string) string { return strings.ReplaceAll(path, " ", "-") + ".md" }

// TestManualPagesAreComplete checks that dcs-tui man --dir writes a page for each command, with its
// options and their placeholders, and that the page of dcs-tui has the sections that people expect.
func TestManualPagesAreComplete(t *testing.T) {
	dir := t.TempDir()
	root := newApp().root()
	root.SetArgs([]string{"man", "--dir", dir})
	must(t, root.Execute())
	pages := map[string]string{}
	files, err := os.ReadDir(dir)
	must(t, err)
	for _, f := range files {
		page, err := os.ReadFile(filepath.Join(dir, f.Name()))
		must(t, err)
		pages[f.Name()] = string(page)
	}
	forEachCommand(root, func(cmd *cobra.Command) {
		if cmd.Hidden {
			return
		}
		page := pages[manName(cmd)+".1"]
		delete(pages, manName(cmd)+".1")
		checkContains(t, page, ".TH ", "\n.SH NAME\n", "\n.SH SYNOPSIS\n", "\n.SH DESCRIPTION\n")
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			placeholder, _ := pflag.UnquoteUsage(f)
			if f.Hidden {
				return
			}
			if !strings.Contains(strings.ReplaceAll(page, `\-`, "-"), "--"+f.Name) ||
				placeholder != "" && !strings.Contains(page, `\fI`+roffEscaper.Replace(placeholder)+`\fR`) {
				t.Errorf("%s: --%s %s is missing in\n%s", cmd.CommandPath(), f.Name, placeholder, page)
			}
		})
	})
	for name := range pages {
		t.Errorf("%s is about no command", name)
	}
	checkContains(t, manPage(root), "\n.SH EXIT STATUS\n", "\n.SH FILES\n", "\n.SH ENVIRONMENT\n", "\n.SH EXAMPLES\n",
		"\ndcs\\-tui \\- Run thousands")
}

// TestVersionNamesTheCommit checks that the version of a program names its tag or the commit from
// which it was built, and whether files had changed.
func TestVersionNamesTheCommit(t *testing.T) {
	const commit, pseudo = "0123456789abcdef0123456789abcdef01234567", "v0.0.0-20260101000000-0123456789ab+dirty"
	same(t, "a program without a commit", versionOf("", "", false), "(development build)")
	same(t, "a module", versionOf("v1.2.3", "", false), "v1.2.3")
	same(t, "a tag", versionOf("v1.2.3", commit, false), "v1.2.3, commit 0123456789ab")
	same(t, "changed files", versionOf("(devel)", commit, true), "(development build), commit 0123456789ab, changed")
	same(t, "a version with the commit", versionOf(pseudo, commit, true), pseudo)
}
