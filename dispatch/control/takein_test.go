package control

import (
	"context"
	"errors"
	"testing"

	"dcs-tui/jobs/runview"
)

// Issue 5.4: who has left a request rings, and hears when it is in the journal for good,
// or that this dispatcher will not take it in; nothing is made for a screen because of it.
func TestTakeIn(t *testing.T) {
	opened := 0
	var rung []string
	s := serving(t, newFake(), func(o *Options) {
		open := o.Open
		o.Open = func() (runview.Source, func(), error) {
			opened++
			return open()
		}
		o.TakeIn = func(_ context.Context, name string) error {
			if name == "late" {
				return ErrLeaving
			}
			rung = append(rung, name)
			return nil
		}
	})
	c := dial(t, s)
	if err := c.TakeIn(t.Context(), "a"); err != nil || len(rung) != 1 || rung[0] != "a" {
		t.Error(rung, err)
	}
	if err := c.TakeIn(t.Context(), "late"); !errors.Is(err, ErrLeaving) {
		t.Error(err)
	}
	if opened != 0 {
		t.Error("a source was made for nobody who looks")
	}
	if _, err := c.Look(t.Context(), runview.Ask{}); err != nil || opened != 1 {
		t.Error(opened, err)
	}
	var refused *runview.Refused
	if err := dial(t, serving(t, newFake())).TakeIn(t.Context(), "a"); !errors.As(err, &refused) {
		t.Error(err)
	}
}
