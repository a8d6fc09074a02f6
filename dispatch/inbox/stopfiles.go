package inbox

import (
	"slices"
	"sync"

	"dcs-tui/dispatch/sched"
	"dcs-tui/jobs/rundir"
)

// Reasons of what STOP files ask for.
const (
	whyStop    = "the file " + rundir.StopFile
	whyStopNow = "the file " + rundir.StopNowFile
)

// stopSource begins the names of the requests that STOP files become.
const stopSource = "stop-file"

// stopFiles is what was found at the last poll.
type stopFiles struct {
	mu   sync.Mutex      // held while the files are listed or removed
	asks string          // the stronger of the two files, "" if there is none
	said map[string]bool // reports of files that are ignored
}

// end calls remove, which removes the file STOP for a person who continues the run. The
// next poll then does not take the end of that drain for news, which would refuse the
// person's own request to end it.
func (s *stopFiles) end(remove func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if remove(); s.asks == rundir.StopFile {
		s.asks = ""
	}
}

// pollStopFiles turns what the STOP files ask for into requests, each once. It ends the
// drain that STOP asked for when that was removed.
func (b *Inbox) pollStopFiles() {
	b.stop.mu.Lock()
	defer b.stop.mu.Unlock()
	names, refused, err := b.Run.StopFiles()
	if err != nil {
		return // the engine reports that the run directory does not respond
	}
	for _, r := range refused {
		text := r.Error()
		if b.stop.said == nil {
			b.stop.said = map[string]bool{}
		}
		if !b.stop.said[text] {
			b.stop.said[text] = true
			b.Say(func() string { return text })
		}
	}
	asks := ""
	for _, name := range []string{rundir.StopFile, rundir.StopNowFile} {
		if slices.Contains(names, name) {
			asks = name
		}
	}
	was := b.stop.asks
	if b.stop.asks = asks; asks == was {
		return
	}
	switch {
	case asks == rundir.StopFile:
		b.Ask(stopSource, &rundir.Request{Do: rundir.DoDrain, Why: whyStop})
	case asks == rundir.StopNowFile:
		b.Ask(stopSource, &rundir.Request{Do: rundir.DoCancel, All: true, Why: whyStopNow})
	case was == rundir.StopFile:
		b.ask(stopSource, sched.EndDrain{Of: whyStop, Why: whyStop + " was removed"})
	}
}
