//go:build linux

package remote

import (
	"encoding/binary"

	"dcs-tui/jobs"
)

// ticketBytes is the size of a ticket. It divides PIPE_BUF, so that a write of
// several is never torn and a read of one is always whole.
const ticketBytes = 32

// A ticket rings one supervisor: one spec waits. Job 0 asks the one that reads
// it to leave.
func appendTicket(b []byte, generation int64, id jobs.AttemptID) []byte {
	b = binary.LittleEndian.AppendUint64(b, uint64(generation))
	b = binary.LittleEndian.AppendUint64(b, uint64(id.Job))
	b = binary.LittleEndian.AppendUint64(b, uint64(id.N))
	return binary.LittleEndian.AppendUint64(b, 0)
}

func parseTicket(b []byte) (generation int64, id jobs.AttemptID) {
	return int64(binary.LittleEndian.Uint64(b)), jobs.AttemptID{
		Job: jobs.ID(binary.LittleEndian.Uint64(b[8:])),
		N:   int(binary.LittleEndian.Uint64(b[16:])),
	}
}
