package cli

import "time"

// showProblem keeps what stops this dispatcher from launching in the file owner, so
// that status on any machine can say it: the journal cannot, while it cannot be
// written. Only this goroutine waits for that file.
func (s *session) showProblem(over <-chan struct{}) {
	every := time.NewTicker(time.Second)
	defer every.Stop()
	shown := ""
	for {
		select {
		case <-over:
			return
		case <-s.d.Finished():
			return
		case <-every.C:
		}
		snap := s.last.Load()
		if snap == nil || snap.Problem == shown {
			continue
		}
		if s.journal.SetProblem(snap.Problem) == nil { // else again in a second
			shown = snap.Problem
		}
	}
}
