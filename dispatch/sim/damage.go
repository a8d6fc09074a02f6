package sim

import (
	"maps"
	"os"

	"dcs-tui/dispatch/sched"
	"dcs-tui/hosts/onfile"
	"dcs-tui/jobs"
	"dcs-tui/jobs/attempts"
)

// Some worlds are fragile: bits of their journal turn over. Then facts are missing, the
// next dispatcher asks every host what it has before it launches anything, and what
// can be checked is less: the ledger begins anew with what recovery has found, and
// keeps in mind what it knew.

// damageJournal turns a bit of what the journal durably says.
func damageJournal(w *World) bool {
	g := &w.ledger
	if !w.fragile || w.life != nil || g.epoch == 0 {
		return false
	}
	epoch := 1 + w.tape.Draw(g.epoch)
	counted := g.files[epoch-1].counted
	if counted == 0 {
		return false
	}
	f, err := g.observer.OpenFile(journalPath(epoch), os.O_RDWR, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	at := int64(w.tape.Draw(int(counted)))
	b := make([]byte, 1)
	if _, err := f.ReadAt(b, at); err != nil {
		return false
	}
	b[0] ^= 1 << w.tape.Draw(8)
	if _, err := f.WriteAt(b, at); err != nil || f.Sync() != nil {
		return false
	}
	w.damaged, w.unread = true, true
	w.logf("byte %d of the journal of epoch %d is damaged", at, epoch)
	return true
}

// found is what the shared directory's claims and sentinels tell of (X1).
func (l *life) found() (all []sched.Found) {
	_ = attempts.Each(l.share, "/share", runUID, "", func(f attempts.Fate) error {
		if p, ok := onfile.Probed(f); ok {
			all = append(all, sched.Found{Host: f.Host, ProbedJob: p})
		}
		return nil
	})
	return all
}

// renew begins the ledger anew with what recovery has made of a damaged journal.
func (g *ledger) renew(w *World, t *jobs.Table) {
	old := g.jobs
	g.table, g.jobs, g.touched = clone(t), make([]account, len(t.Jobs)), g.touched[:0]
	seqs := map[int64]jobs.ID{}
	for seq, id := range g.seqs {
		if _, shown := w.consumer.got[seq]; shown && seq <= t.Seq { // the others' records may be lost: they come again
			seqs[seq] = id
		}
	}
	for i := range t.Past {
		seqs[t.Past[i].Seq] = t.Past[i].Spec.ID
	}
	for i := range t.Jobs {
		j, a := &t.Jobs[i], &g.jobs[i]
		*a = account{round: int(j.Round), over: j.State.Terminal(), result: j.State, charged: int(j.Failures), strays: true, spec: j.Spec}
		_, a.cancelling = t.Cancels[j.Spec.ID]
		if a.over && j.Seq > 0 {
			seqs[j.Seq] = j.Spec.ID
		}
		for n, x := range j.Attempts {
			e := entry{host: x.Host, round: int(x.Round), open: x.State.Open(), charged: x.Charged, last: jobs.KindEpoch, vague: true}
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
	g.wishes = map[string]jobs.HostWish{}
	for name, wish := range t.Hosts {
		g.wishes[name] = wish
	}
	clear(g.requests)
	for name := range t.Requests {
		g.requests[name] = 1
	}
}

// clone copies a table, which the core is going to change.
func clone(t *jobs.Table) *jobs.Table {
	c := *t
	c.Specs = append([]*jobs.Spec(nil), t.Specs...)
	c.Jobs = append([]jobs.Job(nil), t.Jobs...)
	c.Past = append([]jobs.Job(nil), t.Past...)
	for i := range c.Jobs {
		as := make([]*jobs.Attempt, len(c.Jobs[i].Attempts))
		for k, a := range c.Jobs[i].Attempts {
			one := *a
			as[k] = &one
		}
		c.Jobs[i].Attempts = as
	}
	c.Cancels, c.Requests, c.Hosts, c.Late = maps.Clone(t.Cancels), maps.Clone(t.Requests), maps.Clone(t.Hosts), maps.Clone(t.Late)
	return &c
}
