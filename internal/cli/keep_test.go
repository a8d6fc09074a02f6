package cli

import (
	"testing"

	"github.com/spf13/pflag"

	"dcs-tui/jobs/rundir"
)

// The number of jobs in the file of a run, which older programs kept under the name of a
// flag, does not become the number of slots of its hosts.
func TestRestoreFlags(t *testing.T) {
	var f runFlags
	fs := pflag.NewFlagSet("resume", pflag.ContinueOnError)
	f.hostFlags(fs)
	kept := map[string]any{"jobs": int64(100), rundir.OptionJobs: int64(100), "max-slots": "7", "older": "x"}
	if err := restoreFlags(fs, kept); err != nil || f.Slots != "" || f.MaxSlots != 7 {
		t.Errorf("%v, slots %q, at most %d", err, f.Slots, f.MaxSlots)
	}
	if fs.Lookup(rundir.OptionJobs) != nil {
		t.Errorf("%s is a flag, too", rundir.OptionJobs)
	}
}
