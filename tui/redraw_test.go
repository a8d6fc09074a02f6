package tui

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"dcs-tui/jobs"
	"dcs-tui/jobs/live"
	"dcs-tui/jobs/runview"
)

// idleScreen returns a screen that has received everything it requested, with the output of the job
// under the cursor. The test controls its clock.
func idleScreen(t *testing.T) (m *model, under *outputPane, now *time.Time) {
	t.Helper()
	at := noon
	src := sample()
	src.read = (&fakeFile{data: []byte("epoch 1\n")}).read
	m = newModel(Options{Source: src}, func() time.Time { return at })
	m.Update(tea.WindowSizeMsg{Width: 160, Height: 48})
	refresh(t, m)
	at = at.Add(settle) // the cursor has rested
	refresh(t, m)
	under = m.under.(*outputPane)
	if m.View(); !strings.Contains(m.frame, "epoch 1") {
		t.Fatalf("the output was not read:\n%s", plain(m))
	}
	return m, under, &at
}

// silent returns a read result of a job that has printed nothing new.
func silent(p *outputPane) pieceRead {
	return pieceRead{pane: p, serial: p.serial, piece: &runview.Piece{Offset: p.text.end(), Size: p.text.size}}
}

// TestOnlyNewsIsDrawn checks that a message that changes nothing causes no redraw, and that a
// change is drawn immediately (rule 3).
func TestOnlyNewsIsDrawn(t *testing.T) {
	for _, c := range []struct {
		name  string
		drawn bool
		msg   func(m *model, p *outputPane) tea.Msg
	}{
		{"an unchanged snapshot", false, func(m *model, p *outputPane) tea.Msg { return looked{pic: m.pic, at: m.now(), same: true} }},
		{"a snapshot", true, func(m *model, p *outputPane) tea.Msg { return looked{pic: m.pic, at: m.now()} }},
		{"no answer", true, func(m *model, p *outputPane) tea.Msg { return looked{err: errors.New("no"), at: m.now()} }},
		{"a question that had to wait", true, func(m *model, p *outputPane) tea.Msg {
			m.pic.Question = &live.Question{ID: 1, Text: "passphrase"}
			return looked{pic: m.pic, at: m.now(), same: true}
		}},
		{"a second, when all was just drawn", false, func(m *model, p *outputPane) tea.Msg { return second{} }},
		{"time to read", false, func(m *model, p *outputPane) tea.Msg { return readDue{p, p.timer} }},
		{"a job that prints nothing", false, func(m *model, p *outputPane) tea.Msg { return silent(p) }},
		{"a piece of another file", false, func(m *model, p *outputPane) tea.Msg { return pieceRead{pane: p, serial: p.serial - 1} }},
		{"a line", true, func(m *model, p *outputPane) tea.Msg {
			r := silent(p)
			r.piece.Data, r.piece.Size = []byte("epoch 2\n"), p.text.size+8
			return r
		}},
		{"a file that became shorter", true, func(m *model, p *outputPane) tea.Msg {
			r := silent(p)
			r.piece.Size--
			return r
		}},
		{"an attempt that has ended", true, func(m *model, p *outputPane) tea.Msg {
			r := silent(p)
			r.piece.Over = true
			return r
		}},
		{"output that cannot be read", true, func(m *model, p *outputPane) tea.Msg {
			return pieceRead{pane: p, serial: p.serial, err: errors.New("no")}
		}},
		{"output that can be read again", true, func(m *model, p *outputPane) tea.Msg {
			p.err = errors.New("no")
			return silent(p)
		}},
		{"a key", true, func(m *model, p *outputPane) tea.Msg { return keyMsg("j") }},
		{"another size", true, func(m *model, p *outputPane) tea.Msg { return tea.WindowSizeMsg{Width: 80, Height: 24} }},
	} {
		m, under, _ := idleScreen(t)
		before := m.frame
		msg := c.msg(m, under)
		m.frame = "as it was"
		m.Update(msg)
		if drawn := m.frame != "as it was"; drawn != c.drawn {
			t.Errorf("%s: drawn %v, want %v", c.name, drawn, c.drawn)
		}
		if m.frame = ""; !c.drawn {
			if m.draw(); m.frame != before {
				t.Errorf("%s has changed the screen:\n%s", c.name, plain(m))
			}
		}
	}
}

