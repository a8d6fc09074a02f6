package sshconf

import (
	"strconv"
	"time"
)

// duration reads seconds, or OpenSSH's 1h30m (sshd_config(5), TIME FORMATS).
func duration(s string) (time.Duration, bool) {
	units := map[byte]time.Duration{'s': time.Second, 'm': time.Minute, 'h': time.Hour, 'd': 24 * time.Hour, 'w': 7 * 24 * time.Hour}
	var total time.Duration
	for len(s) > 0 {
		end := 0
		for end < len(s) && s[end] >= '0' && s[end] <= '9' {
			end++
		}
		n, err := strconv.ParseUint(s[:end], 10, 24)
		if err != nil {
			return 0, false
		}
		unit := time.Second
		if s = s[end:]; s != "" {
			var ok bool
			if unit, ok = units[s[0]|0x20]; !ok {
				return 0, false
			}
			s = s[1:]
		}
		total += time.Duration(n) * unit
		if total > 365*24*time.Hour {
			return 0, false
		}
	}
	return total, true
}
