//go:build linux

package e2e

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"dcs-tui/internal/polltest"
	"dcs-tui/internal/progtest"
	"dcs-tui/jobs"
	"dcs-tui/jobs/rundir"
)

// These tests hold the rule of docs/reference/formats.md#versions.

// copyRun copies a run directory into the lab and returns its path. Git keeps no modes and no empty
// directories.
func (l *lab) copyRun(from, name string) string {
	l.t.Helper()
	to := l.path(name)
	must(l.t, os.CopyFS(to, os.DirFS(from)))
	for path := range files(l.t, to) {
		must(l.t, os.Chmod(path, 0o600))
		must(l.t, os.Chmod(filepath.Dir(path), 0o700))
	}
	return to
}

// files returns the contents of the files below a directory, by path.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	must(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		all[path] = string(b)
		return err
	}))
	return all
}

// resultLines returns a line for each job of results --json.
func (l *lab) resultLines(run string) []string {
	l.t.Helper()
	var lines []string
	for _, r := range l.completeResults(l.mustRun("results", "--json", run).stdout) {
		lines = append(lines, fmt.Sprintf("%d %s %s", r.Job, r.State, r.Host))
	}
	slices.Sort(lines)
	return lines
}

// TestRunOfTheFirstVersionIsRead checks that the run in testdata/run-1, which a program of version 1
// of the run directory made and resumed once, is shown and resumed. The directory must never change.
func TestRunOfTheFirstVersionIsRead(t *testing.T) {
	l := newTinyLab(t)
	l.writeFile("hosts.toml", strings.ReplaceAll(l.readFile(l.path("hosts.toml")), `"here"`, `"ws01"`))
	run := l.copyRun("testdata/run-1", "old")
	want := []string{"1 succeeded ws01", "2 succeeded ws01", "3 failed ws01", "4 succeeded ws01"}
	if got := l.resultLines(run); !slices.Equal(got, want) {
		t.Errorf("results: got %q, want %q", got, want)
	}
	before := files(t, run)
	for _, c := range []struct{ args, want string }{
		{"status --json RUN", `"failed":1,"queued":0,"running":0,"skipped":0,"succeeded":3`},
		{"results --result loss RUN", "0.25"},
		{"logs RUN 2", "loss=0.25"},
		{"events --json RUN", `"kind":"round"`},
		{"why RUN 3", "exit 3"},
		{"report -o - RUN", "golden"},
	} {
		out := l.mustRun(strings.Fields(strings.ReplaceAll(c.args, "RUN", run))...).stdout
		if !strings.Contains(out, c.want) {
			t.Errorf("%s: got %s, want %q", c.args, out, c.want)
		}
	}
	if !maps.Equal(before, files(t, run)) {
		t.Error("a command that only reads the run has changed it")
	}
	resume := []string{"resume", "--no-tui", "--hosts", l.path("hosts.toml"), run}
	if p := l.run(resume...); p.code != 1 || !strings.Contains(p.stderr, "4 jobs done, 0 to adopt, 0 to run") {
		t.Errorf("resume: exit %d: %s", p.code, p.stderr)
	}
	l.mustRun("requeue", "--yes", run, "3")
	if p := l.run(resume...); p.code != 1 || !strings.Contains(p.stderr, "1 request to carry out") {
		t.Errorf("resume with a request: exit %d: %s", p.code, p.stderr)
	}
	if got := l.resultLines(run); !slices.Equal(got, want) {
		t.Errorf("results after the last resume: got %q, want %q", got, want)
	}
}

// checkRefusesNewerRun checks that each command of a program refuses a run that a newer program has
// marked, names that program, and changes no file.
func (l *lab) checkRefusesNewerRun(program string) {
	l.t.Helper()
	l.mkdir("newer")
	base := l.path("newer")
	must(l.t, os.Mkdir(base+"/"+rundir.Base, 0o700))
	run := l.copyRun("testdata/run-1", "newer/"+rundir.Base+"/golden")
	opened, err := rundir.Open(run)
	must(l.t, err)
	jobs.FormatRun.Version++
	err = opened.UpgradeFormat("v9.8.7")
	jobs.FormatRun.Version--
	must(l.t, err)
	before := files(l.t, base)
	const anyCode = -1 // older programs exit with 0
	for _, c := range []struct {
		args string
		code int
	}{
		{"status golden", 2}, {"status --json golden", 2}, {"results golden", 2}, {"results --json golden", 2},
		{"events golden", 2}, {"why golden 3", 2}, {"logs golden 3", 2}, {"report -o - golden", 2},
		{"resume --no-tui golden", 2}, {"resume --no-tui --force golden", 2}, {"resume --no-tui --standby golden", 2},
		{"attach golden", 2}, {"wait golden", 2}, {"cancel --yes golden", 2}, {"pause golden", 2},
		{"requeue --yes golden 3", 2}, {"submit golden --wait -- true", 2}, {"fetch golden", 2},
		{"runs", 0}, {"runs prune --yes golden", anyCode}, {"runs prune --yes --unfinished golden", anyCode},
	} {
		cmd := exec.Command(program, strings.Fields(c.args)...)
		cmd.Dir = base
		out, _ := cmd.CombinedOutput()
		code := cmd.ProcessState.ExitCode()
		if c.code != anyCode && code != c.code || !strings.Contains(string(out), "a newer dcs-tui (v9.8.7)") {
			l.t.Errorf("%s: exit %d, want %d and the name of the newer program: %s", c.args, code, c.code, out)
		}
		if !maps.Equal(before, files(l.t, base)) {
			l.t.Errorf("%s has changed a run of a newer program", c.args)
			before = files(l.t, base)
		}
	}
}

