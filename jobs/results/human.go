package results

import (
	"fmt"
	"time"
)

// HumanDuration writes a duration in at most two units: "3 ms", "1.25 s",
// "42.0 s", "2m 05s", "3h 07m", "2d 04h".
func HumanDuration(d time.Duration) string {
	if d < 0 {
		return "-" + HumanDuration(-max(d, -1<<62))
	}
	s := int64(d.Round(time.Second) / time.Second)
	switch {
	case d < 999500*time.Microsecond:
		return fmt.Sprintf("%d ms", d.Round(time.Millisecond)/time.Millisecond)
	case d < 9995*time.Millisecond:
		return fmt.Sprintf("%.2f s", d.Seconds())
	case d < 59950*time.Millisecond:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case s < 3600:
		return fmt.Sprintf("%dm %02ds", s/60, s%60)
	case s < 86400:
		return fmt.Sprintf("%dh %02dm", s/3600, s/60%60)
	}
	return fmt.Sprintf("%dd %02dh", s/86400, s/3600%24)
}

// HumanBytes writes a size with a power of 1024 and about three digits: "512 B",
// "1.5 KiB", "38 MiB", "12 GiB".
func HumanBytes(n int64) string {
	if n < 1024 {
		return fmt.Sprintf("%d B", n)
	}
	v, unit := float64(n), 0
	for ; v >= 1023.5 && unit < 6; unit++ {
		v /= 1024
	}
	if v < 9.95 {
		return fmt.Sprintf("%.1f %ciB", v, " KMGTPE"[unit])
	}
	return fmt.Sprintf("%.0f %ciB", v, " KMGTPE"[unit])
}
