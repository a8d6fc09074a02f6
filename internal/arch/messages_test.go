package arch

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"go/ast"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
)

var updateMessages = flag.Bool("update", false, "write testdata/messages.txt")

const messagesFile = "testdata/messages.txt"

// message is a text of the program for its users: an error, or a text of at least two words.
type message struct {
	pkg  string
	kind string // "error", or "text" for everything else
	text string
	at   token.Position // one position where it occurs
}

// TestMessages compares the messages of the program with testdata/messages.txt, so that a review of
// a change shows each new message as a user will read it, and checks rules that hold for all of
// them.
func TestMessages(t *testing.T) {
	messages := collectMessages(t)
	for _, m := range messages {
		if problem := m.problem(); problem != "" {
			t.Errorf("%s: %s: %q", m.at, problem, m.text)
		}
	}
	got := formatMessages(messages)
	if *updateMessages {
		if err := os.MkdirAll(filepath.Dir(messagesFile), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(messagesFile, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(messagesFile)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Equal(got, want) {
		return
	}
	const update = "go test ./internal/arch -run TestMessages -args -update"
	t.Errorf("the messages differ from %s. Read the new ones as a user, then run %s", messagesFile, update)
	for _, line := range missingLines(got, want) {
		t.Logf("new: %s", line)
	}
	for _, line := range missingLines(want, got) {
		t.Logf("gone: %s", line)
	}
}

// outsideProgram lists directories whose code is not part of the program.
var outsideProgram = []string{
	"bench", "clients", "examples", "scripts", "dispatch/sim", "hosts/hosttest", "jobs/jobstest",
	"jobs/rundir/disktest",
	"jobs/rundir/memdisk", "internal/arch", "internal/e2e", "internal/faults", "internal/labfs", "internal/polltest",
	"internal/progtest", "internal/ptytest", "internal/screentest",
}

// collectMessages returns the messages of the program, sorted and without repetitions.
func collectMessages(t *testing.T) []message {
	t.Helper()
	var all []message
	fset := token.NewFileSet()
	isOutside := func(path string) bool { return isTest(path) || slices.Contains(outsideProgram, path) }
	for rel, file := range sourceFiles(t, fset, 0, isOutside) {
		pkg := filepath.Dir(rel)
		if pkg == "." {
			pkg = "main"
		}
		for _, m := range fileMessages(file) {
			m.pkg = pkg
			m.at.Filename, m.at.Line = rel, fset.Position(token.Pos(m.at.Offset)).Line
			all = append(all, m)
		}
	}
	slices.SortFunc(all, func(a, b message) int {
		return cmp.Or(cmp.Compare(a.pkg, b.pkg), cmp.Compare(a.kind, b.kind), cmp.Compare(a.text, b.text),
			cmp.Compare(a.at.String(), b.at.String()))
	})
	return slices.CompactFunc(all, func(a, b message) bool {
		return a.pkg == b.pkg && a.kind == b.kind && a.text == b.text
	})
}

// fileMessages returns the messages of a file; at.Offset is their position in the file set.
func fileMessages(file *ast.File) []message {
	var found []message
	errorTexts, patterns := map[*ast.BasicLit]bool{}, map[*ast.BasicLit]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec, *ast.Field: // struct tags
			if f, ok := n.(*ast.Field); ok {
				f.Tag = nil
				return true
			}
			return false
		case *ast.BinaryExpr:
			joinLiterals(n)
		case *ast.CallExpr:
			for _, arg := range n.Args {
				joinLiterals(arg)
			}
			if isErrorCall(n) {
				for _, lit := range literals(n.Args[0]) {
					errorTexts[lit] = true
				}
			}
			if isMatchingCall(n) {
				for _, arg := range n.Args {
					for _, lit := range literals(arg) {
						patterns[lit] = true
					}
				}
			}
		case *ast.BasicLit:
			if n.Kind != token.STRING {
				return true
			}
			text, err := strconv.Unquote(n.Value)
			if err != nil || patterns[n] || !isMessage(text) &&
				!(errorTexts[n] && hasLetter(formatVerb.ReplaceAllString(text, ""))) {
				return true
			}
			kind := "text"
			if errorTexts[n] {
				kind = "error"
			}
			found = append(found, message{kind: kind, text: text, at: token.Position{Offset: int(n.Pos())}})
		}
		return true
	})
	return found
}

// isErrorCall reports whether a call makes an error from the text of its first argument.
func isErrorCall(call *ast.CallExpr) bool {
	return len(call.Args) > 0 && slices.Contains([]string{"errors.New", "fmt.Errorf", "text.Errorf"}, calledFunc(call))
}

// isMatchingCall reports whether a call only compares its texts with others. Patterns and words to be
// found are not for people.
func isMatchingCall(call *ast.CallExpr) bool {
	return slices.Contains([]string{"regexp.MustCompile", "strings.Contains", "strings.HasPrefix", "strings.HasSuffix",
		"strings.TrimPrefix",
		"strings.TrimSuffix", "strings.CutPrefix", "strings.CutSuffix", "strings.Fields"}, calledFunc(call))
}

// calledFunc returns the function of a package that a call calls, such as fmt.Errorf, or "".
func calledFunc(call *ast.CallExpr) string {
	if sel, ok := call.Fun.(*ast.SelectorExpr); ok {
		if x, ok := sel.X.(*ast.Ident); ok {
			return x.Name + "." + sel.Sel.Name
		}
	}
	return ""
}

