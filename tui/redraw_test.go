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

	"dcs-tui/internal/text"
	"dcs-tui/jobs"
	"dcs-tui/jobs/live"
	"dcs-tui/observe/runview"
)

// idleScreen is a screen that has received everything it requested, with the output of the job
// under the cursor. The test controls its clock.
type idleScreen struct {
	*model
	under *outputPane
	now   time.Time
	draws int // number of times that send has drawn
}

func newIdleScreen(t *testing.T) *idleScreen {
	t.Helper()
	src := sample()
	src.read = (&fakeFile{data: []byte("epoch 1\n")}).read
	s := &idleScreen{model: newScreen(t, src, 160, 48), now: noon.Add(outputDelay)} // the cursor has rested
	s.model.now = func() time.Time { return s.now }
	refresh(t, s.model)
	s.under = s.model.cursorOutput.(*outputPane)
	if s.View(); !strings.Contains(s.frame, "epoch 1") {
		t.Fatalf("the output was not read:\n%s", plainScreen(s.model))
	}
	return s
}

// update passes a message to the screen and draws it if it has changed.
func (s *idleScreen) update(msg tea.Msg) {
	if s.Update(msg); s.frame == "" {
		s.draws++
	}
	s.View()
}

// silentRead returns a read result of a job that has printed nothing new.
func silentRead(p *outputPane) pieceRead {
	return pieceRead{pane: p, serial: p.readSerial, piece: &runview.Piece{Offset: p.excerpt.endOffset(),
		Size: p.excerpt.size}}
}

// TestOnlyNewsIsDrawn checks that a message that changes nothing causes no redraw, and that a
// change is drawn immediately (rule 3).
func TestOnlyNewsIsDrawn(t *testing.T) {
	for _, c := range []struct {
		name  string
		drawn bool
		msg   func(m *model, p *outputPane) tea.Msg
	}{
		{"an unchanged snapshot", false,
			func(m *model, p *outputPane) tea.Msg { return snapshotMsg{snap: m.snap, unchanged: true} }},
		{"a snapshot", true, func(m *model, p *outputPane) tea.Msg { return snapshotMsg{snap: m.snap} }},
		{"no answer", true, func(m *model, p *outputPane) tea.Msg {
			return snapshotMsg{err: errors.New("no")}
		}},
		{"a question that had to wait", true, func(m *model, p *outputPane) tea.Msg {
			m.snap.Question = &live.Question{ID: 1, Text: "passphrase"}
			return snapshotMsg{snap: m.snap, unchanged: true}
		}},
		{"a second, when all was just drawn", false, func(m *model, p *outputPane) tea.Msg { return clockTick{} }},
		{"time to read", false, func(m *model, p *outputPane) tea.Msg { return readDue{p, p.timerAt} }},
		{"a job that prints nothing", false, func(m *model, p *outputPane) tea.Msg { return silentRead(p) }},
		{"a piece of another file", false,
			func(m *model, p *outputPane) tea.Msg { return pieceRead{pane: p, serial: p.readSerial - 1} }},
		{"a line", true, func(m *model, p *outputPane) tea.Msg {
			r := silentRead(p)
			r.piece.Data, r.piece.Size = []byte("epoch 2\n"), p.excerpt.size+8
			return r
		}},
		{"a file that became shorter", true, func(m *model, p *outputPane) tea.Msg {
			r := silentRead(p)
			r.piece.Size--
			return r
		}},
		{"an attempt that has ended", true, func(m *model, p *outputPane) tea.Msg {
			r := silentRead(p)
			r.piece.Over = true
			return r
		}},
		{"output that cannot be read", true, func(m *model, p *outputPane) tea.Msg {
			return pieceRead{pane: p, serial: p.readSerial, err: errors.New("no")}
		}},
		{"output that can be read again", true, func(m *model, p *outputPane) tea.Msg {
			p.err = errors.New("no")
			return silentRead(p)
		}},
		{"a key", true, func(m *model, p *outputPane) tea.Msg { return keyMessage("j") }},
		{"another size", true, func(m *model, p *outputPane) tea.Msg {
			return tea.WindowSizeMsg{Width: 80, Height: 24}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			idle := newIdleScreen(t)
			m, before := idle.model, idle.frame
			msg := c.msg(m, idle.under)
			m.frame = "as it was"
			m.Update(msg)
			equal(t, m.frame != "as it was", c.drawn, "%s: drawn", c.name)
			if m.frame = ""; !c.drawn {
				if m.draw(); m.frame != before {
					t.Errorf("%s has changed the screen:\n%s", c.name, plainScreen(m))
				}
			}
		})
	}
}

