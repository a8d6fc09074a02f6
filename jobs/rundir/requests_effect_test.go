package rundir_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"dcs-tui/jobs"
	"dcs-tui/jobs/rundir"
)

// requestEffects are the effects that docs/requests.md promises for each kind of request, in a
// run that nobody dispatches: with jobs left, and after all jobs have ended.
var requestEffects = map[string]struct {
	q                 rundir.Request
	stopped, finished rundir.Effect
}{
	"cancel":  {rundir.Request{Do: rundir.DoCancel, All: true}, rundir.IsCarriedOut, rundir.IsFulfilled},
	"requeue": {rundir.Request{Do: rundir.DoRequeue, Jobs: jobs.One(1)}, rundir.IsLeft, rundir.IsLeft},
	"edit": {rundir.Request{Do: rundir.DoEdit, Jobs: jobs.One(1), Edit: &jobs.Change{Tries: new(2)}},
		rundir.IsLeft, rundir.IsLeft},
	"submit": {rundir.Request{Do: rundir.DoSubmit, Specs: `{"id":1,"command":"true"}` + "\n"}, rundir.IsLeft,
		rundir.IsLeft},
	"priority": {rundir.Request{Do: rundir.DoPriority, Jobs: jobs.One(1), Priority: 3}, rundir.IsLeft,
		rundir.IsRefused},
	"more priority": {rundir.Request{Do: rundir.DoPriority, Jobs: jobs.One(1), Priority: 3, Relative: true},
		rundir.IsLeft, rundir.IsRefused},
	"pause":      {rundir.Request{Do: rundir.DoPause}, rundir.IsLeft, rundir.IsRefused},
	"continue":   {rundir.Request{Do: rundir.DoContinue}, rundir.IsLeft, rundir.IsRefused},
	"drain-host": {rundir.Request{Do: rundir.DoDrainHost, Host: "a"}, rundir.IsLeft, rundir.IsRefused},
	"stop-host":  {rundir.Request{Do: rundir.DoStopHost, Host: "a"}, rundir.IsLeft, rundir.IsRefused},
	"use-host":   {rundir.Request{Do: rundir.DoUseHost, Host: "a"}, rundir.IsLeft, rundir.IsRefused},
	"slots":      {rundir.Request{Do: rundir.DoSlots, Host: "a", Number: 2}, rundir.IsLeft, rundir.IsRefused},
	"more slots": {rundir.Request{Do: rundir.DoSlots, Host: "a", Number: -1, Relative: true}, rundir.IsRefused,
		rundir.IsRefused},
	"add-host":     {rundir.Request{Do: rundir.DoAddHost, Host: "b"}, rundir.IsLeft, rundir.IsRefused},
	"remove-host":  {rundir.Request{Do: rundir.DoRemoveHost, Host: "a"}, rundir.IsLeft, rundir.IsRefused},
	"reload-hosts": {rundir.Request{Do: rundir.DoReloadHosts}, rundir.IsRefused, rundir.IsRefused},
	"end-input":    {rundir.Request{Do: rundir.DoEndInput}, rundir.IsLeft, rundir.IsRefused},
	"drain":        {rundir.Request{Do: rundir.DoDrain, Epoch: 1}, rundir.IsRefused, rundir.IsRefused},
	"stop":         {rundir.Request{Do: rundir.DoStop, Epoch: 1}, rundir.IsRefused, rundir.IsRefused},
}

// TestEachKindOfRequestHasItsEffect checks what becomes of every kind of request in every state of a
// run: a dispatcher carries it out; without one, it waits, holds already, or is refused with a
// reason. A request that would be refused does not count as waiting, so it does not keep a finished
// run from being removed. It counts again as soon as another request adds jobs.
func TestEachKindOfRequestHasItsEffect(t *testing.T) {
	known := map[string]bool{}
	for name, c := range requestEffects {
		known[c.q.Do] = true
		same(t, name+" with a dispatcher", c.q.EffectOn(rundir.Target{IsDispatched: true}), rundir.IsCarriedOut)
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
			same(t, what, target, rundir.Target{IsFinished: isFinished})
			got := c.q.EffectOn(target)
			same(t, what, got, want)
			if why := c.q.WhyRefused(target); got == rundir.IsRefused && (why == "" || strings.Contains(why, "%!")) {
				t.Errorf("%s: the reason is %q", what, why)
			}
			// It may have been left by a dispatcher that ended at that moment.
			c.q.At = time.Now()
			_, err = r.FileRequest(&c.q)
			must(t, err)
			waiting := 0
			if want == rundir.IsLeft || want == rundir.IsCarriedOut {
				waiting = 1
			}
			list, err := r.WaitingRequests(table)
			must(t, err)
			same(t, what+": requests that wait", len(list), waiting)
			_, err = r.FileRequest(&rundir.Request{Do: rundir.DoRequeue, Jobs: jobs.One(1), At: time.Now()})
			must(t, err)
			if c.stopped != rundir.IsRefused {
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
	source, err := os.ReadFile("requests_kinds.go")
	must(t, err)
	for line := range strings.Lines(string(source)) {
		if _, value, ok := strings.Cut(line, ` = "`); ok && strings.HasPrefix(strings.TrimSpace(line), "Do") {
			if do, _, _ := strings.Cut(value, `"`); !known[do] {
				t.Errorf("the kind %s is not in the table", do)
			}
		}
	}
}

func same[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}
