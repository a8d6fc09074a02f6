//go:build !race

package journal

// raceDetector makes the longest tests take fewer steps.
const raceDetector = false
