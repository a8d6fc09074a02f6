package sched

import (
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"dcs-tui/jobs"
)

// check verifies the invariants that hold after every step.
func (w *world) check() {
	c := w.core
	if c.Defects != 0 {
		w.fatalf("the core made %d records that do not fit", c.Defects)
	}
	open := 0
	for _, h := range c.everyHost() {
		n, occ, run := 0, 0, 0
		for f := h.head; f != nil; f = f.next {
			n++
			occ += f.slots
			if f.started {
				run += f.slots
			}
			if a := c.table.Attempt(f.id); a == nil || !a.State.Open() {
				w.fatalf("attempt %s is in the books of %s and not open", f.id, h.spec.Name)
			}
		}
		if n != h.open || occ != h.occupied || run != h.running {
			w.fatalf("the books of %s are wrong: %d %d %d, counted %d %d %d", h.spec.Name, h.open, h.occupied, h.running, n, occ, run)
		}
		open += n
	}
	if open != len(c.inFlight) {
		w.fatalf("%d attempts in the books, %d on the hosts", len(c.inFlight), open)
	}
	if w.steps%16 != 0 {
		return
	}
	readyJobs, avoiding := 0, 0
	for i := range c.table.Jobs {
		j := &c.table.Jobs[i]
		if (c.queue.states[i] != notQueued) != (j.State == jobs.Queued) {
			w.fatalf("job %d is %s and its spot in the queue is %d", i+1, j.State, c.queue.states[i])
		}
		if c.queue.states[i] == ready {
			readyJobs++
			if c.classOf(j).avoid != nil {
				avoiding++
			}
		}
	}
	running := c.Running()
	for id := jobs.ID(1); int(id) <= len(c.table.Jobs); id++ {
		isEnding := c.table.Job(id).State == jobs.Running && (c.canceled(id) || c.tooHard(c.table.Job(id)))
		if got := slices.Contains(running.Ending, id); got != isEnding {
			w.fatalf("Running lists job %d as being ended: %v, want %v", id, got, isEnding)
		}
		if got, want := slices.Contains(running.Stragglers, id), c.Straggler(id); got != want {
			w.fatalf("Running lists job %d as a straggler: %v, want %v", id, got, want)
		}
	}
	inClasses := 0
	for _, cl := range c.queue.list {
		inClasses += cl.n
	}
	var retries, blocked int
	for _, sp := range c.queue.states {
		switch sp {
		case retrying:
			retries++
		case waitingForJobs:
			blocked++
		}
	}
	if retries+avoiding != len(c.queue.due) || blocked != len(c.after.waits) {
		w.fatalf("%d jobs wait for a try or another host, %d entries; %d for others, %d entries", retries+avoiding, len(c.queue.due), blocked, len(c.after.waits))
	}
	if len(c.queue.anywhere) > readyJobs {
		w.fatalf("%d jobs may go anywhere, and %d are ready", len(c.queue.anywhere), readyJobs)
	}
	if readyJobs != c.queue.ready || readyJobs != inClasses {
		w.fatalf("%d jobs are ready, counted %d, in classes %d", readyJobs, c.queue.ready, inClasses)
	}
}

func (w *world) stuck() {
	for i := range w.core.table.Jobs {
		if !w.core.table.Jobs[i].State.Terminal() {
			w.logf("%s", w.core.Why(Time{w.now, w.wall()}, jobs.ID(i+1)))
		}
	}
	for _, v := range w.core.Hosts() {
		w.logf("%s %s %s slots %d usable %v running %d buffered %d", v.Name, v.State, v.Reason, v.Slots, v.Usable, v.Running, v.Buffered)
	}
	w.fatalf("the run does not end")
}

