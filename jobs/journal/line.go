package journal

import (
	"hash/crc32"

	"dcs-tui/jobs"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func crc32Update(sum uint32, b []byte) uint32 { return crc32.Update(sum, castagnoli, b) }

const (
	prefix = 9 // eight hex digits and a blank
	hexits = "0123456789abcdef"
)

// appendLine adds a record as a line of the journal.
func appendLine(b []byte, r *jobs.Record) []byte {
	start := len(b)
	b = append(b, "00000000 "...)
	b = AppendRecord(b, r)
	sum := crc32.Checksum(b[start+prefix:], castagnoli)
	for i := 7; i >= 0; i-- {
		b[start+i] = hexits[sum&15]
		sum >>= 4
	}
	return append(b, '\n')
}

// lineBody returns the JSON of a line (without its newline), false when the
// checksum does not fit. One content has one checksum text: upper case is damage.
func lineBody(line []byte) ([]byte, bool) {
	if len(line) < prefix || line[prefix-1] != ' ' {
		return nil, false
	}
	var sum uint32
	for _, c := range line[:8] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		default:
			return nil, false
		}
		sum = sum<<4 | uint32(c)
	}
	body := line[prefix:]
	return body, sum == crc32.Checksum(body, castagnoli)
}

// pieces returns the whole line with which text begins and what follows it, where
// the newline between them is damaged; text itself when it is a line, or begins
// with none.
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
