package cli

import (
	"debug/elf"
	"io"
	"os"

	"dcs-tui/hosts"
)

// checkBinary warns when our own program, which is what hosts are sent, needs
// libraries: `go run` and `go build` link it so where a C compiler is installed,
// and a host with an older C library cannot start it.
func (a *app) checkBinary(hs []*hosts.Host) {
	elsewhere := false
	for _, h := range hs {
		elsewhere = elsewhere || h.Link != "local"
	}
	if !elsewhere {
		return
	}
	f, err := os.Open("/proc/self/exe")
	if err != nil {
		return // then it cannot be sent either, and that is said of each host
	}
	defer f.Close()
	if needsLibraries(f) {
		a.warn("this dcs-tui is not a static program and may not start on hosts with another C library: `make build` makes one that does")
	}
}

// needsLibraries says whether an ELF program is started by way of a dynamic
// linker (elf(5), PT_INTERP).
func needsLibraries(program io.ReaderAt) bool {
	f, err := elf.NewFile(program)
	if err != nil {
		return false
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return true
		}
	}
	return false
}
