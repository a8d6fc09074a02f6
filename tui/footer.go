package tui

// footer are the rows under the view: a message, and the hints of the keys that work.
func (m *model) footer() []string {
	if m.modal != nil {
		return m.modal.draw(m, m.w, max(1, m.h/2))
	}
	return []string{m.clean(m.message.text)}
}
