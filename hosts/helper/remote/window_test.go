//go:build linux

package remote

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Promises 1 to 3 and 5: a disk that is full for a while, or a file system that
// refuses all writes, costs time and nothing else. What ended while it was so has
// its outcome, the trouble is said on a line with the reason, and afterwards all
// goes on by itself.
func TestTroubleForAWhile(t *testing.T) {
	ways := []string{"ENOSPC", "EDQUOT", "ESTALE", "EIO", "EROFS"}
	places := []string{"attempts", "spool", ""}
	for i, how := range ways {
		for j, where := range places {
			network := (i+j)%2 == 1
			if testing.Short() && i != j {
				continue
			}
			t.Run(how+" in "+strings.TrimSpace("all "+where), func(t *testing.T) {
				p := &plan{Network: network, Call: callKey{Op: how, Path: where}, How: howFull}
				d := newDriver(t, p)
				full := filepath.Join(p.Dir, "full")
				gate := d.gate()
				first := d.add("read x < "+gate+"; exit 7", exits(7))
				// A probe calls running what has been claimed and has no files yet: that could still be refused.
				d.until("the first runs", func() bool { return first.last().started && d.runs(first.last().id) > 0 })
				write(t, full, "")
				d.add("exit 0", exits(0))
				d.add("exit 9", exits(9))
				d.launch()
				d.pass(gate)
				d.until("it is said why", func() bool { return d.hasSaid(errnos[how].Error()) })
				if err := os.Remove(full); err != nil {
					t.Fatal(err)
				}
				d.until("all are over", d.allDone)
				if len(first.attempts) > 1 {
					t.Errorf("what ran through it was run again: %s", d.state())
				}
				d.end()
			})
		}
	}
}

func (d *driver) hasSaid(text string) bool {
	for _, s := range d.said {
		if strings.Contains(s, text) {
			return true
		}
	}
	return false
}
