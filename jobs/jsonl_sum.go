package jobs

import (
	"bytes"
	"hash/crc32"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sumLen is the length of the checksum at the end of a line: ,"crc":"0badcafe"}
const sumLen = len(sumKey) + 8 + len(`"}`)

const (
	sumKey = `,"crc":"`
	hexits = "0123456789abcdef"
)

// AppendLineSum ends the line of JSON that begins at from, an object without its closing
// brace: with its CRC-32C as the last member, and the brace.
func AppendLineSum(b []byte, from int) []byte {
	sum := crc32.Checksum(b[from:], castagnoli)
	b = append(b, sumKey...)
	for shift := 28; shift >= 0; shift -= 4 {
		b = append(b, hexits[sum>>shift&15])
	}
	return append(b, '"', '}')
}

// lineSum is what the checksum of a line says.
type lineSum uint8

const (
	sumRight lineSum = iota
	sumNone          // a line as it was written before there were checksums
	sumWrong
)

// lineText returns the line before its checksum and closing brace.
func lineText(line []byte) ([]byte, lineSum) {
	if n := len(line) - sumLen; n >= 0 && string(line[n:n+len(sumKey)]) == sumKey && bytes.HasSuffix(line, []byte(`"}`)) {
		sum := crc32.Checksum(line[:n], castagnoli)
		for i, c := range line[n+len(sumKey) : n+len(sumKey)+8] {
			if c != hexits[sum>>(28-4*i)&15] {
				return line, sumWrong
			}
		}
		return line[:n], sumRight
	}
	if bytes.HasSuffix(line, []byte("}")) && !bytes.Contains(line, []byte(sumKey)) {
		return line[:len(line)-1], sumNone
	}
	return line, sumWrong
}

// SummedLine returns the object that AppendLineSum has ended, without the checksum; ok
// says whether that is right.
func SummedLine(line []byte) (object []byte, ok bool) {
	text, sum := lineText(line)
	if sum != sumRight {
		return nil, false
	}
	return append(bytes.Clone(text), '}'), true
}

// wholePrefix returns the whole line with which text begins, where the newline
// after it is damaged; nil when there is none.
func wholePrefix(text []byte) []byte {
	for from := 0; ; {
		k := bytes.Index(text[from:], []byte(sumKey))
		end := from + k + sumLen
		if k < 0 || end >= len(text) {
			return nil
		}
		if _, sum := lineText(text[:end]); sum == sumRight {
			return text[:end]
		}
		from += k + 1
	}
}
