//go:build linux

package remote

import (
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"dcs-tui/hosts/helper/wire"
)

// Promise 4: a helper whose link was cut in silence before the dispatcher's first
// message leaves by itself.
func TestHelperWaitsNotForEverForItsFirstMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		defer w.Close()
		start := time.Now()
		_, err := firstMessage(wire.NewReader(r), usual.silence)
		if err == nil || !strings.Contains(err.Error(), "nothing heard for 30s") || time.Since(start) != usual.silence {
			t.Errorf("%v after %v", err, time.Since(start))
		}
	})
}
