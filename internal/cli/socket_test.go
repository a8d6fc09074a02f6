package cli

import (
	"encoding/json"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"dcs-tui/dispatch/socket"
	"dcs-tui/internal/polltest"
	"dcs-tui/jobs"
	"dcs-tui/jobs/journal"
	"dcs-tui/jobs/live"
)

// TestDispatcherAnswersOnItsRecordedSocket checks that a dispatcher records its socket in the owner
// file and answers on it.
func TestDispatcherAnswersOnItsRecordedSocket(t *testing.T) {
	t.Parallel()
	screen := startRunningJob(t, "echo begun; while [ -e jobs.txt -a ! -e gate ]; do sleep 0.02; done\n",
		"--max-slots", "1")
	owner, err := journal.ReadOwner(screen.run)
	must(t, err)
	c, err := dialSocket(t.Context(), screen.run, owner)
	must(t, err)
	defer c.Close()
	if h := c.Hello(); h.Run != screen.run.UID() || h.Epoch != owner.Epoch || h.Token != owner.Token ||
		h.PID != owner.PID {
		t.Errorf("got %+v, want that of %+v", h, owner)
	}
	text, err := c.Why(t.Context(), 1)
	must(t, err)
	checkContains(t, text, "Job 1 runs on")
	var pushed atomic.Pointer[live.State]
	must(t, c.Follow(t.Context(), func(live.Durable) {}, func(s *live.State) { pushed.Store(s) }))
	polltest.Until(t, "the state is pushed and written", func() bool {
		written, err := live.Read(screen.run)
		must(t, err)
		for _, s := range []*live.State{pushed.Load(), written} {
			if s == nil || s.Token != owner.Token || s.Epoch != owner.Epoch || s.Durable.Bytes == 0 ||
				len(s.Hosts) != 1 || s.Hosts[0].Running != 1 {
				return false
			}
		}
		return true
	})
	const sent = "20260314T150200.000000Z-abcdefgh" // has the form of a file's name
	must(t, c.Request(t.Context(), sent, json.RawMessage(`{"v":1,"do":"pause","by":"ada"}`)))
	polltest.Until(t, "the request is recorded, and observers see it", func() bool {
		table, _, err := journal.Replay(screen.run)
		return err == nil && table.Requests[sent]
	})
	_, unknownJob := c.Why(t.Context(), 99)
	_, unknownFile := c.Read(t.Context(), socket.Read{Attempt: jobs.AttemptID{Job: 1, N: 1}, File: "../owner"})
	for want, err := range map[string]error{"the run has no job 99": unknownJob,
		`no output file "../owner"`: unknownFile} {
		var refused *socket.RefusedError
		if !errors.As(err, &refused) || !strings.Contains(refused.Why, want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	screen.openGate(t)
	<-c.Done()
	if !errors.Is(c.Err(), socket.ErrNotTaken) {
		t.Errorf("got %v, want a goodbye", c.Err())
	}
	polltest.Until(t, "the last state tells the end", func() bool {
		s, err := live.Read(screen.run)
		return err == nil && s.Finish != nil && s.Finish.How == jobs.ClosedDone
	})
}
