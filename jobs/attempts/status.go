package attempts

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"dcs-tui/jobs"
	"dcs-tui/jobs/rundir"
)

// The status file of an attempt has two blocks of 512 bytes. The first is the claim. It is
// written when the file is created (O_EXCL): the creator may start the attempt, or prevents
// that anybody does (a tombstone). The second is reserved with zeros, so that the outcome can
// be written to a full disk, and becomes the sentinel when the attempt has ended. A block is
// one line of text, padded with blanks, that ends with the CRC-32C of the rest. Each block
// names run, attempt, and host, so that it is valid by itself: a job can damage the other one,
// and a torn write can cut it short.
const (
	blockBytes = 512

	// SentinelAt is the offset of the sentinel, in bytes.
	SentinelAt = blockBytes
	// StatusBytes is the exact size of a status file.
	StatusBytes = 2 * blockBytes
)

// ErrStatus is returned for a file that is not a whole status file.
var ErrStatus = errors.New("not a whole status file")

// Claim is the first block. It names the process that may run the attempt, or is a tombstone.
type Claim struct {
	Tombstone bool // it was not started and never will be
	Run       string
	Attempt   jobs.AttemptID
	Host      string
	By        string // slot, pid and start of the process that made it: "3.4711.88123"
	Boot      string // boot id of its host
	At        jobs.Stamp
}

// sentinel is the text of the second block.
type sentinel struct {
	V       int            `json:"v"`
	Run     string         `json:"run"`
	Attempt jobs.AttemptID `json:"attempt"`
	Host    string         `json:"host"`
	Slot    int            `json:"slot"`
	Outcome jobs.Outcome   `json:"outcome"`
}

// sumBytes is the length of the end of a block: the checksum in hex, and a newline.
const sumBytes = 9

// seal pads the text in b from begin on to a whole block.
func seal(b []byte, begin int) []byte {
	for len(b)-begin < blockBytes-sumBytes {
		b = append(b, ' ')
	}
	return append(b, jobs.Checksum(b[begin:])+"\n"...)
}

// unseal returns the text of a whole block.
func unseal(b []byte) (text []byte, ok bool) {
	if len(b) != blockBytes {
		return nil, false
	}
	text = b[:blockBytes-sumBytes]
	return bytes.TrimRight(text, " "), jobs.Checksum(text)+"\n" == string(b[blockBytes-sumBytes:])
}

// Encode returns the status file of an attempt that has not ended.
func (c *Claim) Encode() []byte {
	b := make([]byte, 0, StatusBytes)
	word := "claim"
	if c.Tombstone {
		word = "tombstone"
	}
	b = append(b, "dcs-"...)
	b = strconv.AppendInt(append(append(b, word...), ' '), int64(jobs.FormatClaim.Version), 10)
	b = append(append(b, ' '), c.Run...)
	b = c.Attempt.Append(append(b, ' '))
	b = append(append(b, ' '), c.Host...)
	b = append(append(b, ' '), c.By...)
	b = append(append(b, ' '), c.Boot...)
	b = strconv.AppendInt(append(b, ' '), int64(c.At), 10)
	return seal(b, 0)[:StatusBytes]
}

// Sentinel returns the second block after the end of the attempt. It contains neither the last line
// of stderr nor the path of a limit, and cuts a long error text.
func (c *Claim) Sentinel(slot int, o jobs.Outcome) []byte {
	o.LastLine, o.ProcessLimit.Path = "", ""
	for {
		// Plain fields: cannot fail.
		body, _ := json.Marshal(sentinel{jobs.FormatSentinel.Version, c.Run, c.Attempt, c.Host, slot, o})
		if len(body) < blockBytes-sumBytes {
			return seal(body, 0)
		}
		// And an error must not vanish: without one the attempt could pass for a success.
		if len(o.Error) < 2 {
			// Uid and host names are bounded where they are made.
			panic("attempts: a sentinel's names are too long")
		}
		o.Error = o.Error[:len(o.Error)/2]
	}
}

// EncodeFinished returns the status file of an attempt that has ended.
func (c *Claim) EncodeFinished(slot int, o jobs.Outcome) []byte {
	b := c.Encode()
	copy(b[SentinelAt:], c.Sentinel(slot, o))
	return b
}

