package hosts

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Slurm is what a [[provider]] with type = "slurm" says of its allocations. Each instance is
// an allocation, and each node of it is a host.
type Slurm struct {
	Partition, Account, Gres string
	Time                     time.Duration // of an allocation
	Nodes                    int           // of an allocation
	Margin                   time.Duration // no job of unknown length starts so shortly before the end
	Options                  []string      // further arguments of sbatch
}

const (
	defaultMargin = 5 * time.Minute
	maxTime       = 365 * 24 * time.Hour
	maxNodes      = 1000
)

// slurmKeys are the keys that a [[provider]] has only with type = "slurm".
var slurmKeys = map[string]inventoryKey{
	"partition": {set: text(func(d *draft, s string) error { d.slurm.Partition = s; return nil })},
	"account":   {set: text(func(d *draft, s string) error { d.slurm.Account = s; return nil })},
	"gres":      {set: text(func(d *draft, s string) error { d.slurm.Gres = s; return nil })},
	"time":      {set: span(setTime)},
	"nodes":     {set: number(1, maxNodes, func(d *draft, n int) { d.slurm.Nodes = n })},
	"margin":    {set: span(func(d *draft, t time.Duration) error { d.slurm.Margin = t; return nil })},
	"sbatch":    {set: list(func(d *draft, args []string) error { d.slurm.Options = args; return nil })},
}

func init() {
	for name, k := range slurmKeys {
		k.own, k.provider = true, true
		inventoryKeys[name] = k
	}
}

func setType(d *draft, s string) error {
	if s != "slurm" {
		return fmt.Errorf(`%q is not known; there is "slurm", and without a type the commands create, list and terminate are given`, s)
	}
	d.provider.Slurm = &d.slurm
	return nil
}

func setTime(d *draft, t time.Duration) error {
	if t < time.Minute || t > maxTime {
		return fmt.Errorf("must be from 1m to 365d, not %s", t)
	}
	d.slurm.Time = t
	return nil
}

// providerKeys returns the keys that a [[provider]] must have. It reports those that belong
// to another type.
func (r *reader) providerKeys(n int, values map[string]any) (required []string) {
	if _, typed := values["type"]; typed {
		for _, key := range []string{"create", "list", "terminate"} {
			if _, said := values[key]; said {
				r.bad(r.at.line("provider", n, key), `%s: type = "slurm" supplies this command`, key)
			}
		}
		return []string{"name", "time", "max"}
	}
	for _, key := range sortedKeys(values) {
		if _, slurm := slurmKeys[key]; slurm {
			r.bad(r.at.line("provider", n, key), `%s belongs in a [[provider]] with type = "slurm"`, key)
		}
	}
	return []string{"name", "create", "list", "terminate", "max"}
}

// slurm completes a provider of allocations. False: something is wrong with it.
func (r *reader) slurm(p *Provider, n int, values map[string]any) bool {
	s := *p.Slurm
	s.Nodes = max(1, s.Nodes)
	if _, said := values["margin"]; !said {
		s.Margin = min(defaultMargin, s.Time/4)
	}
	if s.Margin >= s.Time {
		r.bad(r.at.line("provider", n, "margin"), "margin: no job would ever start, because it is not shorter than time")
		return false
	}
	if _, said := values["yield"]; !said {
		p.Host.Yield = false // what is allocated is ours; others use the rest of the node
	}
	if slices.Equal(p.Host.Command, []string{"srun"}) {
		p.Host.Command = strings.Fields("srun --jobid={job} --overlap --nodes=1 --ntasks=1 --mem=0 --cpu-bind=none --nodelist={address}")
		r.warn(r.at.line("provider", n, "link"), "link = srun: when a link ends, or this dispatcher dies, Slurm may end the jobs of its node, "+
			"which then run again elsewhere; over ssh they go on (docs/slurm.md)")
	}
	p.Slurm = &s
	p.Create, p.Terminate = s.sbatch(p.Host.Slots.Fixed), "scancel --user=\"$(id -un)\" --jobname={name}"
	p.List = "squeue --noheader --user=\"$(id -un)\" --states=PENDING,CONFIGURING,RUNNING,SUSPENDED --format='" + SlurmFormat + "'"
	return true
}

// SlurmFormat is what squeue prints of an allocation.
const SlurmFormat = "%j|%A|%T|%L|%N|%r"

// sbatch returns the command that asks for an allocation. slots is how many each node
// gives; 0: the whole node.
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
	for _, o := range s.Options {
		args = append(args, ShellQuote(o))
	}
	return "sbatch " + strings.Join(args, " ") + " --wrap=" + ShellQuote(slurmScript)
}

// slurmScript holds the allocation. It ends when, for {idle} seconds, no process of a
// dispatcher or of its jobs is on any of the nodes. If that cannot be found out, the
// allocation stays until its time is over.
const slurmScript = `unused=0
every=$(( {idle} < 15 ? {idle} : 15 ))
while [ "$unused" -lt {idle} ]; do
	sleep "$every"
	used=$(srun --overlap --nodes="$SLURM_NNODES" --ntasks-per-node=1 --mem=0 --cpu-bind=none sh -c '
		if ls -l /proc/[0-9]*/exe 2>/dev/null | grep -q "/dcs-tui-"; then echo used; fi') || used=unknown
	if [ -n "$used" ]; then unused=0; else unused=$((unused + every)); fi
done`
