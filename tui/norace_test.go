//go:build !race

package tui

// raceDetector records whether the race detector slows the tests down.
const raceDetector = false
