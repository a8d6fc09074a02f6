package standing

import (
	"path/filepath"

	"dcs-tui/internal/text"
	"dcs-tui/jobs/rundir"
)

// Ref is how a person names the run in the next command: its name when it
// lies below ./dcs-runs, else its directory.
func Ref(run *rundir.Run) string {
	if base, err := filepath.Abs(rundir.Base); err == nil && filepath.Dir(run.Dir) == base {
		return filepath.Base(run.Dir)
	}
	return Dir(run)
}

// Dir is the run directory, relative where that is shorter.
func Dir(run *rundir.Run) string { return Path(run.Dir) }

// Path returns a path for messages: relative if it is below the current directory.
func Path(path string) string { return text.Path(path) }
