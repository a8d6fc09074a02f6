package dispatch

import (
	"context"
	"errors"
	"testing"
)

// TestJobsPlaceFilesIndependently checks that one attempt of a job at a time moves its files to
// their places, and that no job waits for another one.
func TestJobsPlaceFilesIndependently(t *testing.T) {
	r := newReturns()
	end, err := r.startPlacing(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	endOther, err := r.startPlacing(t.Context(), 257)
	if err != nil {
		t.Fatal(err)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.startPlacing(over, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("a second attempt of the job: %v", err)
	}
	next := make(chan error)
	go func() {
		end, err := r.startPlacing(t.Context(), 1)
		if err == nil {
			end()
		}
		next <- err
	}()
	end()
	end() // has no effect
	if err := <-next; err != nil {
		t.Errorf("a second attempt after the first: %v", err)
	}
	endOther()
	if len(r.placing) > 0 {
		t.Errorf("still moving files: %v", r.placing)
	}
}
