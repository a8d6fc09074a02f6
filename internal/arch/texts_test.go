package arch

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/constant"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// textFields are fields that hold texts for people, by package and type. Nothing decides by reading
// them: states, causes, and kinds have fields of their own.
var textFields = []string{
	"jobs.Record.Reason", "jobs.Job.Reason", "jobs.Attempt.Reason", "jobs.Cancel.Reason", "jobs.Closing.Reason",
	"jobs.HostStatus.Reason", "jobs/live.Host.Note", "jobs/live.Host.Files", "jobs/live.Host.Users",
	"jobs/live.Await.Text", "jobs/live.State.Stuck", "jobs/live.State.Draining", "jobs/live.State.Problem",
	"jobs/live.Finish.Why", "observe/runview.Answer.Text", "observe/runview.Refused.Why",
	"observe/runview.HostEvent.Text",
	"observe/runview.Detail.Why", "observe/ask.Trace.Why", "jobs/action.Request.Why", "jobs/rundir.Input.Fault",
	"dispatch.Notice.Text", "dispatch/sched.linkState.reason",
	"dispatch/sched.linkState.ineligible", "dispatch/sched.lifetime.stopReason",
	"dispatch/sched.instance.why", "dispatch/sched.Drain.Why", "dispatch/sched.Cancel.Why",
	"dispatch/sched.EndDrain.Why", "dispatch/sched.Finish.Why", "hosts.Refused.Why", "hosts.Trouble.Text",
	"hosts.ProbedJob.Why", "hosts.Withdrawn.Why", "hosts/helper/remote.report.Why", "internal/cli.hostStatus.Last",
	"internal/text.Error.Advice",
}

// textReaders are functions that may read a text for people, and why.
var textReaders = map[string]string{
	"jobs.setOldReasonKind": "reads journals of versions that recorded only the texts",
	"text.WithoutSubject":   "drops the name of the host, which is shown before the text",
	"cli.namesHost":         "leaves out the name of the host before a text that has it",
	"grid.addJobFaults":     "drops the name of the file, which is shown before the error",
	"helper.clean":          "removes control sequences",
	"hosts.Parse":           "shortens errors of the TOML library",
	"query.pattern":         "shortens errors of package regexp",
	"metrics.parseRE":       "shortens errors of package regexp",
	"link.isLoginRefused":   "the ssh library has no types for these errors",
	"link.compare":          "shortens errors of the ssh library",
	"link.cleanKnown":       "shortens errors of the library for known hosts",
}

// matchers are functions that look for something in their first argument.
var matchers = []string{
	"strings.HasPrefix", "strings.HasSuffix", "strings.Contains", "strings.ContainsAny", "strings.EqualFold",
	"strings.Index", "strings.LastIndex", "strings.Cut", "strings.CutPrefix", "strings.CutSuffix", "strings.TrimPrefix",
	"strings.TrimSuffix", "strings.Replace", "strings.ReplaceAll", "strings.Count", "fmt.Sscanf", "fmt.Sscan",
}

// TestNothingReadsTextsForPeople checks that the program neither searches nor changes a text for
// people or the text of an error, nor compares it with a text that it knows. It follows such a text
// through local variables, parameters, and functions that return strings. Whether there is a text,
// whether two are equal, and their lines may be used.
func TestNothingReadsTextsForPeople(t *testing.T) {
	r := newTextReader()
	r.load(t, ".")
	for _, field := range textFields {
		r.addField(t, "dcs-tui/", field)
	}
	unused := maps.Clone(textReaders)
	for at, fn := range r.find() {
		if textReaders[fn] == "" {
			t.Errorf("%s: %s decides by a text for people, or edits it: use a typed field", at, fn)
		}
		delete(unused, fn)
	}
	for fn := range unused {
		t.Errorf("%s reads no text: remove it from the list", fn)
	}
}

