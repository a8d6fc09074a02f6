package arch

import (
	"go/ast"
	"go/token"
	"testing"
)

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
