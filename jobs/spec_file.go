package jobs

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"

	"github.com/go-json-experiment/json"
)

// specsHeader is the first line of a file of specifications.
type specsHeader struct {
	V     int    `json:"v"`
	Holds string `json:"holds"`
	// Specifications of earlier files; any beyond that number are not part of the run.
	After int `json:"after,omitzero"`
}

// SpecsHeader returns the first line of a file that continues after n specifications of earlier
// files. Lines of AppendSpec follow.
func SpecsHeader(n int) string {
	b := appendJSON(nil, specsHeader{FormatSpecs.Version, "jobs", n})
	return string(append(AppendLineSum(b[:len(b)-1], 0), '\n'))
}

// SpecDecoder parses a file with specifications, jobs.jsonl or a later one, line by line. A damaged
// line costs only the job of that line. Content that damage does not explain is an error: a file of
// another version or kind, or a line of a job that is already present.
type SpecDecoder struct {
	Damage []string // a message for each line that could not be read: "jobs.jsonl:7: …"
	Ended  bool     // see End

	name   string
	have   int // specifications of earlier files
	specs  SpecReader
	ahead  ParallelDecoder[*Spec]
	object [][]byte // memory of each core that decodes ahead
	line   int      // number of the current line
	next   ID       // id of the next specification; 0: unknown yet
	good   int      // number of lines that could be read
	bad    []badLine
	header error // why the first line cannot be read
}

// badLine is a line, or a part of one, that could not be read.
type badLine struct {
	line   int
	err    error
	starts bool // it looks like the start of a specification
}

// maxLostSpecs is the maximum number of consecutive jobs whose lines may be missing.
const maxLostSpecs = 1 << 20

// NewSpecDecoder returns a decoder of the file with this name. have is the number of specifications
// in earlier files.
func NewSpecDecoder(name string, have int) *SpecDecoder { return &SpecDecoder{name: name, have: have} }

// WithoutParams makes the decoder faster. Specifications may then lack their parameters.
func (d *SpecDecoder) WithoutParams() { d.specs.withoutParams = true }

// Ahead decodes the lines of a block before Line is called for each of them. The block ends with a
// newline.
func (d *SpecDecoder) Ahead(block []byte) {
	if d.object == nil {
		d.object = make([][]byte, Cores)
	}
	d.ahead.Decode(block, func(core int, line []byte, s **Spec) {
		if text, ok := lineText(line); ok {
			d.object[core] = append(append(d.object[core][:0], text...), '}')
			*s, _ = d.specs.Read(d.object[core])
		}
	})
}

// Line parses the text between two newlines. That is one line, or several if the newline between
// them is damaged. The specifications in add follow the first after ones.
func (d *SpecDecoder) Line(text []byte) (after int, add []*Spec, err error) {
	d.line++
	if s := d.ahead.Take(); s != nil && *s != nil && !d.isFirst() {
		add, err = d.accept(*s)
	} else {
		add, err = d.parts(text)
	}
	if err != nil {
		err = fmt.Errorf("%s:%d: %w", d.name, d.line, err)
	}
	return d.after(add), add, err
}

// parts parses the lines between two newlines.
func (d *SpecDecoder) parts(text []byte) (add []*Spec, err error) {
	for err == nil {
		head := text
		if _, ok := lineText(text); !ok {
			head = wholePrefix(text)
			if head == nil {
				head = text
			}
		}
		var more []*Spec
		more, err = d.one(head)
		add = append(add, more...)
		if len(head) == len(text) {
			break
		}
		d.damage("the end of a line is damaged, but no information is lost")
		text = text[len(head)+1:]
	}
	return add, err
}

// after returns the number of specifications that precede add.
func (d *SpecDecoder) after(add []*Spec) int {
	if d.next == 0 {
		return d.have
	}
	return int(d.next) - 1 - len(add)
}

