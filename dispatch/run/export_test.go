package run

import "time"

// PackAfter makes dispatchers pack the files of attempts this long after their outcomes. It returns a
// function that undoes this.
func PackAfter(d time.Duration) (undo func()) {
	before := packDelay
	packDelay = func(time.Duration) time.Duration { return d }
	return func() { packDelay = before }
}
