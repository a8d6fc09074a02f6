package jobs

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// SpecsHeader is the first line of jobs.jsonl, the file of a run directory that
// holds its accepted specifications. Lines of AppendSpec follow.
const SpecsHeader = specsHeaderBody + `,"crc":"d765ca3c"}` + "\n"

// SpecsHeaderAfter is the first line of a file that goes on after n specifications
// of earlier files; what those hold beyond that is no part of the run.
func SpecsHeaderAfter(n int) string {
	if n == 0 {
		return SpecsHeader
	}
	return string(append(AppendLineSum(strconv.AppendInt([]byte(specsHeaderAfter), int64(n), 10), 0), '\n'))
}

// SpecsAfter returns after how many specifications of earlier files a file goes on, given
// its first line without the newline. ok is false if that line is damaged.
func SpecsAfter(line []byte) (n int, ok bool) {
	if string(line) == SpecsHeader[:len(SpecsHeader)-1] {
		return 0, true
	}
	body, sum := lineText(line)
	digits, ok := bytes.CutPrefix(body, []byte(specsHeaderAfter))
	n, err := strconv.Atoi(string(digits))
	return n, ok && sum == sumRight && err == nil && n > 0
}

const (
	specsHeaderBody  = `{"v":2,"holds":"jobs"`
	specsHeaderAfter = specsHeaderBody + `,"after":`
	specsHeader1     = `{"v":1,"holds":"jobs"}` // lines had no checksum
)

// StoredSpecs is what a jobs.jsonl holds.
type StoredSpecs struct {
	Specs []*Spec // Specs[i].ID == i+1; a damaged one has Options.Damage
	Good  int64   // length of what is whole in the last file: a last line that a crash cut off is not
	Size  int64   // length of the last file; set by rundir.Run.ReadSpecs

	// Damage names what could not be read, a line each: "jobs.jsonl:7: …".
	Damage []string
	// Unended says that the newline at the end of Good is damaged, which has to be
	// written again before anything is added.
	Unended bool
}

// DecodeSpecs reads a whole jobs.jsonl. Equal options become one shared value. A
// last line without its newline (a write that was cut off) is no error, it only
// makes Good smaller. A damaged line costs the job whose line it was, and no
// other. What no damage explains is an error: a file of another version, or of
// another kind, or the line of a job that stands there already.
func DecodeSpecs(data []byte) (StoredSpecs, error) { return DecodeMoreSpecs("jobs.jsonl", data, nil) }

// DecodeMoreSpecs reads a file that goes on after others; have is what those hold.
// Specs are then those of all, Good, Damage and Unended are of this file.
func DecodeMoreSpecs(name string, data []byte, have []*Spec) (StoredSpecs, error) {
	r := specReader{name: name, have: have, after: -1, lines: specDecoder{options: map[string]*Options{}}}
	r.room = max(0, bytes.Count(data, []byte{'\n'})-1)
	for line := 1; ; line++ {
		rest := data[r.out.Good:]
		n := bytes.IndexByte(rest, '\n')
		if n < 0 {
			return r.end(rest, line)
		}
		if err := r.line(rest[:n], line); err != nil {
			return r.out, fmt.Errorf("%s:%d: %w", name, line, err)
		}
		r.out.Good += int64(n) + 1
	}
}

// specReader reads a jobs.jsonl line by line.
type specReader struct {
	name   string
	lines  specDecoder
	out    StoredSpecs
	have   []*Spec // of earlier files
	after  int     // how many of them count; -1: not known
	based  bool    // they are in out
	room   int     // lines of the file
	begun  bool    // the header, or what stands in its place, has been read
	summed bool    // every line has a checksum
	bad    []badLine
	good   int   // lines that could be read
	first  error // what was wrong with the header
}

// base begins with the first n specifications of earlier files.
func (r *specReader) base(n int) {
	r.based = true
	r.out.Specs = append(make([]*Spec, 0, n+r.room), r.have[:min(n, len(r.have))]...)
	if lost := n - len(r.out.Specs); lost > 0 {
		r.out.Damage = append(r.out.Damage, fmt.Sprintf("%s goes on after job %d, and the files before it end with job %d", r.name, n, len(r.have)))
	}
	for id := ID(len(r.out.Specs) + 1); int(id) <= n; id++ {
		r.out.Specs = append(r.out.Specs, LostSpec(id, "its line is missing"))
	}
}

// badLine is a line that could not be read, or a piece of one.
type badLine struct {
	line   int
	err    error
	starts bool // it looks like the start of a specification
}

// maxLostSpecs bounds the jobs in a row whose lines are missing.
const maxLostSpecs = 1 << 20

// line reads the text between two newlines: a line, or, where a newline is
// damaged, several.
func (r *specReader) line(text []byte, no int) error {
	whole, sum := lineText(text)
	for sum == sumWrong {
		head := wholePrefix(text)
		if head == nil {
			break
		}
		r.out.Damage = append(r.out.Damage, fmt.Sprintf("%s:%d: the end of a line is damaged, which costs nothing", r.name, no))
		if err := r.one(head[:len(head)-sumLen], sumRight, no, text[:len(head)]); err != nil {
			return err
		}
		text = text[len(head)+1:]
		whole, sum = lineText(text)
	}
	return r.one(whole, sum, no, text)
}

