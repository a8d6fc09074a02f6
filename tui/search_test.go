package tui

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"dcs-tui/jobs"
	"dcs-tui/observe/runview"
)

// search types a search and waits for its result.
func (s *outputScreen) search(text string) {
	s.t.Helper()
	typeLine(s.t, s.model, "/", text)
	s.advance(0)
}

// lineWith returns the visible line that contains a text.
func (s *outputScreen) lineWith(text string) string {
	for _, l := range s.lines() {
		if strings.Contains(strings.ToLower(l), strings.ToLower(text)) {
			return l
		}
	}
	return ""
}

// TestSearchInALiveLog checks the search in a live log: upward from the end, n and N,
// case-insensitive for lowercase patterns, and across the boundaries of pieces.
func TestSearchInALiveLog(t *testing.T) {
	data := numberedLines(200_000)
	data = bytes.Replace(data, []byte("line 150000\n"), []byte("an Error here\n"), 1)
	data = bytes.Replace(data, []byte("line 100\n"), []byte("the first error\n"), 1)
	for _, most := range []int{0, 1000, 70_000} { // a source may return less than was requested
		f := &fakeFile{data: data, over: true, most: most}
		if most == 1000 {
			f.data = append(append([]byte("the first error\n"), numberedLines(3000)...),
				[]byte("an Error here\nx\n")...)
		}
		s := showOutput(t, f, 80, 24)
		s.search("error")
		if got := s.lineWith("error"); got != "an Error here" {
			t.Fatalf("found %q (%s)", got, s.p.title(s.model))
		}
		s.press("n")
		equal(t, s.lineWith("error"), "the first error", "the line after n")
		s.press("n")
		s.checkTitle(`nothing above has "error"`)
		s.press("N")
		equal(t, s.lineWith("error"), "an Error here", "the line after N")
		s.press("G")
		s.search("Error")
		s.press("n")
		s.checkTitle("nothing above")
		s.press("g")
		s.search("error") // at the start of the file it searches downward
		if got := s.lineWith("error"); got == "" {
			t.Errorf("down: %s", s.p.title(s.model))
		}
		if len(s.p.excerpt.data) > keepSize {
			t.Errorf("%d bytes are kept", len(s.p.excerpt.data))
		}
	}
}

// TestSearchAcrossPieces checks that a search finds a text that lies across two pieces, upward and
// downward.
func TestSearchAcrossPieces(t *testing.T) {
	for _, at := range []int{searchPieceSize - 5, searchPieceSize, searchPieceSize + 5} {
		data := bytes.Repeat([]byte("."), 3*searchPieceSize)
		copy(data[at:], "needle")
		copy(data[len(data)-at-6:], "needle")
		for _, key := range []string{"g", "G"} {
			s := showOutput(t, &fakeFile{data: data, over: true}, 80, 24)
			s.press(key)
			s.search("needle")
			if want := int64(at); key == "g" && s.p.matchOffset != want {
				t.Errorf("down: found at %d, not %d", s.p.matchOffset, want)
			}
			if want := int64(len(data) - at - 6); key == "G" && s.p.matchOffset != want {
				t.Errorf("up: found at %d, not %d", s.p.matchOffset, want)
			}
		}
	}
}

// TestSearchCanBeEnded checks that a search of a big log proceeds piece by piece, shows its
// progress, and ends on esc.
func TestSearchCanBeEnded(t *testing.T) {
	f := &fakeFile{size: 1 << 30, at: func(o int64) byte { return "......\n"[o%7] }}
	s := showOutput(t, f, 80, 24)
	s.p.searchText, s.p.searchUp, s.p.matchOffset = "needle", true, -1
	s.p.startSearch(true, s.p.excerpt.endOffset())
	for i := range 4 {
		cmd := s.readVisibleOutput()
		if cmd == nil {
			t.Fatal("it does not go on by itself")
		}
		msg := cmd().(pieceRead)
		if n := len(msg.piece.Data); n > searchPieceSize {
			t.Fatalf("read %d holds %d bytes", i, n)
		}
		s.p.isReading = false
		s.p.handleSearchPiece(s.model, msg.ask, msg.piece)
	}
	s.checkTitle("searching 0% of 1 GiB")
	press(t, s.model, "esc")
	if s.p.search != nil || s.extra == nil {
		t.Error("esc does not end the search, or closes the pane as well")
	}
}

