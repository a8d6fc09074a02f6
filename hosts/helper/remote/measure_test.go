//go:build linux

package remote

import (
	"math"
	"os"
	"testing"
	"time"
)

// On a quiet host processes are not listed, and after a quiet time the CPU that all
// processes use counts as ours, so that no slot is given up by mistake.
func TestMeterOnAQuietHost(t *testing.T) {
	at := uptime() - time.Second
	roots := map[int]bool{os.Getpid(): true}
	for _, c := range []struct {
		name  string
		m     meter
		scans int
		ours  func(busy, ours float64) bool
	}{
		{"quiet", meter{at: at, busy: math.MaxUint64, scanned: at}, 0, func(_, ours float64) bool { return ours == 0 }},
		{"busy after quiet", meter{at: at, scanned: at - 1}, 1, func(busy, ours float64) bool { return busy > quiet && ours == busy }},
		{"busy", meter{at: at, scanned: at}, 1, func(busy, ours float64) bool { return busy > quiet && ours < busy }},
	} {
		t.Run(c.name, func(t *testing.T) {
			busy, ours := c.m.measure(roots)
			if known := c.name == "busy"; known != (len(c.m.rates) == 1) || known && c.m.rates[os.Getpid()] != ours {
				t.Errorf("rates %v of trees with %v cores", c.m.rates, ours)
			}
			if !c.ours(busy, ours) || c.m.scans != c.scans {
				t.Errorf("%v cores are busy, %v of them with ours, after %d listings; want %d listings", busy, ours, c.m.scans, c.scans)
			}
		})
	}
}
