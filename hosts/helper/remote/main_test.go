//go:build linux

package remote

import (
	"cmp"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// testLimits are the usual ones, unless a test has set shorter ones for the
// processes it starts.
func testLimits() limits {
	lim := usual
	for name, d := range map[string]*time.Duration{silenceEnv: &lim.silence, nowhereEnv: &lim.nowhere, beatEnv: &lim.beat, lastSlotEnv: &lim.lastSlot} {
		if v, err := time.ParseDuration(os.Getenv(name)); err == nil {
			*d = v
		}
	}
	// The machine on which owners are looked for is made up: see world.machine.
	if exe, err := os.Executable(); err == nil {
		lim.site = site{filepath.Join(filepath.Dir(exe), "../../machine"), os.Getuid(), -1}
	}
	return lim
}

const (
	silenceEnv  = "TEST_SILENCE"
	nowhereEnv  = "TEST_NOWHERE"
	beatEnv     = "TEST_BEAT"
	devEnv      = "TEST_DEV"
	freshEnv    = "TEST_GPU_FRESH"
	vmstatEnv   = "TEST_VMSTAT"
	lastSlotEnv = "TEST_LAST_SLOT"
)

// The test binary is the program on the far side too.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && strings.HasPrefix(os.Args[1], "__") {
		plantFault(os.Args[1])
		devDir = cmp.Or(os.Getenv(devEnv), devDir)
		if d, err := time.ParseDuration(os.Getenv(freshEnv)); err == nil {
			gpuFresh = d
		}
		vmstatFile = cmp.Or(os.Getenv(vmstatEnv), vmstatFile)
		os.Exit(runWord(os.Args[1:], testLimits()))
	}
	// Built with -race, each process of ours would sleep for a second when it exits.
	os.Setenv("GORACE", "atexit_sleep_ms=0 "+os.Getenv("GORACE"))
	os.Exit(m.Run())
}
