package journal

import (
	"testing"

	"dcs-tui/jobs"
)

// TestTornOrDamaged: every beginning of a line is a line that was never completed, and no
// damage; lines that lost their newlines with their text are damage (promises 1 and 2).
func TestTornOrDamaged(t *testing.T) {
	line := appendLine(nil, &jobs.Record{Kind: jobs.KindExited, At: 12, Job: 3, N: 1, Host: "a", Reason: "é \\ \" {", Next: jobs.Running,
		Outcome: &jobs.Outcome{Started: 5, Ended: 9}})
	line = line[:len(line)-1]
	for n := range line {
		if !beginsLine(line[:n]) || !beginsLine(append(line[:n:n], 0, 0, 0)) {
			t.Errorf("the beginning %q is taken for damaged", line[:n])
		}
	}
	whole := append(line[:len(line):len(line)], '\n')
	for bit := range 8 {
		for at := range line { // a bit of the line, and one of its newline
			b := append([]byte(nil), whole...)
			b[at] ^= 1 << bit
			b[len(line)] ^= 1
			if beginsLine(b) {
				t.Errorf("bit %d of byte %d: %q is taken for the beginning of a line", bit, at, b)
			}
		}
	}
	for from := range line { // all that follows
		b := append([]byte(nil), whole...)
		for i := from; i < len(b); i++ {
			b[i] ^= 0x80
		}
		if beginsLine(b) {
			t.Errorf("from byte %d on: %q is taken for the beginning of a line", from, b)
		}
	}
}
