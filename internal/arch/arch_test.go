package arch

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

type pkg struct {
	ImportPath string
	Dir        string
	Doc        string
	Imports    []string
	Deps       []string
	GoFiles    []string
}

func list(t *testing.T) []pkg {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Dir,Doc,Imports,Deps,GoFiles", "./...")
	cmd.Dir = "../.."
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var pkgs []pkg
	dec := json.NewDecoder(strings.NewReader(string(out)))
	for {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return pkgs
		} else if err != nil {
			t.Fatal(err)
		}
		pkgs = append(pkgs, p)
	}
}

// allowedImports lists which of our packages each package may import, as in the table of
// ARCHITECTURE.md. A package that is not listed may import every package.
var allowedImports = map[string][]string{
	"jobs":                {},
	"jobs/journal":        {"jobs", "jobs/live", "jobs/rundir"},
	"jobs/live":           {"jobs", "jobs/rundir"},
	"jobs/query":          {"jobs"},
	"jobs/rundir":         {"jobs"},
	"jobs/rundir/memdisk": {"jobs/rundir"},
	"jobs/results":        {"jobs", "jobs/query"},
	"jobs/report":         {"jobs", "jobs/live", "jobs/query", "jobs/results"},
	"jobs/metrics":        {"jobs", "jobs/attempts", "jobs/results", "jobs/rundir"},
	"jobs/attempts":       {"jobs", "jobs/rundir"},
	"hosts":               {"internal/text", "jobs", "jobs/attempts", "jobs/rundir"},
	"hosts/link":          {"hosts", "internal/text", "jobs"},
	"hosts/helper":        {"hosts", "jobs"},
	"hosts/files":         {"hosts", "hosts/helper", "jobs", "jobs/attempts", "jobs/journal", "jobs/results", "jobs/rundir"},
	"hosts/helper/remote": {"hosts", "hosts/files", "jobs", "jobs/attempts", "jobs/rundir", "hosts/helper"},
	"hosts/hosttest":      {"hosts", "jobs"},
	"internal/polltest":   {},
	"internal/progtest":   {"internal/polltest"},
	"internal/ptytest":    {"hosts/hosttest"},
	"grid":                {"grid/search", "jobs", "jobs/query"},
	"grid/search":         {},
	"dispatch/sched":      {"jobs", "hosts"},
	"dispatch/commit":     {"dispatch/sched", "hosts", "jobs"},
	"dispatch/sim": {"dispatch/commit", "dispatch/sched", "hosts", "jobs", "jobs/attempts", "jobs/journal", "jobs/rundir",
		"jobs/rundir/memdisk"},
	"dispatch":         {"hosts/files", "dispatch/commit", "dispatch/sched", "jobs", "jobs/live", "jobs/results", "jobs/rundir", "hosts"},
	"dispatch/publish": {"dispatch", "jobs/live", "jobs/rundir"},
	"dispatch/socket":  {"jobs", "jobs/live"},
	"tui":              {"jobs", "jobs/live", "jobs/query", "jobs/runview", "jobs/results"},
	"internal/text":    {"jobs"},
	"jobs/ask":         {"internal/text", "jobs", "jobs/journal", "jobs/live", "jobs/rundir"},
	"dispatch/inbox":   {"dispatch", "dispatch/sched", "dispatch/socket", "internal/text", "jobs", "jobs/rundir"},
	"dispatch/run": {"grid/search", "dispatch", "hosts/files", "dispatch/inbox", "dispatch/publish", "dispatch/sched", "dispatch/socket", "hosts", "internal/text",
		"jobs", "jobs/attempts", "jobs/journal", "jobs/live", "jobs/metrics", "jobs/results", "jobs/rundir"},
	"jobs/runview": {"dispatch/socket", "hosts", "jobs", "jobs/ask", "jobs/journal", "jobs/live", "jobs/metrics", "jobs/query", "jobs/results", "jobs/rundir"},
}

// TestImports checks that packages import only what the table of ARCHITECTURE.md allows.
func TestImports(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range list(t) {
		name := strings.TrimPrefix(p.ImportPath, "dcs-tui/")
		allowed, ruled := allowedImports[name]
		if !ruled {
			continue
		}
		seen[name] = true
		for _, imp := range p.Imports {
			ours, ok := strings.CutPrefix(imp, "dcs-tui/")
			if !ok {
				continue
			}
			found := false
			for _, a := range allowed {
				found = found || a == ours
			}
			if !found {
				t.Errorf("%s imports %s, which the table does not allow", name, ours)
			}
		}
	}
	for name := range allowedImports {
		if !seen[name] {
			t.Errorf("package %s does not exist: remove it from the table", name)
		}
	}
}

// TestDispatchNeverReachesSSH checks that the dispatcher and the screen use hosts only through
// interfaces.
func TestDispatchNeverReachesSSH(t *testing.T) {
	for _, p := range list(t) {
		name := strings.TrimPrefix(p.ImportPath, "dcs-tui/")
		if name != "dispatch" && !strings.HasPrefix(name, "dispatch/") && name != "tui" && name != "jobs" {
			continue
		}
		for _, dep := range p.Deps {
			if strings.HasPrefix(dep, "golang.org/x/crypto/ssh") || strings.HasSuffix(dep, "/hosts/link") {
				t.Errorf("%s reaches %s", name, dep)
			}
		}
	}
}

// TestJobsStandsOnTheStandardLibrary checks that jobs, and therefore Fold, depends only on the
// standard library and its next JSON package.
func TestJobsStandsOnTheStandardLibrary(t *testing.T) {
	for _, p := range list(t) {
		if p.ImportPath != "dcs-tui/jobs" && p.ImportPath != "dcs-tui/jobs/results" {
			continue
		}
		for _, dep := range p.Deps {
			first, _, _ := strings.Cut(dep, "/")
			if strings.Contains(first, ".") && !strings.HasPrefix(dep+"/", "github.com/go-json-experiment/json/") {
				t.Errorf("%s reaches %s", p.ImportPath, dep)
			}
		}
	}
}

// TestPackagesSayWhatTheyAreFor checks that every package has a substantial doc comment.
func TestPackagesSayWhatTheyAreFor(t *testing.T) {
	for _, p := range list(t) {
		if len(p.GoFiles) == 0 {
			continue
		}
		text := ""
		for _, f := range p.GoFiles {
			b, err := os.ReadFile(filepath.Join(p.Dir, f))
			if err != nil {
				t.Fatal(err)
			}
			head, _, _ := strings.Cut(string(b), "\npackage ")
			text += head
		}
		if p.Doc == "" || len(text) < 150 {
			t.Errorf("%s: its package comment says too little", p.ImportPath)
		}
	}
}
