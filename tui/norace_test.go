//go:build !race

package tui

// raceDetector reports whether the race detector is enabled.
const raceDetector = false
