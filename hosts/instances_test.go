package hosts

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"dcs-tui/internal/polltest"
	"dcs-tui/internal/text"
)

func cloudCommands(create, list, terminate string) *Provider {
	return &Provider{Name: "cloud", Create: create, List: list, Terminate: terminate, Startup: time.Minute,
		Idle: 90 * time.Second,
		Host: Host{Link: "ssh", Addresses: []string{"{name}"}}}
}

// TestPlaceholdersAreOneWordEach checks that names, the prefix, and idle reach the command as one
// word each, whatever characters they contain.
func TestPlaceholdersAreOneWordEach(t *testing.T) {
	for name, want := range map[string]string{
		"dcs-a-1":        "<dcs-a-1><dcs-a><90>",
		"a b":            "<a b><dcs-a><90>",
		"$(echo no);'x'": "<$(echo no);'x'><dcs-a><90>",
	} {
		file := filepath.Join(t.TempDir(), "out")
		p := cloudCommands("printf '<%s>' {name} {run} {idle} > "+text.ShellWord(file), "", "")
		if err := p.CreateInstance(context.Background(), "dcs-a", name); err != nil {
			t.Fatal(err)
		}
		if got, _ := os.ReadFile(file); string(got) != want {
			t.Errorf("%q: the command got %s, want %s", name, got, want)
		}
	}
}

// checkInstances lists the instances of the run dcs-a. It compares them, with their hosts, or the
// beginning of the error, with want.
func checkInstances(t *testing.T, p *Provider, want string) {
	t.Helper()
	list, err := p.Instances(context.Background(), "dcs-a")
	var parts []string
	for _, in := range list {
		parts = append(parts, in.Name+":")
		for _, h := range in.Hosts {
			parts = append(parts, fmt.Sprintf("%s=%s,%d", h.Name, strings.Join(h.Addresses, " "), h.Port))
		}
		if in.Pending != "" {
			parts = append(parts, "pending: "+in.Pending)
		}
		if in.Left > 0 {
			parts = append(parts, fmt.Sprintf("left %s", in.Left))
		}
	}
	got := strings.Join(parts, " ")
	if err != nil {
		got = "error: " + err.Error()
	}
	if got != want && (err == nil || !strings.HasPrefix(got, want)) || strings.ContainsRune(got, '\x1b') {
		t.Errorf("got %.500q, want %q", got, want)
	}
}

