package journal

import (
	"context"
	"fmt"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"dcs-tui/jobs/rundir"
)

// A file owner that is not whole and changes is somebody's sign of life: the wait
// begins anew, and an owner that goes on writing is not taken for dead.
func TestTakeFromTheTornButWriting(t *testing.T) {
	for writes, want := range map[int]time.Duration{1: 5*time.Second + StaleAfter, 9: 15 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			r, old := foreign(t)
			crash(t, old)
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			go func() {
				time.Sleep(watchEvery / 2) // virtual; no write while somebody looks
				for i := range writes {
					select {
					case <-ctx.Done():
						return
					case <-time.After(5 * time.Second):
					}
					if err := os.WriteFile(r.Path(rundir.OwnerFile), fmt.Appendf(nil, "torn %d", i), 0o600); err != nil {
						t.Error(err)
					}
				}
			}()
			began := time.Now()
			j, _, _, err := Take(t.Context(), r, TakeOptions{})
			if waited := time.Since(began); waited < want || waited > want+2*watchEvery || (err == nil) != (writes == 1) {
				t.Errorf("%d writes: %v after %s, want %s", writes, err, waited, want)
			}
			if err == nil {
				crash(t, j)
			}
			stop()
			synctest.Wait()
		})
	}
}
