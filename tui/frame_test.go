package tui

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"dcs-tui/jobs/live"
	"dcs-tui/jobs/runview"
)

// sizes are those at which the screen changes, and both ends.
var sizes = [][2]int{{40, 10}, {59, 14}, {60, 15}, {80, 24}, {119, 35}, {120, 36}, {160, 48}, {300, 100}}

// blankPane stands for a pane that tests of its own look at.
type blankPane struct{ name string }

func (p *blankPane) title(*model) string { return p.name }
func (p *blankPane) draw(m *model, w, h int, focused bool) []string {
	return []string{fmt.Sprintf("(%s, %d x %d)", p.name, w, h)}
}
func (p *blankPane) ask(*model, *runview.Ask) {}
func (p *blankPane) keys() []binding          { return nil }

// change is a source like sample, whose pictures are changed by f.
func change(f func(*runview.Picture)) *fakeSource {
	return &fakeSource{picture: func(ask runview.Ask) (*runview.Picture, error) {
		p := samplePicture(ask)
		f(p)
		return p, nil
	}}
}

// newFrame is a screen whose lists of jobs and output are left blank.
func newFrame(t *testing.T, src *fakeSource, w, h int) *model {
	t.Helper()
	m := newScreen(t, src, w, h)
	m.panes[tabJobs], m.panes[tabResults] = &blankPane{"Jobs"}, &blankPane{"Results"}
	refresh(t, m)
	return m
}

// TUI.md: each view at each size. Hosts, failures and events as they are, in UTF-8.
func TestViewsAtEachSize(t *testing.T) {
	for _, s := range sizes {
		for _, v := range []tab{tabJobs, tabHosts, tabFailed, tabEvents} {
			m := newFrame(t, sample(), s[0], s[1])
			m.tab, m.side = v, v
			refresh(t, m)
			golden(t, m, fmt.Sprintf("frame-%s-%dx%d", strings.ToLower(tabNames[v]), s[0], s[1]))
		}
	}
}

// The states in which a run may be: rule 5, and what stands in the way, in words.
var states = map[string]func(*runview.Picture){
	"dead": func(p *runview.Picture) { p.Status, p.Over = runview.StatusCrashed, "its dispatcher on desk has died" },
	"ended": func(p *runview.Picture) {
		p.Status, p.Over, p.Total = runview.StatusFinished, "All jobs are over; 17 have failed.", 12_221
		p.Phases[runview.Queued], p.Phases[runview.Running], p.Phases[runview.Retry] = 0, 0, 0
		p.Run.Created = noon.Add(-3 * time.Hour)
	},
	"stopped":  func(p *runview.Picture) { p.Status, p.Over = runview.StatusFinished, "It was stopped." },
	"paused":   func(p *runview.Picture) { p.Paused = true },
	"draining": func(p *runview.Picture) { p.Draining = "asked for by ada" },
	"problem":  func(p *runview.Picture) { p.Problem = "the journal cannot be written: no space left on device" },
	"question": func(p *runview.Picture) {
		p.Question = &live.Question{ID: 3, Text: "Passphrase of ~/.ssh/id_ed25519:", Secret: true}
	},
	"nohost": func(p *runview.Picture) {
		for i := range p.Hosts {
			h := &p.Hosts[i]
			h.State, h.Reason, h.Running, h.RetryIn, h.Down = "backing_off", "connection refused", 0, 12*time.Second, time.Minute
		}
	},
	"connecting": func(p *runview.Picture) {
		for i := range p.Hosts {
			if p.Hosts[i].State = "up"; i > 2 {
				p.Hosts[i] = live.Host{Name: p.Hosts[i].Name, State: "connecting", Slots: 12, DiskFree: -1}
			}
		}
	},
	"onehost": func(p *runview.Picture) {
		p.Run.Lab, p.Hosts = "this machine", p.Hosts[:1]
		p.Hosts[0].Name, p.Hosts[0].Delay, p.SlotsBusy, p.Slots = "localhost", 0, 11, 12
	},
	"hosts200": func(p *runview.Picture) {
		for i := len(p.Hosts); i < 200; i++ {
			h := p.Hosts[0]
			h.Name = fmt.Sprintf("ws%03d", i+1)
			p.Hosts = append(p.Hosts, h)
		}
	},
	"huge": func(p *runview.Picture) {
		p.Total, p.Phases[runview.Queued], p.Phases[runview.Succeeded], p.Phases[runview.Failed] = 987_654_321, 900_000_000, 87_000_000, 654_195
		p.Rate, p.ETA, p.Spread, p.SlotsBusy, p.Slots = 12_345, 400*24*time.Hour, 100*24*time.Hour, 123_456, 234_567
		h := &p.Hosts[0]
		h.Done, h.Failed, h.Slots, h.Running, h.Buffered, h.Load, h.Busy = 123_456_789, 98_765, 4096, 4095, 9999, [3]float64{99999.5}, 4096
		h.MemBytes, h.MemFree, h.DiskFree, h.Delay, h.FSDelay = 24<<40, 1<<40, 1<<60, 90*time.Second, time.Hour
	},
	"hostile": func(p *runview.Picture) {
		evil := "\x1b]52;c;cHduZWQ=\x07\x1b[2J\r\nd\u202eesrever\xff 世界世界世界 \x1b]0;title\x07"
		p.Run.Name, p.Run.Lab, p.Problem = evil, evil, evil
		for i := range p.Hosts {
			h := &p.Hosts[i]
			h.Name, h.Reason, h.Note = evil+h.Name, evil+evil+evil, evil
		}
		for i := range p.Groups {
			p.Groups[i].Cause, p.Groups[i].Last, p.Groups[i].Hosts = evil, evil, []string{evil, evil}
		}
		if p.Events != nil {
			for i := range p.Events.Lines {
				p.Events.Lines[i].Text, p.Events.Lines[i].Host = evil, evil
			}
		}
	},
	"empty":   func(p *runview.Picture) { *p = runview.Picture{Version: 7, At: noon, More: true} },
	"notlive": func(*runview.Picture) {},
}

