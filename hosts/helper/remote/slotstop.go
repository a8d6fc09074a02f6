//go:build linux

package remote

import (
	"sync/atomic"
	"time"

	"dcs-tui/jobs/rundir"
)

// stopLookTime bounds how long a supervisor waits for the listing of the run directory.
const stopLookTime = 2 * time.Second

// stopAsked reports whether a person has asked, by a stop file in the run directory,
// that nothing more is started. While a helper is there the dispatcher sees to that. A
// directory that does not answer in time asks for nothing: the claim waits for it, too,
// unless the attempts of this host are elsewhere.
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