// TestJumpingEndsTheSearch checks that g and G end a search in progress and go to the start and the
// end of the file.
func TestJumpingEndsTheSearch(t *testing.T) {
	for key, want := range map[string]string{"g": "line 1", "G": "line 200000"} {
		t.Run(key, func(t *testing.T) {
			s := showOutput(t, &fakeFile{data: numberedLines(200_000)}, 80, 24)
			up := key == "g"
			if !up {
				s.press("g")
			}
			s.p.searchText, s.p.searchUp, s.p.matchOffset = "needle", up, -1
			s.p.startSearch(up, s.p.excerpt.endOffset())
			if cmd := s.readVisibleOutput(); cmd == nil || s.p.search == nil {
				t.Fatal("no search is under way")
			}
			s.p.isReading = false
			s.press(key)
			if s.p.search != nil {
				t.Errorf("%s: the search goes on", key)
			}
			got := s.lines()[0]
			if key == "G" {
				got = s.lastLine()
			}
			equal(t, got, want, "%s", key)
		})
	}
}

// TestMatchesAreMarked checks that all matches are marked, including several in one line.
func TestMatchesAreMarked(t *testing.T) {
	s := showOutput(t, &fakeFile{data: []byte("say Loss, loss and LOSS\n")}, 80, 24)
	s.search("loss")
	if l := s.p.draw(s.model, 80, 5, true)[0]; strings.Count(l, "\x1b[7m") != 3 {
		t.Errorf("got %q, want 3 marks", l)
	}
	for _, c := range []struct {
		find, in string
		at       int
	}{{"a", "bA", 1}, {"A", "ba", -1}, {"é", "É é", 3}, {"x", "", -1}} {
		t.Run(c.find, func(t *testing.T) {
			if i, _ := matcher(c.find, strings.Index)(c.in); i != c.at {
				t.Errorf("%q in %q: %d", c.find, c.in, i)
			}
		})
	}
}

// TestAViewsKeyAgainGivesItTheWholeWidth checks that pressing the key of the current view gives it
// the full width, and that pressing it again undoes that, as the help describes.
func TestAViewsKeyAgainGivesItTheWholeWidth(t *testing.T) {
	for _, s := range [][2]int{{120, 30}, {120, 40}, {160, 48}} {
		for v := range numTabs {
			m := newScreen(t, sample(), s[0], s[1])
			key := string('1' + rune(v))
			widthOf := func() int {
				for _, x := range m.placed {
					if x.pane == m.panes[v] {
						return x.w
					}
				}
				return 0
			}
			press(t, m, key)
			if v == tabJobs { // it had the focus from the start
				equal(t, widthOf(), s[0], "%v: %s: cells", s, tabNames[v])
				press(t, m, key)
			}
			before := widthOf()
			if before == s[0] {
				t.Errorf("%v: %s has the whole width already", s, tabNames[v])
			}
			for _, step := range []struct {
				keys string
				want int
			}{{key, s[0]}, {key, before}, {key + " esc", before}} {
				press(t, m, step.keys)
				equal(t, widthOf(), step.want, "%v: %s: cells after %s", s, tabNames[v], step.keys)
				equal(t, m.focus(), m.panes[v], "%v: %s: the focus after %s", s, tabNames[v], step.keys)
			}
		}
	}
}

// TestNamesAreShownWhole checks that names get the width that no other column needs, before less
// important columns do, and that the details show a name and a command in full.
func TestNamesAreShownWhole(t *testing.T) {
	// 48 cells with its number.
	name := "calibrate-detector-module-" + strings.Repeat("north-", 3) + "b"
	command := "python3 calibrate.py " + strings.Repeat("--verbose ", 900) + "--last"
	src := sampleWith(func(snap *runview.Snapshot) {
		if snap.Jobs != nil {
			for i := range snap.Jobs.Rows {
				r := &snap.Jobs.Rows[i]
				r.Title, r.Phase, r.Progress, r.Cause = fmt.Sprintf("%02d-%s", i, name), runview.Queued, -1, ""
			}
		}
		if snap.Detail != nil {
			snap.Detail.Row.Title, snap.Detail.Spec = name, &jobs.Spec{Command: command, Options: jobs.NoOptions}
		}
	})
	m := newScreen(t, src, 120, 30)
	hides(t, m, "PROGRESS") // a column without content takes no room of names
	press(t, m, "1", "07-"+name)
	m = newScreen(t, src, 160, 48)
	shows(t, m, "07-"+name)
	press(t, m, "enter z", name)
	press(t, m, "G", "--last")
}
