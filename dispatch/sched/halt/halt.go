// Package halt decides when a run stops launching because of its results: after so many of them
// (--halt), or when no attempt finds its command. The core drains the run then (sched/finish.go).
package halt

import (
	"fmt"
	"iter"
	"strconv"

	"dcs-tui/internal/text"
	"dcs-tui/jobs"
)

// Rule describes when the run stops launching because of its results. The zero value means only if
// no command is found.
type Rule struct {
	Of      Results
	Jobs    int     // number of results that count; 0: see Percent
	Percent float64 // share of results that count among the jobs of the run, 0 to 100
	Now     bool    // running attempts are ended, too; their jobs are queued again
	Never   bool    // not even when no command is found
}

// Results selects the results that count for a Rule.
type Results uint8

const (
	Failures  Results = iota // failed and timed-out jobs
	Successes                // succeeded jobs
	All                      // all of these
)

// ResultWords are the words of --halt for Results.
var ResultWords = [...]string{"fail", "success", "done"}

// String returns the value of --halt for a rule that counts results, in its shortest form. The short form
// of two failures would be 2, which --halt refuses because it has another meaning in GNU parallel.
func (r Rule) String() string {
	n := strconv.Itoa(r.Jobs)
	if r.Jobs == 0 {
		n = strconv.FormatFloat(r.Percent, 'f', -1, 64) + "%"
	}
	switch {
	case r.Now:
		return "now," + ResultWords[r.Of] + "=" + n
	case r.Of != Failures || r.Jobs == 2:
		return "soon," + ResultWords[r.Of] + "=" + n
	}
	return n
}

// maxNotFound is the number of jobs without a command that halt a run in which no attempt has ended
// otherwise. It is reached on each host before a sweep of thousands of jobs is used up.
const maxNotFound = 10

// Exit codes of a shell for a command that it cannot run, and for one that it cannot find.
const (
	exitNotRunnable = 126
	exitNotFound    = 127
)

// Counter decides whether the results halt the run. The zero value has no rule.
type Counter struct {
	Rule Rule
	// Results counts results by state: those of a table since a person started or continued the run.
	// Otherwise a run that a person resumes would halt again at once. nil: there are none.
	Results *[jobs.Skipped + 1]int
	// Jobs whose command was not found, at most maxNotFound, and the hosts on which that was so. nil
	// after an attempt that ended otherwise.
	notFound map[jobs.ID]bool
	without  map[string]bool
	isFound  bool   // an attempt ended otherwise, or a person continued a halted run
	lastLine string // of such an attempt
}

// Continue forgets attempts without a command, because a person has continued a halted run.
func (c *Counter) Continue() { c.isFound, c.notFound, c.without = true, nil, nil }

// CountAttempt counts an attempt that has exited.
func (c *Counter) CountAttempt(r *jobs.Record) {
	o := r.Outcome
	switch {
	case c.isFound || o.Error != "" || o.Stopped:
	case o.Signal != "" || o.Exit != exitNotRunnable && o.Exit != exitNotFound:
		c.isFound, c.notFound, c.without = true, nil, nil
	default:
		if c.notFound == nil {
			c.notFound, c.without = map[jobs.ID]bool{}, map[string]bool{}
		}
		c.without[r.Host] = true
		if len(c.notFound) < maxNotFound {
			c.notFound[r.Job] = true
		}
		c.lastLine = o.LastLine
	}
}

// counted returns the number of results that count, and a noun for them.
func (c *Counter) counted() (n int, what string) {
	if c.Results == nil {
		return 0, ""
	}
	succeeded, failed := c.Results[jobs.Succeeded], c.Results[jobs.Failed]+c.Results[jobs.TimedOut]
	switch c.Rule.Of {
	case Successes:
		return succeeded, "succeeded"
	case All:
		return succeeded + failed, "ended"
	}
	return failed, "failed"
}

// halts reports whether n results that count halt a run with this number of jobs, which is 0 while
// it is not known.
func (r Rule) halts(n, numJobs int) bool {
	return r.Jobs > 0 && n >= r.Jobs || r.Percent > 0 && numJobs > 0 && n > 0 &&
		float64(n)*100 >= r.Percent*float64(numJobs)
}

// Reached returns why the results halt a run with this number of jobs, which is 0 while it is not
// known. It returns "" if they do not.
func (c *Counter) Reached(numJobs int) string {
	n, what := c.counted()
	if !c.Rule.halts(n, numJobs) {
		return ""
	}
	which := text.Plural(n, "job")
	if c.Rule.Jobs == 0 {
		which = fmt.Sprintf("%d of %d jobs", n, numJobs)
	}
	return fmt.Sprintf("%s %s %s (--halt %s)", which, text.Verb(n, "has", "have"), what, c.Rule)
}

// IsNear reports whether one more result halts a run with this number of jobs; see Reached.
func (c *Counter) IsNear(numJobs int) bool {
	n, _ := c.counted()
	return c.Rule.halts(n+1, numJobs)
}

// IsGoalReached reports whether jobs in these states, all of a run, have the results for which its user
// gave the rule: enough successes, whatever else has failed, or enough results without a failure.
func (r Rule) IsGoalReached(counts [jobs.Skipped + 1]int) bool {
	c, numJobs := Counter{Rule: r, Results: &counts}, 0
	for _, n := range counts {
		numJobs += n
	}
	n, _ := c.counted()
	isClean := counts[jobs.Failed]+counts[jobs.TimedOut] == 0
	return (r.Of == Successes || r.Of == All && isClean) && r.halts(n, numJobs)
}

// NoCommand returns why the run is halted because the first jobs have not found their commands on
// any host that takes jobs. It returns "" if it is not. usable yields the names of those hosts.
func (c *Counter) NoCommand(usable iter.Seq[string]) string {
	if len(c.notFound) < maxNotFound || c.Rule.Never {
		return ""
	}
	for host := range usable {
		if !c.without[host] {
			return ""
		}
	}
	why := fmt.Sprintf("the first %d jobs exited with 126 or 127: their command was not found or cannot be run",
		maxNotFound)
	if line := text.Shorten(text.Line(c.lastLine)); line != "" {
		why += " (" + line + ")"
	}
	return why
}
