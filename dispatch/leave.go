package dispatch

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"dcs-tui/dispatch/sched"
	"dcs-tui/hosts"
	"dcs-tui/internal/text"
	"dcs-tui/jobs/live"
)

// leaveTimeout is how long hosts have to end processes that jobs left behind, in addition to the
// grace period of those processes.
const leaveTimeout = 15 * time.Second

// leaveNotice is how long the leaving of hosts lasts before it is reported.
const leaveNotice = 2 * time.Second

// maxNamed is the number of hosts that the text about them names.
const maxNamed = 5

// leaveHosts makes all agents leave their hosts. The loop continues until they have ended, so that
// the journal names the hosts that could not be left clean.
func (e *engine) leaveHosts() {
	if e.leaving {
		return
	}
	if e.finish == nil {
		e.step(sched.Stop{Why: "closed"})
		e.commit()
	}
	e.leaving = true
	e.leaveDeadline = time.Now().Add(e.goodbyeTime())
	// Children that jobs left behind end with the run, unless jobs still run.
	clean := e.finish != nil && e.finish.How.IsIdle()
	used := e.usedHosts()
	for name, a := range e.agents {
		if !a.enqueue(goodbye{endRun: clean, pack: e.packs(), connectOnce: clean && used[name]}) {
			a.cancel()
		}
	}
	time.AfterFunc(leaveNotice, func() { _ = e.d.call(context.Background(), (*engine).reportLeaving) })
}

// liveFinish returns how the dispatcher ends, and which hosts it waits for. It returns nil while the
// dispatcher continues.
func (e *engine) liveFinish() *live.Finish {
	if e.finish == nil {
		return nil
	}
	f := &live.Finish{How: e.finish.How.String(), Why: e.finish.Why}
	if !e.leaving || len(e.ended) == len(e.agents) {
		return f
	}
	for _, name := range slices.Sorted(maps.Keys(e.agents)) {
		if !e.ended[name] {
			f.Hosts = append(f.Hosts, name)
		}
	}
	f.Text = text.List(f.Hosts, maxNamed) + text.Verb(len(f.Hosts), ", which ends", ", which end") +
		" what jobs left behind, and may pack files of the run"
	f.Hosts = f.Hosts[:min(len(f.Hosts), live.MaxAwaited)]
	return f
}

// reportLeaving shows which hosts the dispatcher still waits for. The journal does not keep that, because
// it is over soon.
func (e *engine) reportLeaving() {
	if hosts := e.liveFinish().Waiting(); hosts != "" {
		e.notify(Notice{At: time.Now(), Text: "waiting for " + hosts})
	}
}

// usedHosts returns the hosts that may hold data or processes of this run: those that had an
// attempt, unless the run was over and cleaned up before this dispatcher began.
func (e *engine) usedHosts() map[string]bool {
	used := map[string]bool{}
	if !e.loop.Ended() && e.core.Table().Ended {
		return used
	}
	t := e.core.Table()
	for j := range t.RowsWithOptions() {
		for _, a := range j.Attempts {
			used[a.Host] = true
		}
	}
	return used
}

// dismissAgent makes an agent leave a host that has been removed from the run.
func (e *engine) dismissAgent(a *agent) {
	if a == nil || e.leaving {
		return
	}
	delete(e.agents, a.name)
	e.numLeaving++
	used := a.hello.Load() != nil
	if !a.enqueue(goodbye{endRun: true, pack: e.packs(), connectOnce: used}) {
		a.cancel()
	}
	time.AfterFunc(e.goodbyeTime(), a.cancel)
}

// goodbyeTime returns how long a host has to end processes that jobs left behind, and to pack.
func (e *engine) goodbyeTime() time.Duration {
	d := leaveTimeout + 2*time.Duration(e.cfg.Open.GraceSeconds*float64(time.Second))
	if e.packs() {
		d += hosts.MaxPackTime
	}
	return d
}

// packs reports whether the run has so many jobs that the files of attempts are packed.
func (e *engine) packs() bool {
	return e.cfg.PackFiles > 0 && e.core.Table().NumJobs() >= e.cfg.PackFiles
}

// agentEnded records that an agent has ended, and whether its host was left clean.
func (e *engine) agentEnded(a *agent, clean bool) {
	if e.agents[a.name] != a {
		e.numLeaving--
		if !clean && e.fencedBy == 0 {
			e.recordNotice(Notice{Host: a.name,
				Text: fmt.Sprintf("%s could not be reached when it left the run: processes that jobs left behind "+
					"there may still be alive", a.name)})
		}
		return
	}
	e.ended[a.name] = true
	Signal(e.d.signals.Changes)
	if !clean {
		e.unclean = append(e.unclean, a.name)
	}
}

// mayEnd reports whether the loop may end: all agents have ended, or it took too long.
func (e *engine) mayEnd() bool {
	return e.leaving && (len(e.ended) == len(e.agents) && e.numLeaving == 0 || !time.Now().Before(e.leaveDeadline))
}

// close ends the remaining agents. If all hosts are clean, it records the end of the run.
func (e *engine) close() {
	for _, a := range e.agents {
		a.cancel()
	}
	for len(e.ended) < len(e.agents) || e.numLeaving > 0 { // canceled agents end by themselves
		e.handle(<-e.d.inputs)
	}
	for e.writer.isBusy {
		e.handle(<-e.d.inputs)
	}
	e.writer.end()
	e.stepReports()
	slices.Sort(e.unclean)
	if len(e.unclean) > 0 && e.fencedBy == 0 { // otherwise the next dispatcher reports them
		e.recordNotice(Notice{Text: fmt.Sprintf(
			"%s could not be reached at the end: processes that jobs left behind there may still be alive; "+
				"resume the run when it is back to end them",
			strings.Join(e.unclean, ", "))})
	}
	out, err := e.loop.End(e.now(), len(e.unclean) == 0, e.finishOfRun())
	if out.FencedBy > 0 {
		e.stopFenced(out.FencedBy)
	} else if out.Durable {
		e.publishDurable(append(e.writingResults, e.pendingResults...), append(e.writingAnswers, e.pendingAnswers...))
	}
	e.carryOut(out)
	e.d.finish = e.finishOfRun()
	for _, epoch := range e.fenceClaims {
		e.d.claimed = max(e.d.claimed, epoch)
	}
	e.d.finishErr = err
}

func (e *engine) finishOfRun() sched.Finish {
	if e.finish != nil {
		return *e.finish
	}
	why, _ := e.core.Stopped()
	return sched.Finish{How: sched.Stopped, Why: why}
}
