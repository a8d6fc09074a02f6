package hosts

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"dcs-tui/internal/text"
)

// Slurm describes the allocations of a [[provider]] with type = "slurm". Each instance is an
// allocation, and each node of it is a host.
type Slurm struct {
	Partition, Account, Gres string
	Time                     time.Duration // of an allocation
	Nodes                    int           // of an allocation
	Margin                   time.Duration // before the end, in which no job of unknown length starts
	Options                  []string      // further arguments of sbatch
}

const (
	defaultMargin = 5 * time.Minute
	maxTime       = 365 * 24 * time.Hour
	maxNodes      = 1000
)

func setType(d *draft, v any) error {
	s, err := oneLine(v)
	if err != nil {
		return err
	}
	if s != "slurm" {
		return fmt.Errorf(
			`%q is unknown: write "slurm", or leave type out and give the commands create, list, and terminate`, s,
		)
	}
	d.provider.Slurm = &d.slurm
	return nil
}

// providerKeys returns the keys that a [[provider]] must have. It reports keys that belong to
// the other type.
func (r *inventoryReader) providerKeys(n int, values map[string]any) (required []string) {
	if _, typed := values["type"]; typed {
		for _, key := range []string{"create", "list", "terminate"} {
			if _, said := values[key]; said {
				r.addProblem(r.positions.line("provider", n, key), `%s: type = "slurm" supplies this command`, key)
			}
		}
		return []string{"name", "time", "max"}
	}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if k := findKey(key); k != nil && k.scope == slurmOnly {
			r.addProblem(r.positions.line("provider", n, key), `%s belongs in a [[provider]] with type = "slurm"`, key)
		}
	}
	return []string{"name", "create", "list", "terminate", "max"}
}

// completeSlurm completes a provider of allocations. false: it has reported a problem.
func (r *inventoryReader) completeSlurm(p *Provider, n int, values map[string]any) bool {
	s := *p.Slurm
	s.Nodes = max(1, s.Nodes)
	if _, said := values["margin"]; !said {
		s.Margin = min(defaultMargin, s.Time/4)
	}
	if s.Margin >= s.Time {
		r.addProblem(r.positions.line("provider", n, "margin"),
			"margin: no job would ever start, because it is not shorter than time")
		return false
	}
	if _, said := values["yield"]; !said {
		p.Host.Yield = false // the allocation is ours alone
	}
	if slices.Equal(p.Host.Command, []string{"srun"}) {
		p.Host.Command = strings.Fields("srun --jobid={job} --overlap --nodes=1 --ntasks=1 --mem=0 --cpu-bind=none " +
			"--nodelist={address}")
		r.addWarning(r.positions.line("provider", n, "link"),
			"link = srun: when a link ends, or this dispatcher dies, Slurm may end the jobs of its node, "+
				"which then run again elsewhere; over ssh they continue (dcs-tui help slurm)")
	}
	p.Slurm = &s
	p.Create, p.Terminate = s.sbatch(p.Host.Slots.Fixed), "scancel --user=\"$(id -un)\" --jobname={name}"
	p.List = "squeue --noheader --user=\"$(id -un)\" --states=PENDING,CONFIGURING,RUNNING,SUSPENDED --format='" +
		SlurmFormat + "'"
	return true
}

// SlurmFormat is the format in which squeue prints allocations.
const SlurmFormat = "%j|%A|%T|%L|%N|%r"

// sbatch returns the command that requests an allocation. slots is the number of slots of
// each node; 0: the whole node.
func (s *Slurm) sbatch(slots int) string {
	args := []string{"--parsable", "--job-name={name}", "--no-requeue", "--output=/dev/null", "--ntasks-per-node=1",
		"--nodes=" + strconv.Itoa(s.Nodes), "--time=" + strconv.Itoa(int((s.Time+time.Minute-1)/time.Minute))}
	if slots > 0 {
		args = append(args, "--cpus-per-task="+strconv.Itoa(slots))
	} else {
		args = append(args, "--exclusive")
	}
	if s.Nodes > 1 {
		args = append(args, "--no-kill") // the other nodes outlive one that fails
	}
	for _, o := range [][2]string{{"--partition=", s.Partition}, {"--account=", s.Account}, {"--gres=", s.Gres}} {
		if o[1] != "" {
			args = append(args, ShellQuote(o[0]+o[1]))
		}
	}
	args = append(args, text.Each(s.Options, ShellQuote)...)
	return "sbatch " + strings.Join(args, " ") + " --wrap=" + ShellQuote(slurmScript)
}

