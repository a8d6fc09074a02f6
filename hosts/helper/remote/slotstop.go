//go:build linux

package remote

import (
	"sync/atomic"
	"time"

	"dcs-tui/jobs/rundir"
)

// stopLookTime is how long a supervisor waits for the listing of the run directory.
const stopLookTime = 2 * time.Second

// stopAsked reports whether a stop file in the run directory asks that nothing more is
// started. While there is a helper, the dispatcher handles stop files, and stopAsked
// does not look. A directory that does not respond within stopLookTime counts as having
// none: the claim waits for that directory, too, unless the attempts of this host are
// elsewhere.
func (s *slot) stopAsked() bool {
	if s.cfg.RunDir == "" || !s.alone() || !s.looking.CompareAndSwap(false, true) {
		return false
	}
	var asked atomic.Bool
	within(stopLookTime, func() {
		defer s.looking.Store(false)
		run := &rundir.Run{Dir: s.cfg.RunDir, Disk: onlyRead}
		names, _, err := run.StopFiles()
		asked.Store(err == nil && len(names) > 0)
	})
	return asked.Load()
}
