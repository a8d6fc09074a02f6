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