// slurmScript keeps the allocation until, for {idle} seconds, no process of a dispatcher or
// of its jobs runs on any of the nodes. If that cannot be found out, the allocation stays
// until its time is over.
const slurmScript = `unused=0
every=$(( {idle} < 15 ? {idle} : 15 ))
while [ "$unused" -lt {idle} ]; do
	sleep "$every"
	used=$(srun --overlap --nodes="$SLURM_NNODES" --ntasks-per-node=1 --mem=0 --cpu-bind=none sh -c '
		if ls -l /proc/[0-9]*/exe 2>/dev/null | grep -q "/dcs-tui-"; then echo used; fi') || used=unknown
	if [ -n "$used" ]; then unused=0; else unused=$((unused + every)); fi
done`

// allocationLine parses a line of squeue in SlurmFormat. Lines of jobs with other names are
// not checked.
func allocationLine(p *Provider, line, prefix string) (Instance, error) {
	fields := strings.Split(line, "|")
	in := Instance{Name: fields[0]}
	if len(fields) > 1 && !strings.HasPrefix(in.Name, prefix) {
		return in, nil // not an allocation of the run; its name may contain bars
	}
	if len(fields) != 6 {
		return in, errors.New("it does not have six fields")
	}
	id, state, left, nodes, reason := fields[1], fields[2], fields[3], fields[4], fields[5]
	if _, err := strconv.ParseUint(id, 10, 64); err != nil {
		return in, errors.New("the second field is not the number of a job")
	}
	switch state {
	case "PENDING", "CONFIGURING":
		in.Pending = text.Clean(reason, maxLastLine)
		if state == "CONFIGURING" || reason == "None" || reason == "" {
			in.Pending = strings.ToLower(state)
		}
		return in, nil
	case "SUSPENDED":
	case "RUNNING":
		var err error
		if in.Left, err = timeLeft(left); err != nil {
			return in, err
		}
	default:
		return in, fmt.Errorf("the state %q was not asked for", state)
	}
	names, err := nodeNames(nodes)
	if err != nil {
		return in, err
	}
	for _, node := range names {
		h, err := p.Instance(in.Name+"."+node, node, 0)
		if err != nil {
			return in, err
		}
		for i, word := range h.Command {
			h.Command[i] = strings.ReplaceAll(word, "{job}", id)
		}
		in.Hosts = append(in.Hosts, h)
	}
	return in, nil
}

// timeLeft parses days-hours:minutes:seconds, of which the days and hours may be missing. It
// returns 0 if there is no end or it is not known, and at least 1 s otherwise.
func timeLeft(s string) (time.Duration, error) {
	switch s {
	case "UNLIMITED", "NOT_SET", "INVALID", "N/A":
		return 0, nil
	}
	m := remainingTimePattern().FindStringSubmatch(s)
	if m == nil {
		return 0, fmt.Errorf("%q is not a time that is left", s)
	}
	var n [4]int
	for i := range n {
		n[i], _ = strconv.Atoi(m[i+1]) // a part that is missing is 0
	}
	seconds := ((n[0]*24+n[1])*60+n[2])*60 + n[3]
	return max(time.Second, time.Duration(seconds)*time.Second), nil
}

// remainingTimePattern matches a time as squeue prints it.
var remainingTimePattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?:(\d{1,6})-)?(?:(\d{1,6}):)?(\d{1,6}):(\d{1,6})$`)
})

// nodePattern matches one node, or a range of nodes, in a list.
var nodePattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?:\[[^\]]*\]|[^\[,])+`) })

// nodeNames expands a list of nodes such as a[01-03,7],login2.
func nodeNames(list string) (names []string, err error) {
	patterns := nodePattern().FindAllString(list, -1)
	if list == "" || strings.Join(patterns, ",") != list {
		return nil, fmt.Errorf("%q is not a list of nodes", list)
	}
	for _, pattern := range patterns {
		some, err := Expand(pattern)
		if err != nil {
			return nil, err
		}
		names = append(names, some...)
		if len(names) > MaxHosts {
			return nil, fmt.Errorf("%q stands for more than %d nodes", list, MaxHosts)
		}
	}
	return names, nil
}
