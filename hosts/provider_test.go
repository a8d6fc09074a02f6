package hosts

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
)

const cloud = `
[defaults]
user = "bob"
nice = 5
[[provider]]
name = "cloud"
create = "make {name}"
list = """
first {run}
second"""
terminate = "end {name}"
max = 3
`

// TestKeysOfAProvider checks the value of each key of a [[provider]] and the defaults.
func TestKeysOfAProvider(t *testing.T) {
	inv, warnings := parse(t, cloud)
	host := defaultHost()
	host.User, host.Nice, host.Addresses, host.Slots = "bob", 5, []string{"{name}"}, SlotRule{Less: 1}
	host.File, host.Line = "hosts.toml", 5
	want := &Provider{Name: "cloud", Create: "make {name}", List: "first {run}\nsecond", Terminate: "end {name}",
		Max:     3,
		Startup: 2 * time.Minute, Idle: 5 * time.Minute, Host: host}
	if len(warnings) > 0 || len(inv.Hosts) != 0 || len(inv.Providers) != 1 ||
		!reflect.DeepEqual(inv.Providers[0], want) {
		t.Fatalf("got  %+v, %v\nwant %+v", inv.Providers[0], warnings, want)
	}
	inv, _ = parse(t, cloud+
		"startup = '40s'\nidle = '1m'\nprice = 0.5\nslots = 4\ntags = 'big'\nmin = 2\nrule = 'queue'\n"+
		"port = 2200\naddress = '{name}.cloud.example.org'\n")
	if p := inv.Providers[0]; p.Startup != 40*time.Second || p.Idle != time.Minute || p.Price != 0.5 || p.Min != 2 ||
		p.Rule != ByLength || p.Host.Slots.Fixed != 4 ||
		!reflect.DeepEqual(p.Host.Tags, []string{"big"}) || p.Host.Port != 2200 ||
		p.Host.Addresses[0] != "{name}.cloud.example.org" {
		t.Errorf("got %+v", p)
	}
}

// TestListOutputOverridesTheTemplate checks that the output of the list command overrides the
// template, and that names and addresses are validated like those of a [[host]].
func TestListOutputOverridesTheTemplate(t *testing.T) {
	for _, c := range []struct {
		keys, address string
		port          int
		want          string // addresses, port, command; or an error
	}{
		{"", "", 0, "[dcs-a-1] 0 []"},
		{"", "10.0.0.1", 0, "[10.0.0.1] 0 []"},
		{"", "10.0.0.1", 2222, "[10.0.0.1] 2222 []"},
		{"", "[fe80::1]", 0, "[fe80::1] 0 []"},
		{"address = '{name}.lan'", "", 0, "[dcs-a-1.lan] 0 []"},
		{"address = '{name}.lan'", "x", 0, "[x] 0 []"},
		{"link = 'ssh -p {port} {address}'", "10.0.0.1", 22022, "[] 22022 [ssh -p 22022 10.0.0.1]"},
		{"link = 'docker exec -i {name}'", "", 0, "[] 0 [docker exec -i dcs-a-1]"},
		{"", "-oProxyCommand=x", 0, "error"},
		{"", "a;b", 0, "error"},
	} {
		t.Run(c.keys, func(t *testing.T) {
			inv, _ := parse(t, cloud+c.keys)
			h, err := inv.Providers[0].Instance("dcs-a-1", c.address, c.port)
			got := "error"
			if err == nil {
				got = strings.Join([]string{fmt.Sprint(h.Addresses), fmt.Sprint(h.Port), fmt.Sprint(h.Command)}, " ")
			}
			if got != c.want {
				t.Errorf("%q, %q, %d: got %s, %v; want %s", c.keys, c.address, c.port, got, err, c.want)
			}
		})
	}
	inv, _ := parse(t, cloud)
	for _, name := range []string{"", "a b", "-x", "../x", "a\x1b[2J", strings.Repeat("x", 64)} {
		t.Run(name, func(t *testing.T) {
			if h, err := inv.Providers[0].Instance(name, "", 0); err == nil {
				t.Errorf("the name %q gives %+v, want an error", name, h)
			}
		})
	}
}

