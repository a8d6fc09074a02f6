// Package screentest tests the screen of the real program in a real terminal, tmux: every key,
// every way to leave, sizes, kinds of terminal, and hostile jobs. It has only tests. They are
// skipped, with a message, where there is no tmux.
//
// Package tui tests how a given snapshot of a run is drawn.
package screentest
