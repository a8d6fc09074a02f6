//go:build race

package tui

// raceDetector makes the longest test take fewer steps.
const raceDetector = true