// TestInstanceNumberIsPartOfItsName checks that the number of an instance is read back from its
// name, and that other names are not taken for ours.
func TestInstanceNumberIsPartOfItsName(t *testing.T) {
	prefix := InstancePrefix("abcdefgh2345")
	if got := InstanceName(prefix, 12); got != "dcs-abcdefgh-12" {
		t.Errorf("got %s", got)
	}
	for name, want := range map[string]int{"dcs-abcdefgh-12": 12, "dcs-abcdefgh-012": 0, "dcs-abcdefgh-0": 0,
		"dcs-abcdefgh-":   0,
		"dcs-abcdefgh--1": 0, "dcs-abcdefgh-+1": 0, "dcs-abcdefg-1": 0, "dcs-abcdefgh-1x": 0, "melon": 0,
		"dcs-abcdefgh-9223372036854775807": 0} {
		t.Run(name, func(t *testing.T) {
			if n, ok := InstanceNumber(prefix, name); ok != (want > 0) || ok && n != want {
				t.Errorf("%s: got %d, %v; want %d", name, n, ok, want)
			}
		})
	}
}

const hpc = "[[provider]]\nname = 'hpc'\ntype = 'slurm'\nmax = 2\ntime = '2h'\n"

// TestKeysOfASlurmProvider checks the keys and the defaults of a Slurm provider, and that invalid
// values are refused.
func TestKeysOfASlurmProvider(t *testing.T) {
	inv, warnings := parse(t, hpc)
	p := inv.Providers[0]
	if len(warnings) > 0 || p.Slurm == nil || p.Slurm.Nodes != 1 || p.Slurm.Margin != defaultMargin ||
		p.MaxTime() != 2*time.Hour || p.Host.Yield ||
		!strings.Contains(p.Create, " --exclusive ") || p.Create == "" || p.List == "" || p.Terminate == "" {
		t.Errorf("got %+v, %v", p, warnings)
	}
	inv, _ = parse(t, hpc+"nodes = 4\nmargin = '1m'\nyield = true\nslots = 3\n")
	if p := inv.Providers[0]; p.Nodes() != 4 || p.Slurm.Margin != time.Minute || !p.Host.Yield ||
		strings.Contains(p.Create, "--exclusive") {
		t.Errorf("got %+v", p)
	}
	if _, warnings := parse(t, hpc+"link = 'srun'\n"); len(warnings) != 1 ||
		!strings.Contains(warnings[0], "Slurm may end the jobs") {
		t.Errorf("link = srun: got the warnings %v", warnings)
	}
	const commands = "[[provider]]\nname = 'c'\ncreate = 'c'\nlist = 'l'\nterminate = 't'\n"
	for keys, want := range map[string]string{
		hpc + "margin = '2h'\n":   "margin: no job would ever start",
		hpc + "create = 'x'\n":    `create: type = "slurm" supplies this command`,
		hpc + "nodes = 0\n":       "nodes: must be from 1 to",
		hpc + "sbatch = 7\n":      "sbatch: must be a text or a list of texts",
		hpc + "partitoin = 'a'\n": `unknown key "partitoin"; did you mean "partition"?`,
		"[[provider]]\nname = 'hpc'\ntype = 'slurm'\nmax = 2\n": "a [[provider]] without a time",
		"[[provider]]\nname = 'hpc'\ntype = 'pbs'\nmax = 2\n":   `type: "pbs" is unknown`,
		commands + "max = 1\naccount = 'p'\n":                   "account belongs in a [[provider]] with type",
		"[[host]]\nname = 'a'\nlink = 'srun'\n":                 "neither",
	} {
		t.Run(keys, func(t *testing.T) {
			refuse(t, keys, want)
		})
	}
}
