package tui

import (
	"dcs-tui/jobs/runview"
)

// pane is a part of the screen. All methods are called by the goroutine that owns
// the model.
type pane interface {
	// title is the line over the pane: what it shows, and how.
	title(m *model) string
	// draw returns the pane's content: at most h lines of at most w cells. Texts from
	// outside have passed clean or fit.
	draw(m *model, w, h int, focused bool) []string
	// ask adds what the pane wants to see, for the size it was last drawn in.
	ask(m *model, ask *runview.Ask)
	// keys are the pane's own; they come before those of all panes.
	keys() []binding
}

// tab is one of the five views.
type tab int

const (
	tabJobs tab = iota
	tabHosts
	tabFailed
	tabResults
	tabEvents
	tabs
)

var tabNames = [tabs]string{"Jobs", "Hosts", "Failed", "Results", "Events"}
