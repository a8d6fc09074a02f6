package cli

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"dcs-tui/jobs"
	"dcs-tui/jobs/rundir"
)

// selection says which jobs of a run a command is about. The jobs named by number and
// the rules are to be met both.
type selection struct {
	named  rundir.Ranges // nil: all
	all    bool          // --all
	failed bool          // --failed
	where  []string      // KEY=VALUE, several with commas between
}

// whereKeys are the keys of --where, in the order in which they are explained.
var whereKeys = []string{"state", "exit", "signal", "host", "name", "queue"}

const whereHelp = "only jobs with KEY=VALUE: state, exit, signal, host (of the last attempt), name or queue; * stands for any text, all of several count"

// parseNamed reads the arguments behind RUN: "3", "3-17", "3,9-12".
func (s *selection) parseNamed(args []string) error {
	if len(args) == 0 {
		return nil
	}
	named, err := rundir.ParseRanges(strings.Join(args, ","))
	if err != nil {
		return usagef("%w", err)
	}
	s.named = named
	return nil
}

// rules reads --where.
func (s *selection) rules() (map[string]string, error) {
	rules := map[string]string{}
	for _, text := range s.where {
		for rule := range strings.SplitSeq(text, ",") {
			key, value, ok := strings.Cut(rule, "=")
			if key = strings.TrimSpace(key); !ok || !slices.Contains(whereKeys, key) {
				return nil, usagef("--where %s: KEY=VALUE is wanted, KEY one of %s", shorten(rule), strings.Join(whereKeys, ", "))
			}
			if _, twice := rules[key]; twice {
				return nil, usagef("--where: %s is given twice; no job has two", key)
			}
			if _, err := path.Match(value, ""); err != nil {
				return nil, usagef("--where %s: the pattern is not whole", shorten(rule))
			}
			if err := checkWhere(key, value); err != nil {
				return nil, err
			}
			rules[key] = value
		}
	}
	return rules, nil
}

// checkWhere refuses values that no job can ever have: most are slips.
func checkWhere(key, value string) error {
	switch key {
	case "state":
		var st jobs.JobState
		if st.UnmarshalText([]byte(value)) != nil && !strings.ContainsAny(value, "*?[") {
			return usagef("--where state=%s: the states are queued, running, succeeded, failed, timed_out, cancelled, skipped", shorten(value))
		}
	case "exit":
		if n, err := strconv.Atoi(value); err != nil || n < 0 || n > 255 {
			return usagef("--where exit=%s: an exit code is a number from 0 to 255", shorten(value))
		}
	}
	return nil
}

// matches says whether a job has what the rules want.
func matches(j *jobs.Job, rules map[string]string) bool {
	for key, want := range rules {
		a := j.Last()
		var has string
		switch key {
		case "state":
			has = j.State.String()
		case "name":
			has = j.Spec.Name
		case "queue":
			has = j.Spec.Queue
		case "host":
			if a == nil {
				return false
			}
			has = a.Host
		default: // exit, signal: of the attempt that decided
			o := lastOutcome(j)
			if o == nil {
				return false
			}
			if has = o.Signal; key == "exit" {
				if o.Signal != "" {
					return false
				}
				has = itoa(o.Exit)
			}
		}
		// A name may hold slashes, which path.Match keeps apart.
		ok, _ := path.Match(strings.ReplaceAll(want, "/", "\x00"), strings.ReplaceAll(has, "/", "\x00"))
		if !ok {
			return false
		}
	}
	return true
}

// lastOutcome is the newest outcome that a job has.
func lastOutcome(j *jobs.Job) *jobs.Outcome {
	for _, a := range slices.Backward(j.Attempts) {
		if a.Outcome != nil {
			return a.Outcome
		}
	}
	return nil
}

// pick returns the jobs that are meant. Those named by number are taken whatever
// state they are in: whoever carries the request out counts those it leaves alone.
// Others only if fit says so.
func (s *selection) pick(t *jobs.Table, fit func(jobs.JobState) bool) ([]jobs.ID, error) {
	rules, err := s.rules()
	if err != nil {
		return nil, err
	}
	if last := s.named.Last(); int(last) > len(t.Jobs) {
		return nil, usagef("there is no job %d: the run has %s", last, plural(len(t.Jobs), "job"))
	}
	if s.named != nil && len(rules) == 0 && !s.failed {
		return s.named.IDs(jobs.ID(len(t.Jobs))), nil
	}
	var ids []jobs.ID
	for i := range t.Jobs {
		j, id := &t.Jobs[i], jobs.ID(i+1)
		switch {
		case s.named != nil && !s.named.Has(id), !fit(j.State):
		case s.failed && j.State != jobs.Failed && j.State != jobs.TimedOut:
		case matches(j, rules):
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// completeWhere completes the keys, and the states.
func completeWhere(_ *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
	before, last := "", prefix
	if i := strings.LastIndexByte(prefix, ','); i >= 0 {
		before, last = prefix[:i+1], prefix[i+1:]
	}
	var words []string
	for _, key := range whereKeys {
		if key != "state" || !strings.HasPrefix(last, "state=") {
			words = append(words, key+"=")
			continue
		}
		for st := jobs.Queued; st <= jobs.Skipped; st++ {
			words = append(words, "state="+st.String())
		}
	}
	var fit []string
	for _, w := range words {
		if strings.HasPrefix(w, last) {
			fit = append(fit, before+w)
		}
	}
	return fit, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}
