package run

import "time"

// PackEvery makes dispatchers offer the files of attempts to packs at these intervals. It returns a
// function that undoes this.
func PackEvery(d time.Duration) (undo func()) {
	before := packPause
	packPause = func(time.Duration) time.Duration { return d }
	return func() { packPause = before }
}