// TestReadersOfTextsAreFound checks that each kind of place that read a text is found, and that
// others are not. The comment "reads" marks the lines to find.
func TestReadersOfTextsAreFound(t *testing.T) {
	const source = `package example

import ("errors"; "fmt"; "strings")

type Host struct { Name, Reason, State string }

const isUp = "is up"

func prefix(h *Host) bool { return strings.HasPrefix(h.Reason, "reduces its slots") } // reads
func equal(h *Host) bool { return h.Reason == h.Name+" is up" } // reads
func constant(h *Host) bool { return h.Reason != isUp } // reads
func word(h *Host) int { switch h.Reason { case isUp: return 1 }; return 0 } // reads
func local(h *Host) string {
	text := clean(h.Reason)
	return strings.Replace(text, "1 job", "job 7", 1) // reads
}
func caller(h *Host) bool { return after(h.Name, fmt.Sprint(h.Reason)) }
func after(host, text string) bool { return text == host+" is up" } // reads
func number(h *Host) (n int) { fmt.Sscanf(h.Reason, "job %d", &n); return n } // reads
func failed(err error) error { return errors.New(strings.ReplaceAll(err.Error(), "--where", "a filter")) } // reads

func clean(s string) string { return strings.TrimSpace(s) }
func same(a, b *Host) bool { return a.Reason == b.Reason && a.Reason != "" }
func first(h *Host) string { line, _, _ := strings.Cut(h.Reason, "\n"); return line }
func state(h *Host) bool { return h.State == isUp && strings.HasPrefix(h.Name, "ws") }
`
	r := newTextReader()
	f, err := parser.ParseFile(r.fset, "example.go", source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	r.load(t, "fmt", "strings", "errors")
	r.check(t, "example", f)
	r.addField(t, "", "example.Host.Reason")
	want := map[int]bool{}
	for i, line := range strings.Split(source, "\n") {
		if strings.HasSuffix(line, "// reads") {
			want[i+1] = true
		}
	}
	for at := range r.find() {
		if !want[at.Line] {
			t.Errorf("%s is found", at)
		}
		delete(want, at.Line)
	}
	for line := range want {
		t.Errorf("line %d is not found", line)
	}
}

// textReader finds the places of the program that read texts for people.
type textReader struct {
	info     *types.Info
	fset     *token.FileSet
	files    []*ast.File
	texts    map[types.Object]bool // fields, variables, and parameters that hold such texts
	checked  map[string]*types.Package
	exports  map[string]string // files with the compiled packages
	compiled types.Importer
}

func newTextReader() *textReader {
	r := &textReader{fset: token.NewFileSet(), texts: map[types.Object]bool{}, checked: map[string]*types.Package{},
		exports: map[string]string{}, info: &types.Info{Uses: map[*ast.Ident]types.Object{},
			Defs: map[*ast.Ident]types.Object{}, Types: map[ast.Expr]types.TypeAndValue{}}}
	open := func(path string) (io.ReadCloser, error) { return os.Open(r.exports[path]) }
	r.compiled = importer.ForCompiler(r.fset, "gc", open)
	return r
}

// Import implements types.Importer.
func (r *textReader) Import(path string) (*types.Package, error) {
	if p := r.checked[path]; p != nil {
		return p, nil
	}
	return r.compiled.Import(path)
}

// load type-checks the packages and their dependencies in the program.
func (r *textReader) load(t *testing.T, packages ...string) {
	t.Helper()
	args := []string{"list", "-export", "-deps", "-json=ImportPath,Dir,GoFiles,Export,Module"}
	cmd := exec.Command("go", append(args, packages...)...)
	cmd.Dir, cmd.Stderr = "../..", os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	for dec := json.NewDecoder(bytes.NewReader(out)); dec.More(); { // dependencies come first
		var p struct {
			ImportPath, Dir, Export string
			GoFiles                 []string
			Module                  *struct{ Main bool }
		}
		if err := dec.Decode(&p); err != nil {
			t.Fatal(err)
		}
		if r.exports[p.ImportPath] = p.Export; p.Module == nil || !p.Module.Main {
			continue
		}
		var files []*ast.File
		for _, name := range p.GoFiles {
			f, err := parser.ParseFile(r.fset, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, f)
		}
		r.check(t, p.ImportPath, files...)
	}
}

func (r *textReader) check(t *testing.T, path string, files ...*ast.File) {
	t.Helper()
	pkg, err := (&types.Config{Importer: r}).Check(path, r.fset, files, r.info)
	if err != nil {
		t.Fatal(err)
	}
	r.checked[path], r.files = pkg, append(r.files, files...)
}

// addField adds a field that holds a text, such as "jobs/live.Host.Note" of the package prefix+"jobs/live".
func (r *textReader) addField(t *testing.T, prefix, name string) {
	t.Helper()
	dir, rest := path.Split(name)
	words := strings.Split(rest, ".")
	if pkg := r.checked[prefix+dir+words[0]]; pkg != nil {
		if typ := pkg.Scope().Lookup(words[1]); typ != nil {
			if s, ok := typ.Type().Underlying().(*types.Struct); ok {
				for f := range s.Fields() {
					if f.Name() == words[2] {
						r.texts[f] = true
						return
					}
				}
			}
		}
	}
	t.Errorf("there is no field %s: remove it from the list", name)
}

// find returns the places that read a text, with their functions.
func (r *textReader) find() map[token.Position]string {
	for n := -1; n != len(r.texts); {
		n = len(r.texts)
		for _, f := range r.files {
			ast.Inspect(f, r.follow)
		}
	}
	found := map[token.Position]string{}
	for _, f := range r.files {
		for _, d := range f.Decls {
			in := f.Name.Name
			if fn, ok := d.(*ast.FuncDecl); ok {
				in += "." + fn.Name.Name
			}
			ast.Inspect(d, func(n ast.Node) bool {
				if n != nil && r.isReading(n) {
					found[r.fset.Position(n.Pos())] = in
				}
				return true
			})
		}
	}
	return found
}

// follow adds the variables and parameters that get a text.
func (r *textReader) follow(n ast.Node) bool {
	set := func(to ast.Expr, from ast.Expr) {
		if id, ok := to.(*ast.Ident); ok && r.isText(from) {
			if v, ok := r.objectOf(id).(*types.Var); ok && isString(v.Type()) {
				r.texts[v] = true
			}
		}
	}
	switch n := n.(type) {
	case *ast.AssignStmt:
		for i, to := range n.Lhs {
			if len(n.Rhs) == len(n.Lhs) {
				set(to, n.Rhs[i])
			} else {
				set(to, n.Rhs[0])
			}
		}
	case *ast.ValueSpec:
		for i, to := range n.Names {
			if len(n.Values) == len(n.Names) {
				set(to, n.Values[i])
			}
		}
	case *ast.CallExpr:
		fn := r.callee(n)
		if fn == nil || fn.Pkg() == nil || r.checked[fn.Pkg().Path()] == nil {
			break
		}
		params := fn.Signature().Params()
		for i, arg := range n.Args {
			if p := min(i, params.Len()-1); p >= 0 && isString(params.At(p).Type()) && r.isText(arg) {
				r.texts[params.At(p)] = true
			}
		}
	}
	return true
}

// isText reports whether an expression is a text for people, also one that is part of another text.
func (r *textReader) isText(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.ParenExpr:
		return r.isText(e.X)
	case *ast.Ident:
		return r.texts[r.objectOf(e)]
	case *ast.SelectorExpr:
		return r.texts[r.objectOf(e.Sel)]
	case *ast.BinaryExpr:
		return e.Op == token.ADD && (r.isText(e.X) || r.isText(e.Y))
	case *ast.CallExpr:
		fn := r.callee(e)
		isError := fn != nil && fn.Name() == "Error" && len(e.Args) == 0
		return isString(r.info.Types[e].Type) && (isError || slices.ContainsFunc(e.Args, r.isText))
	}
	return false
}