// TestEachCommandRefusesARunOfANewerProgram checks this program.
func TestEachCommandRefusesARunOfANewerProgram(t *testing.T) {
	newTinyLab(t).checkRefusesNewerRun(program)
}

// olderCommit is the commit whose program TestTwoVersions uses beside the present one. After a
// release it is the commit of its tag.
const olderCommit = "2c4d68383128785d8bc048b49c089a4c78079de5"

// buildOlder builds the program of olderCommit below dir. It skips the test if the repository, or the
// cache of modules, does not have what is needed.
func buildOlder(t *testing.T, dir string) (source, program string) {
	t.Helper()
	source, program = filepath.Join(dir, "source"), filepath.Join(dir, "older")
	must(t, os.Mkdir(source, 0o700))
	archive := fmt.Sprintf("git archive -o %[2]s/a.tar %[1]s && tar -xf %[2]s/a.tar -C %[3]s", olderCommit, dir, source)
	cmd := exec.Command("sh", "-c", archive)
	cmd.Dir = "../.."
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Skipf("LEFT OUT: the repository has no commit %s: %v: %s", olderCommit, err, out)
	}
	env := append(os.Environ(), "GOPROXY=off", "GOFLAGS=-mod=mod -buildvcs=false")
	cmd = exec.Command("go", "list", "-deps", ".")
	cmd.Dir, cmd.Env = source, env
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Skipf("LEFT OUT: the modules of commit %s are not in the cache: %v: %s", olderCommit, err, out)
	}
	cmd = exec.Command("go", "build", "-ldflags=-s -w", "-o", program, ".")
	cmd.Dir, cmd.Env = source, env
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("building commit %s: %v: %s", olderCommit, err, out)
	}
	return source, program
}

// TestTwoVersions checks an older program beside this one.
func TestTwoVersions(t *testing.T) {
	polltest.Long(t)
	source, older := buildOlder(t, t.TempDir())

	t.Run("inventory", func(t *testing.T) {
		l := newTinyLab(t)
		l.mustRun("hosts", "list", "--hosts", filepath.Join(source, "hosts.toml.example"))
	})

	t.Run("newer run", func(t *testing.T) { newTinyLab(t).checkRefusesNewerRun(older) })

	// The newer program resumes a run whose dispatcher was killed while two jobs ran, and adopts
	// them. Nothing runs twice.
	t.Run("resume", func(t *testing.T) {
		l := newLocalLab(t, 2, "")
		const n = 8
		file := l.writeTaggedJobs(n, "[ $DCS_JOB_ID -le 2 ] || "+l.gateWait())
		p := l.startCommand(exec.Command(older, "run", "--no-tui", "--hosts", l.path("hosts.toml"), "--run-dir",
			l.path("run"), file))
		l.until("two jobs wait", func() bool {
			return l.numFiles("ran/*") == 4 && l.numEnded("run/attempts/*/*.status") == 2
		})
		p.kill()
		newer := l.start("resume", "--no-tui", "--json", l.path("run"))
		l.until("the run is resumed", func() bool { return l.numFiles("run/journal/000002.jsonl") == 1 })
		l.writeFile("gate", "")
		newer.mustSucceed()
		if got := progtest.CheckRanOnce(t, l.path("ran"), n); got != n {
			t.Errorf("got %d attempts, want %d", got, n)
		}
		if got := l.resultLines(l.path("run")); len(got) != n {
			t.Errorf("results: got %q, want %d", got, n)
		}
	})

	// A run of each version on the same host: they see each other's claims in share_dir.
	t.Run("share", func(t *testing.T) {
		l := newLocalLab(t, 4, fmt.Sprintf("share_dir = %q\n", filepath.Join(t.TempDir(), "share")))
		env := slices.DeleteFunc(os.Environ(), func(v string) bool {
			return strings.HasPrefix(v, "DCS_TUI_RUN_SHARE=")
		})
		runs := map[string]*process{}
		for name, program := range map[string]string{"older": older, "newer": program} {
			l.mkdir(name)
			file := l.writeFile(name+".txt", strings.Repeat(fmt.Sprintf("echo $DCS_ATTEMPT >> %s/$DCS_JOB_ID; %s\n",
				l.path(name), l.gateWait()), 8))
			cmd := exec.Command(program, "run", "--no-tui", "--hosts", l.path("hosts.toml"), "--run-dir",
				l.path("run-"+name), file)
			cmd.Env = env
			runs[name] = l.startCommand(cmd)
		}
		for name, other := range map[string]string{"older": "newer", "newer": "older"} {
			l.until("each run sees the other", func() bool {
				b, _ := os.ReadFile(l.path("run-" + name + "/live.json"))
				return strings.Contains(string(b), other+"-")
			})
		}
		exes := map[string]bool{}
		for _, p := range progtest.FindProcesses(func(p progtest.Process) bool {
			return l.ownProcess()(p) && strings.Contains(p.Args, "\x00__")
		}) {
			if exe, err := os.Readlink(p.Dir + "/exe"); err == nil { // otherwise it has just ended
				exes[exe] = true
			}
		}
		if len(exes) != 2 {
			t.Errorf("the programs on the host are %v, want two", slices.Sorted(maps.Keys(exes)))
		}
		l.writeFile("gate", "")
		for name, p := range runs {
			p.mustSucceed()
			progtest.CheckRanOnce(t, l.path(name), 8)
		}
	})
}