// atEnd checks the promises of a finished run.
func (w *world) atEnd() {
	if w.finished.How != AllDone {
		w.fatalf("finished with %+v", *w.finished)
	}
	t := w.core.table
	for i := range t.Jobs {
		j := &t.Jobs[i]
		if !j.State.Terminal() || j.Seq == 0 {
			w.fatalf("job %d ended as %s with result number %d", i+1, j.State, j.Seq)
		}
		ok := false
		for _, a := range j.Attempts {
			f := w.hosts[a.Host].attempts[a.ID]
			ok = ok || f != nil && f.state == fakeExited && f.outcome.OK() && a.Round == j.Round && a.State == jobs.AttemptExited
			if f != nil && (f.state == fakeRunning || f.state == fakeBuffered) && w.hosts[a.Host].linked {
				w.fatalf("attempt %s is still %v on %s, which answers", a.ID, f.state, a.Host)
			}
		}
		if (j.State == jobs.Succeeded) && !ok {
			w.fatalf("job %d succeeded, but no attempt of it did", i+1)
		}
		lost := false // its failure may be reported late, in addition to that of its replacement
		for _, a := range j.Attempts {
			lost = lost || w.givenUp[a.ID]
		}
		if !lost && int(j.Failures) > w.cfg.Tries {
			w.fatalf("job %d was charged with %d failures of %d", i+1, j.Failures, w.cfg.Tries)
		}
	}
	replay := &jobs.Table{Specs: t.Specs}
	for i := range w.journal {
		if err := jobs.Fold(replay, &w.journal[i]); err != nil {
			w.fatalf("replay: %v", err)
		}
	}
	if !reflect.DeepEqual(replay, t) {
		w.fatalf("the journal does not give the state that the run had")
	}
}

// TestPure checks that the core is deterministic. The files of this package and the Fold of jobs
// start no goroutine, use no channel, lock, or clock, and range over no map, whose order is random.
// The test inspects syntax trees, so no run is needed.
func TestPure(t *testing.T) {
	fset := token.NewFileSet()
	var own []*ast.File
	for _, name := range goFiles(t, ".") {
		own = append(own, parse(t, fset, name))
	}
	fold := []*ast.File{parse(t, fset, "../../jobs/fold.go"), parse(t, fset, "../../jobs/table.go")}
	if bad := impurities(fset, own); len(bad) > 0 {
		t.Errorf("not pure:\n%s", strings.Join(bad, "\n"))
	}
	if bad := impurities(fset, fold); len(bad) > 0 {
		t.Errorf("not pure:\n%s", strings.Join(bad, "\n"))
	}
}

// TestPureCatches checks that impurities detects each kind of violation.
func TestPureCatches(t *testing.T) {
	for _, body := range []string{
		"go f()", "ch := make(chan int); _ = ch", "var ch chan int; ch <- 1", "select {}", "time.Now()", "time.Sleep(1)",
		"time.Since(time.Time{})", "time.AfterFunc(1, f)", "for k := range m { _ = k }", "for range s.m {}",
		"for k := range maps.Keys(m) { _ = k }", "rand.Int()", "var mu sync.Mutex; mu.Lock()", "os.Getenv(\"X\")",
	} {
		src := "package p\nimport (\"maps\"; \"math/rand/v2\"; \"sync\"; \"time\"; \"os\")\nvar m = map[string]int{}\nvar s struct{ m map[int]int }\nvar _ sync.Mutex; var _ = maps.Keys[map[int]int]; var _ = rand.Int; var _ time.Time; var _ = os.Args\nfunc f() {\n" + body + "\n}\n"
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, "p.go", src, 0)
		if err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		n := 0
		for _, bad := range impurities(fset, []*ast.File{f}) {
			if !strings.Contains(bad, "import") {
				n++
			}
		}
		if n == 0 && !strings.Contains(body, "sync") && !strings.Contains(body, "os.") {
			t.Errorf("%q passes as pure", body)
		}
		if len(impurities(fset, []*ast.File{f})) == 0 {
			t.Errorf("%q passes as pure", body)
		}
	}
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, "p.go", "package p\nimport \"maps\"; import \"slices\"\nfunc f(m map[string]int) { for range slices.Sorted(maps.Keys(m)) {}; for range m[\"x\"] {} }\n", 0)
	if err != nil {
		t.Fatal(err)
	}
	if bad := impurities(fset, []*ast.File{f}); len(bad) > 0 {
		t.Errorf("sorted keys are refused: %v", bad)
	}
}

