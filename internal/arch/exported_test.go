package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestExportedNamesAreDocumented requires a doc comment of each exported function, method, type,
// constant, and variable. The comment of a function or a type, exported or not, begins with its name
// and does not go on with "says". A comment of a whole group of constants is enough, and so is one at
// the end of a line. A method needs none of its own if it implements a method of an interface, or if
// the same method of another type in its package has one.
func TestExportedNamesAreDocumented(t *testing.T) {
	fset := token.NewFileSet()
	files := sourceFiles(t, fset, parser.ParseComments, isTest)
	inherited := map[string]bool{"Error": true, "Unwrap": true, "String": true, "Len": true, "Less": true, "Swap": true}
	for _, file := range files {
		ast.Inspect(file, func(n ast.Node) bool {
			if i, ok := n.(*ast.InterfaceType); ok {
				for _, m := range i.Methods.List {
					for _, name := range m.Names {
						inherited[name.Name] = true
					}
				}
			}
			return true
		})
	}
	documented := map[string]bool{} // package and method
	for _, file := range files {
		for _, decl := range file.Decls {
			if d, ok := decl.(*ast.FuncDecl); ok && d.Recv != nil && d.Doc != nil {
				documented[filepath.Dir(fset.Position(d.Pos()).Filename)+" "+d.Name.Name] = true
			}
		}
	}
	check := func(name *ast.Ident, doc *ast.CommentGroup, others ...*ast.CommentGroup) {
		if !name.IsExported() && doc == nil {
			return
		}
		for _, c := range others {
			if c != nil {
				return
			}
		}
		if doc == nil {
			t.Errorf("%s: %s has no doc comment", fset.Position(name.Pos()), name.Name)
			return
		}
		text := doc.Text()
		begin := regexp.MustCompile(`^(A |An |The )?` + name.Name + `\b`).FindString(text)
		if rest := strings.TrimSpace(strings.TrimPrefix(text, begin)); begin == "" || strings.HasPrefix(rest, "says ") {
			t.Errorf("%s: the comment of %s begins with %q: write \"%s\", and what it does or holds",
				fset.Position(name.Pos()), name.Name, strings.Join(strings.Fields(text)[:min(4,
					len(strings.Fields(text)))], " "), name.Name)
		}
	}
	for _, file := range files {
		for _, decl := range file.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				if d.Recv != nil {
					other := documented[filepath.Dir(fset.Position(d.Pos()).Filename)+" "+d.Name.Name]
					if d.Doc == nil && (!receiver(d).IsExported() || inherited[d.Name.Name] || other) {
						continue
					}
				}
				check(d.Name, d.Doc)
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					switch s := spec.(type) {
					case *ast.TypeSpec:
						if d.Lparen.IsValid() {
							check(s.Name, s.Doc, s.Comment, d.Doc)
						} else {
							check(s.Name, d.Doc, s.Comment)
						}
					case *ast.ValueSpec:
						for _, name := range s.Names {
							check(name, s.Doc, s.Doc, s.Comment, d.Doc)
						}
					}
				}
			}
		}
	}
}

// receiver returns the name of the type that a method belongs to.
func receiver(d *ast.FuncDecl) *ast.Ident {
	for t := d.Recv.List[0].Type; ; {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		case *ast.Ident:
			return x
		default:
			return ast.NewIdent("_")
		}
	}
}
