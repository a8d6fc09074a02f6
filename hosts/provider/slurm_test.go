package provider

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"dcs-tui/hosts"
)

// slurm is a provider of the inventory whose programs of Slurm are scripts.
func slurm(t *testing.T, keys string, programs map[string]string) *hosts.Provider {
	t.Helper()
	bin := t.TempDir()
	for name, text := range programs {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	inv, _, err := hosts.Parse([]byte("[[provider]]\nname = 'hpc'\ntype = 'slurm'\nmax = 2\ntime = '2h'\n"+keys), "hosts.toml")
	if err != nil {
		t.Fatal(err)
	}
	return inv.Providers[0]
}

// Allocations are read from squeue: their state, their nodes, and when they end.
func TestAllocations(t *testing.T) {
	for _, c := range []struct{ name, squeue, want string }{
		{"running", "echo 'dcs-a-1|7|RUNNING|1:59:30|n[1-2]|None'", "dcs-a-1 dcs-a-1.n1=n1 dcs-a-1.n2=n2 left 1h59m30s"},
		{"lists of nodes", "echo 'dcs-a-1|7|RUNNING|1-00:00:10|n[08-10,12],gpu3|None'",
			"dcs-a-1 dcs-a-1.n08=n08 dcs-a-1.n09=n09 dcs-a-1.n10=n10 dcs-a-1.n12=n12 dcs-a-1.gpu3=gpu3 left 24h0m10s"},
		{"no end", "echo 'dcs-a-1|7|RUNNING|UNLIMITED|n1|None'", "dcs-a-1 dcs-a-1.n1=n1 left 0s"},
		{"at its end", "echo 'dcs-a-1|7|RUNNING|0:00|n1|None'", "dcs-a-1 dcs-a-1.n1=n1 left 1s"},
		{"pending", "echo 'dcs-a-1|7|PENDING|2:00:00||Resources'", "dcs-a-1 pending: Resources left 0s"},
		{"pending, without a reason yet", "echo 'dcs-a-1|7|PENDING|2:00:00||None'", "dcs-a-1 pending: pending left 0s"},
		{"other jobs are left out", "echo 'my|job 3|7|RUNNING|x|y'; echo 'dcs-b-1|8|RUNNING|1:00|n1|None'; echo 'dcs-a-1|9|PENDING|1:00||Priority'",
			"dcs-a-1 pending: Priority left 0s"},
		{"nothing", "true", ""},
		{"garbage", "echo '{\"jobs\": []}'", "error: provider hpc: the list command printed a line that is not an allocation"},
		{"a name alone", "echo dcs-a-1", "error: provider hpc: the list command printed a line that is not an allocation"},
		{"a strange state", "echo 'dcs-a-1|7|RUNNING?|1:00|n1|None'", "error: provider hpc: the list command printed a line that is not an allocation"},
		{"a strange time", "echo 'dcs-a-1|7|RUNNING|soon|n1|None'", "error: provider hpc: the list command printed a line that is not an allocation"},
		{"no nodes", "echo 'dcs-a-1|7|RUNNING|1:00||None'", "error: provider hpc: the list command printed a line that is not an allocation"},
		{"too many nodes", "echo 'dcs-a-1|7|RUNNING|1:00|n[1-999999999]|None'", "error: provider hpc: the list command printed a line that is not an allocation"},
		{"an option as node", "echo 'dcs-a-1|7|RUNNING|1:00|-oProxyCommand=x|None'", "error: provider hpc: the list command printed a line that is not an allocation"},
		{"a million lines", "yes 'dcs-a-1|7|PENDING|1:00||Resources' | head -1000000", "error: provider hpc: the list command printed more than 1 MiB"},
		{"squeue fails", "echo 'slurm_load_jobs error: Unable to contact slurm controller' >&2; exit 1",
			"error: provider hpc: the list command failed (exit status 1): slurm_load_jobs error: Unable to contact slurm controller"},
	} {
		t.Run(c.name, func(t *testing.T) {
			list, err := List(context.Background(), slurm(t, "", map[string]string{"squeue": c.squeue}), "dcs-a")
			var got []string
			for _, in := range list {
				got = append(got, in.Name)
				for _, h := range in.Hosts {
					got = append(got, fmt.Sprintf("%s=%s", h.Name, strings.Join(h.Addresses, " ")))
				}
				if in.Pending != "" {
					got = append(got, "pending: "+in.Pending)
				}
				got = append(got, fmt.Sprintf("left %s", in.Left))
			}
			text := strings.Join(got, " ")
			if err != nil {
				text = "error: " + err.Error()
			}
			if text != c.want && (err == nil || !strings.HasPrefix(text, c.want)) {
				t.Errorf("got %q, want %q", text, c.want)
			}
		})
	}
}

// What the inventory says reaches sbatch as one word each, and refusals are told.
func TestSbatch(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	p := slurm(t, "partition = 'a b'\naccount = \"it's\"\ngres = 'gpu:2'\nnodes = 3\nslots = 4\nidle = '90s'\nsbatch = ['--qos=low', '--comment=$(id) x']\n",
		map[string]string{"sbatch": `printf '%s\n' "$@" >` + out})
	if err := Create(context.Background(), p, "dcs-a", "dcs-a-1"); err != nil {
		t.Fatal(err)
	}
	b, _ := os.ReadFile(out)
	got, script, _ := strings.Cut(string(b), "\n--wrap=")
	want := "--parsable --job-name=dcs-a-1 --no-requeue --output=/dev/null --ntasks-per-node=1 --nodes=3 --time=120 --cpus-per-task=4 --no-kill " +
		"--partition=a b --account=it's --gres=gpu:2 --qos=low --comment=$(id) x"
	if strings.ReplaceAll(got, "\n", " ") != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	check := exec.Command("sh", "-n")
	if check.Stdin = strings.NewReader(script); check.Run() != nil || !strings.Contains(script, "-lt 90 ]") {
		t.Errorf("the script that holds the allocation: %s", script)
	}
	for program, want := range map[string]string{
		"echo 'sbatch: error: Batch job submission failed: Invalid account or account/partition combination specified' >&2; exit 1": "Invalid account",
		"yes | head -1000000; exit 1": "failed (exit status 1): y",
	} {
		err := Create(context.Background(), slurm(t, "", map[string]string{"sbatch": program}), "dcs-a", "dcs-a-1")
		if err == nil || !strings.Contains(err.Error(), want) || len(err.Error()) > 500 {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	p = slurm(t, "", nil)
	t.Setenv("PATH", "/nonexistent")
	if err := Create(context.Background(), p, "dcs-a", "dcs-a-1"); err == nil || !strings.Contains(err.Error(), "sbatch: not found") {
		t.Errorf("without sbatch: %v", err)
	}
}

// With link = "srun" each node is reached by a step of the allocation.
func TestSrunLink(t *testing.T) {
	p := slurm(t, "link = 'srun'\n", map[string]string{"squeue": "echo 'dcs-a-1|77|RUNNING|1:00|n5|None'"})
	list, err := List(context.Background(), p, "dcs-a")
	if err != nil {
		t.Fatal(err)
	}
	h := list[0].Hosts[0]
	want := "srun --jobid=77 --overlap --nodes=1 --ntasks=1 --mem=0 --cpu-bind=none --nodelist=n5"
	if got := strings.Join(h.Command, " "); h.Link != "command" || got != want || list[0].Left != time.Minute {
		t.Errorf("got %s, %s, want %s", h.Link, got, want)
	}
}

// The allocation gives itself back when its nodes have been unused for idle, and not while
// that cannot be found out.
func TestAllocationEndsItself(t *testing.T) {
	calls := filepath.Join(t.TempDir(), "calls")
	p := slurm(t, "idle = '1s'\n", map[string]string{
		"sbatch": `for last; do :; done; SLURM_NNODES=1 exec sh -c "${last#--wrap=}"`,
		"srun":   "echo >>" + calls + "; case $(wc -l <" + calls + ") in 1) echo used ;; 2) exit 1 ;; 3) echo used ;; esac",
	})
	if err := Create(context.Background(), p, "dcs-a", "dcs-a-1"); err != nil {
		t.Fatal(err)
	}
	if b, _ := os.ReadFile(calls); len(b) != 4 {
		t.Errorf("the nodes were looked at %d times, want 4", len(b))
	}
}
