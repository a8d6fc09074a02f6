// Package screentest tries the real program's screen in a real terminal, tmux: every
// key of the screen, every way to leave it, sizes, kinds of terminal, hostile jobs. It
// has only tests, which are left out, loudly, where there is no tmux.
//
// What a screen looks like for a given picture of a run is tested in package tui.
package screentest
