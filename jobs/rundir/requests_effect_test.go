package rundir_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"dcs-tui/jobs"
	"dcs-tui/jobs/action"
)

// requestEffects are the effects that docs/reference/requests.md promises for each kind of request, in a
// run that nobody dispatches: with jobs left, and after all jobs have ended.
var requestEffects = map[string]struct {
	q                 action.Request
	stopped, finished action.Effect
}{
	"cancel waiting": {action.Request{Do: action.Cancel, Jobs: jobs.One(1), Spare: action.SpareStarted},
		action.IsLeft, action.IsFulfilled},
	"cancel":  {action.Request{Do: action.Cancel, All: true}, action.IsCarriedOut, action.IsFulfilled},
	"requeue": {action.Request{Do: action.Requeue, Jobs: jobs.One(1)}, action.IsLeft, action.IsLeft},
	"edit": {action.Request{Do: action.Edit, Jobs: jobs.One(1), Edit: &jobs.Change{Tries: new(2)}},
		action.IsLeft, action.IsLeft},
	"submit": {action.Request{Do: action.Submit, Specs: `{"id":1,"command":"true"}` + "\n"}, action.IsLeft,
		action.IsLeft},
	"priority": {action.Request{Do: action.Priority, Jobs: jobs.One(1), Priority: 3}, action.IsLeft,
		action.IsRefused},
	"more priority": {action.Request{Do: action.Priority, Jobs: jobs.One(1), Priority: 3, Relative: true},
		action.IsLeft, action.IsRefused},
	"pause":      {action.Request{Do: action.Pause}, action.IsLeft, action.IsRefused},
	"continue":   {action.Request{Do: action.Continue}, action.IsLeft, action.IsRefused},
	"drain-host": {action.Request{Do: action.DrainHost, Host: "a"}, action.IsLeft, action.IsRefused},
	"stop-host":  {action.Request{Do: action.StopHost, Host: "a"}, action.IsLeft, action.IsRefused},
	"use-host":   {action.Request{Do: action.UseHost, Host: "a"}, action.IsLeft, action.IsRefused},
	"slots":      {action.Request{Do: action.Slots, Host: "a", Number: 2}, action.IsLeft, action.IsRefused},
	"more slots": {action.Request{Do: action.Slots, Host: "a", Number: -1, Relative: true}, action.IsRefused,
		action.IsRefused},
	"add-host":     {action.Request{Do: action.AddHost, Host: "b"}, action.IsLeft, action.IsRefused},
	"remove-host":  {action.Request{Do: action.RemoveHost, Host: "a"}, action.IsLeft, action.IsRefused},
	"reload-hosts": {action.Request{Do: action.ReloadHosts}, action.IsRefused, action.IsRefused},
	"end-input":    {action.Request{Do: action.EndInput}, action.IsLeft, action.IsRefused},
	"drain":        {action.Request{Do: action.DrainRun, Epoch: 1}, action.IsRefused, action.IsRefused},
	"stop":         {action.Request{Do: action.StopRun, Epoch: 1}, action.IsRefused, action.IsRefused},
}

// TestEachKindOfRequestHasItsEffect checks what becomes of every kind of request in every state of a
// run: a dispatcher carries it out; without one, it waits, holds already, or is refused with a
// reason. A request that would be refused does not count as waiting, so it does not keep a finished
// run from being removed. It counts again as soon as another request adds jobs.
func TestEachKindOfRequestHasItsEffect(t *testing.T) {
	known := map[action.Name]bool{}
	for name, c := range requestEffects {
		known[c.q.Do] = true
		same(t, name+" with a dispatcher", c.q.EffectOn(action.Target{IsDispatched: true}), action.IsCarriedOut)
		for _, isFinished := range []bool{false, true} {
			want := c.stopped
			state := jobs.Queued
			if isFinished {
				want, state = c.finished, jobs.Succeeded
			}
			table := &jobs.Table{Jobs: []jobs.Job{{State: state}}}
			table.Counts[state] = 1
			what := fmt.Sprintf("%s, finished %v", name, isFinished)
			r := newRun(t)
			target, err := r.UndispatchedTarget(table)
			must(t, err)
			same(t, what, target, action.Target{IsFinished: isFinished})
			got := c.q.EffectOn(target)
			same(t, what, got, want)
			if why := c.q.WhyRefused(target); got == action.IsRefused && (why == "" || strings.Contains(why, "%!")) {
				t.Errorf("%s: the reason is %q", what, why)
			}
			// It may have been left by a dispatcher that ended at that moment.
			c.q.At = time.Now()
			_, err = r.FileRequest(&c.q)
			must(t, err)
			waiting := 0
			if want == action.IsLeft || want == action.IsCarriedOut {
				waiting = 1
			}
			list, err := r.WaitingRequests(table)
			must(t, err)
			same(t, what+": requests that wait", len(list), waiting)
			_, err = r.FileRequest(&action.Request{Do: action.Requeue, Jobs: jobs.One(1), At: time.Now()})
			must(t, err)
			if c.stopped != action.IsRefused {
				waiting = 1
			}
			list, err = r.WaitingRequests(table)
			must(t, err)
			same(t, what+": with a requeue", len(list), waiting+1)
			target, err = r.UndispatchedTarget(table)
			must(t, err)
			same(t, what+": with a requeue", target.IsFinished, false)
		}
	}
	for do := range action.Table {
		if !known[do] {
			t.Errorf("the action %s is not in the table", do)
		}
	}
}

func same[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}
