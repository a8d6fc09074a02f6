package run

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

	"dcs-tui/jobs"
)

// RunHook runs the user's --on-done command with the outcome of the run in its
// environment. Its output goes to w. Its exit status does not change that of the run,
// which is code.
func (o *Outcome) RunHook(command string, code int, w io.Writer) error {
	cmd := exec.Command("/bin/sh", "-c", command)
	cmd.Stdout, cmd.Stderr = w, w
	cmd.Env = append(os.Environ(), "DCS_RUN="+o.Run.Name(), "DCS_RUN_DIR="+o.Run.Dir, "DCS_STATE="+string(o.State),
		fmt.Sprintf("DCS_EXIT=%d", code))
	total := 0
	for s, n := range o.Table.Counts {
		total += n
		cmd.Env = append(cmd.Env, fmt.Sprintf("DCS_%s=%d", strings.ToUpper(jobs.JobState(s).String()), n))
	}
	cmd.Env = append(cmd.Env, fmt.Sprintf("DCS_TOTAL=%d", total))
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("--on-done: %w", err)
	}
	return nil
}
