package cli

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

var updateCommands = flag.Bool("update", false, "write docs/commands")

// docs/commands has the help of every command, on a page of its own.
func TestCommandsAreDocumented(t *testing.T) {
	const dir = "../../docs/commands"
	pages := commandPages()
	if *updateCommands {
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		for name, page := range pages {
			if err := os.WriteFile(filepath.Join(dir, name), page, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	const update = "go test ./internal/cli -run TestCommandsAreDocumented -args -update"
	for name, want := range pages {
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("docs/commands/%s is not the help of the command (%v): %s", name, err, update)
		}
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if pages[f.Name()] == nil {
			t.Errorf("docs/commands/%s is about no command: %s", f.Name(), update)
		}
	}
}

// commandPages returns the help of all commands that are not hidden, as Markdown by file
// name, and an index.
func commandPages() map[string][]byte {
	pages, shorts := map[string][]byte{}, map[string]string{}
	root := newApp().root()
	setUpHelp(root, 100)
	var each func(cmd *cobra.Command)
	each = func(cmd *cobra.Command) {
		for _, sub := range cmd.Commands() {
			switch {
			case sub.Hidden || sub.Name() == "help" || sub.Name() == "completion":
			case sub.HasSubCommands():
				each(sub)
			default:
				var help bytes.Buffer
				sub.SetOut(&help)
				sub.InitDefaultHelpFlag()
				_ = sub.Help() // a buffer takes everything
				path := strings.TrimPrefix(sub.CommandPath(), "dcs-tui ")
				shorts[path] = sub.Short
				pages[pageOf(path)] = fmt.Appendf(nil, "# %s\n\n```text\n%s\n```\n", path, strings.TrimSpace(help.String()))
			}
		}
	}
	each(root)
	index := []byte("# Commands\n\nThese pages are made from the help of the program (`dcs-tui COMMAND --help`).\n\n| | |\n|---|---|\n")
	for _, path := range slices.Sorted(maps.Keys(shorts)) {
		index = fmt.Appendf(index, "| [%s](%s) | %s |\n", path, pageOf(path), shorts[path])
	}
	pages["README.md"] = index
	return pages
}

func pageOf(path string) string { return strings.ReplaceAll(path, " ", "-") + ".md" }
