package sched

import (
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"dcs-tui/dispatch/sched/blame"
	"dcs-tui/jobs"
)

// Inconsistency describes counts and indexes of the core that do not agree with its table. It
// returns "" if there are none. TestCoreStaysConsistentInSimulatedWorlds calls it in simulated
// worlds.
func Inconsistency(c *Core) string {
	open := 0
	for _, h := range c.allHosts() {
		n, occupied, running := 0, 0, 0
		for f := h.oldest; f != nil; f = f.nextOnHost {
			n++
			occupied += f.slots
			if f.started {
				running += f.slots
			}
			if a := c.table.Attempt(f.id); a == nil || !a.State.Open() {
				return fmt.Sprintf("attempt %s is in flight on %s and not open", f.id, h.spec.Name)
			}
		}
		if n != h.numOpen || occupied != h.occupiedSlots || running != h.runningSlots {
			return fmt.Sprintf("%s has %d attempts, %d slots occupied, %d running; counted %d, %d, %d", h.spec.Name,
				h.numOpen, h.occupiedSlots, h.runningSlots, n, occupied, running)
		}
		open += n
	}
	if open != len(c.inFlight) {
		return fmt.Sprintf("%d attempts are in flight, %d on the hosts", len(c.inFlight), open)
	}
	if at, ok := c.Next(); ok && at != 0 && at <= c.now.Mono {
		return fmt.Sprintf("Next asks for a tick at %v, and it is %v", at, c.now.Mono)
	}
	if why := c.findSilentChange(); why != "" {
		return why
	}
	total := hostTotals{}
	for _, h := range c.hosts {
		if total.add(c.totalsOf(h), 1); c.nodes[c.firstLeaf+h.index] != c.summaryOf(h) {
			return fmt.Sprintf("the summary of %s is %+v, and should be %+v", h.spec.Name, c.nodes[c.firstLeaf+h.index],
				c.summaryOf(h))
		}
	}
	if total != c.total {
		return fmt.Sprintf("the totals of the hosts are %+v, and should be %+v", c.total, total)
	}
	for i := range min(len(c.kinds), 64) {
		free := 0
		for _, h := range c.hosts {
			if h.acceptsJobs() && h.reserved == nil {
				free += c.openSlots(h, 1<<i)
			}
		}
		if n := c.numFreeSlots(1 << i); n != free {
			return fmt.Sprintf("%d slots are free for jobs of kind %d, and should be %d", n, i, free)
		}
	}
	waiting, avoiding, tried := map[queueState]int{}, 0, 0
	queued := map[*queueStats][2]int{} // jobs and their slots
	running := c.Running()
	var rows jobs.RowReader
	for i, state := range c.queue.states {
		id := jobs.ID(i + 1)
		if waiting[state]++; (state != stateNotQueued) != (c.table.State(id) == jobs.Queued) {
			return fmt.Sprintf("job %d is %s and its wait state is %d", id, c.table.State(id), state)
		}
		if c.table.State(id).Terminal() && !slices.Contains(running.Ending, id) {
			continue
		}
		j := rows.Job(c.table, id)
		if j.State == jobs.Queued {
			n := queued[c.statsOf(j.Spec)]
			queued[c.statsOf(j.Spec)] = [2]int{n[0] + 1, n[1] + j.Spec.SlotCount()}
		}
		if state == stateReady && len(j.Attempts) > 0 {
			tried++
		}
		if state == stateReady && c.classOf(j).key.avoid != "" {
			avoiding++
		}
		isEnding := j.State == jobs.Running && (c.isCancelPending(id) || c.hardness.IsTooHard(j))
		if got := slices.Contains(running.Ending, id); got != isEnding {
			return fmt.Sprintf("Running lists job %d as being ended: %v, want %v", id, got, isEnding)
		}
	}
	for _, st := range c.queues {
		if queued[st] != [2]int{st.queued, st.queuedSlots} {
			return fmt.Sprintf("queue %q has %d, %d waiting, want %v", st.share.Name, st.queued, st.queuedSlots,
				queued[st])
		}
	}
	inClasses, wide, inLines := 0, 0, 0
	for _, st := range c.queues {
		for _, l := range []*line{&st.bufferable, &st.others} {
			c.sortLine(l)
			for i, cl := range l.sorted {
				if inLines++; cl.listIndex < 0 || cl.line != l || i > 0 && l.sorted[i-1].compareInLine(cl) >= 0 {
					return fmt.Sprintf("%+v is at a wrong place of the line of queue %q", cl.key, st.share.Name)
				}
			}
		}
	}
	var kinds blame.Kinds
	for _, cl := range c.queue.list {
		inClasses += cl.numReady
		kinds |= cl.kind
		c.updateFits(cl)
		known, _ := cl.head(c)
		if id, r := cl.findHead(c); id != known || r != cl.firstRank {
			return fmt.Sprintf("the next job of %+v is %d, want %d", cl.key, known, id)
		}
		if cl.isWide() {
			wide++
		}
		can := 0
		excluded, avoided := strings.Split(cl.key.excluded, "\n"), strings.Split(cl.key.avoid, "\n")
		for _, h := range c.hosts {
			fits := h.lackFor(cl) == lacksNothing
			if fits {
				can++
			}
			fits = fits && !slices.Contains(excluded, h.spec.Name)
			avoids := slices.Contains(avoided, h.spec.Name)
			if avoids != cl.avoids(h) {
				return fmt.Sprintf("%+v avoids %s: %v, want %v", cl.key, h.spec.Name, !avoids, avoids)
			}
			if c.queue.columns[h.column] != h || cl.fitsOn(h) != fits {
				return fmt.Sprintf("%s in column %d fits %+v: %v, want %v", h.spec.Name, h.column, cl.key, !fits, fits)
			}
		}
		if can != cl.numCanRun {
			return fmt.Sprintf("%d hosts can run %+v, want %d", cl.numCanRun, cl.key, can)
		}
	}
	if kinds != c.queue.kinds.Set {
		return fmt.Sprintf("the kinds of the ready jobs are %b, want %b", c.queue.kinds.Set, kinds)
	}
	for _, x := range []struct {
		what      string
		got, want int
	}{
		{"timers", len(c.queue.timerAt), waiting[stateRetrying] + avoiding},
		{"jobs that wait for others", c.dependencies.NumWaiting(), waiting[stateWaitingForJobs]},
		{"ready jobs", c.queue.ready, waiting[stateReady]},
		{"ready jobs with attempts", len(c.queue.tried), tried},
		{"classes of wide jobs", c.queue.numWide, wide},
		{"classes in lines", inLines, len(c.queue.list)},
		{"jobs in classes", inClasses, waiting[stateReady]},
		{"jobs beyond the ready ones that may run anywhere", max(0, len(c.queue.avoidanceOver)-waiting[stateReady]), 0},
	} {
		if x.got != x.want {
			return fmt.Sprintf("%s: %d, want %d", x.what, x.got, x.want)
		}
	}
	return ""
}

