package sim

import (
	"maps"
	"os"
	"slices"

	"dcs-tui/dispatch/sched"
	"dcs-tui/hosts"
	"dcs-tui/jobs"
	"dcs-tui/jobs/attempts"
	"dcs-tui/jobs/rundir"
)

// Some worlds are fragile: single bits of their journal flip. Some fragile worlds are battered:
// this happens again and again, to several bits and to whole sectors at once. Facts are then
// missing, and the next dispatcher asks every host what it has before it launches anything. Fewer
// checks are possible: the ledger starts again with the result of recovery, and keeps some of what
// it knew before.

// damageJournal flips bits of the durable journal.
func damageJournal(w *World) bool {
	g := &w.ledger
	if !w.mayBeDamaged || w.dispatcher != nil || g.epoch == 0 {
		return false
	}
	if !w.isBattered {
		return w.flipBits(1)
	}
	spoiled := w.flipBits([]int{1, sector, 2 * sector}[w.choices.Draw(3)])
	for range w.choices.Draw(4) {
		spoiled = w.flipBits(1) || spoiled
	}
	return spoiled
}

// sector is the unit that a disk loses as a whole. It can hold a launch and the records that
// followed it.
const sector = 512

// damageBeforeTakeover damages the journal of a battered world before most takeovers.
func (w *World) damageBeforeTakeover() {
	if w.isBattered && !w.faultsAreOver() && w.choices.Draw(3) > 0 && damageJournal(w) {
		w.countFault(faultDamagedAgain)
	}
}

