package sim

import (
	"slices"

	"dcs-tui/dispatch/sched"
	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// Limits over all hosts: tokens, slots of queues (T7); and what hosts keep for a queue (K10).

// limitedOptions are of jobs that use something limited. Any of them can run in every world.
var limitedOptions = []*jobs.Options{
	{Tokens: []jobs.Token{{Name: "license", Count: 1}}}, {Tokens: []jobs.Token{{Name: "license", Count: 2}}},
	{Tokens: []jobs.Token{{Name: "license", Count: 1}, {Name: "seat", Count: 2}}, Slots: 2}, {Tokens: []jobs.Token{{Name: "seat", Count: 1}}, Queue: "second"},
	{Queue: "second", QueueSlots: 3}, {Queue: "second", QueueSlots: 2}, {Queue: "second", Slots: 2},
}

// drawTokens draws how many tokens there are.
func (w *World) drawTokens() []jobs.Token {
	return []jobs.Token{{Name: "license", Count: 2 + w.tape.Draw(2)}, {Name: "seat", Count: 2 + w.tape.Draw(3)}}
}

// drawKept draws what a host keeps for the queue named second.
func (w *World) drawKept(slots int) []hosts.Kept {
	k := hosts.Kept{Queue: "second"}
	if slots > 1 && w.tape.Draw(3) > 0 {
		k.Slots = 1 + w.tape.Draw(slots-1)
	}
	return []hosts.Kept{k}
}

// changeTokens changes how many tokens there are in the inventory file.
func changeTokens(w *World) bool {
	l := w.life
	if l == nil || l.ring == nil {
		return false
	}
	list := w.drawTokens()
	w.cfg.Tokens = list
	l.hear(func() { l.step(sched.SetTokens{Tokens: list}) })
	return true
}

// checkLimits holds that a launch exceeds no limit. It counts the open attempts of the table.
func (w *World) checkLimits(l *life, r *jobs.Record) {
	t := l.core.Table()
	is := t.Job(r.Job)
	spec, tokens, ofQueue, most := is.Spec, map[string]int{}, 0, 0
	onHost, byQueue := 0, map[string]int{}
	for i := range t.Jobs {
		j := &t.Jobs[i]
		if j.Spec.Queue == spec.Queue && t.Specs[i].QueueSlots > 0 {
			most = t.Specs[i].QueueSlots // an edit does not change it
		}
		for _, a := range j.Attempts {
			if !a.State.Open() {
				continue
			}
			for _, k := range j.Spec.Tokens {
				tokens[k.Name] += k.Count
			}
			if j.Spec.Queue == spec.Queue {
				ofQueue += j.Spec.SlotCount()
			}
			if a.Host == r.Host && a.Machine == is.Attempts[r.N-1].Machine {
				onHost += j.Spec.SlotCount()
				byQueue[j.Spec.Queue] += j.Spec.SlotCount()
			}
		}
	}
	for _, k := range spec.Tokens {
		i := slices.IndexFunc(l.tokens, func(t jobs.Token) bool { return t.Name == k.Name })
		if tokens[k.Name] > l.tokens[i].Count {
			w.broken(LimitsHold, "%s is launched, and of %d tokens %s %d are held then", r.Attempt(), l.tokens[i].Count, k.Name, tokens[k.Name])
		}
	}
	if most > 0 && ofQueue > most {
		w.broken(LimitsHold, "%s is launched, and its queue has %d slots of %d then", r.Attempt(), ofQueue, most)
	}
	s := l.specs[r.Host]
	if !s.IsOpenTo(spec.Queue) {
		w.broken(KeptHolds, "%s of queue %q is launched on %s, which is kept for queue %s", r.Attempt(), spec.Queue, r.Host, s.KeptText())
	}
	for _, k := range s.Queues {
		if unused := k.Slots - byQueue[k.Queue]; k.Queue != spec.Queue && unused > 0 && onHost+unused > w.most(r.Host) {
			w.broken(KeptHolds, "%s of queue %q is launched on %s, which then has %d slots busy of %d and keeps %d more for %s",
				r.Attempt(), spec.Queue, r.Host, onHost, w.most(r.Host), unused, k.Queue)
		}
	}
}