// TestClocksOfAnIdleScreenRun checks that an idle screen is drawn once a second whatever messages
// arrive, that its clocks skip no second, and that the screen reports a dispatcher that goes silent
// (rules 3 and 5).
func TestClocksOfAnIdleScreenRun(t *testing.T) {
	m, under, now := idleScreen(t)
	row := sampleRow(50117)
	draws := 0
	send := func(msg tea.Msg) {
		if m.Update(msg); m.frame == "" {
			draws++
		}
		m.View()
	}
	frame := func() string { return ansi.Strip(m.frame) }
	const span = 60 * time.Second
	start := *now
	for now.Sub(start) < span {
		*now = now.Add(50 * time.Millisecond)
		at := now.Sub(start)
		every := func(d, from time.Duration) bool { return at%d == from }
		if every(1250*time.Millisecond, 0) {
			pic := *m.pic
			pic.At = *now
			send(looked{pic: &pic, at: *now, same: true})
		}
		if every(2*time.Second, 150*time.Millisecond) {
			send(readDue{under, under.timer})
			send(silent(under))
		}
		if every(time.Second, 300*time.Millisecond) {
			send(second{})
			shown := func(ago time.Duration) bool { return strings.Contains(frame(), clock(now.Sub(row.Started)-ago)) }
			if !shown(0) && !shown(minInterval) {
				t.Fatalf("after %v the screen is late:\n%s", at, frame())
			}
		}
	}
	if n := int(span / time.Second); draws < n-1 || draws > n {
		t.Errorf("drawn %d times in %d s", draws, n)
	}
	if !strings.Contains(frame(), "live") || strings.Contains(frame(), "not live") {
		t.Errorf("not live:\n%s", frame())
	}
	for range staleAge/time.Second + 1 { // no more snapshots arrive
		*now = now.Add(time.Second)
		send(second{})
	}
	if !strings.Contains(frame(), "not live, 5s old") && !strings.Contains(frame(), "not live, 6s old") {
		t.Errorf("a silent dispatcher is not seen:\n%s", frame())
	}
}

// TestPicturesMoveTheClocks checks that snapshots that arrive about once a second also advance the
// clocks, so that an idle screen is not drawn twice a second (rule 3).
func TestPicturesMoveTheClocks(t *testing.T) {
	m, _, now := idleScreen(t)
	draws := 0
	send := func(msg tea.Msg) {
		if m.Update(msg); m.frame == "" {
			draws++
		}
		m.View()
	}
	start := *now
	due := start.Add(m.untilSecond())
	for n := range 60 {
		snapshot := start.Add(time.Duration(n)*time.Second + time.Duration(n%5)*20*time.Millisecond)
		for due.Before(snapshot) {
			*now = due
			wait := m.untilSecond() // as the model computes it before the frame
			send(second{})
			due = now.Add(wait)
		}
		*now = snapshot
		send(looked{pic: m.pic, at: *now})
	}
	if draws > 61 {
		t.Errorf("drawn %d times in 60 s", draws)
	}
	*now = due.Add(2 * time.Second) // no more snapshots arrive
	if draws = 0; m.untilSecond() != clockInterval {
		t.Errorf("the next second comes after %v", m.untilSecond())
	}
	if send(second{}); draws != 1 {
		t.Error("the clocks stand")
	}
}

// TestAnUnchangedPictureIsKnown checks that the looker distinguishes an unchanged snapshot from the
// answer to a new request, which may have the same version (rule 3).
func TestAnUnchangedPictureIsKnown(t *testing.T) {
	version := uint64(1)
	src := &slowSource{look: func(_ context.Context, _ runview.Query) (*runview.Snapshot, error) {
		return &runview.Snapshot{Version: version}, nil
	}}
	l := newLooker(t.Context(), src)
	defer l.end()
	l.pause = 0
	var same []bool
	next := func() {
		l.pause = 0
		same = append(same, l.next().(looked).same)
	}
	next()
	next()
	l.want(runview.Query{Focus: jobs.ID(7)})
	next()
	next()
	version++
	next()
	if want := []bool{false, true, false, true, false}; !slices.Equal(same, want) {
		t.Errorf("unchanged: %v, want %v", same, want)
	}
}
