package hosts

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// MaxInstances bounds `max` of a provider.
const MaxInstances = 1000

// Provider is one [[provider]] of the inventory: commands that create, list and terminate
// instances, which are temporary hosts.
type Provider struct {
	Name      string
	Create    string // shell text, in which {name}, {run} and {idle} are replaced
	List      string
	Terminate string
	Max       int           // instances at a time
	Startup   time.Duration // how long an instance takes until it answers, an estimate
	Idle      time.Duration // after which an instance without work is terminated
	Price     float64       // of an instance per hour; 0: not given
	Slurm     *Slurm        // supplies the commands; nil: it is not of type slurm
	Host      Host          // template of an instance; its name is empty
}

// Same reports whether two providers differ in nothing but where they were read from.
func (p *Provider) Same(o *Provider) bool {
	a, b := *p, *o
	a.Host.File, a.Host.Line, b.Host.File, b.Host.Line = "", 0, "", 0
	return reflect.DeepEqual(a, b)
}

// Defaults of a provider.
const (
	defaultStartup = 2 * time.Minute
	defaultIdle    = 5 * time.Minute
)

// provider reads the n-th [[provider]].
func (r *reader) provider(def *draft, n int, values map[string]any) {
	own := r.draft(def, "provider", n, values, r.providerKeys(n, values)...)
	if own == nil {
		return
	}
	line := r.at.line("provider", n, "name")
	if p := nameProblem(own.name); p != "" {
		r.bad(line, "%s", p)
		return
	}
	for _, p := range r.providers {
		if p.Name == own.name {
			r.bad(line, "the provider %s is given twice, first on line %d", p.Name, p.Host.Line)
			return
		}
	}
	p := own.provider
	p.Name, p.Host = own.name, own.host
	p.Startup, p.Idle = cmp.Or(p.Startup, defaultStartup), cmp.Or(p.Idle, defaultIdle)
	if p.Host.Link == "local" {
		r.bad(r.at.line("provider", n, "link"), `link: an instance is another machine, so it cannot be "local"`)
		return
	}
	if p.Slurm != nil && !r.slurm(&p, n, values) {
		return
	}
	addresses, ok := r.addresses(p.Host, own, []string{own.name}, n)
	if !ok {
		return
	}
	if p.Host.Link == "ssh" && own.addresses == nil {
		addresses[0] = []string{"{name}"}
		if p.Slurm != nil {
			addresses[0] = []string{"{address}"}
		}
	}
	p.Host.Addresses = addresses[0]
	r.providers = append(r.providers, &p)
}

// MaxTime returns the maximum lifetime of an instance; 0: without a limit.
func (p *Provider) MaxTime() time.Duration {
	if p.Slurm == nil {
		return 0
	}
	return p.Slurm.Time
}

// Nodes returns the number of hosts of an instance.
func (p *Provider) Nodes() int {
	if p.Slurm == nil {
		return 1
	}
	return p.Slurm.Nodes
}

// Instance returns an instance as a host. address and port are what the list command
// printed, "" and 0 if nothing; they replace those of the template.
func (p *Provider) Instance(name, address string, port int) (*Host, error) {
	if problem := nameProblem(name); problem != "" {
		return nil, fmt.Errorf("%s", problem)
	}
	h := p.Host
	h.Name = name
	h.Jump, h.Tags, h.Quiet = slices.Clone(h.Jump), slices.Clone(h.Tags), slices.Clone(h.Quiet)
	h.Addresses, h.Command = slices.Clone(h.Addresses), slices.Clone(h.Command)
	if address != "" {
		expanded, err := expandAddress(address)
		if err != nil {
			return nil, err
		}
		address = expanded[0]
		if h.Link == "ssh" {
			h.Addresses = []string{address}
		}
	}
	if port != 0 {
		h.Port = port
	}
	for _, list := range [][]string{h.Addresses, h.Command} {
		for i, word := range list {
			list[i] = strings.NewReplacer("{name}", name, "{address}", cmp.Or(address, name), "{port}", strconv.Itoa(cmp.Or(h.Port, 22))).Replace(word)
		}
	}
	return &h, nil
}

// InstancePrefix returns what the names of a run's instances begin with, without the dash
// before their number.
func InstancePrefix(runUID string) string { return "dcs-" + runUID[:min(8, len(runUID))] }

// InstanceName returns the name of the n-th instance of a run.
func InstanceName(prefix string, n int) string { return prefix + "-" + strconv.Itoa(n) }

// InstanceOf returns the instance to which a host belongs: the nodes of one allocation are
// hosts whose names are that of the instance, a dot, and that of the node.
func InstanceOf(host string) string {
	name, _, _ := strings.Cut(host, ".")
	return name
}

// InstanceNumber returns the number in the name of an instance with this prefix. false: it
// is not the name of such an instance.
func InstanceNumber(prefix, name string) (int, bool) {
	digits, ok := strings.CutPrefix(name, prefix+"-")
	n, err := strconv.Atoi(digits)
	return n, ok && err == nil && n > 0 && strconv.Itoa(n) == digits
}

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
		return fmt.Errorf(`%q is unknown: write "slurm", or leave type out and give the commands create, list, and terminate`, s)
	}
	d.provider.Slurm = &d.slurm
	return nil
}

// providerKeys returns the keys that a [[provider]] must have. It reports keys that belong to
// the other type.
func (r *reader) providerKeys(n int, values map[string]any) (required []string) {
	if _, typed := values["type"]; typed {
		for _, key := range []string{"create", "list", "terminate"} {
			if _, said := values[key]; said {
				r.bad(r.at.line("provider", n, key), `%s: type = "slurm" supplies this command`, key)
			}
		}
		return []string{"name", "time", "max"}
	}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if k := findKey(key); k != nil && k.scope == slurmOnly {
			r.bad(r.at.line("provider", n, key), `%s belongs in a [[provider]] with type = "slurm"`, key)
		}
	}
	return []string{"name", "create", "list", "terminate", "max"}
}

// slurm completes a provider of allocations. false: it has reported a problem.
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
		p.Host.Yield = false // the allocation is ours alone
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
	for _, o := range s.Options {
		args = append(args, ShellQuote(o))
	}
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
