package outputs

import (
	"context"
	"time"

	"dcs-tui/jobs"
	"dcs-tui/jobs/results"
)

const (
	maxFetches  = 4                // outputs that are asked of hosts at a time
	fetchWithin = 20 * time.Second // one of them
)

// Fetching makes a Reader.Fetch of end, which reads the last n bytes of the standard
// output of an attempt on its host and returns the length of all of it: it is asked for no
// more than most, for few outputs at a time, and has fetchWithin for each.
func Fetching(most int64, end func(ctx context.Context, id jobs.AttemptID, n int) ([]byte, int64, error)) func(context.Context, *results.Result, int64) ([]byte, int64, error) {
	turns := make(chan struct{}, maxFetches)
	return func(ctx context.Context, r *results.Result, n int64) ([]byte, int64, error) {
		select {
		case turns <- struct{}{}:
		case <-ctx.Done():
			return nil, 0, ctx.Err()
		}
		defer func() { <-turns }()
		ctx, cancel := context.WithTimeout(ctx, fetchWithin)
		defer cancel()
		return end(ctx, r.Attempt, int(min(n, most)))
	}
}