// TestInstancesAreReadFromTheListCommand checks that the names and addresses of our instances are
// read from the output of the list command, and that any other output is an error.
func TestInstancesAreReadFromTheListCommand(t *testing.T) {
	for _, c := range []struct{ name, command, want string }{
		{"names", "echo dcs-a-1; echo; echo ' dcs-a-2 '", "dcs-a-1: dcs-a-1=dcs-a-1,0 dcs-a-2: dcs-a-2=dcs-a-2,0"},
		{"addresses and ports", "echo dcs-a-1 10.0.0.1; echo dcs-a-2 h.example.org 2222",
			"dcs-a-1: dcs-a-1=10.0.0.1,0 dcs-a-2: dcs-a-2=h.example.org,2222"},
		{"others are left out", "echo dcs-b-1; echo other; echo dcs-a; echo dcs-a-1", "dcs-a-1: dcs-a-1=dcs-a-1,0"},
		{"a name twice", "echo dcs-a-1; echo dcs-a-1 x", "dcs-a-1: dcs-a-1=dcs-a-1,0"},
		{"nothing", "true", ""},
		{"noise on standard error", "echo warning >&2; echo dcs-a-1", "dcs-a-1: dcs-a-1=dcs-a-1,0"},
		{"prefix", "echo {run}-7", "dcs-a-7: dcs-a-7=dcs-a-7,0"},
		{"garbage", `printf 'dcs-a-1\n\033[2J{"x": 1}\n'`,
			`error: provider cloud: the list command printed a line that is not an instance`},
		{"binary", `printf 'dcs-a-1\n\000\377\n'`,
			"error: provider cloud: the list command printed a line that is not an instance"},
		{"a name with spaces", "echo 'my old instance 4'",
			"error: provider cloud: the list command printed a line that is not an instance"},
		{"a bad port", "echo dcs-a-1 x 99999",
			"error: provider cloud: the list command printed a line that is not an instance"},
		{"an option as address", "echo dcs-a-1 -oProxyCommand=x",
			"error: provider cloud: the list command printed a line that is not an instance"},
		{"fails", "echo dcs-a-1; echo 'no token' >&2; exit 3",
			"error: provider cloud: the list command failed (exit status 3): no token"},
		{"fails with its message on standard output", "echo 'no token'; exit 3",
			"error: provider cloud: the list command failed (exit status 3): no token"},
		{"no such program", "no-such-program-1", "error: provider cloud: the list command failed (exit status 127): "},
		{"a million lines", "yes dcs-a-1 | head -1000000",
			"error: provider cloud: the list command printed more than 1 MiB"},
		{"many instances", "seq -f dcs-a-%g 10001",
			"error: provider cloud: the list command printed more than 10000 hosts"},
		{"escapes in the address", `printf 'dcs-a-1 \033x\n'`,
			"error: provider cloud: the list command printed a line that is not an instance"},
		{"a range as address", "echo 'dcs-a-1 h[1-2]'",
			"error: provider cloud: the list command printed a line that is not an instance"},
		{"escapes in the message", `printf '\033[2Jbad\n' >&2; exit 1`,
			"error: provider cloud: the list command failed (exit status 1): "},
	} {
		t.Run(c.name, func(t *testing.T) { checkInstances(t, cloudCommands("", c.command, ""), c.want) })
	}
}

// TestALongPortIsShortened checks that the error for a line that a command printed is not as long as the line.
func TestALongPortIsShortened(t *testing.T) {
	p := cloudCommands("", `printf 'dcs-a-1 x %01000d' 7; echo x`, "")
	if _, err := p.Instances(t.Context(), "dcs-a"); err == nil || len(err.Error()) > 600 {
		t.Errorf("got %v, want an error that fits a few lines", err)
	}
}

// TestHungCommandIsKilled checks that a command that hangs is killed with all of its processes. A
// command that has succeeded may leave a process that keeps its output open.
func TestHungCommandIsKilled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	fifo := filepath.Join(t.TempDir(), "started")
	p := cloudCommands("", "", "touch "+text.ShellWord(fifo)+"; sleep 1000 & sleep 1000; true")
	done := make(chan error, 1)
	go func() { done <- p.TerminateInstance(ctx, "dcs-a", "dcs-a-1") }()
	polltest.Until(t, "the command to start", func() bool {
		_, err := os.Stat(fifo)
		return err == nil
	})
	cancel()
	if err := <-done; err == nil || !strings.Contains(err.Error(), "the terminate command of dcs-a-1 was killed") {
		t.Errorf("got %v, want an error that says that it was killed", err)
	}
	p = cloudCommands("", "", "")
	_, err := p.run(context.Background(), "create", "exec sleep 1000", "dcs-a", "dcs-a-1", time.Millisecond)
	if err == nil || !strings.Contains(err.Error(), "has not ended within 1ms and was killed") {
		t.Errorf("got %v, want an error about the time", err)
	}
	p = cloudCommands("sleep 3 & echo made", "", "")
	if err := p.CreateInstance(context.Background(), "dcs-a", "dcs-a-1"); err != nil {
		t.Errorf("a command that leaves a daemon behind: %v", err)
	}
}

// TestCreateMayPrintMuch checks that a create command succeeds however much it prints.
func TestCreateMayPrintMuch(t *testing.T) {
	if err := cloudCommands("yes | head -1000000", "", "").CreateInstance(context.Background(), "dcs-a",
		"dcs-a-1"); err != nil {
		t.Error(err)
	}
}