// findSilentChange describes a host that would take other kinds of jobs before the core asks for a Tick,
// although nothing happens. It returns "" if there is none.
func (c *Core) findSilentChange() string {
	at, ok := c.Next()
	if !ok || at == 0 {
		return ""
	}
	now := c.now.Mono
	defer func() { c.now.Mono = now }()
	for _, h := range c.hosts {
		if !h.probation.onTrial {
			continue
		}
		for i := range time.Duration(4) {
			c.now.Mono = now
			was := c.summaryOf(h)
			c.now.Mono = now + (at-1-now)*(i+1)/4
			if is := c.summaryOf(h); is.open != was.open || is.openAgain != was.openAgain {
				return fmt.Sprintf("%s takes jobs of kinds %b at %v and of %b at %v, and the next Tick is at %v",
					h.spec.Name, was.open, now, is.open, c.now.Mono, at)
			}
		}
	}
	return ""
}

// TestCoreIsPure checks that the core is deterministic. The files of this package, those of its
// policies in directories below, and the Fold of jobs start no goroutine, use no channel, lock, or
// clock, and range over no map, whose order is random. The test inspects syntax trees, so no run is
// needed.
func TestCoreIsPure(t *testing.T) {
	sources := map[string][]string{"../../jobs": {"../../jobs/fold.go", "../../jobs/table.go"}}
	for _, pattern := range []string{"*.go", "*/*.go"} {
		names, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if !strings.HasSuffix(name, "_test.go") {
				sources[filepath.Dir(name)] = append(sources[filepath.Dir(name)], name)
			}
		}
	}
	imports := exportData(t)
	for _, names := range sources {
		fset := token.NewFileSet()
		var files []*ast.File
		for _, name := range names {
			f, err := parser.ParseFile(fset, name, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, f)
		}
		want(t, "impurities", strings.Join(impurities(imports, fset, files), "\n"), "")
	}
}

