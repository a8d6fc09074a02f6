// Package ttyguard gives a terminal back when the program that had it could not:
// killed outright, crashed in a goroutine that nobody watches, or ended without a
// word. Start begins a child of the same program that holds the terminal and one end
// of a pipe, and does nothing until that pipe closes.
//
// It is no handler of signals and no screen: what a living program can restore it
// restores itself, and then says so.
package ttyguard
