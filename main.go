// Command dcs-tui runs thousands of shell commands on the cores of a lab's workstations. It copies the
// programs that it carries to hosts, or itself if it carries none: then it is the helper and the
// supervisor there.
//
// internal/cli/root.go defines the exit codes.
package main

import (
	"embed"
	"os"
	"strings"

	"dcs-tui/hosts/helper/remote"
	"dcs-tui/internal/cli"
	"dcs-tui/internal/ttyguard"
)

// pages are the files that dcs-tui help shows.
//
//go:embed docs/*.md docs/reference/*.md docs/internals/*.md hosts.toml.example LICENSE THIRD_PARTY_NOTICES
var pages embed.FS

func main() {
	// Check for the host-side commands first: a supervisor starts once per slot and must not pay
	// for the initialization of the user's commands.
	if len(os.Args) > 1 && os.Args[1] == ttyguard.Word {
		os.Exit(ttyguard.Main())
	}
	if len(os.Args) > 1 && strings.HasPrefix(os.Args[1], "__") && !strings.HasPrefix(os.Args[1], "__complete") {
		os.Exit(remote.Main(os.Args[1:]))
	}
	os.Exit(cli.Main(pages, os.Args[1:]))
}
