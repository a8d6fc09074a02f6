package cli

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestListsDoNotWaitForHungDirectories checks that a list of runs waits for a directory that hangs only
// once and only for a while, looks at it once, and shows what is known of it later; and that it shows
// all others, also more than are looked at at once.
func TestListsDoNotWaitForHungDirectories(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const wait = 3 * time.Second
		var mu sync.Mutex
		numCalls := map[string]int{}
		release := make(chan struct{})
		var keys []string
		for i := range 2 * maxPatient {
			keys = append(keys, fmt.Sprint("r", i))
		}
		keys = append(keys, "hung")
		var p patientCalls[int]
		get := func(minWait, maxWait time.Duration, isHungKnown bool) {
			t.Helper()
			begun := time.Now()
			known := p.get(keys, wait, func(key string) int {
				mu.Lock()
				numCalls[key]++
				n := numCalls[key]
				mu.Unlock()
				if key == "hung" {
					<-release
				}
				return n
			})
			if took := time.Since(begun); took < minWait || took > maxWait {
				t.Errorf("it took %v, want %v to %v", took, minWait, maxWait)
			}
			if _, is := known["hung"]; is != isHungKnown || len(known) < len(keys)-1 {
				t.Errorf("got %d results, that of the hung one: %v; want %v", len(known), is, isHungKnown)
			}
		}
		get(wait, wait, false)
		get(0, 0, false)
		mu.Lock()
		if numCalls["hung"] != 1 || numCalls["r0"] != 2 {
			t.Errorf("calls of the hung one: %d, want 1; of another: %d, want 2", numCalls["hung"], numCalls["r0"])
		}
		mu.Unlock()
		close(release)
		synctest.Wait()
		get(0, 0, true)
	})
}
