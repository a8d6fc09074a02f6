package journal

import (
	"os"
	"strings"
	"testing"
)

// Issue 3.6: a run directory that was removed under its dispatcher is named as such
// by the watch for other dispatchers and by the beat, and starts nobody's fence.
func TestRemovedRunIsNamed(t *testing.T) {
	r := newRun(t)
	j, _, _ := take1(t, r, TakeOptions{})
	if err := os.RemoveAll(r.Dir); err != nil {
		t.Fatal(err)
	}
	by, err := j.Fenced()
	if by != 0 || err == nil || !strings.Contains(err.Error(), r.Dir) || !strings.Contains(err.Error(), "is gone: was it removed?") {
		t.Errorf("%d, %v", by, err)
	}
	if err := j.Beat(); err == nil || !strings.Contains(err.Error(), "is gone") {
		t.Errorf("beat: %v", err)
	}
	crash(t, j)
}

// DESIGN 6, issue 3.1: when journal files are lost no epoch is used twice, because the hosts
// remember them, and every later dispatcher knows that facts are missing.
func TestLostFilesUseNoEpochTwice(t *testing.T) {
	for _, lost := range [][]int{{3}, {2, 3}, {1, 2, 3}} {
		r := newRun(t)
		for range 3 {
			j, _, _ := take1(t, r, force)
			crash(t, j)
		}
		for _, n := range lost {
			if err := os.Remove(fileOf(n).path(r)); err != nil {
				t.Fatal(err)
			}
		}
		for epoch := 4; epoch <= 5; epoch++ {
			j, table, report := take1(t, r, force)
			if j.file.epoch != epoch || !report.Damaged || !table.Damaged || !strings.Contains(strings.Join(report.Warnings, "\n"), "000003.jsonl is missing") {
				t.Errorf("without %d: epoch %d, want %d, damaged %v: %q", lost, j.file.epoch, epoch, report.Damaged, report.Warnings)
			}
			crash(t, j)
		}
		if _, report := replay1(t, r); !report.Damaged {
			t.Errorf("without %d: it shows no damage", lost)
		}
	}
}
