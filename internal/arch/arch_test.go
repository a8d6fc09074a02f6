package arch

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
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

// listPackages returns the packages of the module.
var listPackages = sync.OnceValues(func() (pkgs []pkg, err error) {
	cmd := exec.Command("go", "list", "-json=ImportPath,Dir,Doc,Imports,Deps,GoFiles", "./...")
	cmd.Dir = "../.."
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	for dec := json.NewDecoder(bytes.NewReader(out)); err == nil && dec.More(); {
		var p pkg
		err = dec.Decode(&p)
		pkgs = append(pkgs, p)
	}
	return pkgs, err
})

// packages returns the packages of the module by their paths in it.
func packages(t *testing.T) map[string]pkg {
	t.Helper()
	pkgs, err := listPackages()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]pkg{}
	for _, p := range pkgs {
		all[strings.TrimPrefix(p.ImportPath, "dcs-tui/")] = p
	}
	return all
}

// sourceFiles parses the Go files of the repository, except the files and directories for which skip
// returns true. It returns them by their paths in the repository.
func sourceFiles(
	t *testing.T, fset *token.FileSet, mode parser.Mode, skip func(path string) bool,
) map[string]*ast.File {
	t.Helper()
	files := map[string]*ast.File{}
	err := filepath.WalkDir("../..", func(path string, d os.DirEntry, err error) error {
		rel, name := strings.TrimPrefix(path, "../../"), d.Name()
		switch {
		case err != nil:
			return err
		case d.IsDir() && (name == "testdata" || strings.HasPrefix(name, ".") && name != ".." || skip(rel)):
			return filepath.SkipDir
		case !strings.HasSuffix(name, ".go") || skip(rel):
			return nil
		}
		files[rel], err = parser.ParseFile(fset, path, nil, mode|parser.SkipObjectResolution)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func isTest(path string) bool { return strings.HasSuffix(path, "_test.go") }

// allowedImports lists which of our packages each package may import, as in the table of
// ARCHITECTURE.md. A package that is not listed may import every package.
var allowedImports = map[string][]string{
	"jobs":        {"internal/text"},
	"jobs/action": {"internal/text", "jobs"},
	"jobs/journal": {
		"internal/account", "internal/platform", "internal/text", "jobs", "jobs/live", "jobs/rundir",
	},
	"jobs/live":           {"jobs", "jobs/rundir"},
	"jobs/query":          {"internal/text", "jobs"},
	"jobs/rundir":         {"internal/platform", "internal/text", "internal/trust", "jobs", "jobs/action"},
	"jobs/shell":          {},
	"jobs/rundir/memdisk": {"jobs/rundir"},
	"jobs/results":        {"internal/text", "jobs", "jobs/query"},
	"observe/report":      {"internal/text", "jobs", "jobs/live", "jobs/query", "jobs/results"},
	"jobs/metrics":        {"internal/text", "jobs", "jobs/attempts", "jobs/results", "jobs/rundir"},
	"jobs/attempts":       {"jobs", "jobs/rundir"},
	"hosts": {
		"internal/account", "internal/text", "internal/trust", "jobs", "jobs/attempts", "jobs/rundir",
	},
	"hosts/link": {
		"hosts", "internal/account", "internal/platform", "internal/regular", "internal/text", "internal/trust",
	},
	"hosts/helper": {"hosts", "internal/platform", "internal/text", "jobs"},
	"hosts/files": {
		"hosts", "hosts/helper", "internal/regular", "internal/text", "jobs", "jobs/attempts", "jobs/journal",
		"jobs/results", "jobs/rundir",
	},
	"hosts/mirror": {"hosts", "jobs", "jobs/journal", "jobs/rundir"},
	"hosts/helper/remote": {
		"hosts", "hosts/files", "hosts/helper", "hosts/mirror", "internal/account", "internal/text",
		"internal/zone", "jobs", "jobs/attempts", "jobs/rundir",
	},
	"hosts/helper/hostprog": {"hosts/helper/remote"},
	"hosts/helper/carried":  {},
	"hosts/hosttest":        {"hosts", "hosts/helper", "internal/platform", "internal/polltest", "jobs"},
	"internal/polltest":     {},
	"internal/heap":         {},
	"internal/platform":     {},
	"internal/account":      {},
	"internal/regular":      {},
	"internal/zone":         {},
	"internal/trust":        {"internal/account"},
	"internal/progtest":     {"internal/polltest"},
	"internal/ptytest":      {"hosts/hosttest", "internal/platform", "internal/polltest"},
	"grid":                  {"grid/search", "internal/regular", "internal/text", "jobs", "jobs/query", "jobs/shell"},
	"grid/search":           {},
	"dispatch/sched": {
		"dispatch/sched/after", "dispatch/sched/blame", "dispatch/sched/fairshare", "dispatch/sched/forecast",
		"dispatch/sched/halt", "dispatch/sched/hardness", "internal/heap", "hosts", "internal/text", "jobs",
		"jobs/action",
	},
	"dispatch/sched/after":     {"jobs"},
	"dispatch/sched/blame":     {"jobs"},
	"dispatch/sched/fairshare": {},
	"dispatch/sched/halt":      {"internal/text", "jobs"},
	"dispatch/sched/forecast":  {},
	"dispatch/sched/hardness":  {"jobs"},
	"dispatch/commit":          {"dispatch/sched", "hosts", "jobs"},
	"dispatch/sim": {
		"dispatch/commit",
		"dispatch/sched",
		"dispatch/sched/fairshare",
		"dispatch/sched/halt",
		"hosts",
		"jobs",
		"jobs/action",
		"jobs/attempts",
		"jobs/journal",
		"jobs/rundir",
		"jobs/rundir/memdisk",
	},
	"dispatch": {
		"dispatch/commit", "dispatch/sched", "hosts", "hosts/files", "internal/account", "internal/text",
		"jobs", "jobs/live", "jobs/results", "jobs/rundir",
	},
	"dispatch/publish": {"dispatch", "jobs/live", "jobs/rundir"},
	"dispatch/socket":  {"internal/platform", "jobs", "jobs/live"},
	"tui": {
		"internal/platform", "internal/text", "jobs", "jobs/action", "jobs/live", "jobs/query",
		"jobs/results", "observe/runview",
	},
	"internal/text":    {},
	"observe/ask":      {"internal/text", "jobs", "jobs/action", "jobs/journal", "jobs/live", "jobs/rundir"},
	"observe/runindex": {"internal/account", "jobs", "jobs/rundir"},
	"dispatch/inbox": {
		"dispatch", "dispatch/sched", "dispatch/socket", "internal/text", "jobs", "jobs/action", "jobs/rundir",
	},
	"dispatch/run": {
		"grid/search",
		"dispatch",
		"hosts/files",
		"dispatch/inbox",
		"dispatch/publish",
		"dispatch/sched",
		"dispatch/sched/halt",
		"dispatch/socket",
		"hosts",
		"internal/account",
		"hosts/mirror",
		"internal/platform",
		"internal/text",
		"jobs",
		"jobs/action",
		"jobs/attempts",
		"jobs/journal",
		"jobs/live",
		"jobs/metrics",
		"jobs/query",
		"jobs/results",
		"jobs/rundir",
	},
	"observe/runview": {
		"internal/heap", "dispatch/socket", "hosts", "internal/text", "jobs", "jobs/action", "observe/ask",
		"jobs/journal", "jobs/live", "jobs/metrics", "jobs/query", "jobs/results", "jobs/rundir",
	},
}

// TestImportsAreAllowed checks that packages import only what the table of ARCHITECTURE.md allows.
func TestImportsAreAllowed(t *testing.T) {
	all := packages(t)
	for name, allowed := range allowedImports {
		p, ok := all[name]
		if !ok {
			t.Errorf("package %s does not exist: remove it from the table", name)
		}
		for _, imp := range p.Imports {
			if ours, ok := strings.CutPrefix(imp, "dcs-tui/"); ok && !slices.Contains(allowed, ours) {
				t.Errorf("%s imports %s, which the table does not allow", name, ours)
			}
		}
	}
}

// TestImportsPointDownward checks that what is below jobs imports only packages below jobs and
// internal, and that only screens, commands, and benchmarks use what observes a run.
func TestImportsPointDownward(t *testing.T) {
	users := []string{"", "bench", "internal", "observe", "scripts", "tui"}
	for name, p := range packages(t) {
		first, _, _ := strings.Cut(name, "/")
		for _, dep := range p.Imports {
			path, ours := strings.CutPrefix(dep, "dcs-tui/")
			below, _, _ := strings.Cut(path, "/")
			if ours && first == "jobs" && below != "jobs" && below != "internal" ||
				below == "observe" && !slices.Contains(users, first) {
				t.Errorf("%s imports %s", name, path)
			}
		}
	}
}

// TestHostsAreReachedThroughInterfaces checks that the dispatcher and the screen use hosts only
// through interfaces, and that jobs, and therefore jobs.Fold, depends only on the standard library
// and its next JSON package.
func TestHostsAreReachedThroughInterfaces(t *testing.T) {
	for name, p := range packages(t) {
		first, _, _ := strings.Cut(name, "/")
		for _, dep := range p.Deps {
			ssh := strings.HasPrefix(dep, "golang.org/x/crypto/ssh") || strings.HasSuffix(dep, "/hosts/link")
			site, _, _ := strings.Cut(dep, "/")
			library := strings.Contains(site, ".") && !strings.HasPrefix(dep+"/", "github.com/go-json-experiment/json/")
			if ssh && (first == "dispatch" || name == "tui" || name == "jobs") ||
				library && (name == "jobs" || name == "jobs/results") {
				t.Errorf("%s reaches %s", name, dep)
			}
		}
	}
}

// TestTheProgramForHostsIsSmall checks that the program for hosts does not depend on what only users
// need: commands, the screen, ssh, pages, and networks.
func TestTheProgramForHostsIsSmall(t *testing.T) {
	libraries := []string{"github.com/BurntSushi/toml", "github.com/go-json-experiment/json", "golang.org/x/sys/unix"}
	forUsers := []string{
		"dcs-tui/dispatch",
		"dcs-tui/tui",
		"dcs-tui/observe",
		"dcs-tui/grid",
		"dcs-tui/clients",
		"dcs-tui/internal/cli",
		"dcs-tui/hosts/link",
		"dcs-tui/hosts/helper/carried",
		"embed",
		"net/http",
		"html/template",
		"text/template",
	}
	isBelow := func(dep string) func(string) bool {
		return func(root string) bool { return strings.HasPrefix(dep+"/", root+"/") }
	}
	deps := packages(t)["hosts/helper/hostprog"].Deps
	if !slices.Contains(deps, "dcs-tui/hosts/helper/remote") {
		t.Errorf("the program for hosts has no helper: %v", deps)
	}
	for _, dep := range deps {
		site, _, _ := strings.Cut(dep, "/")
		isLibrary := strings.Contains(site, ".")
		if slices.ContainsFunc(forUsers, isBelow(dep)) || dep == "net" ||
			isLibrary && !slices.ContainsFunc(libraries, isBelow(dep)) {
			t.Errorf("the program for hosts contains %s", dep)
		}
	}
}

// TestTheProgramForHostsStartsCheaply checks that no package of the program for hosts compiles a
// regular expression when the program starts: each slot of a host starts it.
func TestTheProgramForHostsStartsCheaply(t *testing.T) {
	inProgram := map[string]bool{}
	for _, dep := range packages(t)["hosts/helper/hostprog"].Deps {
		inProgram[strings.TrimPrefix(dep, "dcs-tui/")] = true
	}
	fset := token.NewFileSet()
	for path, file := range sourceFiles(t, fset, 0, isTest) {
		if !inProgram[filepath.ToSlash(filepath.Dir(path))] {
			continue
		}
		for _, decl := range file.Decls {
			if vars, ok := decl.(*ast.GenDecl); ok {
				ast.Inspect(vars, func(n ast.Node) bool {
					if sel, ok := n.(*ast.SelectorExpr); ok && strings.HasPrefix(sel.Sel.Name, "MustCompile") {
						t.Errorf("%s: compile it at its first use, with sync.OnceValue", fset.Position(sel.Pos()))
					}
					_, isFunc := n.(*ast.FuncLit)
					return !isFunc
				})
			}
		}
	}
}

// TestPackagesSayWhatTheyAreFor checks that every package has a substantial doc comment.
func TestPackagesSayWhatTheyAreFor(t *testing.T) {
	for _, p := range packages(t) {
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
