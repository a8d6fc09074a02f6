//go:build linux

package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"dcs-tui/hosts/hosttest"
	"dcs-tui/internal/polltest"
	"dcs-tui/internal/progtest"
)

// snakemakeLab is a lab with two hosts and a workflow, whose directory has a space in its name.
type snakemakeLab struct {
	*lab
	python string // of scripts/need-snakemake
	site   string // where the plugin is installed
}

// newSnakemakeLab returns a lab with a Snakefile, or skips the test if there is no Snakemake for it.
func newSnakemakeLab(t *testing.T, snakefile string) *snakemakeLab {
	t.Helper()
	polltest.Long(t)
	t.Parallel()
	cache, err := os.UserCacheDir()
	must(t, err)
	venv := filepath.Join(cache, "dcs-tui/snakemake")
	l := &snakemakeLab{lab: newLab(t, 2), python: filepath.Join(venv, "bin/python")}
	installed, _ := os.ReadFile(filepath.Join(venv, "installed.txt"))
	if want := l.readFile(l.repoPath("clients/snakemake/requirements-test.txt")); string(installed) != want {
		hosttest.LeaveOut(t, "the Snakemake plugin: scripts/need-snakemake did not install Snakemake; it says why")
	}
	l.dir = filepath.Join(l.dir, "a directory")
	must(t, os.Mkdir(l.dir, 0o755))
	l.writeFile("Snakefile", snakefile)
	l.inventoryText = "gpus = 1\ntags = [\"fast\"]\n" // of the last host
	l.inventory(2)
	l.site = filepath.Join(t.TempDir(), "site")
	install := []string{"-m", "pip", "--isolated", "install", "-q", "--no-index", "--no-deps", "--no-build-isolation",
		"--disable-pip-version-check", "--root-user-action", "ignore", "--target", l.site}
	for _, name := range []string{"python", "snakemake"} {
		source := filepath.Join(t.TempDir(), name) // pip writes into it
		must(t, os.CopyFS(source, os.DirFS(l.repoPath("clients/"+name))))
		install = append(install, source)
	}
	cmd := exec.Command(l.python, install...)
	cmd.Env = append(os.Environ(), "PIP_CONFIG_FILE="+os.DevNull)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("pip install: %v\n%s", err, out)
	}
	return l
}

// snakemake starts Snakemake with the plugin.
func (l *snakemakeLab) snakemake(args ...string) *process {
	l.t.Helper()
	args = append([]string{"-m", "snakemake", "--executor", "dcs-tui", "--jobs", "4", "--dcs-tui-hosts", "hosts.toml",
		"--dcs-tui-flags=--ssh-config=" + l.servers[0].ConfigFile, "--dcs-tui-program", program}, args...)
	cmd := exec.Command(l.python, args...)
	cmd.Env = append(os.Environ(), "PYTHONPATH="+l.site, "XDG_CACHE_HOME="+l.path("cache"), `TOKEN=it's $5 "now"`)
	cmd.Env = append(cmd.Env, progtest.HomeEnv(l.dir)...)
	return l.startCommand(cmd)
}

// results returns the results of a run of Snakemake, the oldest run first.
func (l *snakemakeLab) results(run int) (results []map[string]any) {
	l.t.Helper()
	runs := l.glob("dcs-runs/snakemake-*")
	if len(runs) <= run {
		l.t.Fatalf("there is no run %d: %q", run, runs)
	}
	out := l.mustRun("results", "--json", runs[run]).stdout
	for _, line := range bytes.Split([]byte(strings.TrimSpace(out)), []byte("\n")) {
		var result map[string]any
		must(l.t, json.Unmarshal(line, &result))
		results = append(results, result)
	}
	return results
}

