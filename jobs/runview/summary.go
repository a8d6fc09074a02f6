package runview

import (
	"fmt"
	"maps"
	"slices"
	"sort"
	"strconv"
	"strings"

	"dcs-tui/jobs"
	"dcs-tui/jobs/rundir"
)

// HostWord is the last event of a host.
type HostWord struct {
	At   jobs.Stamp
	Text string // as it was recorded
	Up   bool   // the host has been up
}

// After returns the word of a host that follows w.
func (w HostWord) After(host string, at jobs.Stamp, text string) HostWord {
	return HostWord{at, text, w.Up || text == host+" is up"}
}

// Hear enters what a record says of a host.
func Hear(words map[string]HostWord, r *jobs.Record) {
	switch {
	case r.Kind == jobs.KindEpoch:
		clear(words) // what an earlier dispatcher knew of hosts is past
	case r.Host != "" && r.Job == 0 && r.Reason != "":
		words[r.Host] = words[r.Host].After(r.Host, r.At, r.Reason)
	}
}

// maxTrouble bounds the sentences about hosts that were of no use.
const maxTrouble = 5

// minFailures is how many attempts must have failed on a host before it is compared
// with the others.
const minFailures = 3

// HostsOfNoUse says in a sentence each which hosts were of no use to a run: those that
// were never up, and those where attempts failed much more often than on the others. A
// run that went well in the end hides both, and took longer. Texts are not cleaned.
func HostsOfNoUse(t *jobs.Table, words map[string]HostWord) []string {
	had, all := CountHosts(t), HostCount{}
	for _, c := range had {
		all.Ended, all.Failed = all.Ended+c.Ended, all.Failed+c.Failed
	}
	var lines []string
	var idle []HostText
	for _, name := range slices.Sorted(maps.Keys(words)) {
		_, instance := t.Instances[name]
		if w := words[name]; had[name] == nil && w.Text != "" && !w.Up && !instance { // one that was up was not needed
			idle = append(idle, HostText{Host: name, Text: w.Text})
		}
	}
	for _, g := range GroupHosts(idle) {
		lines = append(lines, g.Title()+" ran nothing: "+jobs.Clean(g.Text, 100))
	}
	for name, c := range had {
		ended, failed := all.Ended-c.Ended, all.Failed-c.Failed // of the others
		if c.Failed >= minFailures && 2*c.Failed > c.Ended && 4*failed < ended {
			lines = append(lines, fmt.Sprintf("%s failed %d of %s, the others %d of %d: is what the jobs need there?",
				name, c.Failed, jobs.Plural(c.Ended, "attempt"), failed, ended))
		}
	}
	sort.Strings(lines)
	if more := len(lines) - maxTrouble; more > 0 {
		lines = append(lines[:maxTrouble], fmt.Sprintf("and %d more like these", more))
	}
	return lines
}

// InputText says what is missing of the input of a run.
func InputText(i rundir.Input, t *jobs.Table) string {
	const maxFault = 60
	why := "its input was not read to its end"
	if i.State == rundir.InputBad {
		why = "its input was read no further than " + jobs.Clean(i.Fault, maxFault)
	}
	if i.Again && i.State == rundir.InputOpen {
		return "not all of its jobs were made yet: " + Came(t) + "; resume makes the rest"
	}
	return why + ": " + Came(t) + "; feed the rest to a new run"
}

// Came says how many jobs of an input are part of the run.
func Came(t *jobs.Table) string {
	n := t.NumSpecs()
	switch n {
	case 0:
		return "no job had come"
	case 1:
		return "1 job had come"
	}
	text := strconv.Itoa(n) + " jobs had come"
	if last := t.Spec(jobs.ID(n)); last.Line > 0 {
		text += ", the last in line " + strconv.Itoa(last.Line)
	}
	return text
}

// HandedOver counts the jobs that count as running, and of which no attempt is
// known to have started: they wait on a host for a slot.
func HandedOver(t *jobs.Table) int {
	n := 0
	for j := range t.Rows() {
		if j.State == jobs.Running && OpenAttempt(j).State == jobs.AttemptLaunching {
			n++
		}
	}
	return n
}

// OpenAttempt is the attempt of a running job to show: one that has started, else
// the newest.
func OpenAttempt(j *jobs.Job) *jobs.Attempt {
	a := j.Last()
	for _, open := range j.Open() {
		if a = open; a.State == jobs.AttemptRunning {
			break
		}
	}
	if a == nil { // of a damaged journal
		a = &jobs.Attempt{}
	}
	return a
}

// RunningText says how many jobs run and how many are only handed over. Of a run that
// nobody dispatches nobody knows.
func RunningText(running, handed int, dispatched bool) string {
	switch {
	case !dispatched:
		return fmt.Sprintf("%d may run", running)
	case handed == 0:
		return fmt.Sprintf("%d running", running)
	case handed >= running:
		return fmt.Sprintf("%d handed over", handed)
	}
	return fmt.Sprintf("%d running, %d handed over", running-handed, handed)
}

// Counts says how many jobs are in each state, of a run that somebody dispatches or
// nobody.
func Counts(t *jobs.Table, dispatched bool) string {
	rest := t.Counts
	rest[jobs.Succeeded] = 0
	parts := []string{fmt.Sprintf("%d of %d ok", t.Counts[jobs.Succeeded], t.NumJobs())}
	return strings.Join(append(parts, StateCounts(rest, HandedOver(t), dispatched)...), ", ")
}

// StateCounts describes counts of jobs by state: "10 succeeded", "2 running". States that no
// job is in are left out.
func StateCounts(counts [jobs.Skipped + 1]int, handed int, dispatched bool) (parts []string) {
	for _, st := range []jobs.JobState{jobs.Succeeded, jobs.Failed, jobs.TimedOut, jobs.Cancelled, jobs.Skipped, jobs.Running, jobs.Queued} {
		switch n := counts[st]; {
		case n == 0:
		case st == jobs.Running:
			parts = append(parts, RunningText(n, handed, dispatched))
		default:
			parts = append(parts, fmt.Sprintf("%d %s", n, strings.ReplaceAll(st.String(), "_", " ")))
		}
	}
	return parts
}

// lastAttempts returns the newest attempts of a job, at most maxAttempts.
func lastAttempts(j *jobs.Job) []*jobs.Attempt {
	return slices.Clip(j.Attempts[max(0, len(j.Attempts)-maxAttempts):])
}

// maxAttempts bounds Detail.Attempts.
const maxAttempts = 100
