//go:build race

package journal

// raceDetector reports whether the race detector is on. The longest tests then take fewer steps.
const raceDetector = true
