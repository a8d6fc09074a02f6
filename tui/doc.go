// Package tui is the screen: it draws a view.Source and turns keys into its actions.
// It decides nothing about jobs and hosts, opens no connection and no file
// of a run: what it shows comes from the source's pictures, what it does is a
// view.Action. Only outside.go starts programs: a pager, and a shell on a host, which
// have the terminal in the meantime. The package alone imports Bubble Tea and Lip Gloss.
//
// One goroutine, Bubble Tea's, owns the model. One command at a time looks at the
// source (look.go); others carry out actions and reads and come back as messages.
// A pane (pane.go) is a part of the screen with its own keys; the key table
// (keys.go) is what the keys, the footer and the help are made from.
package tui