func goFiles(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		if n := e.Name(); strings.HasSuffix(n, ".go") && !strings.HasSuffix(n, "_test.go") {
			names = append(names, filepath.Join(dir, n))
		}
	}
	return names
}

func parse(t *testing.T, fset *token.FileSet, name string) *ast.File {
	t.Helper()
	f, err := parser.ParseFile(fset, name, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// sources resolves this module's packages from their source files, and the standard library from
// the compiler's export data, if available. With unresolved types, the check only misses some maps
// of other packages.
type sources struct {
	fset *token.FileSet
	std  types.Importer
	done map[string]*types.Package
}

func (s *sources) Import(path string) (*types.Package, error) {
	dir, ok := strings.CutPrefix(path, "dcs-tui/")
	if !ok {
		return s.std.Import(path)
	}
	if p := s.done[path]; p != nil {
		return p, nil
	}
	var files []*ast.File
	names, err := filepath.Glob(filepath.Join("../..", dir, "*.go"))
	if err != nil {
		return nil, err
	}
	for _, n := range names {
		if strings.HasSuffix(n, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(s.fset, n, nil, 0)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	conf := types.Config{Importer: s, Error: func(error) {}}
	p, _ := conf.Check(path, s.fset, files, nil)
	s.done[path] = p
	return p, nil
}

var pureImports = map[string]bool{
	"cmp": true, "container/heap": true, "fmt": true, "math": true, "math/rand/v2": true, "slices": true, "strings": true,
	"time": true, "maps": true, "strconv": true, "errors": true, "dcs-tui/jobs": true, "dcs-tui/hosts": true,
}

// pureTime lists the allowed identifiers of package time: types, constants, and functions that
// depend only on their arguments.
var pureTime = map[string]bool{
	"Duration": true, "Nanosecond": true, "Microsecond": true, "Millisecond": true, "Second": true, "Minute": true,
	"Hour": true, "Time": true, "Unix": true,
}

var pureRand = map[string]bool{"Rand": true, "New": true, "NewPCG": true}

func impurities(fset *token.FileSet, files []*ast.File) []string {
	info := &types.Info{Types: make(map[ast.Expr]types.TypeAndValue), Uses: make(map[*ast.Ident]types.Object)}
	conf := types.Config{
		Importer: &sources{fset, importer.Default(), make(map[string]*types.Package)},
		Error:    func(error) {},
	}
	conf.Check("p", fset, files, info) // types that it cannot resolve stay unknown
	var bad []string
	say := func(n ast.Node, what string) { bad = append(bad, fset.Position(n.Pos()).String()+": "+what) }
	for _, f := range files {
		for _, imp := range f.Imports {
			if p := strings.Trim(imp.Path.Value, `"`); !pureImports[p] {
				say(imp, "import of "+p)
			}
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				say(n, "go statement")
			case *ast.ChanType:
				say(n, "channel")
			case *ast.SendStmt:
				say(n, "send")
			case *ast.SelectStmt:
				say(n, "select")
			case *ast.SelectorExpr:
				if pkg, ok := n.X.(*ast.Ident); ok {
					if pn, ok := info.Uses[pkg].(*types.PkgName); ok {
						switch path := pn.Imported().Path(); {
						case path == "time" && !pureTime[n.Sel.Name], path == "math/rand/v2" && !pureRand[n.Sel.Name]:
							say(n, path+"."+n.Sel.Name)
						}
					}
				}
			case *ast.RangeStmt:
				if tv := info.Types[n.X]; tv.Type != nil {
					if _, ok := tv.Type.Underlying().(*types.Map); ok {
						say(n, "range over a map")
					}
				}
				if call, ok := n.X.(*ast.CallExpr); ok {
					if sel, ok := call.Fun.(*ast.SelectorExpr); ok {
						if pkg, ok := sel.X.(*ast.Ident); ok && pkg.Name == "maps" {
							say(n, "range over maps."+sel.Sel.Name)
						}
					}
				}
			}
			return true
		})
	}
	return bad
}
