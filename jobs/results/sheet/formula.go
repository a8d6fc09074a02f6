package sheet

import (
	"fmt"
	"strings"

	"dcs-tui/jobs"
)

// Formulas says, in a sentence or none, which of the shown texts a spreadsheet that opens
// a file of them would take for formulas. Numbers such as -0.5 are none.
func (s *Sheet) Formulas() []string {
	cells, first, text := 0, jobs.ID(0), ""
	for row := range s.rows {
		for _, c := range s.shown {
			if v := s.At(row, c); v.Kind == Text && strings.IndexByte("=+-@\t\r", v.Text[0]) >= 0 {
				if cells++; cells == 1 {
					first, text = s.Job(row), v.Text
				}
			}
		}
	}
	if cells == 0 {
		return nil
	}
	begin := "1 text begins"
	if cells > 1 {
		begin = fmt.Sprintf("%d texts begin", cells)
	}
	return []string{begin + " like a formula, which a spreadsheet may carry out: import the file as text" + example(first, text)}
}