// flipBits flips one bit in each of up to n consecutive bytes of some epoch's file. It returns
// false if it could not.
func (w *World) flipBits(n int) bool {
	g := &w.ledger
	epoch := 1 + w.choices.Draw(g.epoch)
	counted := g.files[epoch-1].numRead
	if counted == 0 || w.isWriting(epoch) {
		return false
	}
	f, err := g.observer.OpenFile(journalPath(epoch), os.O_RDWR, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	at := int64(w.choices.Draw(int(counted)))
	b := make([]byte, min(int64(n), counted-at))
	if _, err := f.ReadAt(b, at); err != nil {
		return false
	}
	bit := byte(1) << w.choices.Draw(8)
	if n > 1 { // text at the end of a file would look like a line that was never completed
		bit = 0x80
	}
	for i := range b {
		b[i] ^= bit
	}
	if _, err := f.WriteAt(b, at); err != nil || f.Sync() != nil {
		return false
	}
	w.damaged, w.isDamageUnread = true, true
	w.logf("byte %d of the journal of epoch %d is damaged, and so are %d that follow it", at, epoch, len(b)-1)
	return true
}

// isWriting reports whether a live dispatcher that was taken over has the file of an epoch open. It
// repeats writes that it does not know to be durable, which would undo damage that a newer
// dispatcher has seen.
func (w *World) isWriting(epoch int) bool {
	return slices.ContainsFunc(w.dispatchers, func(l *dispatcher) bool { return !l.dead && l.epoch == epoch })
}

// found returns the claims and sentinels in the shared directory of attempts that have no record.
func (l *dispatcher) found(t *jobs.Table) (all []sched.Found) {
	unfinished := sched.UnfinishedJobs(t)
	_ = attempts.EachFate(rundir.WithPacks(l.share), "/share", runUID, "", unfinished, func(f attempts.Fate) error {
		if a := t.Attempt(f.Attempt); a != nil && a.Host == f.Host && !t.Damaged {
			return nil
		}
		if p, ok := hosts.ProbedOnDisk(f); ok {
			all = append(all, sched.Found{Host: f.Host, ProbedJob: p})
		}
		return nil
	})
	return all
}

// isRecorded reports whether the record of a launch is not that of a new one: the host
// already had the attempt, or its claim or tombstone, and the earlier record was lost.
func (w *World) isRecorded(r *jobs.Record) bool { return w.damaged && w.isOnHost(r) }

// isOnHost reports whether the host of a launch already had the attempt, or its claim or tombstone.
func (w *World) isOnHost(r *jobs.Record) bool {
	h, id := w.machineOf(r.Host), r.Attempt()
	return h != nil && (h.everSpooled[id] || h.hasClaim(id))
}

// restart starts the ledger again with the result of recovery from a damaged journal.
func (g *ledger) restart(w *World, t *jobs.Table) {
	old := g.jobs
	if w.onlyCuts && !t.Damaged { // the lost end was not noticed, so its result numbers are used again
		maps.DeleteFunc(w.consumer.got, func(seq int64, _ shownResult) bool { return seq > t.Seq })
	}
	g.table, g.jobs, g.touched = clone(t), make([]account, t.NumJobs()), g.touched[:0]
	seqs := map[int64]jobs.ID{}
	for seq, id := range g.seqs {
		// The records of the other results may be lost. Those results come again.
		if _, shown := w.consumer.got[seq]; shown && seq <= t.Seq || w.isShowing(seq) {
			seqs[seq] = id
		}
	}
	for i := range t.Past {
		seqs[t.Past[i].Seq] = t.Past[i].Spec.ID
	}
	for i := range g.table.Jobs {
		j, a := &g.table.Jobs[i], &g.jobs[i]
		*a = account{round: int(j.Round), isOver: j.State.Terminal(), result: j.State, charged: int(j.Failures),
			hasLateFailure: true, spec: j.Spec}
		_, a.canceling = t.Cancels[j.Spec.ID]
		if a.isOver && j.Seq > 0 {
			seqs[j.Seq] = j.Spec.ID
		}
		for n, x := range j.Attempts {
			e := entry{host: x.Host, round: int(x.Round), open: x.State.Open(), charged: x.Charged,
				last: jobs.KindEpoch, isUncertain: true}
			if i < len(old) && n < len(old[i].attempts) {
				before := &old[i].attempts[n]
				e.lost, e.lostAt, e.launched = before.lost, before.lostAt, before.launched
			}
			if x.State == jobs.AttemptLost {
				e.last = jobs.KindLost
			}
			a.attempts = append(a.attempts, e)
		}
	}
	g.seqs, g.seq, g.acked, g.ended = seqs, t.Seq, t.Acked, t.Ended
	g.paused = t.Paused
	g.hosts = maps.Clone(t.Inventory)
	g.hostSettings = map[string]jobs.HostSetting{}
	maps.Copy(g.hostSettings, t.Hosts)
	clear(g.requests)
	for name := range t.Requests {
		g.requests[name], w.people.removed[name] = 1, true
	}
}

// isShowing reports whether a live dispatcher has a durable result that it is about to show.
func (w *World) isShowing(seq int64) bool {
	return slices.ContainsFunc(w.dispatchers, func(l *dispatcher) bool {
		return !l.dead && slices.ContainsFunc(l.writingResults, func(s shownResult) bool { return s.seq == seq })
	})
}

// clone copies a table, because the core is going to change the original. The copy is not packed.
func clone(t *jobs.Table) *jobs.Table {
	c := &jobs.Table{Counts: t.Counts, Seq: t.Seq, Acked: t.Acked, Epoch: t.Epoch, Past: slices.Clone(t.Past),
		Adjusted: maps.Clone(t.Adjusted), Requeues: maps.Clone(t.Requeues), CanceledAll: t.CanceledAll,
		Paused: t.Paused, Ended: t.Ended, Closed: t.Closed, Damaged: t.Damaged}
	for id := range jobs.ID(t.NumSpecs()) {
		c.Specs = append(c.Specs, t.Spec(id+1))
	}
	for id := range jobs.ID(t.NumJobs()) {
		j := *new(jobs.RowReader).Job(t, id+1)
		j.Spec, j.Attempts = c.Specs[id], slices.Clone(j.Attempts)
		for k, a := range j.Attempts {
			j.Attempts[k] = new(*a)
		}
		c.Jobs = append(c.Jobs, j)
	}
	c.Cancels, c.Requests, c.Hosts = maps.Clone(t.Cancels), maps.Clone(t.Requests), maps.Clone(t.Hosts)
	c.Late, c.Machines, c.At = maps.Clone(t.Late), maps.Clone(t.Machines), maps.Clone(t.At)
	c.Inventory, c.Instances = maps.Clone(t.Inventory), maps.Clone(t.Instances)
	return c
}