// one reads a line.
func (r *specReader) one(body []byte, sum lineSum, no int, text []byte) error {
	if !r.begun {
		r.begun = true
		return r.header(body, sum, no, text)
	}
	s, err := (*Spec)(nil), error(nil)
	switch {
	case sum == sumWrong && !bytes.Contains(text, []byte(sumKey)):
		err = errors.New("the line is damaged (it is not whole)")
	case sum == sumWrong:
		err = errors.New("the line is damaged (its checksum does not fit)")
	case sum == sumNone && r.summed:
		err = errors.New("the line is damaged (it has no checksum)")
	default:
		s, err = r.lines.decode(body)
	}
	if !r.based && r.after >= 0 {
		r.base(r.after)
	} else if !r.based && err == nil { // the header is damaged
		r.base(max(0, min(len(r.have), int(s.ID)-1-len(r.bad))))
	}
	next := len(r.out.Specs) + 1
	if err == nil && int(s.ID) != next && (sum != sumRight || int(s.ID) < next || int(s.ID) > next+maxLostSpecs) {
		known := len(r.bad) > 0 && int(s.ID) > next && int(s.ID) <= next+2*len(r.bad)
		if err = fmt.Errorf("job %d stands where job %d should", s.ID, next); known {
			err = nil // the lines before it are damaged
		} else if sum == sumRight {
			return err
		}
	}
	if err != nil {
		r.bad = append(r.bad, badLine{no, err, bytes.HasPrefix(text, []byte(`{"id":`))})
		return nil
	}
	r.lose(int(s.ID)-next, no)
	r.out.Specs = append(r.out.Specs, s)
	r.good++
	return nil
}

// lose puts n jobs whose lines are damaged into their places.
func (r *specReader) lose(n, no int) {
	for i := range n {
		b := badLine{line: no, err: errors.New("the line before it is missing")}
		if len(r.bad) > 0 {
			b = r.bad[min(i, len(r.bad)-1)]
		}
		id := ID(len(r.out.Specs) + 1)
		r.out.Specs = append(r.out.Specs, LostSpec(id, fmt.Sprintf("%s:%d: %v", r.name, b.line, b.err)))
		r.out.Damage = append(r.out.Damage, r.out.Specs[id-1].Damage)
	}
	for _, b := range r.bad[min(n, len(r.bad)):] {
		r.out.Damage = append(r.out.Damage, fmt.Sprintf("%s:%d: %v; no job is missing for it", r.name, b.line, b.err))
	}
	r.bad = r.bad[:0]
}

// LostSpec stands for a job whose specification is lost. Its command fails, should
// anybody run it against Options.Damage.
func LostSpec(id ID, why string) *Spec {
	return &Spec{ID: id, Command: "false", Name: fmt.Sprintf("job %d, whose line is damaged", id),
		Options: &Options{Damage: why + ": what job " + fmt.Sprint(int(id)) + " was to run is not known any more"}}
}

// end reads what follows the last newline.
func (r *specReader) end(rest []byte, no int) (StoredSpecs, error) {
	// A line that was cut off has no checksum at its end, or ends right there. One
	// whole line and a byte is a line whose newline is damaged.
	if n := len(rest) - 1; n > 0 {
		body, sum := lineText(rest[:n])
		whole := sum == sumRight
		if sum == sumNone && !r.summed {
			_, err := r.lines.decode(body)
			whole = err == nil
		}
		if whole && r.begun {
			if err := r.one(body, sum, no, rest[:n]); err != nil {
				return r.out, fmt.Errorf("%s:%d: %w", r.name, no, err)
			}
			r.out.Damage = append(r.out.Damage, fmt.Sprintf("%s:%d: the end of a line is damaged, which costs nothing", r.name, no))
			r.out.Good, r.out.Unended = r.out.Good+int64(n)+1, true
		}
	}
	lost := 0 // a piece that does not look like a start is more of the one before it
	for i, b := range r.bad {
		if b.starts || i == 0 {
			lost++
		}
	}
	if r.first != nil && r.good == 0 && (r.have == nil || len(r.bad) > 0) {
		return r.out, fmt.Errorf("%s:1: %w", r.name, r.first)
	}
	if !r.based {
		r.base(len(r.have)) // nothing that counts stands here
	}
	r.lose(lost, no)
	return r.out, nil
}

// header reads the first line.
func (r *specReader) header(body []byte, sum lineSum, no int, text []byte) error {
	switch {
	case sum == sumRight && string(body) == specsHeaderBody:
		r.summed, r.after = true, 0
		return nil
	case sum == sumRight && bytes.HasPrefix(body, []byte(specsHeaderAfter)):
		n, err := strconv.Atoi(string(body[len(specsHeaderAfter):]))
		if err != nil || n < 1 || n > len(r.have)+maxLostSpecs {
			return fmt.Errorf("it goes on after %q jobs, of which there are %d", body[len(specsHeaderAfter):], len(r.have))
		}
		r.summed, r.after = true, n
		return nil
	case sum == sumNone && string(text) == specsHeader1:
		r.after = 0
		return nil
	case sum == sumRight && bytes.HasPrefix(body, []byte(`{"v":`)):
		return fmt.Errorf("the file has version %s, this program reads versions 1 and 2: use the dcs-tui that wrote it",
			strings.TrimPrefix(strings.SplitN(string(body), ",", 2)[0], `{"v":`))
	}
	// If lines follow that are ours, only the header is damaged.
	r.first = errors.New("it does not start as a jobs.jsonl of a run directory")
	if alike(text, SpecsHeader[:len(SpecsHeader)-1]) || alike(text, specsHeader1) {
		r.first = errors.New("the first line is damaged, which costs nothing")
	}
	r.out.Damage = append(r.out.Damage, fmt.Sprintf("%s:%d: %v", r.name, no, r.first))
	return nil
}

// alike says that a few bytes differ at most, for a header whose exact text is
// known.
func alike(text []byte, want string) bool {
	if len(text) != len(want) {
		return false
	}
	differ := 0
	for i := range text {
		if text[i] != want[i] {
			differ++
		}
	}
	return differ <= 4
}
