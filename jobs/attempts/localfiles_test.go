package attempts_test

import (
	"slices"
	"testing"

	"dcs-tui/jobs"
	"dcs-tui/jobs/attempts"
	"dcs-tui/jobs/rundir"
)

// TestAttemptIsHereIfListed checks that an attempt is here if a listing shows its status file (X2).
// Nothing is opened or listed in a shard that does not exist.
func TestAttemptIsHereIfListed(t *testing.T) {
	p := newPlace(t)
	p.exit(attemptID(17, 2), "melon4", jobs.Outcome{})
	p.put(attemptID(18, 1), jobs.FileOut, []byte("brought in part"))
	p.exit(attemptID(2500, 1), "melon4", jobs.Outcome{})
	d := &disk{Disk: rundir.OS}
	h := attempts.NewLocalFiles(d, p.dir)
	for id, want := range map[jobs.AttemptID]bool{attemptID(17, 2): true, attemptID(17, 1): false,
		attemptID(18, 1): false, attemptID(2500, 1): true, attemptID(7000, 1): false} {
		if got := h.Has(id); got != want {
			t.Errorf("%s: %v", id, got)
		}
	}
	slices.Sort(d.listed)
	if want := []string{"000", "002", "attempts"}; !slices.Equal(d.listed, want) || len(d.opened) > 0 {
		t.Errorf("listed %v, opened %v, want %v", d.listed, d.opened, want)
	}
	if (*attempts.LocalFiles)(nil).Has(attemptID(17, 2)) {
		t.Error("nobody looked, and it is here")
	}
}
