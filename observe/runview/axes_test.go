package runview

import (
	"strings"
	"testing"

	"dcs-tui/jobs/results"
)

// TestHeatMapDoesNotUseRepetitionsAsAnAxis checks the axes of a heat map that the user has not chosen:
// a seed is one only where the run has fewer than two other parameters.
func TestHeatMapDoesNotUseRepetitionsAsAnAxis(t *testing.T) {
	for _, c := range []struct{ columns, want string }{
		{"C* gamma* seed*", "C gamma"},
		{"C* gamma*", "C gamma"},
		{"C* seed*", "C seed"},
		{"C* gamma seed*", "only C has several values so far"},
		{"C gamma seed*", "no parameter has several values yet"},
		{"C* gamma* kernel* seed*", "3 parameters have several values (C, gamma, kernel)"},
	} {
		var columns []TableColumn
		for name := range strings.FieldsSeq(c.columns) {
			name, vary := strings.CutSuffix(name, "*")
			columns = append(columns, TableColumn{Name: name, Role: results.Param, Vary: vary})
		}
		words, err := varyingParams(columns)
		got := strings.Join(words, " ")
		if err != nil {
			got = err.Error()
		}
		if !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.columns, got, c.want)
		}
	}
}
