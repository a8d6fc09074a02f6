package attempts

import (
	"errors"
	"fmt"
	"hash/crc32"
	"strconv"
	"strings"

	"dcs-tui/jobs"
)

// Claim is the content of a claim file: who may run the attempt, or that nobody
// ever will.
type Claim struct {
	Tombstone bool // it was not started and never will be
	Run       string
	Attempt   jobs.AttemptID
	Host      string
	By        string // slot, pid and start of the process that made it: "3.4711.88123"
	Boot      string // boot id of its host
	At        jobs.Stamp
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sum is what a claim's line ends with: the CRC-32C of all before it, in hex. A claim
// that is damaged, or half overwritten by its tombstone, must not name a host, a boot
// or a fate.
func sum(line []byte) string { return fmt.Sprintf("%08x", crc32.Checksum(line, castagnoli)) }

// Append writes the claim as one line and returns b with it.
func (c *Claim) Append(b []byte) []byte {
	begin := len(b)
	word := "claim"
	if c.Tombstone {
		word = "tombstone"
	}
	b = append(b, "dcs-"...)
	b = append(append(append(b, word...), " 2 "...), c.Run...)
	b = c.Attempt.Append(append(b, ' '))
	b = append(append(b, ' '), c.Host...)
	b = append(append(b, ' '), c.By...)
	b = append(append(b, ' '), c.Boot...)
	b = strconv.AppendInt(append(b, ' '), int64(c.At), 10)
	return append(append(append(b, ' '), sum(b[begin:])...), '\n')
}

// ErrClaim is returned for anything but a whole claim. Its maker, or the
// machine, died before anything was started, or somebody damaged the file.
var ErrClaim = errors.New("not a whole claim")

// maxClaim is more than a claim can have, in bytes.
const maxClaim = 512

// ParseClaim reads what Append wrote.
func ParseClaim(b []byte) (c Claim, err error) {
	text, ok := strings.CutSuffix(string(b[:min(len(b), maxClaim)]), "\n")
	w := strings.Split(text, " ")
	ok = ok && len(w) == 9 && w[8] == sum(b[:len(text)-len(w[8])-1])
	if !ok || w[1] != "2" || w[0] != "dcs-claim" && w[0] != "dcs-tombstone" {
		return c, fmt.Errorf("%w: %.60q", ErrClaim, b)
	}
	id, err1 := jobs.ParseAttemptID(w[3])
	at, err2 := strconv.ParseInt(w[7], 10, 64)
	if err1 != nil || err2 != nil || !process(w[5]) {
		return c, fmt.Errorf("%w: %.60q", ErrClaim, b)
	}
	return Claim{w[0] == "dcs-tombstone", w[2], id, w[4], w[5], w[6], jobs.Stamp(at)}, nil
}

// process says whether s is three numbers with dots between them.
func process(s string) bool {
	parts := strings.Split(s, ".")
	for _, p := range parts {
		if _, err := strconv.ParseUint(p, 10, 64); err != nil {
			return false
		}
	}
	return len(parts) == 3
}