// Decode decodes the status file of an attempt of a run. A sentinel outweighs any claim.
func Decode(b []byte, run string, id jobs.AttemptID) Fate {
	f := Fate{Attempt: id, State: Unreadable}
	if c, ok := decodeClaim(b[:min(len(b), blockBytes)]); ok && c.Run == run && c.Attempt == id {
		f.State, f.Claim, f.Host = Claimed, c, c.Host
		if c.Tombstone {
			f.State = NeverStarts
		}
	}
	end := b[min(len(b), SentinelAt):]
	if len(b) == StatusBytes && bytes.Count(end, []byte{0}) == len(end) {
		return f
	}
	var s sentinel
	text, ok := unseal(end)
	if !ok || json.Unmarshal(text, &s) != nil || s.V != jobs.FormatSentinel.Version || s.Run != run || s.Attempt != id {
		f.Damaged = true
		return f
	}
	f.State, f.Host, f.Slot, f.Outcome = Finished, s.Host, s.Slot, s.Outcome
	return f
}

// decodeClaim reads the first block.
func decodeClaim(b []byte) (c Claim, ok bool) {
	text, ok := unseal(b)
	w := strings.Split(string(text), " ")
	if !ok || len(w) != 8 || w[1] != strconv.Itoa(jobs.FormatClaim.Version) ||
		w[0] != "dcs-claim" && w[0] != "dcs-tombstone" {
		return c, false
	}
	id, err1 := jobs.ParseAttemptID(w[3])
	at, err2 := strconv.ParseInt(w[7], 10, 64)
	if err1 != nil || err2 != nil || !isProcess(w[5]) {
		return c, false
	}
	return Claim{w[0] == "dcs-tombstone", w[2], id, w[4], w[5], w[6], jobs.Stamp(at)}, true
}

// isProcess reports whether s is three numbers with dots between them.
func isProcess(s string) bool {
	parts := strings.Split(s, ".")
	for _, p := range parts {
		if _, err := strconv.ParseUint(p, 10, 64); err != nil {
			return false
		}
	}
	return len(parts) == 3
}

// State is the state of an attempt as its files show it.
type State uint8

// The states. Only NeverStarts and Finished are final.
const (
	Nothing State = iota // no status file is listed, which proves nothing
	Claimed              // it was started, or was about to be started
	// There is a status file, but neither a whole claim nor a whole sentinel in it.
	Unreadable
	NeverStarts // a tombstone
	Finished    // a whole sentinel
)

// Fate is what is known of an attempt from its files alone.
type Fate struct {
	Attempt jobs.AttemptID
	State   State
	Claim   Claim  // zero unless a whole claim of this run and attempt is there
	Host    string // according to its sentinel or else its claim; "" if neither is whole
	Damaged bool   // the second block is neither a whole sentinel nor the reserved zeros
	Slot    int    // Finished
	Outcome jobs.Outcome
}

// EachFate calls each for every attempt that has a status file below dir, shard by shard, in order.
// This is enough to rebuild the outcome of a run whose journal is lost. If host is not empty, only
// attempts of that host are reported. If only is not empty, only attempts of these jobs are
// reported: no files of other jobs are opened, and shards without one of these jobs are not listed.
// If a call returns an error, EachFate stops and returns that error. Any other error gives the
// reason why attempts may have been missed.
func EachFate(d rundir.Disk, dir, run, host string, only jobs.Ranges, each func(Fate) error) error {
	l := list(d, dir)
	for _, shard := range l.allShards() {
		if len(only) > 0 && !mayHold(only, shard) {
			continue
		}
		for _, id := range l.startedAttempts(shard) {
			if len(only) > 0 && !only.Has(id.Job) {
				continue
			}
			f := l.readFate(run, id)
			if host != "" && f.Host != host {
				continue
			}
			if err := each(f); err != nil {
				return err
			}
		}
		delete(l.shards, shard) // a run may have a thousand of them
	}
	return l.errs.err()
}

// readFate reads the status file of an attempt if it was listed, and the last line of stderr
// of an attempt that has failed.
func (l *listing) readFate(run string, id jobs.AttemptID) Fate {
	if !l.isListed(id, jobs.FileStatus) {
		return Fate{Attempt: id}
	}
	// One byte more, to detect a longer file.
	f := Decode(l.read(jobs.AttemptFile(l.dir, id, jobs.FileStatus), 0, StatusBytes+1), run, id)
	if f.State == Finished && !f.Outcome.OK() && l.isListed(id, jobs.FileErr) {
		f.Outcome.LastLine = LastLine(l.read(jobs.AttemptFile(l.dir, id, jobs.FileErr), -LastBytes, LastBytes))
	}
	return f
}

const (
	LastBytes   = 4096 // maximum number of bytes of stderr that are read
	MaxLastLine = 200  // maximum length of the last line, in bytes
)

// LastLine returns the beginning of the last line that is not blank.
func LastLine(b []byte) string {
	b = bytes.TrimRight(b, " \t\r\n\x00")
	b = b[bytes.LastIndexByte(b, '\n')+1:]
	return string(b[:min(len(b), MaxLastLine)])
}
