package hosts

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// MaxInstances bounds `max` of a provider.
const MaxInstances = 1000

// Provider is one [[provider]] of the inventory: commands that create, list and terminate
// instances, which are hosts for a time.
type Provider struct {
	Name      string
	Create    string // shell text; see Command for what is replaced in it
	List      string
	Terminate string
	Max       int           // instances at a time
	Startup   time.Duration // how long an instance takes until it answers, an estimate
	Idle      time.Duration // an instance without work is terminated after this time
	Price     float64       // of an instance and hour; 0: not given
	Slurm     *Slurm        // nil: it is not of type slurm, which supplies the commands
	Host      Host          // template of an instance; its name is empty
}

// Same reports whether two providers are equal, wherever they were written.
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
	if p.Startup == 0 {
		p.Startup = defaultStartup
	}
	if p.Idle == 0 {
		p.Idle = defaultIdle
	}
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

// MaxTime returns how long it lives at most; 0: forever.
func (p *Provider) MaxTime() time.Duration {
	if p.Slurm == nil {
		return 0
	}
	return p.Slurm.Time
}

// Nodes returns how many hosts an instance is.
func (p *Provider) Nodes() int {
	if p.Slurm == nil {
		return 1
	}
	return p.Slurm.Nodes
}

// Instance returns an instance as a host. address and port are what the list command
// printed, "" and 0 if it did not; they come before those of the template.
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

// InstanceNumber returns the number in the name of an instance with this prefix; false:
// it is no such name.
func InstanceNumber(prefix, name string) (int, bool) {
	digits, ok := strings.CutPrefix(name, prefix+"-")
	n, err := strconv.Atoi(digits)
	return n, ok && err == nil && n > 0 && strconv.Itoa(n) == digits
}

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
	"partition": {set: str(func(d *draft, s string) error { d.slurm.Partition = s; return nil })},
	"account":   {set: str(func(d *draft, s string) error { d.slurm.Account = s; return nil })},
	"gres":      {set: str(func(d *draft, s string) error { d.slurm.Gres = s; return nil })},
	"time":      {set: span(time.Minute, maxTime, func(d *draft, t time.Duration) { d.slurm.Time = t })},
	"nodes":     {set: number(1, maxNodes, func(d *draft, n int) { d.slurm.Nodes = n })},
	"margin":    {set: span(0, 0, func(d *draft, t time.Duration) { d.slurm.Margin = t })},
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
		return fmt.Errorf(`%q is unknown: write "slurm", or leave type out and give the commands create, list, and terminate`, s)
	}
	d.provider.Slurm = &d.slurm
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
