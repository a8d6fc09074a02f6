package run

import (
	"testing"
	"time"
)

// SetPackRetryInterval sets how often packs are tried again on a full disk, until the end of the test.
func SetPackRetryInterval(t testing.TB, d time.Duration) {
	was := packRetryInterval
	packRetryInterval = d
	t.Cleanup(func() { packRetryInterval = was })
}