// slurm returns a provider of the inventory whose Slurm programs are scripts.
func slurm(t *testing.T, keys string, programs map[string]string) *Provider {
	t.Helper()
	bin := t.TempDir()
	for name, text := range programs {
		writeFile(t, filepath.Join(bin, name), "#!/bin/sh\n"+text)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	inv, _ := parse(t, hpc+keys)
	return inv.Providers[0]
}

// TestAllocationsAreReadFromSqueue checks that the state, the nodes, and the remaining time of
// allocations are read from squeue.
func TestAllocationsAreReadFromSqueue(t *testing.T) {
	for _, c := range []struct{ name, squeue, want string }{
		{"running", "echo 'dcs-a-1|7|RUNNING|1:59:30|n[1-2]|None'",
			"dcs-a-1: dcs-a-1.n1=n1,0 dcs-a-1.n2=n2,0 left 1h59m30s"},
		{"lists of nodes", "echo 'dcs-a-1|7|RUNNING|1-00:00:10|n[08-10,12],gpu3|None'",
			"dcs-a-1: dcs-a-1.n08=n08,0 dcs-a-1.n09=n09,0 dcs-a-1.n10=n10,0 dcs-a-1.n12=n12,0 " +
				"dcs-a-1.gpu3=gpu3,0 left 24h0m10s"},
		{"no end", "echo 'dcs-a-1|7|RUNNING|UNLIMITED|n1|None'", "dcs-a-1: dcs-a-1.n1=n1,0"},
		{"at its end", "echo 'dcs-a-1|7|RUNNING|0:00|n1|None'", "dcs-a-1: dcs-a-1.n1=n1,0 left 1s"},
		{"pending", "echo 'dcs-a-1|7|PENDING|2:00:00||Resources'", "dcs-a-1: pending: Resources"},
		{"pending, without a reason yet", "echo 'dcs-a-1|7|PENDING|2:00:00||None'", "dcs-a-1: pending: pending"},
		{"other jobs are left out", "echo 'my|job 3|7|RUNNING|x|y'; echo 'dcs-b-1|8|RUNNING|1:00|n1|None'; " +
			"echo 'dcs-a-1|9|PENDING|1:00||Priority'",
			"dcs-a-1: pending: Priority"},
		{"nothing", "true", ""},
		{"garbage", "echo '{\"jobs\": []}'",
			"error: provider hpc: the list command printed a line that is not an allocation"},
		{"a name alone", "echo dcs-a-1",
			"error: provider hpc: the list command printed a line that is not an allocation"},
		{"a strange state", "echo 'dcs-a-1|7|RUNNING?|1:00|n1|None'",
			"error: provider hpc: the list command printed a line that is not an allocation"},
		{"a strange time", "echo 'dcs-a-1|7|RUNNING|soon|n1|None'",
			"error: provider hpc: the list command printed a line that is not an allocation"},
		{"no nodes", "echo 'dcs-a-1|7|RUNNING|1:00||None'",
			"error: provider hpc: the list command printed a line that is not an allocation"},
		{"too many nodes", "echo 'dcs-a-1|7|RUNNING|1:00|n[1-999999999]|None'",
			"error: provider hpc: the list command printed a line that is not an allocation"},
		{"an option as node", "echo 'dcs-a-1|7|RUNNING|1:00|-oProxyCommand=x|None'",
			"error: provider hpc: the list command printed a line that is not an allocation"},
		{"a million lines", "yes 'dcs-a-1|7|PENDING|1:00||Resources' | head -1000000",
			"error: provider hpc: the list command printed more than 1 MiB"},
		{"squeue fails", "echo 'slurm_load_jobs error: Unable to contact slurm controller' >&2; exit 1",
			"error: provider hpc: the list command failed (exit status 1): slurm_load_jobs error: " +
				"Unable to contact slurm controller"},
	} {
		t.Run(c.name, func(t *testing.T) {
			checkInstances(t, slurm(t, "", map[string]string{"squeue": c.squeue}), c.want)
		})
	}
}

// TestValuesReachSbatchAsOneWord checks that values of the inventory reach sbatch as one word each,
// and that refusals of sbatch are reported.
func TestValuesReachSbatchAsOneWord(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	p := slurm(t, "partition = 'a b'\naccount = \"it's\"\ngres = 'gpu:2'\nnodes = 3\nslots = 4\nidle = '90s'\n"+
		"sbatch = ['--qos=low', '--comment=$(id) x']\n",
		map[string]string{"sbatch": `printf '%s\n' "$@" >` + out})
	if err := p.CreateInstance(context.Background(), "dcs-a", "dcs-a-1"); err != nil {
		t.Fatal(err)
	}
	b, _ := os.ReadFile(out)
	got, script, _ := strings.Cut(string(b), "\n--wrap=")
	want := "--parsable --job-name=dcs-a-1 --no-requeue --output=/dev/null --ntasks-per-node=1 --nodes=3 " +
		"--time=120 --cpus-per-task=4 --no-kill --partition=a b --account=it's --gres=gpu:2 --qos=low --comment=$(id) x"
	if strings.ReplaceAll(got, "\n", " ") != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	check := exec.Command("sh", "-n")
	if check.Stdin = strings.NewReader(script); check.Run() != nil || !strings.Contains(script, "-lt 90 ]") {
		t.Errorf("the script that holds the allocation: %s", script)
	}
	const refusal = "sbatch: error: Batch job submission failed: " +
		"Invalid account or account/partition combination specified"
	for program, want := range map[string]string{
		"echo '" + refusal + "' >&2; exit 1": "Invalid account",
		"yes | head -1000000; exit 1":        "failed (exit status 1): y",
	} {
		t.Run(program, func(t *testing.T) {
			err := slurm(t, "", map[string]string{"sbatch": program}).CreateInstance(context.Background(),
				"dcs-a", "dcs-a-1")
			if err == nil || !strings.Contains(err.Error(), want) || len(err.Error()) > 500 {
				t.Errorf("got %v, want %q", err, want)
			}
		})
	}
	p = slurm(t, "", nil)
	t.Setenv("PATH", "/nonexistent")
	if err := p.CreateInstance(context.Background(), "dcs-a", "dcs-a-1"); err == nil ||
		!strings.Contains(err.Error(), "sbatch: not found") {
		t.Errorf("without sbatch: %v", err)
	}
}

// TestSrunLinkReachesEachNode checks that, with link = "srun", each node is reached by a step of
// the allocation.
func TestSrunLinkReachesEachNode(t *testing.T) {
	p := slurm(t, "link = 'srun'\n", map[string]string{"squeue": "echo 'dcs-a-1|77|RUNNING|1:00|n5|None'"})
	list, err := p.Instances(context.Background(), "dcs-a")
	if err != nil {
		t.Fatal(err)
	}
	h := list[0].Hosts[0]
	want := "srun --jobid=77 --overlap --nodes=1 --ntasks=1 --mem=0 --cpu-bind=none --nodelist=n5"
	if got := strings.Join(h.Command, " "); h.Link != "command" || got != want || list[0].Left != time.Minute {
		t.Errorf("got %s, %s, want %s", h.Link, got, want)
	}
}

// TestAllocationEndsItself checks that an allocation ends itself when its nodes have been unused
// for idle, and that it does not end while the use of its nodes is unknown.
func TestAllocationEndsItself(t *testing.T) {
	calls := filepath.Join(t.TempDir(), "calls")
	p := slurm(t, "idle = '1s'\n", map[string]string{
		"sbatch": `for last; do :; done; SLURM_NNODES=1 exec sh -c "${last#--wrap=}"`,
		"srun": "echo >>" + calls + "; case $(wc -l <" + calls +
			") in 1) echo used ;; 2) exit 1 ;; 3) echo used ;; esac",
	})
	if err := p.CreateInstance(context.Background(), "dcs-a", "dcs-a-1"); err != nil {
		t.Fatal(err)
	}
	if b, _ := os.ReadFile(calls); len(b) != 4 {
		t.Errorf("the nodes were looked at %d times, want 4", len(b))
	}
}
