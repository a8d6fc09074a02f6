package console

import (
	"fmt"
	"strings"
	"time"

	"dcs-tui/dispatch"
	"dcs-tui/dispatch/sched"
	"dcs-tui/jobs"
	"dcs-tui/jobs/results"
)

// Progress describes in one line how the run stands:
//
//	[######....] 61/100  16 running  2 failed  5 tried again  8.4/s  ETA 4s
//
// It is plain ASCII, so that its length is its width.
func Progress(s *dispatch.Snapshot) string {
	done := 0
	for st := jobs.Succeeded; st <= jobs.Skipped; st++ {
		done += s.Counts[st]
	}
	var b strings.Builder
	if s.Total > 0 && !s.More {
		const width = 20
		full := done * width / s.Total
		fmt.Fprintf(&b, "[%s%s] ", strings.Repeat("#", full), strings.Repeat(".", width-full))
	}
	fmt.Fprintf(&b, "%d/%d", done, s.Total)
	if s.More {
		b.WriteByte('+') // standard input is open: more may come
	}
	running := Running(s)
	fmt.Fprintf(&b, "  %d running", running)
	if n := s.Counts[jobs.Failed] + s.Counts[jobs.TimedOut]; n > 0 {
		fmt.Fprintf(&b, "  %d failed", n)
	}
	if s.Retries > 0 {
		fmt.Fprintf(&b, "  %d tried again", s.Retries)
	}
	if n := s.Counts[jobs.Cancelled] + s.Counts[jobs.Skipped]; n > 0 {
		fmt.Fprintf(&b, "  %d cancelled", n)
	}
	if s.Rate > 0 {
		b.WriteString("  " + rateText(s.Rate))
	}
	if s.ETA > 0 && running > 0 && done < s.Total && !s.More { // while nothing runs nobody knows
		b.WriteString("  ETA " + etaText(s.ETA))
	}
	up := 0
	for _, h := range s.Hosts {
		if h.State == sched.Up {
			up++
		}
	}
	switch {
	case s.Problem != "":
		b.WriteString("  LAUNCHING NOTHING: see above")
	case s.Paused:
		b.WriteString("  paused")
	case up == 0 && len(s.Hosts) == 1:
		b.WriteString("  connecting")
	case up < len(s.Hosts):
		fmt.Fprintf(&b, "  %d of %d hosts up", up, len(s.Hosts))
	}
	return b.String()
}

// Running returns the number of jobs that run, without those that are handed over.
func Running(s *dispatch.Snapshot) int {
	n := 0
	for _, h := range s.Hosts {
		n += h.Running
	}
	return min(n, s.Counts[jobs.Running])
}

// etaText returns a duration without fractions, which would flicker.
func etaText(d time.Duration) string {
	if d < time.Minute {
		return fmt.Sprintf("%d s", max(1, int(d.Seconds()+0.5)))
	}
	return results.HumanDuration(d)
}

// rateText writes a rate in the unit that gives a readable number.
func rateText(perSecond float64) string {
	switch {
	case perSecond >= 100:
		return fmt.Sprintf("%.0f/s", perSecond)
	case perSecond >= 0.95:
		return fmt.Sprintf("%.1f/s", perSecond)
	case perSecond*60 >= 1:
		return fmt.Sprintf("%.1f/min", perSecond*60)
	}
	return fmt.Sprintf("%.1f/h", perSecond*3600)
}
