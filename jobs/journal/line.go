package journal

import (
	"bytes"
	stdjson "encoding/json"
	"errors"
	"hash/crc32"
	"io"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"dcs-tui/jobs"
	"dcs-tui/jobs/rundir"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func crc32Update(sum uint32, b []byte) uint32 { return crc32.Update(sum, castagnoli, b) }

const (
	prefix = 9 // length of the checksum, eight hexadecimal digits, and a blank
	hexits = "0123456789abcdef"
)

// appendLine adds a record as a line of the journal.
func appendLine(b []byte, r *jobs.Record) []byte {
	start := len(b)
	b = append(b, "00000000 "...)
	b = AppendRecord(b, r)
	copy(b[start:], jobs.Checksum(b[start+prefix:]))
	return append(b, '\n')
}

// lineBody returns the JSON of a line without its newline. ok is false if the checksum does not
// match.
func lineBody(line []byte) (body []byte, ok bool) {
	if len(line) < prefix || line[prefix-1] != ' ' {
		return nil, false
	}
	body = line[prefix:]
	return body, string(line[:prefix-1]) == jobs.Checksum(body)
}

// pieces splits text behind the whole line with which it begins, if the newline between that
// line and the rest is damaged. Otherwise first is text.
func pieces(text []byte) (first, rest []byte) {
	if _, ok := lineBody(text); ok {
		return text, nil
	}
	for i := prefix + 1; i < len(text); i++ {
		if text[i-1] != '}' {
			continue
		}
		if _, ok := lineBody(text[:i]); ok {
			return text[:i], text[i+1:]
		}
	}
	return text, nil
}

var replaceBadText = json.JoinOptions(jobs.JSON, jsontext.AllowInvalidUTF8(true))

// AppendRecord appends the JSON of a record to b. It replaces bytes that are not valid UTF-8 by
// U+FFFD, except in a specification.
func AppendRecord(b []byte, r *jobs.Record) []byte {
	text, err := json.Marshal(r, replaceBadText)
	if err != nil {
		panic(err) // a record has no value that JSON cannot hold
	}
	return append(b, text...)
}

// Decoder decodes records. Host names and other repeated texts share memory. It is not safe for
// concurrent use.
type Decoder struct {
	texts map[string]string
	specs jobs.Interner
}

// maxTexts is the maximum number of texts that a Decoder remembers.
const maxTexts = 4096

// Decode reads the JSON of one record into r.
func (d *Decoder) Decode(b []byte, r *jobs.Record) error {
	*r = jobs.Record{}
	if err := json.Unmarshal(b, r, jobs.JSON); err != nil {
		return err
	}
	if r.Spec != nil {
		r.Spec.Options = d.specs.Share(r.Spec.Options)
	}
	for _, text := range []*string{(*string)(&r.Kind), &r.Host, &r.Reason, &r.How, &r.Request} {
		d.share(text)
	}
	if o := r.Outcome; o != nil {
		for _, text := range []*string{&o.Signal, &o.Error, &o.LastLine} {
			d.share(text)
		}
	}
	return nil
}

// share replaces a text by an equal one that was read before.
func (d *Decoder) share(text *string) {
	if *text == "" {
		return
	}
	if s, ok := d.texts[*text]; ok {
		*text = s
	} else if len(d.texts) < maxTexts {
		if d.texts == nil {
			d.texts = map[string]string{}
		}
		d.texts[*text] = *text
	}
}

// isTorn reports whether the n bytes after the last newline of a file are the beginning of a line
// that was never completed. The alternative is a damaged line whose newline is damaged, too: it
// had been durable, and was acted upon.
func isTorn(r *rundir.Run, e epochFile, at, n int64) (torn bool, err error) {
	b, _, err := rundir.ReadPart(r.Disk, e.path(r), at, n)
	if err != nil {
		return false, err
	}
	return beginsLine(b), nil
}

// beginsLine reports whether b is the beginning of a line: hex digits, a blank, and the beginning
// of a JSON value. Zeros after it are blocks that were never written. A whole JSON value with
// another checksum is damage.
func beginsLine(b []byte) bool {
	b = bytes.TrimRight(b, "\x00")
	for i, c := range b[:min(len(b), prefix)] {
		if i < prefix-1 && !bytes.ContainsRune([]byte(hexits), rune(c)) || i == prefix-1 && c != ' ' {
			return false
		}
	}
	if len(b) <= prefix {
		return true
	}
	if _, whole := lineBody(b); !whole && stdjson.Valid(b[prefix:]) {
		return false
	}
	for i := prefix; i < len(b) && utf8.FullRune(b[i:]); {
		c, n := utf8.DecodeRune(b[i:])
		if c == utf8.RuneError && n == 1 {
			return false
		}
		i += n
	}
	d := stdjson.NewDecoder(bytes.NewReader(b[prefix:]))
	for {
		if _, err := d.Token(); err != nil {
			return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		}
	}
}