// TestClocksOfAnIdleScreenRun checks that an idle screen is drawn once a second whatever messages
// arrive, that its clocks skip no second, and that the screen reports a dispatcher that goes silent
// (rules 3 and 5).
func TestClocksOfAnIdleScreenRun(t *testing.T) {
	s := newIdleScreen(t)
	row := sampleRow(50117)
	frame := func() string { return ansi.Strip(s.frame) }
	const span = 60 * time.Second
	start := s.now
	for s.now.Sub(start) < span {
		s.now = s.now.Add(50 * time.Millisecond)
		at := s.now.Sub(start)
		every := func(d, from time.Duration) bool { return at%d == from }
		if every(1250*time.Millisecond, 0) {
			snap := *s.snap
			snap.MadeAt, snap.At = s.now, s.now
			s.update(snapshotMsg{snap: &snap, unchanged: true})
		}
		if every(2*time.Second, 150*time.Millisecond) {
			s.update(readDue{s.under, s.under.timerAt})
			s.update(silentRead(s.under))
		}
		if every(time.Second, 300*time.Millisecond) {
			s.update(clockTick{})
			shown := func(ago time.Duration) bool {
				return strings.Contains(frame(), text.Clock(s.now.Sub(row.Started)-ago))
			}
			if !shown(0) && !shown(minInterval) {
				t.Fatalf("after %v the screen is late:\n%s", at, frame())
			}
		}
	}
	if n := int(span / time.Second); s.draws < n-1 || s.draws > n {
		t.Errorf("drawn %d times in %d s", s.draws, n)
	}
	if !strings.Contains(frame(), "live") || strings.Contains(frame(), "not live") {
		t.Errorf("not live:\n%s", frame())
	}
	for range staleAge/time.Second + 1 { // no more snapshots arrive
		s.now = s.now.Add(time.Second)
		s.update(clockTick{})
	}
	if !strings.Contains(frame(), "not live, 5 s old") && !strings.Contains(frame(), "not live, 6 s old") {
		t.Errorf("a silent dispatcher is not seen:\n%s", frame())
	}
}

// TestSnapshotsMoveTheClocks checks that snapshots that arrive about once a second also advance the
// clocks, so that an idle screen is not drawn twice a second (rule 3).
func TestSnapshotsMoveTheClocks(t *testing.T) {
	s := newIdleScreen(t)
	start := s.now
	due := start.Add(s.untilTick())
	for n := range 60 {
		snapshot := start.Add(time.Duration(n)*time.Second + time.Duration(n%5)*20*time.Millisecond)
		for due.Before(snapshot) {
			s.now = due
			wait := s.untilTick() // as the model computes it before the frame
			s.update(clockTick{})
			due = s.now.Add(wait)
		}
		s.now = snapshot
		s.update(snapshotMsg{snap: s.snap})
	}
	if s.draws > 61 {
		t.Errorf("drawn %d times in 60 s", s.draws)
	}
	s.now = due.Add(2 * time.Second) // no more snapshots arrive
	s.draws = 0
	equal(t, s.untilTick(), clockInterval, "the time until the next second")
	s.update(clockTick{})
	equal(t, s.draws, 1, "draws after a second without snapshots")
}

// TestAnUnchangedSnapshotIsKnown checks that the snapshotter distinguishes an unchanged snapshot
// from the answer to a new request, which may have the same version (rule 3).
func TestAnUnchangedSnapshotIsKnown(t *testing.T) {
	version := uint64(1)
	src := &fakeSource{respond: func(_ context.Context, _ runview.Query) (*runview.Snapshot, error) {
		return &runview.Snapshot{Version: version}, nil
	}}
	l := newSnapshotter(t.Context(), src)
	l.nextDelay = 0
	var same []bool
	next := func() {
		l.nextDelay = 0
		same = append(same, l.next().(snapshotMsg).unchanged)
	}
	next()
	next()
	l.setQuery(runview.Query{Focus: jobs.ID(7)})
	next()
	next()
	version++
	next()
	if want := []bool{false, true, false, true, false}; !slices.Equal(same, want) {
		t.Errorf("unchanged: %v, want %v", same, want)
	}
}