// joinLiterals replaces string literals that an expression concatenates, with nothing between them, by
// the first, which becomes the whole text, and empty ones.
func joinLiterals(e ast.Expr) {
	if b, ok := e.(*ast.BinaryExpr); !ok || b.Op != token.ADD {
		return
	}
	var first *ast.BasicLit
	for _, operand := range operands(e) {
		lit, ok := operand.(*ast.BasicLit)
		if !ok || lit.Kind != token.STRING {
			first = nil
			continue
		}
		if first == nil {
			first = lit
			continue
		}
		head, err1 := strconv.Unquote(first.Value)
		tail, err2 := strconv.Unquote(lit.Value)
		if err1 == nil && err2 == nil {
			first.Value, lit.Value = strconv.Quote(head+tail), `""`
		}
	}
}

// operands returns what an expression concatenates, from left to right.
func operands(e ast.Expr) []ast.Expr {
	if b, ok := e.(*ast.BinaryExpr); ok && b.Op == token.ADD {
		return append(operands(b.X), operands(b.Y)...)
	}
	return []ast.Expr{e}
}

// literals returns the string literals that an expression concatenates.
func literals(e ast.Expr) []*ast.BasicLit {
	switch e := e.(type) {
	case *ast.BasicLit:
		return []*ast.BasicLit{e}
	case *ast.BinaryExpr:
		return append(literals(e.X), literals(e.Y)...)
	}
	return nil
}

var (
	formatVerb      = regexp.MustCompile(`%[-+#.0-9\[\]]*[a-zA-Z]`)
	twoWordsPattern = regexp.MustCompile(`[a-z]{2,}[,;:]? [a-z%]+`)
	// nonTextPattern matches JSON, HTML, and scripts.
	nonTextPattern = regexp.MustCompile(`^[{\[<#!]|\$\{|=\\"|</|[{};]\n|\$\(|\bd_[a-z]\b|^say |\bexec |-src 'none'|` +
		`-exec rm `)
	// wordList matches names of keys, names of fields of a request, and spellings of a unit.
	wordList = regexp.MustCompile(`^((pgup|pgdown|ctrl\+\w|enter|space|esc|\w)\b ?)+$|` +
		`^(jobs|host)( (all|spare|edit|priority|relative|number|options))+$|` +
		`^(B byte|d day|h hr|min mins|ms msec|ns nsec|s sec|µs)\b`)
)

// isMessage reports whether a literal looks like a text for people.
func isMessage(text string) bool {
	return twoWordsPattern.MatchString(formatVerb.ReplaceAllString(text, "%")) && !nonTextPattern.MatchString(text) &&
		!wordList.MatchString(text)
}

func hasLetter(text string) bool { return strings.ContainsFunc(text, unicode.IsLetter) }

// retiredWords are words that have a standard term, with that term.
var retiredWords = map[string]string{
	"carry on":     "resume, or continue",
	"carries on":   "resumes, or continues",
	"hand over":    "send",
	"handed over":  "sent",
	"sign of life": "heartbeat",
	"beat":         "heartbeat",
	"cancelled":    "canceled",
	"colour":       "color",
	"honoured":     "honored",
}

var retiredPattern = func() *regexp.Regexp {
	var words []string
	for w := range retiredWords {
		words = append(words, w)
	}
	slices.Sort(words)
	return regexp.MustCompile(`(?i)\b(` + strings.Join(words, "|") + `)\b`)
}()

// problem describes the rule that a message breaks. It returns "" if there is none.
func (m message) problem() string {
	if w := retiredPattern.FindString(m.text); w != "" {
		return fmt.Sprintf("write %q instead of %q", retiredWords[strings.ToLower(w)], w)
	}
	if m.kind != "error" {
		return ""
	}
	switch {
	case strings.HasSuffix(m.text, ".") && !strings.HasSuffix(m.text, "..."):
		return "an error has no final period"
	case strings.HasSuffix(m.text, "!"):
		return "an error has no exclamation mark"
	case strings.HasSuffix(m.text, "\n"):
		return "an error has no final newline"
	}
	first, _, _ := strings.Cut(m.text, " ")
	if r := []rune(first); len(r) > 1 && unicode.IsUpper(r[0]) && strings.ToLower(first[1:]) == first[1:] &&
		!slices.Contains(properNames, first) {
		return "an error begins with a lowercase letter"
	}
	return ""
}

// properNames may begin an error.
var properNames = []string{"Linux", "Slurm", "Optuna"}

// formatMessages returns the content of the golden file.
func formatMessages(messages []message) []byte {
	var b bytes.Buffer
	b.WriteString("# The messages of the program, by package. Written by\n" +
		"# go test ./internal/arch -run TestMessages -args -update\n")
	pkg := ""
	for _, m := range messages {
		if m.pkg != pkg {
			pkg = m.pkg
			fmt.Fprintf(&b, "\n%s\n", pkg)
		}
		fmt.Fprintf(&b, "  %-5s %s\n", m.kind, strings.ReplaceAll(strings.TrimSpace(m.text), "\n", "⏎"))
	}
	return b.Bytes()
}

// missingLines returns the lines of a that b lacks.
func missingLines(a, b []byte) []string {
	in := map[string]bool{}
	for line := range strings.Lines(string(b)) {
		in[line] = true
	}
	var missing []string
	for line := range strings.Lines(string(a)) {
		if !in[line] {
			missing = append(missing, strings.TrimSpace(line))
		}
	}
	return missing
}