// TestSnakemakePlugin runs a workflow of 50 rules, 40 of them in eight groups, with the real Snakemake
// over two hosts, each of which waits for a job on the other. It checks that each job or group of
// Snakemake is one job of the run, that resources become options, and that a failed rule is reported
// with the paths of its outputs, also with --directory.
func TestSnakemakePlugin(t *testing.T) {
	const rules, jobs = 50, 18
	page, err := os.ReadFile("../../docs/workflows.md")
	must(t, err)
	_, rule, _ := strings.Cut(string(page), "TestSnakemakePlugin -->\n```\n")
	rule, _, _ = strings.Cut(rule, "```")
	l := newSnakemakeLab(t, fmt.Sprintf(`
envvars: "TOKEN"
rule all:
    input: expand("out/{n}.txt", n=range(%d)), "model-7.txt"
for i in range(%[1]d):
    rule:
        name: f"step{i}"
        group: f"g{i %% 10}" if i %% 10 < 8 else None
        input: [f"out/{i - 10}.txt"] if i >= 10 else []
        output: f"out/{i}.txt"
        shell: "touch on-$DCS_HOST; until [ -e on-ws1 ] && [ -e on-ws2 ]; do sleep 0.05; done; "
            "cat {input} /dev/null > {output}; echo $DCS_HOST >> {output}"
%srule bad:
    output: "bad.txt"
    log: "bad.log"
    shell: "echo this is broken >&2; exit 3"
`, rules-1, rule))
	must(t, os.WriteFile(l.path("train"), []byte("#!/bin/sh\necho $1 $OMP_NUM_THREADS $DCS_GPUS "+
		"$DCS_HOST \"$TOKEN\"\n"), 0o755))
	l.snakemake().mustSucceed()
	hosts := map[any]int{}
	for _, result := range l.results(0) {
		hosts[result["host"]]++
		if result["state"] != "succeeded" || result["attempts"] != 1.0 {
			t.Errorf("got %v", result)
		}
	}
	if hosts["ws1"]+hosts["ws2"] != jobs || hosts["ws1"] == 0 || hosts["ws2"] == 0 {
		t.Errorf("the hosts ran %v jobs, want %d by both together", hosts, jobs)
	}
	l.checkFiles(map[string]string{"model-7.txt": "7 2 1 ws2 it's $5 \"now\"\n"})
	text := l.readFile(l.glob("dcs-runs/snakemake-*/jobs.jsonl")[0])
	train := regexp.MustCompile(`.*"name":"train seed=7".*`).FindString(text)
	for _, want := range []string{`"slots":2`, `"mem":67108864`, `"timeout_ns":1800000000000`, `"tries":1`, `"fast"`} {
		if !strings.Contains(train, want) {
			t.Errorf("the job has no %s: %s", want, train)
		}
	}

	must(t, os.Mkdir(l.path("elsewhere"), 0o755))
	failed := l.snakemake("--directory", "elsewhere", "bad.txt").wait()
	log := regexp.MustCompile(
		`/\S.*?/elsewhere/dcs-runs/snakemake-\S*?/attempts/000/1\.1\.err`,
	).FindString(failed.stderr)
	if failed.code == 0 || log == "" || !strings.Contains(failed.stderr, "bad.log") {
		t.Fatalf("exit %d\n%s", failed.code, failed.stderr)
	}
	if got := l.readFile(log); !strings.Contains(got, "this is broken") {
		t.Errorf("%s has not the output of the rule:\n%s", log, got)
	}
}

// TestSnakemakePluginFaults kills Snakemake while its job runs, and checks that a second start ends
// that job before it runs it again, and does not run it again if it has ended meanwhile. It also
// checks that Ctrl-C ends the jobs, and that a job survives the death of dcs-tui.
func TestSnakemakePluginFaults(t *testing.T) {
	l := newSnakemakeLab(t, `
rule slow:
    output: "slow.txt"
    shell: """
        flock -n lock sh -c 'echo >> starts; until [ -e gate ]; do sleep 0.1; done; echo done > slow.txt' ||
            touch twice
        """
`)
	start := func(n int) *process {
		p := l.snakemake("--rerun-incomplete", "slow.txt")
		l.until("the job runs", func() bool {
			b, _ := os.ReadFile(l.path("starts"))
			return len(b) == n
		})
		return p
	}
	start(1).kill()
	locked := l.snakemake("slow.txt").wait()
	if locked.code == 0 || !strings.Contains(locked.stderr, "--unlock") {
		t.Fatalf("exit %d\n%s", locked.code, locked.stderr)
	}
	l.snakemake("--unlock").mustSucceed()
	second := start(2)
	if state := l.results(0)[0]["state"]; state != "canceled" {
		t.Errorf("the first job is %v, want canceled", state)
	}
	second.signal(syscall.SIGINT)
	if end := second.wait(); end.code == 0 {
		t.Errorf("exit %d\n%s", end.code, end.stderr)
	}
	if state := l.results(1)[0]["state"]; state != "canceled" {
		t.Errorf("the job is %v after Ctrl-C, want canceled", state)
	}
	third := start(3)
	runs := l.glob("dcs-runs/*")
	l.killDispatcher(runs[2])
	l.writeFile("gate", "")
	third.mustSucceed()

	must(t, errors.Join(os.Remove(l.path("gate")), os.Remove(l.path("slow.txt"))))
	start(4).kill()
	l.writeFile("gate", "")
	l.until("the job ends", func() bool { return l.numEnded("dcs-runs/*/attempts/*/*.status") == 4 })
	l.snakemake("--unlock").mustSucceed()
	l.snakemake("slow.txt").mustSucceed()
	l.checkFiles(map[string]string{"slow.txt": "done\n", "starts": "\n\n\n\n"})
	if n := l.numFiles("twice") + l.numFiles(".snakemake/auxiliary/dcs-tui/*"); n != 0 {
		t.Errorf("%d files are left: the job ran twice at a time, or a run counts as unfinished", n)
	}
}
