package journal

import (
	"bytes"
	stdjson "encoding/json"
	"errors"
	"hash/crc32"
	"io"
	"unicode/utf8"

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
	b = jobs.AppendRecord(b, r)
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
	return body, jobs.IsChecksum(line[:prefix-1], body)
}

// splitJoinedLines splits text behind the whole line with which it begins, if the newline between
// that line and the rest is damaged. Otherwise first is text.
func splitJoinedLines(text []byte) (first, rest []byte) {
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

// isTorn reports whether the n bytes after the last newline of a file are the beginning of a line
// that was never completed. The alternative is a damaged line whose newline is damaged, too: it
// had been durable, and was acted upon.
func isTorn(r *rundir.Run, e epochFile, at, n int64) (torn bool, err error) {
	b, _, err := rundir.ReadPart(r.Disk, e.path(r), at, n)
	if err != nil {
		return false, err
	}
	return isLineBeginning(b), nil
}

// isLineBeginning reports whether b is the beginning of a line: hex digits, a blank, and the
// beginning of a JSON value. Zeros after it are blocks that were never written. A whole JSON value
// with another checksum is damage.
func isLineBeginning(b []byte) bool {
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