// Each state at three sizes on the hosts view, which has all parts of the frame.
func TestStatesOfARun(t *testing.T) {
	for name, f := range states {
		for _, s := range [][2]int{{40, 10}, {80, 24}, {160, 48}} {
			m := newFrame(t, change(f), s[0], s[1])
			m.tab, m.side = tabHosts, tabHosts
			refresh(t, m)
			if name == "notlive" {
				m.gotAt = noon.Add(-12 * time.Second)
				m.lookErr = errors.New("dial unix: connection refused")
			}
			golden(t, m, fmt.Sprintf("state-%s-%dx%d", name, s[0], s[1]))
		}
	}
}

// sgr is all that may be sent to a terminal beside text: colours.
var sgr = regexp.MustCompile("\x1b\\[[0-9;]*m")

// No state may break the layout at any size, in any view (rule 10 among them).
func TestNoStateBreaksTheLayout(t *testing.T) {
	for name, f := range states {
		for _, ascii := range []bool{false, true} {
			m := newFrame(t, change(f), 80, 24)
			if ascii {
				m.opt.ASCII, m.g = true, &asciiGlyphs
			}
			m.see(looked{pic: samplePicture(runview.Ask{Groups: true, Events: &runview.EventsWindow{Rows: 9}}), at: noon})
			f(m.pic)
			all := append(sizes[:len(sizes):len(sizes)], [2]int{39, 9}, [2]int{1, 1}, [2]int{80, 15}, [2]int{80, 60}, [2]int{119, 12}, [2]int{300, 10})
			if ascii {
				all = sizes[:5]
			}
			for _, s := range all {
				m.w, m.h = s[0], s[1]
				for v := range tabs {
					m.tab, m.side = v, v
					checkSize(t, m, fmt.Sprintf("%s, %s at %dx%d", name, tabNames[v], s[0], s[1]))
					if i := strings.IndexFunc(sgr.ReplaceAllString(m.frame, ""), func(r rune) bool { return r < ' ' && r != '\n' || r >= 0x7f && r < 0xa0 }); i >= 0 {
						t.Errorf("%s, %s at %dx%d: a control character reaches the terminal", name, tabNames[v], s[0], s[1])
					}
					for _, r := range m.frame {
						if ascii && r > '~' {
							t.Errorf("%s: %q is not ASCII", name, r)
							break
						}
					}
				}
			}
		}
	}
}

// Rule 8: the same screen without UTF-8.
func TestASCII(t *testing.T) {
	for _, v := range []tab{tabHosts, tabFailed, tabEvents} {
		m := newFrame(t, sample(), 120, 36)
		m.opt.ASCII, m.g = true, &asciiGlyphs
		m.tab, m.side = v, v
		refresh(t, m)
		golden(t, m, "frame-ascii-"+strings.ToLower(tabNames[v]))
	}
}

// Rule 8: no state is told by colour alone: without styles a host's states differ.
func TestStatesOfHostsDifferWithoutColour(t *testing.T) {
	for _, g := range []*glyphs{&utf8Glyphs, &asciiGlyphs} {
		m := newFrame(t, sample(), 80, 24)
		m.g = g
		seen := map[string]string{}
		for _, s := range []string{hostUp, hostSuspect, hostLost, hostConnecting, hostBackingOff, hostDraining, hostDisabled} {
			h := &live.Host{State: s}
			if other, ok := seen[m.hostGlyph(h)]; ok {
				t.Errorf("%s and %s have the same glyph", s, other)
			}
			seen[m.hostGlyph(h)] = s
			if hostWord(h) == "" || len(hostWord(h)) > 10 {
				t.Errorf("%s has the word %q", s, hostWord(h))
			}
		}
	}
}

// Long waits are told instead of an empty screen.
func TestWaitingIsTold(t *testing.T) {
	m := newModel(Options{Source: sample()}, func() time.Time { return noon })
	for _, s := range sizes {
		m.w, m.h = s[0], s[1]
		checkSize(t, m, "before the first picture")
		if text := plain(m); !strings.Contains(text, "reading the run") {
			t.Errorf("%v: nothing says what is waited for:\n%s", s, text)
		}
	}
	m.Update(looked{err: errors.New("no such run"), at: noon})
	m.w, m.h = 80, 24
	if text := plain(m); !strings.Contains(text, "no answer") || !strings.Contains(text, "no such run") {
		t.Errorf("an error is not told:\n%s", text)
	}
}
