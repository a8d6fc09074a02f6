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

// X1, E7: an owner that the caller has watched for StaleAfter is not waited for again, even if
// its process exists on this machine; one that has given a sign of life since then is.
func TestTakeFromTheWatched(t *testing.T) {
	for _, where := range []string{"here", "elsewhere"} {
		for _, beats := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				r := newRun(t)
				old, _, _ := take1(t, r, TakeOptions{})
				if where == "elsewhere" {
					old.beats.owner.Boot = "another-boot"
				}
				if err := old.Beat(); err != nil {
					t.Fatal(err)
				}
				watched, err := ReadOwner(r)
				if err != nil {
					t.Fatal(err)
				}
				if beats {
					if err := old.Beat(); err != nil {
						t.Fatal(err)
					}
				}
				began := time.Now()
				j, _, _, err := Take(t.Context(), r, TakeOptions{Silent: watched})
				switch waited := time.Since(began); {
				case !beats && (err != nil || waited > watchEvery):
					t.Errorf("%s, silent: %v after %s, want it taken at once", where, err, waited)
				case beats && err == nil && waited < StaleAfter:
					t.Errorf("%s, with a newer sign of life: taken after %s", where, waited)
				}
				if err == nil {
					crash(t, j)
				}
				crash(t, old)
			})
		}
	}
}
