// Package arch holds the tests of the design itself: which package may import
// which, that the dispatcher and the screen never reach ssh, that every
// package says what it is for. It has no code to use.
package arch
