package arch

import (
	"go/ast"
	"go/token"
	"slices"
	"strings"
	"testing"
)

// TestConditionsChangeNothing checks that the initializer of an if or a switch declares variables.
// An assignment that lasts beyond it has a line of its own, unless it assigns an error or whether
// there is a value.
func TestConditionsChangeNothing(t *testing.T) {
	fset := token.NewFileSet()
	for _, file := range sourceFiles(t, fset, 0, isTest) {
		ast.Inspect(file, func(n ast.Node) bool {
			var init ast.Stmt
			switch n := n.(type) {
			case *ast.IfStmt:
				init = n.Init
			case *ast.SwitchStmt:
				init = n.Init
			}
			assign, ok := init.(*ast.AssignStmt)
			if _, isStep := init.(*ast.IncDecStmt); isStep ||
				ok && assign.Tok != token.DEFINE && !assignsResult(assign) {
				t.Errorf("%s: assign in a line of its own", fset.Position(init.Pos()))
			}
			return true
		})
	}
}

// assignsResult reports whether the last variable of an assignment is an error or a bool such as ok.
func assignsResult(a *ast.AssignStmt) bool {
	last := a.Lhs[len(a.Lhs)-1]
	if sel, ok := last.(*ast.SelectorExpr); ok {
		last = sel.Sel
	}
	name, ok := last.(*ast.Ident)
	return ok && (strings.HasSuffix(strings.ToLower(name.Name), "err") ||
		slices.Contains([]string{"ok", "found"}, name.Name))
}

// TestConditionalsAreNoMaps checks that no conditional is written as a lookup in a map literal with
// bool keys.
func TestConditionalsAreNoMaps(t *testing.T) {
	fset := token.NewFileSet()
	for _, file := range sourceFiles(t, fset, 0, isTest) {
		ast.Inspect(file, func(n ast.Node) bool {
			if index, ok := n.(*ast.IndexExpr); ok && isBoolMap(index.X) {
				t.Errorf("%s: write an if instead of map[bool]", fset.Position(index.Pos()))
			}
			return true
		})
	}
}

// isBoolMap reports whether an expression is a literal of a map with bool keys.
func isBoolMap(e ast.Expr) bool {
	lit, ok := e.(*ast.CompositeLit)
	if !ok {
		return false
	}
	m, ok := lit.Type.(*ast.MapType)
	if !ok {
		return false
	}
	key, ok := m.Key.(*ast.Ident)
	return ok && key.Name == "bool"
}