// TestImpuritiesAreDetected checks that impurities detects each kind of violation, and nothing
// else.
func TestImpuritiesAreDetected(t *testing.T) {
	imports := exportData(t)
	for body, found := range map[string]string{
		"go f()": "go statement", "select {}": "select",
		"ch := make(chan int); _ = ch": "channel", "var ch chan int; ch <- 1": "send",
		"time.Now()": "time.Now", "time.Since(time.Time{})": "time.Since",
		"time.Sleep(1)": "time.Sleep", "time.AfterFunc(1, f)": "time.AfterFunc",
		"for k := range m { _ = k }": "range over a map", "for range s.m {}": "range over a map",
		"for k := range maps.Keys(m) { _ = k }": "range over maps.Keys", "rand.Int()": "math/rand/v2.Int",
		"var mu sync.Mutex; mu.Lock()": "import of sync", "os.Getenv(\"X\")": "import of os",
		"for range slices.Sorted(maps.Keys(m)) {}; for range list[m[\"x\"]] {}": "",
	} {
		src := "package p\nimport (\"maps\"; \"math/rand/v2\"; \"slices\"; \"time\")\n"
		if pkg, isImport := strings.CutPrefix(found, "import of "); isImport {
			src += "import \"" + pkg + "\"\n"
		}
		src += "var m = map[string]int{}\nvar s struct{ m map[int]int }\nvar list [][]int\nfunc f() " +
			"{\n" + body + "\n}\n"
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, "p.go", src, 0)
		if err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		bad := strings.Join(impurities(imports, fset, []*ast.File{f}), "\n")
		if wantContains(t, body, bad, found); found == "" {
			want(t, body, bad, "")
		}
	}
}

// exportData returns an importer of what this package depends on, which reads the build cache.
func exportData(t *testing.T) types.Importer {
	t.Helper()
	list, err := exec.Command("go", "list", "-deps", "-export", "-f", "{{.ImportPath}} {{.Export}}", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for line := range strings.Lines(string(list)) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		files[path] = file
	}
	open := func(path string) (io.ReadCloser, error) { return os.Open(files[path]) }
	return importer.ForCompiler(token.NewFileSet(), "gc", open)
}

var pureImports = map[string]bool{
	"cmp": true, "fmt": true, "iter": true, "math": true, "math/bits": true, "math/rand/v2": true, "slices": true,
	"strings": true, "time": true, "maps": true, "strconv": true, "errors": true,
	"dcs-tui/hosts": true, "dcs-tui/internal/heap": true, "dcs-tui/internal/text": true, "dcs-tui/jobs": true,
	"dcs-tui/jobs/action": true,
}

// pureTime lists the allowed identifiers of package time: types, constants, and functions that
// depend only on their arguments.
var pureTime = map[string]bool{
	"Duration": true, "Nanosecond": true, "Microsecond": true, "Millisecond": true, "Second": true, "Minute": true,
	"Hour": true, "Time": true, "Unix": true,
}

var pureRand = map[string]bool{"Rand": true, "New": true, "NewPCG": true}

// impurities returns what files contain that TestCoreIsPure forbids.
func impurities(imports types.Importer, fset *token.FileSet, files []*ast.File) []string {
	info := &types.Info{Types: make(map[ast.Expr]types.TypeAndValue), Uses: make(map[*ast.Ident]types.Object)}
	conf := types.Config{Importer: imports, Error: func(error) {}}
	conf.Check("p", fset, files, info) // types that it cannot resolve stay unknown
	var bad []string
	say := func(n ast.Node, what string) { bad = append(bad, fset.Position(n.Pos()).String()+": "+what) }
	for _, f := range files {
		for _, imp := range f.Imports {
			p := strings.Trim(imp.Path.Value, `"`)
			if !pureImports[p] && !strings.HasPrefix(p, "dcs-tui/dispatch/sched/") {
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
				pkg, _ := n.X.(*ast.Ident)
				if imported, ok := info.Uses[pkg].(*types.PkgName); ok {
					path := imported.Imported().Path()
					if path == "time" && !pureTime[n.Sel.Name] || path == "math/rand/v2" && !pureRand[n.Sel.Name] {
						say(n, path+"."+n.Sel.Name)
					}
				}
			case *ast.RangeStmt:
				if t := info.TypeOf(n.X); t != nil {
					if _, ok := t.Underlying().(*types.Map); ok {
						say(n, "range over a map")
					}
				}
				if call, ok := n.X.(*ast.CallExpr); ok {
					if name := types.ExprString(call.Fun); strings.HasPrefix(name, "maps.") {
						say(n, "range over "+name)
					}
				}
			}
			return true
		})
	}
	return bad
}
