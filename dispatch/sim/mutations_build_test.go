package sim

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// mutationEnv is the environment variable with the number of the defect that a program of
// buildMutations has. Without it, the program has none.
const mutationEnv = "DCS_MUTATION"

// mutationSwitch is added to each package with defects.
const mutationSwitch = `package %s

import (
	"os"
	"strconv"
)

var presentMutation, _ = strconv.Atoi(os.Getenv("` + mutationEnv + `"))
`

// buildMutations builds the simulator with all defects in it. The number of a defect is its index
// in the list plus 1. Building a simulator for each defect would take longer than running it.
func buildMutations(root, dir string, list []mutation) (bin string, err error) {
	files := map[string][]int{} // the indexes of the defects in it
	for i := range list {
		files[list[i].file] = append(files[list[i].file], i)
	}
	replace := map[string]string{}
	overlay := func(path, text string) error {
		instead := filepath.Join(dir, fmt.Sprint(len(replace), ".go"))
		replace[filepath.Join(root, path)] = instead
		return os.WriteFile(instead, []byte(text), 0o600)
	}
	for path, indexes := range files {
		text, pkg, err := withMutations(root, path, list, indexes)
		if err != nil {
			return "", err
		}
		if err := overlay(path, text); err != nil {
			return "", err
		}
		added := filepath.Join(filepath.Dir(path), "presentmutation.go")
		if _, exists := replace[filepath.Join(root, added)]; exists {
			continue
		}
		if err := overlay(added, fmt.Sprintf(mutationSwitch, pkg)); err != nil {
			return "", err
		}
	}
	b, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	overlayFile, bin := filepath.Join(dir, "overlay.json"), filepath.Join(dir, "sim.test")
	if err := os.WriteFile(overlayFile, b, 0o600); err != nil {
		return "", err
	}
	build := exec.Command("go", "test", "-c", "-vet=off", "-overlay", overlayFile, "-o", bin, "./dispatch/sim")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("the defects do not build: %w\n%s", err, out)
	}
	return bin, nil
}

// function is the declaration of a function in a text.
type function struct {
	*ast.FuncDecl
	text   string // of the declaration
	offset int
	line   int
}

// functionsOf returns the functions of a file, and its text without them.
func functionsOf(text string) (list []function, pkg, rest string, err error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, "", text, parser.SkipObjectResolution)
	if err != nil {
		return nil, "", "", err
	}
	end := 0
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok {
			from := files.Position(f.Pos())
			to := files.Position(f.End()).Offset
			list = append(list, function{f, text[from.Offset:to], from.Offset, from.Line})
			rest += text[end:from.Offset]
			end = to
		}
	}
	return list, file.Name.Name, rest + text[end:], nil
}

// withMutations returns the text of a file in which each function with a defect begins with a
// switch that calls its variant with the present defect. pkg is the name of its package.
func withMutations(root, path string, list []mutation, indexes []int) (text, pkg string, err error) {
	b, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		return "", "", err
	}
	text = string(b)
	sound, pkg, rest, err := functionsOf(text)
	if err != nil {
		return "", "", err
	}
	cases := make([]string, len(sound)) // of the switch of each function
	var variants strings.Builder
	for _, i := range indexes {
		m := &list[i]
		defective, err := m.apply(root)
		if err != nil {
			return "", "", fmt.Errorf("%s: %w", m.name, err)
		}
		changed, _, otherRest, err := functionsOf(defective)
		if err != nil {
			return "", "", fmt.Errorf("%s: %w", m.name, err)
		}
		if otherRest != rest || len(changed) != len(sound) {
			return "", "", fmt.Errorf("%s: the defect changes more than the inside of functions", m.name)
		}
		for k, f := range changed {
			if f.text == sound[k].text {
				continue
			}
			name := fmt.Sprintf("%sMutation%d", f.Name.Name, i+1)
			call, err := callOf(sound[k], name)
			if err != nil {
				return "", "", fmt.Errorf("%s: %w", m.name, err)
			}
			cases[k] += fmt.Sprintf("case %d: %s; ", i+1, call)
			from := int(f.Name.Pos() - f.Pos())
			variant := f.text[:from] + name + f.text[from+len(f.Name.Name):]
			// The compiler names the defect in its messages.
			fmt.Fprintf(&variants, "\n\n//line %s:%d\n%s", m.name, f.line, variant)
		}
	}
	for k, f := range slices.Backward(sound) {
		if cases[k] != "" {
			at := f.offset + int(f.Body.Lbrace-f.Pos()) + 1
			text = text[:at] + " switch presentMutation { " + cases[k] + "};" + text[at:]
		}
	}
	return text + variants.String() + "\n", pkg, nil
}

// callOf returns the statement that calls the function with the given name instead of f, with the
// arguments of f, and returns what it returns.
func callOf(f function, name string) (string, error) {
	var args []string
	for _, field := range f.Type.Params.List {
		for _, arg := range field.Names {
			args = append(args, arg.Name)
		}
		if _, isVariadic := field.Type.(*ast.Ellipsis); isVariadic {
			args[len(args)-1] += "..."
		}
		if len(field.Names) == 0 {
			args = append(args, "_")
		}
	}
	if f.Recv != nil {
		receiver := f.Recv.List[0].Names
		if len(receiver) == 0 {
			return "", fmt.Errorf("the receiver of %s needs a name", f.Name.Name)
		}
		name = receiver[0].Name + "." + name
	}
	if slices.Contains(args, "_") {
		return "", fmt.Errorf("each parameter of %s needs a name", f.Name.Name)
	}
	call := name + "(" + strings.Join(args, ", ") + ")"
	if f.Type.Results == nil {
		return call + "; return", nil
	}
	return "return " + call, nil
}
