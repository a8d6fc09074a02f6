package sched

import (
	"math"
	"time"
)

// permanentPause is how long a host rests that only a person can mend.
const permanentPause = time.Minute

// shortPause bounds the pause while a host has been away for less than
// shortAway: 8 s and the time of a dial are less than the 10 s within which a
// host must be in use again after less than a minute away.
const (
	shortAway  = time.Minute
	shortPause = 8 * time.Second
)

// pause returns how long to wait after n failures in a row, n >= 1, of a host
// that has been away so long: random(0.5, 1) x min(2^n s, cap) (B1, as BOINC's).
func (c *Core) pause(n int, away time.Duration) time.Duration {
	limit := c.cfg.BackoffCap
	if away < shortAway {
		limit = min(limit, shortPause)
	}
	return c.jitter(min(doubling(n), limit))
}

// doubling returns 2^n s, without overflow.
func doubling(n int) time.Duration {
	if n < 0 {
		return time.Second
	}
	return time.Second << min(n, 30)
}

// jitter returns random(0.5, 1) x d.
func (c *Core) jitter(d time.Duration) time.Duration {
	return time.Duration(float64(d) * (0.5 + c.rng.Float64()/2))
}

// never is a timer that is not set.
const never = time.Duration(math.MaxInt64)
