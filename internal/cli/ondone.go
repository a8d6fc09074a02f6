package cli

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

	"dcs-tui/internal/cli/exit"
	"dcs-tui/jobs"
)

// onDone runs the user's --on-done command with the state of the run in its
// environment. What it prints goes to w; how it exits does not change how the
// run exits.
func onDone(command, name, dir, state string, counts [jobs.Skipped + 1]int, code int, w io.Writer) error {
	cmd := exec.Command("/bin/sh", "-c", command)
	cmd.Stdout, cmd.Stderr = w, w
	cmd.Env = append(os.Environ(), "DCS_RUN="+name, "DCS_RUN_DIR="+dir, "DCS_STATE="+state,
		fmt.Sprintf("DCS_EXIT=%d", code))
	total := 0
	for s, n := range counts {
		total += n
		cmd.Env = append(cmd.Env, fmt.Sprintf("DCS_%s=%d", strings.ToUpper(jobs.JobState(s).String()), n))
	}
	cmd.Env = append(cmd.Env, fmt.Sprintf("DCS_TOTAL=%d", total))
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("--on-done: %w", err)
	}
	return nil
}

// stateOf is DCS_STATE: how the run stands, in one word.
func stateOf(code int) string {
	switch code {
	case exit.OK:
		return "succeeded"
	case exit.Failed:
		return "failed"
	case exit.NoHosts:
		return "no_hosts"
	case exit.Cancelled:
		return "cancelled"
	}
	return "stopped"
}
