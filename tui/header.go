package tui

// header are the rows over the view: whether the data is live, how far the run is, the slots,
// the tabs.
func (m *model) header() []string {
	if m.pic == nil {
		return []string{m.clean(m.opt.Notice)}
	}
	return []string{m.clean(m.pic.Run.Name)}
}

// tooSmall is all that a screen below 40x10 shows.
func (m *model) tooSmall() []string { return []string{"too small"} }
