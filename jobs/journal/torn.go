package journal

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"unicode/utf8"

	"dcs-tui/jobs/rundir"
)

// isTorn says whether what follows the last newline of a file is the beginning of a line
// that was never completed. Lines that were damaged together with their newlines end a
// file without one, too: those had been durable, and were acted upon.
func isTorn(r *rundir.Run, e epochFile, at, n int64) (torn bool, err error) {
	f, err := r.Disk.OpenFile(e.path(r), os.O_RDONLY, 0)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	b := make([]byte, n)
	if k, err := f.ReadAt(b, at); err != nil && !errors.Is(err, io.EOF) {
		return false, err
	} else if k < len(b) {
		b = b[:k]
	}
	return beginsLine(b), nil
}

// beginsLine says that b is the beginning of a line: hexits, a blank, JSON as far as it
// goes. Zeros behind it are blocks that were never written. JSON that is whole and has
// another checksum was damaged.
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
	if _, whole := lineBody(b); !whole && json.Valid(b[prefix:]) {
		return false
	}
	for i := prefix; i < len(b) && utf8.FullRune(b[i:]); {
		c, n := utf8.DecodeRune(b[i:])
		if c == utf8.RuneError && n == 1 {
			return false
		}
		i += n
	}
	d := json.NewDecoder(bytes.NewReader(b[prefix:]))
	for {
		if _, err := d.Token(); err != nil {
			return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		}
	}
}
