// Package carried holds the programs that a dcs-tui of a release carries for hosts: hostprog for each
// architecture, compressed. `go build` alone embeds none, and then the program copies itself to hosts
// of its own kind. See scripts/host-programs.
package carried

import (
	"embed"
	"io/fs"
)

//go:embed programs
var files embed.FS

// Programs returns the programs by their names, such as linux-arm64.gz. It may contain none.
func Programs() fs.FS {
	programs, err := fs.Sub(files, "programs")
	if err != nil {
		panic(err) // the name is valid
	}
	return programs
}

// HasAny reports whether there are programs.
func HasAny() bool {
	names, err := fs.Glob(Programs(), "*.gz")
	return err == nil && len(names) > 0
}
