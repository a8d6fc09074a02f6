//go:build race

package tui

// raceDetector reports whether the race detector is enabled. The longest test then takes fewer
// steps.
const raceDetector = true
