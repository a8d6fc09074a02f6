package tui

import (
	"bytes"
	"regexp"
	"sort"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

const (
	pieceSize = 64 << 10  // size of one read in bytes
	keepSize  = 512 << 10 // bytes of a file that are kept around the visible part
	rowSize   = 4 << 10   // longer lines are split into several rows
	tabStop   = 8
)

// excerpt is the loaded part of a file, with the positions of its rows. A row is a line, or a part
// of a very long one.
type excerpt struct {
	from     int64 // offset of data[0]
	data     []byte
	size     int64 // size of the file at the last read
	complete bool  // the file is complete
	rows     []row
}

// row begins at data[at]. Its visible part begins at data[text]: of a progress bar, which returns
// to the start of the line, only the last state is shown.
type row struct{ start, textStart int32 }

func (e *excerpt) endOffset() int64 { return e.from + int64(len(e.data)) }

// add extends the excerpt by an adjacent piece, or replaces it. It drops data far from the piece.
func (e *excerpt) add(from int64, data []byte) {
	switch {
	case len(e.data) > 0 && from == e.endOffset():
		e.data = append(e.data, data...)
		if cut := len(e.data) - keepSize; cut > 0 {
			e.data = append([]byte(nil), e.data[cut:]...)
			e.from += int64(cut)
		}
	case len(e.data) > 0 && from+int64(len(data)) == e.from:
		e.data = append(append(make([]byte, 0, len(data)+len(e.data)), data...), e.data...)
		e.from = from
		e.data = e.data[:min(len(e.data), keepSize)]
	default:
		e.from, e.data = from, append([]byte(nil), data...)
	}
	e.findRows()
}

func (e *excerpt) findRows() {
	e.rows = e.rows[:0]
	for at := 0; at < len(e.data); {
		end := len(e.data)
		if i := bytes.IndexByte(e.data[at:], '\n'); i >= 0 {
			end = at + i + 1
		}
		text := at + lastState(e.data[at:end])
		e.rows = append(e.rows, row{int32(at), int32(text)})
		for text+rowSize < end {
			text = runeStart(e.data, text+rowSize)
			e.rows = append(e.rows, row{int32(text), int32(text)})
		}
		at = end
	}
}

// lastState returns the offset of the last state of a line that was overwritten repeatedly.
func lastState(line []byte) int {
	rest := bytes.TrimRight(line, "\r\n")
	last := 0
	for range 8 { // a bar that was cleared at the end leaves blanks
		i := bytes.LastIndexByte(rest, '\r') + 1
		if last == 0 {
			last = i
		}
		if i == 0 || len(bytes.TrimSpace(controlSequence().ReplaceAll(rest[i:], nil))) > 0 {
			return i
		}
		rest = bytes.TrimRight(rest[:i], "\r")
	}
	return last
}

// runeStart moves a cut back to the start of a character.
func runeStart(b []byte, i int) int {
	for k := i; k > i-4 && k > 0; k-- {
		if b[k]&0xc0 != 0x80 {
			return k
		}
	}
	return i
}

// visibleBytes returns the visible part of a row, without its line end.
func (e *excerpt) visibleBytes(i int) []byte {
	end := len(e.data)
	if i+1 < len(e.rows) {
		end = int(e.rows[i+1].start)
	}
	b := bytes.TrimRight(e.data[e.rows[i].textStart:end], "\r\n")
	if i := bytes.IndexByte(b, '\r'); i >= 0 { // the bytes after it only cleared the line
		b = b[:i]
	}
	return b
}

// rowAt returns the row that contains an offset of the file, or the first or the last row if the
// offset is outside.
func (e *excerpt) rowAt(offset int64) int {
	after := sort.Search(len(e.rows), func(i int) bool { return e.offsetOf(i) > offset })
	return max(0, after-1)
}

// cleanRow makes a row of output safe to show. It expands tabs, drops sequences that only set
// colors or move the cursor, and makes other control characters visible.
func (m *model) cleanRow(b []byte) string { return expandRow(b, m.clean, false) }

// coloredRow is cleanRow with the colors of the row, reset at its end.
func (m *model) coloredRow(b []byte) string { return expandRow(b, m.clean, true) }

// cleanWholeRow is cleanRow for a text of any length.
func (m *model) cleanWholeRow(s string) string { return expandRow([]byte(s), m.cleanWhole, false) }

func expandRow(b []byte, clean func(string) string, colors bool) string {
	var out strings.Builder
	styled, cells := false, 0
	for i := 0; i < len(b); {
		switch n := controlSequenceLen(b[i:]); {
		case n > 0:
			if colors && isSGR(b[i:i+n]) {
				out.Write(b[i : i+n])
				styled = true
			}
			i += n
		case b[i] == '\t':
			n := tabStop - cells%tabStop
			out.WriteString(strings.Repeat(" ", n))
			cells += n
			i++
		default:
			end := i + 1
			for end < len(b) && b[end] != '\t' && controlSequenceLen(b[end:]) == 0 {
				end++
			}
			text := clean(string(b[i:end]))
			out.WriteString(text)
			cells += width(text)
			i = end
		}
	}
	if styled {
		out.WriteString(resetSGR)
	}
	return out.String()
}

const resetSGR = "\x1b[m"

// isSGR reports whether a control sequence only sets colors and similar attributes: ESC [ numbers
// m.
func isSGR(seq []byte) bool {
	return seq[len(seq)-1] == 'm' && len(bytes.Trim(seq[2:len(seq)-1], "0123456789;:")) == 0
}

// dropCells drops the first n cells of a line and keeps its colors. Half of a wide character
// becomes a blank.
func dropCells(s string, n int) string {
	var out strings.Builder
	for i := 0; i < len(s); {
		if k := controlSequenceLen([]byte(s[i:min(len(s), i+64)])); k > 0 {
			out.WriteString(s[i : i+k])
			i += k
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		w := 1
		if r >= utf8.RuneSelf {
			w = width(s[i : i+size])
		}
		if n <= 0 && w > 0 { // an accent belongs to its letter
			out.WriteString(s[i:])
			break
		}
		n -= w
		if n < 0 {
			out.WriteByte(' ')
			n = 0
		}
		i += size
	}
	return out.String()
}

// controlSequence matches a control sequence: ESC [ parameters letter. An incomplete one is text
// and is made visible.
var controlSequence = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile("\x1b\\[[ -?]{0,61}[@-~]") })

// controlSequenceLen returns the length of the control sequence at the beginning of b, or 0 if
// there is none.
func controlSequenceLen(b []byte) int {
	if len(b) == 0 || b[0] != 0x1b {
		return 0
	}
	if at := controlSequence().FindIndex(b[:min(len(b), 64)]); at != nil && at[0] == 0 {
		return at[1]
	}
	return 0
}

// hardWrap breaks a line into pieces of at most w cells. Each has the colors of the line.
func hardWrap(s string, w int) []string {
	if width(s) <= w || w <= 0 {
		return []string{s}
	}
	parts := strings.Split(ansi.HardwrapWc(s, w, true), "\n")
	on := "" // the colors at the end of the previous piece
	for i, part := range parts {
		was := on
		for k := strings.IndexByte(part, 0x1b); k >= 0 && k < len(part); k++ {
			switch n := controlSequenceLen([]byte(part[k:])); {
			case n == 0:
			case strings.Trim(part[k+2:k+n-1], "0") == "":
				on = ""
			default:
				on += part[k : k+n]
			}
		}
		if strings.Contains(was+part, "\x1b") {
			parts[i] = was + part + resetSGR
		}
	}
	return parts
}
