//go:build linux

package remote

import (
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"dcs-tui/jobs"
)

// uptime is CLOCK_BOOTTIME: it runs on while the machine sleeps, so a lease that
// ran out in a suspended laptop has run out.
func uptime() time.Duration {
	var ts unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts) != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}

func wall() jobs.Stamp { return jobs.StampOf(time.Now()) }

// bootID tells one boot of this machine from the next; "" when it has none.
func bootID() string {
	b, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(b))
}
