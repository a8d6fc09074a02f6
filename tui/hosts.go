package tui

import "dcs-tui/dispatch/view"

// hostsPane is the list of hosts.
type hostsPane struct{}

func newHostsPane() *hostsPane { return &hostsPane{} }

func (p *hostsPane) title(m *model) string                          { return "Hosts" }
func (p *hostsPane) draw(m *model, w, h int, focused bool) []string { return nil }
func (p *hostsPane) ask(m *model, ask *view.Ask)                    {}
func (p *hostsPane) keys() []binding                                { return nil }
