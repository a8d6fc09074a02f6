package sim

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"dcs-tui/dispatch/ring"
	"dcs-tui/dispatch/sched"
	"dcs-tui/hosts"
	"dcs-tui/jobs"
	"dcs-tui/jobs/journal"
	"dcs-tui/jobs/rundir"
)

// makeRun makes the run directory as it is before the first dispatcher.
func (w *World) makeRun() {
	m := w.server.Mount("maker")
	mustMkdir(m, "/runs", runDir, runDir+"/"+rundir.JournalDir, runDir+"/"+rundir.AttemptsDir, runDir+"/"+rundir.HostsDir)
	if err := rundir.WriteNew(m, runDir+"/"+rundir.SpecsFile, nil); err != nil {
		panic(err)
	}
}

func mustMkdir(d rundir.Disk, paths ...string) {
	for _, p := range paths {
		if err := errors.Join(d.Mkdir(p, 0o700), d.SyncDir(filepath.Dir(p))); err != nil {
			panic(err)
		}
	}
}

// begin starts a dispatcher on a machine: it takes the run over and goes on with it.
func (w *World) begin(m *machine) { w.beginOver(m, nil, 0) }

// beginOver takes the run over from a dispatcher that may be alive. With wake it does
// something before the so manieth operation that the new one does on the disk.
func (w *World) beginOver(m *machine, old *life, wake int) {
	w.coming = false
	w.batter()
	l := &life{w: w, n: len(w.lives) + 1, m: m, born: w.now, ownedAt: w.now, owned: map[string]bool{}}
	l.doom.l = l
	if w.takes > mostLives {
		w.broken(RunEnds, "after %d dispatchers the run has not ended", w.takes)
	}
	w.lives = append(w.lives, l)
	l.mount = w.server.Mount(fmt.Sprintf("%s.%d", m.name, l.n))
	l.mount.Fault = l.fault
	l.share = w.share.Mount(l.mount.Name)
	l.share.Stale = func(string) bool { return w.noise(2) }
	l.run = &rundir.Run{Dir: runDir, Nonce: "nonce", Asked: &rundir.Asked{UID: runUID, Name: "r"}, Disk: disk{l.mount, l}}
	if w.noise(10) {
		w.hit(killedTaking)
		l.doom.arm(atDisk, 1+w.tape.Draw(25), w.tape.Draw(2) == 1)
	}
	if wake > 0 && l.doom.at == nowhere {
		l.doom.armWith(atDisk, wake, func() {
			w.hit(wokenInTake)
			old.startle()
			if l.dead { // the machine lost its power
				panic(killed{})
			}
		})
	}
	w.logf("%s begins", l.mount.Name)
	w.life = l
	var err error
	if l.mortal(func() { err = l.take() }) {
		return
	}
	if err != nil {
		w.logf("%s could not take the run: %v", l.mount.Name, err)
		l.die(false)
		return
	}
	l.doom.disarm()
	l.hear(func() { l.step(sched.Tick{}) })
	l.keepHouse()
	w.readRequests(l)
	w.feedRest(l)
}

// take is what resume does: the journal is folded, and the run goes on from there.
func (l *life) take() error {
	w := l.w
	j, t, report, err := journal.Take(context.Background(), l.run, journal.TakeOptions{
		Force: true, Token: l.mount.Name, Now: func() time.Time { return (wallStart + jobs.Stamp(w.now+l.m.wall)).Time() },
		Who: &journal.Owner{Host: l.m.name, User: "sim"},
	})
	if err != nil {
		return err
	}
	l.journal, l.epoch = j, j.Epoch()
	w.takes++
	w.logf("%s has epoch %d: %d records, %d torn, %d ignored", l.mount.Name, l.epoch, report.Records, report.Torn, report.Ignored)
	w.checkTake(l, t, report)
	l.inherits()
	inv := w.inventory(t)
	l.takeSet(inv)
	for _, spec := range inv {
		l.agents = append(l.agents, &agent{l: l, spec: spec})
	}
	cfg := w.cfg
	l.tokens = cfg.Tokens
	cfg.Seed = uint64(l.n)
	if t.Epoch > 1 {
		cfg.Found = l.found(t)
	}
	l.core = sched.New(cfg, t, inv)
	l.ring = ring.New(l.core, j)
	l.ring.See = l.see
	w.consumer.again(l, t)
	return nil
}

// inventory is that of one life: a person may have taken a host out of it, but not one of
// which damage has taken every record. Nothing can be known of such a host
// (docs/reliability.md, what is not proved).
func (w *World) inventory(t *jobs.Table) []*hosts.Host {
	list := w.set(t)
	if len(list) < 2 || !w.noise(8) {
		return list
	}
	out := w.tape.Draw(len(list))
	name := list[out].Name
	if _, asked := t.Inventory[name]; asked || t.Damaged && !mentions(t, name) {
		return list
	}
	w.hit(leftOut)
	w.logf("the inventory lacks %s", name)
	return slices.Delete(list, out, out+1)
}

// mentions reports whether a record that is left names the host.
func mentions(t *jobs.Table, name string) bool {
	for i := range t.Jobs {
		for _, a := range t.Jobs[i].Attempts {
			if a.Host == name {
				return true
			}
		}
	}
	return false
}

// startle lets a dispatcher do what it has to do at once, be it stopped or not.
func (l *life) startle() {
	if l.dead || l.busy || l.ring == nil {
		return
	}
	paused := l.paused
	l.paused = 0
	l.tell(sched.Tick{})
	if !l.dead {
		l.paused = paused
	}
}

// killed is what a dispatcher dies of in the middle of something.
type killed struct{}

// mortal does something that the dispatcher may not survive.
func (l *life) mortal(do func()) (died bool) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case killed:
			l.die(l.doom.power)
			died = true
		default:
			panic(r)
		}
	}()
	do()
	return l.dead
}

// die ends a dispatcher: killed, or its machine has lost its power.
func (l *life) die(power bool) {
	if l.dead {
		return
	}
	w := l.w
	w.logf("%s is dead (power %v)", l.mount.Name, power)
	l.dead, l.inbox, l.mount.Fault = true, nil, nil
	for _, a := range l.agents {
		a.dialing++
		if a.link != nil {
			a.link.close(!power)
			a.link = nil
		}
	}
	if power {
		for _, other := range w.lives {
			if other.m == l.m {
				other.die(false)
			}
		}
		l.m.powerLoss(w)
	}
	if w.life == l {
		w.life = nil
		w.reborn(w.between(time.Second, 90*time.Second))
	}
}

// reborn starts another dispatcher later, here or on another machine.
func (w *World) reborn(d time.Duration) {
	if w.coming {
		return
	}
	w.coming = true
	w.after(d, func() {
		if w.life == nil {
			w.begin(w.machines[w.tape.Draw(len(w.machines))])
			return
		}
		w.coming = false
	})
}
