//go:build linux

package labfs_test

import (
	"testing"

	"dcs-tui/internal/labfs"
)

// TestLostRepliesInARun checks a run in which the replies to creating, linking, or removing files
// are lost and the repeated requests get wrong answers. No job is lost, and none starts twice.
func TestLostRepliesInARun(t *testing.T) {
	for _, c := range []struct {
		name, pattern string
		op            labfs.Op
	}{
		{"status file linked", "*.status", labfs.Link},
		{"its draft made", ".new.*", labfs.Create},
		{"its draft removed", ".new.*", labfs.Unlink},
		{"directory made", "", labfs.Mkdir},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, 3, labfs.Options{Stale: long, WriteBack: true})
			const n = 40
			hits := 0
			var all []*labfs.Injected
			for _, m := range l.mounts {
				all = append(all, m.LostReply(c.op, c.pattern, 3))
			}
			e := l.dcs(0, "run", "--no-tui", "--json", "--hosts", l.inventory(2, 2, ""), "--run-dir", l.run(), l.jobs(n, "true")).wait()
			if e.code != 0 {
				t.Fatalf("exit %d\n%s", e.code, e.err)
			}
			for _, f := range all {
				hits += f.Hits()
			}
			if hits == 0 {
				t.Errorf("no reply was lost")
			}
			l.counted(n, "succeeded", e)
			if got := l.ranOnce(n); got != n {
				t.Errorf("%d starts for %d jobs\n%s", got, n, e.err)
			}
			for _, x := range e.lines(t) {
				if x.Attempts != 1 {
					t.Errorf("%d replies lost, and job %d needed %d attempts:\n%s", hits, x.Job, x.Attempts, e.err)
					break
				}
			}
			t.Logf("%d replies lost", hits)
		})
	}
}
