// Command profiled is dcs-tui with profiles: where DCS_PROFILE names a directory, the
// dispatcher writes a CPU profile and a heap profile into it. It is for benchmarks; the
// helper and the supervisors on the hosts are not profiled, because they do not get the
// variable.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"strings"

	"dcs-tui/hosts/helper/remote"
	"dcs-tui/internal/cli"
)

func main() {
	if len(os.Args) > 1 && strings.HasPrefix(os.Args[1], "__") {
		os.Exit(remote.Main(os.Args[1:]))
	}
	dir := os.Getenv("DCS_PROFILE")
	if dir == "" {
		os.Exit(cli.Main(os.Args[1:]))
	}
	end, err := begin(dir)
	if err != nil {
		fmt.Fprintln(os.Stderr, "profiled:", err)
		os.Exit(1)
	}
	code := cli.Main(os.Args[1:])
	end()
	os.Exit(code)
}

// begin starts a CPU profile. end completes it and writes the heap profile, which also
// counts all allocations.
func begin(dir string) (end func(), err error) {
	runtime.MemProfileRate = 16 << 10
	file := func(kind string) (*os.File, error) {
		return os.Create(filepath.Join(dir, fmt.Sprintf("%d.%s.pprof", os.Getpid(), kind)))
	}
	cpu, err := file("cpu")
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(cpu); err != nil {
		return nil, err
	}
	return func() {
		pprof.StopCPUProfile()
		cpu.Close()
		if heap, err := file("heap"); err == nil {
			pprof.Lookup("allocs").WriteTo(heap, 0)
			heap.Close()
		}
	}, nil
}
