package sim

import (
	"errors"
	"os"

	"dcs-tui/jobs/journal"
	"dcs-tui/jobs/rundir"
)

// Journals that end early: one that was cut, a run directory that is a copy, and one
// that was restored as it was earlier. Every line that is left is whole.
//
// What the owner's last beat had counted, or another directory, is damage. An end that
// no beat has counted looks like that of a dispatcher that was killed there; then the
// hosts that are up must tell. In a world of cuts all are up, and nothing else happens
// to it but deaths of dispatchers: no attempt starts twice, and no finished job again.

// cutAll makes every world one of cuts.
var cutAll bool

// endsEarly reports whether the journal can be made to end early now: nobody writes it.
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

// cutJournal takes away the end of the newest journal file that counts.
func cutJournal(w *World) bool {
	g := &w.ledger
	if !w.endsEarly() {
		return false
	}
	w.server.WriteBack()
	size := int64(len(w.readJournal(g.epoch)))
	if !w.cuts {
		// What no beat has counted is found only where all hosts answer.
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
	case 1, 2: // behind a line
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

// copyRunDir keeps the run directory as it is, for a copy or a snapshot.
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

// copied is a run directory as it was.
type copied struct {
	restore func(anew bool)
	files   int // of the journal, then
	fed     int // jobs that were stored
}

// useCopy lets the run go on in a copy of its directory, once nobody else has it. Hosts
// refuse epochs that are older than what they know, and jobs that were stored since are
// others: both are left out.
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

// endedEarly lets the ledger read the journal anew.
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
