package text

import (
	"fmt"
	"math"
	"strconv"
	"time"
)

// Duration formats a measured duration with about three digits: "3 ms", "1.25 s", "42.0 s", "2m 05s",
// "3h 07m", "2d 04h".
func Duration(d time.Duration) string {
	if d < 0 {
		return "-" + Duration(-max(d, -1<<62))
	}
	s := int64(d.Round(time.Second) / time.Second)
	switch {
	case d > 0 && d < 500*time.Microsecond:
		return "<1 ms"
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

// Span formats an estimate, an age, or a limit without more digits than it deserves, so that the text
// seldom changes while time passes: "15 s", "2 min", "3h 10m", "5 d".
func Span(d time.Duration) string {
	d = max(0, d)
	minutes := int64(d.Round(time.Minute) / time.Minute)
	switch {
	case d < 2*time.Minute:
		return fmt.Sprintf("%d s", d.Round(time.Second)/time.Second)
	case d < 2*time.Hour:
		return fmt.Sprintf("%d min", minutes)
	case d >= 100*time.Hour:
		return fmt.Sprintf("%d d", d.Round(24*time.Hour)/(24*time.Hour))
	case minutes%60 == 0:
		return fmt.Sprintf("%d h", minutes/60)
	}
	return fmt.Sprintf("%dh %02dm", minutes/60, minutes%60)
}

// Clock formats a duration that is counted on a screen, in at most nine cells below 1000 days: 0:42,
// 1:12:04, 3d 04:10.
func Clock(d time.Duration) string {
	s := int64(max(0, d) / time.Second)
	switch h := s / 3600; {
	case h == 0:
		return fmt.Sprintf("%d:%02d", s/60, s%60)
	case h < 100:
		return fmt.Sprintf("%d:%02d:%02d", h, s/60%60, s%60)
	default:
		return fmt.Sprintf("%dd %02d:%02d", h/24, h%24, s/60%60)
	}
}

// Size formats a number of bytes in powers of 1024 with at most three digits: "512 B", "1.5 KiB",
// "31.3 GiB".
func Size(n int64) string {
	v, unit := scale(n)
	if unit == 0 {
		return fmt.Sprintf("%d B", n)
	}
	if v < 99.95 {
		return fmt.Sprintf("%.3g %ciB", v, units[unit])
	}
	return fmt.Sprintf("%.0f %ciB", v, units[unit])
}

// ShortSize formats a number of bytes in powers of 1024 in at most five cells: 512, 40K, 1.5G, 64G.
func ShortSize(n int64) string {
	v, unit := scale(max(0, n))
	switch {
	case unit == 0:
		return strconv.FormatInt(max(0, n), 10)
	case v < 9.95:
		return fmt.Sprintf("%.2g%c", v, units[unit])
	}
	return fmt.Sprintf("%.0f%c", v, units[unit])
}

const units = " KMGTPE"

// scale divides a number of bytes by a power of 1024, so that at most 1023 is left of it when it is
// rounded, and returns the power.
func scale(n int64) (v float64, unit int) {
	for v = float64(n); v >= 1023.5 && unit < len(units)-1; unit++ {
		v /= 1024
	}
	return v, unit
}

// ShortNumber formats a number in at most five cells: 9,999, 99999, 123k, 12M.
func ShortNumber(n int) string {
	switch {
	case n < 10_000:
		return Thousands(n)
	case n < 100_000:
		return strconv.Itoa(n)
	case n < 10_000_000:
		return strconv.Itoa(n/1000) + "k"
	case n < 10_000_000_000:
		return strconv.Itoa(n/1_000_000) + "M"
	}
	return strconv.Itoa(min(n/1_000_000_000, 9999)) + "G"
}

// Rate formats a rate in a suitable unit: 12/s, 41/min, 3.5/h.
func Rate(perSecond float64) string {
	number := func(v float64) string {
		if v < 9.95 {
			return strconv.FormatFloat(math.Round(v*10)/10, 'f', -1, 64)
		}
		return Thousands(int(v + 0.5))
	}
	switch {
	case perSecond <= 0 || math.IsNaN(perSecond) || math.IsInf(perSecond, 0):
		return "0/min"
	case perSecond >= 5:
		return number(perSecond) + "/s"
	case perSecond*60 >= 1:
		return number(perSecond*60) + "/min"
	}
	return number(perSecond*3600) + "/h"
}