// one parses a line.
func (d *SpecDecoder) one(text []byte) (add []*Spec, err error) {
	object, ok := SummedLine(text)
	if d.isFirst() {
		return d.first(object, ok)
	}
	s, err := (*Spec)(nil), errors.New("the line is damaged (its checksum does not fit)")
	if ok {
		s, err = d.specs.Read(object)
	}
	if newer := checkFields(err); newer != nil {
		return nil, newer
	}
	if err != nil {
		d.bad = append(d.bad, badLine{d.line, err, bytes.HasPrefix(text, []byte(`{"id":`))})
		return nil, nil
	}
	return d.accept(s)
}

// accept returns the specification of a line, and placeholders for those that were lost before it.
func (d *SpecDecoder) accept(s *Spec) (add []*Spec, err error) {
	if d.next == 0 { // the first line is damaged
		add = d.begin(max(0, min(d.have, int(s.ID)-1-len(d.bad))))
	}
	lost := s.ID - d.next
	if lost < 0 || lost > maxLostSpecs {
		return add, fmt.Errorf("job %d stands where job %d should", s.ID, d.next)
	}
	add = append(add, d.placeholders(int(lost))...)
	d.good++
	d.next++
	return append(add, s), nil
}

// isFirst reports whether the current line should be the header.
func (d *SpecDecoder) isFirst() bool { return d.line == 1 && d.next == 0 && d.header == nil }

// first parses the first line.
func (d *SpecDecoder) first(object []byte, ok bool) ([]*Spec, error) {
	var h specsHeader
	switch err := json.Unmarshal(object, &h); {
	case !ok || err != nil || h.Holds != "jobs":
		d.header = errors.New("it does not start as a jobs.jsonl of a run directory")
		d.damage("the first line is damaged, but no information is lost")
		return nil, nil
	case h.V != FormatSpecs.Version:
		return nil, FormatSpecs.Check(h.V)
	case h.After < 0 || h.After > d.have+maxLostSpecs:
		return nil, fmt.Errorf("it goes on after %d jobs, of which there are %d", h.After, d.have)
	}
	return d.begin(h.After), nil
}

// begin sets n as the number of specifications in earlier files. It returns placeholders for those
// that the earlier files lack.
func (d *SpecDecoder) begin(n int) (add []*Spec) {
	if n > d.have {
		d.damage("it goes on after job %d, and the files before it end with job %d", n, d.have)
	}
	for id := d.have + 1; id <= n; id++ {
		add = append(add, LostSpec(ID(id), d.name+": the line before it is missing"))
	}
	d.next = ID(n + 1)
	return add
}

// placeholders returns placeholders for n jobs whose lines are damaged or missing.
func (d *SpecDecoder) placeholders(n int) (add []*Spec) {
	for i := range n {
		at, err := d.line, errors.New("the line before it is missing")
		if len(d.bad) > 0 {
			b := d.bad[min(i, len(d.bad)-1)]
			at, err = b.line, b.err
		}
		s := LostSpec(d.next, fmt.Sprintf("%s:%d: %v", d.name, at, err))
		d.Damage = append(d.Damage, s.Damage)
		add = append(add, s)
		d.next++
	}
	for _, b := range d.bad[min(n, len(d.bad)):] {
		d.Damage = append(d.Damage, fmt.Sprintf("%s:%d: %v; no job is missing for it", d.name, b.line, b.err))
	}
	d.bad = d.bad[:0]
	return add
}

