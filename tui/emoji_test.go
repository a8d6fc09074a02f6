package tui

import (
	"strings"
	"testing"

	"dcs-tui/jobs/runview"
)

// The parts of a joined emoji are shown beside each other. All terminals agree on the
// width of the parts, so every row has the width of the screen.
func TestJoinedEmoji(t *testing.T) {
	src := &fakeSource{picture: func(ask runview.Ask) (*runview.Picture, error) {
		p := samplePicture(ask)
		if p.Jobs != nil {
			for i := range p.Jobs.Rows {
				p.Jobs.Rows[i].Title = "👩🏽‍🚀 lands 🏳️‍🌈 ❤️‍🔥 1️⃣ ok"
			}
		}
		return p, nil
	}}
	for _, s := range sizes {
		m := newScreen(t, src, s[0], s[1])
		checkSize(t, m, "emoji")
		if text := plain(m); strings.ContainsAny(text, "\u200d\ufe0f�") {
			t.Errorf("at %v:\n%s", s, text)
		}
	}
	m := newScreen(t, src, 160, 48)
	shows(t, m, "👩🚀 lands 🏳🌈 ❤🔥 1\u20e3 ok")
}
