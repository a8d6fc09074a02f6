package sim

import (
	"errors"
	"os"

	"dcs-tui/jobs/journal"
	"dcs-tui/jobs/rundir"
)

// The faults in this file make a journal end early: it is cut, or the run goes on in a
// copy of the run directory, or in an earlier snapshot of it. Every line that is left
// is whole.
//
// If the last heartbeat of the owner had counted the lost end, or the directory is
// another one, that is damage. An end that no heartbeat has counted looks like that of
// a dispatcher that was killed there, and only the hosts that are up can show that it
// is lost. In a world of cuts all hosts are up, and nothing happens but these faults
// and deaths of dispatchers. No attempt starts twice there, and no finished job runs
// again.

// cutAll makes every world a world of cuts.
var cutAll bool

// endsEarly reports whether the journal can be made to end early now, because nobody
// writes it.
func (w *World) endsEarly() bool {
	if !w.fragile || w.life != nil || w.ledger.epoch == 0 {
		return false
	}
	for _, l := range w.lives {
		if !l.dead {
			return false
		}
	}
	return true
}

// cutJournal removes the end of the newest journal file that counts.
func cutJournal(w *World) bool {
	g := &w.ledger
	if !w.endsEarly() {
		return false
	}
	w.server.WriteBack()
	size := int64(len(w.readJournal(g.epoch)))
	if !w.cuts {
		// A lost end that no heartbeat had counted is found only if all hosts answer.
		o, err := journal.ReadOwner(&rundir.Run{Dir: runDir, Disk: g.observer})
		if err != nil || o == nil || o.File != g.epoch {
			return false
		}
		size = min(size, o.Bytes)
	}
	if size == 0 {
		return false
	}
	at := int64(w.tape.Draw(int(size)))
	switch text := w.readJournal(g.epoch); w.tape.Draw(4) {
	case 0:
		at = 0
	case 1, 2: // after a line
		for at > 0 && text[at-1] != '\n' {
			at--
		}
	}
	f, err := g.observer.OpenFile(journalPath(g.epoch), os.O_RDWR, 0)
	if err != nil || errors.Join(f.Truncate(at), f.Sync(), f.Close()) != nil {
		return false
	}
	w.logf("the journal of epoch %d is cut at byte %d of %d", g.epoch, at, size)
	w.endedEarly()
	return true
}

// copyRunDir keeps the present state of the run directory, for a copy or a snapshot.
func copyRunDir(w *World) bool {
	if !w.fragile || w.life == nil || w.ledger.epoch == 0 || w.life.epoch != w.ledger.epoch {
		return false
	}
	restore, err := w.server.Snapshot(runDir)
	if err != nil {
		return false
	}
	w.copied = &copied{restore, len(w.ledger.files), w.fed}
	return true
}

// copied is an earlier state of the run directory.
type copied struct {
	restore func(anew bool)
	files   int // number of journal files at that time
	fed     int // number of jobs stored at that time
}

// useCopy lets the run go on in a copy of its directory when no dispatcher has it. It
// does nothing if a later epoch began or jobs were stored since the copy was made:
// hosts would refuse the older epoch, and the numbers of those jobs would be given to
// other jobs.
func useCopy(w *World) bool {
	c := w.copied
	if c == nil || !w.endsEarly() || c.files != len(w.ledger.files) || c.fed != w.fed {
		return false
	}
	anew := !w.cuts || w.tape.Draw(2) == 1
	c.restore(anew)
	w.logf("the run directory is as it was earlier (copied %v)", anew)
	w.endedEarly()
	return true
}

// endedEarly makes the ledger read the journal again.
func (w *World) endedEarly() {
	g := &w.ledger
	w.damaged, w.unread = true, true
	for i := range g.files {
		b := &g.files[i]
		if b.f != nil {
			b.f.Close()
			b.f = nil
		}
		size := int64(len(w.readJournal(i + 1)))
		b.counted, b.durable, b.kept = min(b.counted, size), min(b.durable, size), min(b.kept, size)
	}
}
