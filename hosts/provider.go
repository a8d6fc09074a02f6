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
// instances, which are temporary hosts.
type Provider struct {
	Name      string
	Create    string // shell text, in which {name}, {run} and {idle} are replaced
	List      string
	Terminate string
	Max       int           // maximum number of instances at a time
	Min       int           // number of instances that are kept while the run lasts
	Rule      ProvisionRule // when instances are created beyond Min
	Startup   time.Duration // estimated time until an instance responds
	Idle      time.Duration // idle time after which an instance is terminated
	Price     float64       // price of an instance per hour; 0: not given
	Slurm     *Slurm        // supplies the commands; nil: it is not of type slurm
	Host      Host          // template of an instance; its name is empty
}

// ProvisionRule is when a provider creates instances.
type ProvisionRule uint8

// The rules.
const (
	ByWork   ProvisionRule = iota // the waiting jobs take longer than the start of an instance
	ByLength                      // the queue does not shrink fast enough (CS553)
	Eager                         // any job waits (ExpoCloud)
)

var provisionRuleNames = []string{"work", "queue", "eager"}

// String returns the rule in the form of an inventory.
func (r ProvisionRule) String() string { return provisionRuleNames[r] }

// parseProvisionRule parses the value of the key rule.
func parseProvisionRule(v any) (ProvisionRule, error) {
	s, ok := v.(string)
	if !ok {
		return 0, wrongKind(v, `a text such as "work"`)
	}
	if i := slices.Index(provisionRuleNames, s); i >= 0 {
		return ProvisionRule(i), nil
	}
	return 0, fmt.Errorf("must be one of %s, not %q", strings.Join(provisionRuleNames, ", "), s)
}

// Equal reports whether two providers are equal apart from the place where they were read.
func (p *Provider) Equal(o *Provider) bool {
	a, b := *p, *o
	a.Host.File, a.Host.Line, b.Host.File, b.Host.Line = "", 0, "", 0
	return reflect.DeepEqual(a, b)
}

// Defaults of a provider.
const (
	defaultStartup = 2 * time.Minute
	defaultIdle    = 5 * time.Minute
)

// readProvider reads the n-th [[provider]].
func (r *inventoryReader) readProvider(def *draft, n int, values map[string]any) {
	own := r.readDraft(def, "provider", n, values, r.providerKeys(n, values)...)
	if own == nil {
		return
	}
	line := r.positions.line("provider", n, "name")
	if p := nameProblem(own.name); p != "" {
		r.addProblem(line, "%s", p)
		return
	}
	for _, p := range r.providers {
		if p.Name == own.name {
			r.addProblem(line, "the provider %s is given twice, first on line %d", p.Name, p.Host.Line)
			return
		}
	}
	p := own.provider
	p.Name, p.Host = own.name, own.host
	p.Startup, p.Idle = cmp.Or(p.Startup, defaultStartup), cmp.Or(p.Idle, defaultIdle)
	if p.Host.Link == "local" {
		r.addProblem(r.positions.line("provider", n, "link"),
			`link: an instance is another machine, so it cannot be "local"`)
		return
	}
	if p.Min > p.Max {
		r.addProblem(r.positions.line("provider", n, "min"), "min: must be at most max = %d, not %d", p.Max, p.Min)
		return
	}
	if p.Slurm != nil && !r.completeSlurm(&p, n, values) {
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

// Instance returns an instance as a host. address and port are from the list command, or "" and 0.
// They replace those of the template.
func (p *Provider) Instance(name, address string, port int) (*Host, error) {
	if problem := nameProblem(name); problem != "" {
		return nil, fmt.Errorf("%s", problem)
	}
	h := p.Host
	h.Name = name
	h.Addresses, h.Command = slices.Clone(h.Addresses), slices.Clone(h.Command)
	if address != "" {
		expanded, err := expandAddress(address)
		if err == nil && len(expanded) > 1 {
			err = fmt.Errorf("%q stands for %d addresses, but an instance has one: "+
				"the list command must print a line for each instance", address, len(expanded))
		}
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
			list[i] = strings.NewReplacer("{name}", name, "{address}", cmp.Or(address, name), "{port}",
				strconv.Itoa(cmp.Or(h.Port, 22))).Replace(word)
		}
	}
	return &h, nil
}

// InstancePrefix returns the common prefix of the names of a run's instances, without the dash
// before the number.
func InstancePrefix(runUID string) string { return "dcs-" + runUID[:min(8, len(runUID))] }

// InstanceName returns the name of the n-th instance of a run.
func InstanceName(prefix string, n int) string { return prefix + "-" + strconv.Itoa(n) }

// InstanceOf returns the instance to which a host belongs: the nodes of one allocation are
// hosts whose names are that of the instance, a dot, and that of the node.
func InstanceOf(host string) string {
	name, _, _ := strings.Cut(host, ".")
	return name
}

// maxInstanceNumber bounds the numbers of instances: those that follow the largest one in a list must be valid, too.
const maxInstanceNumber = 1 << 31

// InstanceNumber returns the number in the name of an instance with this prefix. ok is false if the
// name is not that of such an instance.
func InstanceNumber(prefix, name string) (int, bool) {
	digits, ok := strings.CutPrefix(name, prefix+"-")
	n, err := strconv.Atoi(digits)
	return n, ok && err == nil && n > 0 && n < maxInstanceNumber && strconv.Itoa(n) == digits
}
