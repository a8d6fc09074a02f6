package results

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"dcs-tui/internal/text"
	"dcs-tui/jobs"
)

// maxRows is the number of failure causes that are printed. The others are only counted.
const maxRows = 15

// Lines returns the summary for people: the counts, the time and memory used, the hosts if there are
// several, and the failures grouped by cause. Lines are at most width columns, except for long names.
// Texts of jobs and hosts are cleaned.
func (s *Summary) Lines(width int) []string {
	var b strings.Builder
	s.writeCounts(&b)
	s.writeCost(&b)
	if len(s.Hosts) > 1 {
		s.writeHosts(&b)
	}
	if len(s.Failures) > 0 {
		b.WriteByte('\n')
		writeFailures(&b, s.Failures, width)
	}
	return strings.Split(strings.TrimRight(b.String(), "\n"), "\n")
}

func (s *Summary) writeCounts(b *strings.Builder) {
	b.WriteString(text.Plural(s.Jobs, "job"))
	if s.First != 0 {
		until := "last end"
		if s.UntilNow {
			until = "now"
		}
		fmt.Fprintf(b, " in %s, first start to %s", text.Duration(s.Wall()), until)
	}
	if states := StateCounts(s.Counts, s.Idle, !s.Undispatched); len(states) > 0 {
		b.WriteString(": " + strings.Join(states, ", "))
	}
	b.WriteByte('\n')
}

// Idle counts those of some running jobs that do not run at the moment.
type Idle struct {
	Suspended int // on hosts that people use
	Sent      int // sent to a host and not known to have started
}

// Sum returns how many jobs do not run at the moment.
func (n Idle) Sum() int { return n.Suspended + n.Sent }

// RunningText describes how many jobs run, are suspended, and are only sent to a host. If nobody
// dispatches the run, it is not known whether they run.
func RunningText(running int, idle Idle, dispatched bool) string {
	if !dispatched && running > 0 {
		return text.Thousands(running) + " may run"
	}
	var parts []string
	add := func(n int, what string) {
		if n > 0 {
			parts = append(parts, text.Thousands(n)+what)
		}
	}
	add(running-idle.Sum(), " running")
	add(idle.Suspended, " suspended")
	add(idle.Sent, " sent")
	return cmp.Or(strings.Join(parts, ", "), "0 running")
}

// StateCounts describes counts of jobs by state: "10 succeeded", "2 running". States that no
// job is in are left out.
func StateCounts(counts [jobs.Skipped + 1]int, idle Idle, dispatched bool) (parts []string) {
	for _, st := range []jobs.JobState{jobs.Succeeded, jobs.Failed, jobs.TimedOut, jobs.Canceled, jobs.Skipped,
		jobs.Running, jobs.Queued} {
		switch n := counts[st]; {
		case n == 0:
		case st == jobs.Running:
			parts = append(parts, RunningText(n, idle, dispatched))
		default:
			parts = append(parts, text.Thousands(n)+" "+strings.ReplaceAll(st.String(), "_", " "))
		}
	}
	return parts
}

func (s *Summary) writeCost(b *strings.Builder) {
	if s.LongestJob != 0 {
		fmt.Fprintf(b, "run time %s, CPU time %s; longest job %d with %s%s\n",
			text.Duration(s.Busy), text.Duration(s.CPU), s.LongestJob, text.Duration(s.Longest), s.largestMemory())
	}
	if s.Avoided > 0 {
		fmt.Fprintf(b, "%s avoided: at least as hard as one that had timed out\n", text.Plural(s.Avoided, "job"))
	}
	if s.Retried > 0 || s.Lost > 0 {
		fmt.Fprintf(b, "%s in all; %s more than once, %s lost with a host", text.Plural(s.Attempts, "attempt"),
			text.Plural(s.Retried, "job"), text.Plural(s.Lost, "attempt"))
		if s.Wasted > 0 { // the run time of lost attempts is not known
			fmt.Fprintf(b, "; %s of known run time did not count", text.Duration(s.Wasted))
		}
		b.WriteByte('\n')
	}
}

// largestMemory names the job with the most memory. Up to jobs.MemoryFloor, the memory of the job
// cannot be told from that of its supervisor.
func (s *Summary) largestMemory() string {
	switch {
	case s.MaxRSSBytes <= 0:
		return ""
	case s.MaxRSSBytes <= jobs.MemoryFloor:
		return ", largest job <" + text.Size(jobs.MemoryFloor)
	}
	return fmt.Sprintf(", largest job %d with %s", s.MaxRSSJob, text.Size(s.MaxRSSBytes))
}

func (s *Summary) writeHosts(b *strings.Builder) {
	rows := [][]string{{"host", "attempts", "failed", "run time"}}
	for _, h := range s.Hosts {
		rows = append(rows, []string{text.Clean(h.Host, 30), strconv.Itoa(h.Attempts), strconv.Itoa(h.Failed),
			text.Duration(h.Busy)})
	}
	b.WriteByte('\n')
	writeTable(b, rows, "lrrr")
}

func writeFailures(b *strings.Builder, list []Group, width int) {
	rows := [][]string{{"jobs", "failed with", "for example", "last line of stderr"}}
	used := 0 // columns written in this line
	for i, g := range list {
		if i == maxRows {
			break
		}
		first := &g.Examples[0]
		example := "job " + strconv.Itoa(int(first.Job))
		if first.Attempt.N > 0 {
			example = first.Attempt.String() + " on " + text.Clean(first.Host, 20)
		}
		row := []string{strconv.Itoa(g.Count), text.Clean(g.Cause, 40), example, ""}
		used = max(used, 3*2+max(4, len(row[0]))+max(11, utf8.RuneCountInString(row[1]))+
			max(11, utf8.RuneCountInString(example)))
		rows = append(rows, row)
	}
	for i := range rows[1:] {
		rows[i+1][3] = text.Clean(list[i].LastLine, max(20, width-used))
	}
	writeTable(b, rows, "rlll")
	if rest := len(list) - maxRows; rest > 0 {
		n := 0
		for _, g := range list[maxRows:] {
			n += g.Count
		}
		fmt.Fprintf(b, "and %s with %s\n", text.Plural(n, "job"), text.Plural(rest, "other cause"))
	}
}

// writeTable aligns columns, each "l" or "r", two blanks apart.
func writeTable(b *strings.Builder, rows [][]string, align string) {
	widths := make([]int, len(align))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for _, row := range rows {
		for i, cell := range row {
			row[i] = pad(cell, widths[i], align[i] == 'r')
		}
		b.WriteString(strings.TrimRight(strings.Join(row, "  "), " ") + "\n")
	}
}
