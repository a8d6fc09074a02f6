package sshlink

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// At most eight dials are in the making at one place; who had to wait starts
// after a jitter; another place is not concerned; who gives up leaves no trace.
func TestLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimits()
		l.jitter = func() time.Duration { return 7 * time.Millisecond }
		var leave []func()
		for range maxDials {
			f, err := l.enter(t.Context(), "gate")
			if err != nil {
				t.Fatal(err)
			}
			leave = append(leave, f)
		}
		begin := time.Now()
		entered := make(chan time.Duration)
		go func() {
			f, err := l.enter(t.Context(), "gate")
			if err != nil {
				t.Error(err)
			}
			entered <- time.Since(begin)
			f()
		}()
		ctx, cancel := context.WithCancel(t.Context())
		gaveUp := make(chan error)
		go func() { _, err := l.enter(ctx, "gate"); gaveUp <- err }()
		synctest.Wait()
		cancel()
		if err := <-gaveUp; !errors.Is(err, context.Canceled) {
			t.Errorf("gave up with %v", err)
		}
		f, err := l.enter(t.Context(), "another gate")
		if err != nil || time.Since(begin) != 0 {
			t.Errorf("another place: %v after %v", err, time.Since(begin))
		}
		f()

		time.Sleep(time.Second)
		leave[0]()
		if d := <-entered; d != time.Second+7*time.Millisecond {
			t.Errorf("entered after %v", d)
		}
		for _, f := range leave[1:] {
			f()
		}
		synctest.Wait()
		if len(l.places) != 0 {
			t.Errorf("%d places are kept", len(l.places))
		}
	})
}

// A dial that gives up during its jitter gives its turn back.
func TestLimitsJitterGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimits()
		l.jitter = func() time.Duration { return time.Hour }
		var leave []func()
		for range maxDials {
			f, _ := l.enter(t.Context(), "gate")
			leave = append(leave, f)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		done := make(chan error)
		go func() { _, err := l.enter(ctx, "gate"); done <- err }()
		synctest.Wait()
		leave[0]()
		if err := <-done; !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		f, err := l.enter(t.Context(), "gate")
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range append(leave[1:], f) {
			f()
		}
		if len(l.places) != 0 {
			t.Errorf("%d places are kept", len(l.places))
		}
	})
}