// isReading reports whether a node searches or edits a text, or compares it with a constant or a
// text that it builds.
func (r *textReader) isReading(n ast.Node) bool {
	known := func(e ast.Expr) bool {
		if v := r.info.Types[e].Value; v != nil {
			return v.Kind() == constant.String && constant.StringVal(v) != ""
		}
		b, ok := e.(*ast.BinaryExpr)
		return ok && b.Op == token.ADD
	}
	switch n := n.(type) {
	case *ast.BinaryExpr:
		return (n.Op == token.EQL || n.Op == token.NEQ) && (r.isText(n.X) && known(n.Y) || r.isText(n.Y) && known(n.X))
	case *ast.SwitchStmt:
		return n.Tag != nil && r.isText(n.Tag)
	case *ast.CallExpr:
		fn := r.callee(n)
		if fn == nil || fn.Pkg() == nil || len(n.Args) == 0 || !r.isText(n.Args[0]) {
			return false
		}
		name := fn.Pkg().Path() + "." + fn.Name()
		if fn.Pkg().Path() == "regexp" {
			return true
		}
		if !slices.Contains(matchers, name) {
			return false
		}
		v := r.info.Types[n.Args[1]].Value
		return v == nil || v.Kind() != constant.String || constant.StringVal(v) != "\n"
	}
	return false
}

func (r *textReader) objectOf(id *ast.Ident) types.Object {
	if o := r.info.Uses[id]; o != nil {
		return o
	}
	return r.info.Defs[id]
}

// callee returns the function or method that a call names, or nil.
func (r *textReader) callee(call *ast.CallExpr) *types.Func {
	var id *ast.Ident
	switch f := call.Fun.(type) {
	case *ast.Ident:
		id = f
	case *ast.SelectorExpr:
		id = f.Sel
	default:
		return nil
	}
	fn, _ := r.objectOf(id).(*types.Func)
	return fn
}

func isString(t types.Type) bool {
	b, ok := types.Unalias(t).(*types.Basic)
	return ok && b.Info()&types.IsString != 0
}
