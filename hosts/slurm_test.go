package hosts

import (
	"strings"
	"testing"
	"time"
)

const hpc = "[[provider]]\nname = 'hpc'\ntype = 'slurm'\nmax = 2\ntime = '2h'\n"

func TestSlurmKeys(t *testing.T) {
	inv, warnings := parse(t, hpc)
	p := inv.Providers[0]
	if len(warnings) > 0 || p.Slurm == nil || p.Slurm.Nodes != 1 || p.Slurm.Margin != defaultMargin || p.MaxTime() != 2*time.Hour || p.Host.Yield ||
		!strings.Contains(p.Create, " --exclusive ") || p.Create == "" || p.List == "" || p.Terminate == "" {
		t.Errorf("got %+v, %v", p, warnings)
	}
	inv, _ = parse(t, hpc+"nodes = 4\nmargin = '1m'\nyield = true\nslots = 3\n")
	if p := inv.Providers[0]; p.Nodes() != 4 || p.Slurm.Margin != time.Minute || !p.Host.Yield || strings.Contains(p.Create, "--exclusive") {
		t.Errorf("got %+v", p)
	}
	if _, warnings := parse(t, hpc+"link = 'srun'\n"); len(warnings) != 1 || !strings.Contains(warnings[0], "Slurm may end the jobs") {
		t.Errorf("link = srun: got the warnings %v", warnings)
	}
	for keys, want := range map[string]string{
		hpc + "margin = '2h'\n":   "margin: no job would ever start",
		hpc + "create = 'x'\n":    `create: type = "slurm" supplies this command`,
		hpc + "nodes = 0\n":       "nodes: must be from 1 to",
		hpc + "sbatch = 7\n":      "sbatch: must be a text or a list of texts",
		hpc + "partitoin = 'a'\n": `unknown key "partitoin"; did you mean "partition"?`,
		"[[provider]]\nname = 'hpc'\ntype = 'slurm'\nmax = 2\n":                                         "a [[provider]] without a time",
		"[[provider]]\nname = 'hpc'\ntype = 'pbs'\nmax = 2\n":                                           `type: "pbs" is not known`,
		"[[provider]]\nname = 'c'\ncreate = 'c'\nlist = 'l'\nterminate = 't'\nmax = 1\naccount = 'p'\n": `account belongs in a [[provider]] with type = "slurm"`,
		"[[host]]\nname = 'a'\nlink = 'srun'\n":                                                         "neither",
	} {
		if _, _, err := Parse([]byte(keys), "hosts.toml"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", keys, err, want)
		}
	}
}
