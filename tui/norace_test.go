//go:build !race

package tui

// raceDetector says whether the race detector slows the tests down.
const raceDetector = false
