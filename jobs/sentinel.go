package jobs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
)

// SentinelBytes is the exact size of a sentinel: it is reserved before the job
// starts, so that a full disk cannot stop the outcome from being written.
const SentinelBytes = 512

// ErrSentinel is returned for anything but a whole, checksummed sentinel. It
// says that the outcome is not known (yet), never that the job failed.
var ErrSentinel = errors.New("not a whole sentinel")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

type sentinel struct {
	V       int       `json:"v"`
	Run     string    `json:"run"`
	Attempt AttemptID `json:"attempt"`
	Host    string    `json:"host"`
	Slot    int       `json:"slot"`
	Outcome Outcome   `json:"outcome"`
}

// EncodeSentinel gives the SentinelBytes of a finished attempt: a JSON line,
// blanks, the CRC-32C of all before it in hex, a newline. The last line of
// stderr is not part of it; a long error text is cut to fit.
func EncodeSentinel(run string, id AttemptID, host string, slot int, o Outcome) []byte {
	o.LastLine = ""
	for {
		body, _ := json.Marshal(sentinel{1, run, id, host, slot, o}) // plain fields: cannot fail
		if room := SentinelBytes - len(body) - 10; room >= 0 {
			b := append(body, bytes.Repeat([]byte{' '}, room+1)...)
			return fmt.Appendf(b, "%08x\n", crc32.Checksum(b, castagnoli))
		}
		if len(o.Error) < 2 { // and an error must not vanish: without one the attempt could pass for a success
			panic("jobs: a sentinel's names are too long") // uid and host names are bounded where they are made
		}
		o.Error = o.Error[:len(o.Error)/2]
	}
}

// DecodeSentinel reads what EncodeSentinel wrote for this run and attempt; any
// other content is ErrSentinel.
func DecodeSentinel(b []byte, run string, id AttemptID) (o Outcome, host string, slot int, err error) {
	if len(b) != SentinelBytes || b[len(b)-1] != '\n' {
		return o, "", 0, fmt.Errorf("%w: %d bytes", ErrSentinel, len(b))
	}
	text := b[:SentinelBytes-9]
	if fmt.Sprintf("%08x\n", crc32.Checksum(text, castagnoli)) != string(b[SentinelBytes-9:]) {
		return o, "", 0, fmt.Errorf("%w: wrong checksum", ErrSentinel)
	}
	var s sentinel
	if err := json.Unmarshal(text, &s); err != nil {
		return o, "", 0, fmt.Errorf("%w: %v", ErrSentinel, err)
	}
	if s.V != 1 || s.Run != run || s.Attempt != id {
		return o, "", 0, fmt.Errorf("%w: it belongs to run %q attempt %s", ErrSentinel, s.Run, s.Attempt)
	}
	return s.Outcome, s.Host, s.Slot, nil
}