// End parses the text after the last newline of a file in its current state. It ignores a last line
// that a crash cut off. used is the number of bytes of rest that count: all of them if only the
// newline at its end is damaged. If Ended is true afterwards, nothing more may be parsed.
func (d *SpecDecoder) End(rest []byte) (after int, add []*Spec, used int, err error) {
	if n := len(rest) - 1; n > 0 && d.line > 0 {
		if _, ok := lineText(rest[:n]); ok {
			_, add, err = d.Line(rest[:n])
			d.damage("the end of a line is damaged, but no information is lost")
			used = len(rest)
		}
	}
	if err == nil && d.header != nil && d.good == 0 && (d.have == 0 || len(d.bad) > 0) {
		err = fmt.Errorf("%s:1: %w", d.name, d.header)
	}
	d.Ended = used > 0 || len(d.bad) > 0 || d.header != nil
	if err != nil || !d.Ended {
		return d.after(add), add, used, err
	}
	if d.next == 0 {
		d.next = ID(d.have + 1) // the rest holds nothing that counts
	}
	lost := 0 // a piece that does not look like a start continues the one before it
	for i, b := range d.bad {
		if b.starts || i == 0 {
			lost++
		}
	}
	add = append(add, d.placeholders(lost)...)
	return d.after(add), add, used, nil
}

func (d *SpecDecoder) damage(format string, args ...any) {
	d.Damage = append(d.Damage, fmt.Sprintf("%s:%d: %s", d.name, d.line, fmt.Sprintf(format, args...)))
}

// LostSpec returns a placeholder for a job whose specification is lost. Its command fails if
// somebody runs it despite Options.Damage.
func LostSpec(id ID, why string) *Spec {
	return &Spec{ID: id, Command: "false", Name: fmt.Sprintf("job %d, whose line is damaged", id),
		Options: &Options{Damage: why + ": what job " + fmt.Sprint(int(id)) + " was to run is not known any more"}}
}

const (
	sumKey    = `,"crc":"`
	sumHexits = 8                                   // length of a Checksum
	sumLen    = len(sumKey) + sumHexits + len(`"}`) // length of the end of a line: ,"crc":"0badcafe"}
)

// AppendLineSum completes the line of JSON that begins at from, an object without its closing
// brace. It appends the CRC-32C as the last member, and the brace.
func AppendLineSum(b []byte, from int) []byte {
	return append(b, sumKey+Checksum(b[from:])+`"}`...)
}

// lineText returns the line before its checksum and closing brace. ok is false if the checksum does
// not match.
func lineText(line []byte) (text []byte, ok bool) {
	n := len(line) - sumLen
	if n < 0 {
		return nil, false
	}
	sum, ok := bytes.CutPrefix(line[n:], []byte(sumKey))
	if !ok || string(sum[sumHexits:]) != `"}` || !IsChecksum(sum[:sumHexits], line[:n]) {
		return nil, false
	}
	return line[:n], true
}

// SummedLine returns the object of a line that AppendLineSum wrote, without the checksum. ok
// reports whether the checksum matches.
func SummedLine(line []byte) (object []byte, ok bool) {
	text, ok := lineText(line)
	if !ok {
		return nil, false
	}
	return slices.Concat(text, []byte{'}'}), true
}

// wholePrefix returns the complete line at the start of text if the newline after it is damaged, or
// nil if there is none.
func wholePrefix(text []byte) []byte {
	for from := 0; ; {
		k := bytes.Index(text[from:], []byte(sumKey))
		end := from + k + sumLen
		if k < 0 || end >= len(text) {
			return nil
		}
		if _, ok := lineText(text[:end]); ok {
			return text[:end]
		}
		from += k + 1
	}
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Checksum returns the CRC-32C of b as eight hexadecimal digits. All files of a run that hold
// checksums use this form.
func Checksum(b []byte) string {
	sum := hexits(b)
	return string(sum[:])
}

// IsChecksum reports whether text is the Checksum of b.
func IsChecksum(text, b []byte) bool {
	sum := hexits(b)
	return bytes.Equal(text, sum[:])
}

func hexits(b []byte) (text [sumHexits]byte) {
	var sum [sumHexits / 2]byte
	binary.BigEndian.PutUint32(sum[:], crc32.Checksum(b, castagnoli))
	hex.Encode(text[:], sum[:])
	return text
}
