// Package console is the terminal of a run without a screen: whole lines for people on
// standard error, the progress below them, and how a job, a notice and words of the
// user's look in such a line.
//
// It reads nothing and decides nothing: who has something to say gives it the text. The
// screen is tui.
package console
