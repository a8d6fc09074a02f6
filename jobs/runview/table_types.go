package runview

import (
	"dcs-tui/jobs"
	"dcs-tui/jobs/results"
)

// TableAsk asks for the table of what the jobs that are over gave (E3, X5). The window
// is one of the list of jobs, but for its order: Filter may name figures, too, Sort means
// nothing, and Reverse turns By round.
type TableAsk struct {
	JobsWindow
	Figures []string // beyond those declared, each NAME or NAME=HOW; of one name the later counts
	By      string   // column to sort by; "": the number of the job
	Best    string   // COLUMN:max or COLUMN:min; "": no row is the best
	Group   []string // a row a group of jobs that have the same in these columns
	MinSize int      // groups with fewer jobs that succeeded are left out
	Heat    bool     // a heat map instead of rows
	Pivot   []string // of the heat map: down, across, figure or figure:measure; nil: the two parameters that vary
}

// The bounds of a Table, beside MaxRows.
const (
	MaxTableGroups = 300 // rows of groups
	MaxTableNames  = 50  // columns of a TableAsk, in each of its lists
	MaxTableNotes  = 10
	MaxHeat        = 64  // rows, and columns, of a heat map
	MaxTableCell   = 200 // bytes
)

// HeatLevels is how many levels a heat map has.
const HeatLevels = 5

// Table is what came of a TableAsk.
type Table struct {
	// Plain says that there is nothing to tabulate: no job has a parameter, no figure was
	// declared or asked for. Nothing else is then set.
	Plain bool
	// Ready says that the rest answers this very ask; it is being made otherwise, and
	// nothing but the counts of what was read is set.
	Ready bool

	Wrong string   // what is wrong with the ask, a sentence
	Notes []string // what the figures lack, a sentence each

	Read, Jobs int // jobs that are over whose figures are known, and all that are over

	Columns []TableColumn // what can be asked for, in the order in which it is shown
	Page    Page          // the window of rows; of a Group or Heat only how many jobs match
	Figures [][]string    // of each row of Page, in the order of the columns that are Figures
	Figured bool          // the filter names figures, of which Match knows nothing

	Groups *TableGroups // of a Group
	Heat   *Heat        // of a Heat
	Best   jobs.ID      // of the rows; 0: none
	Value  string       // what the best has
	Ties   int          // further rows that have the same
	Course []float64    // of the best, from 1, the first, down to 0
}

// TableColumn is a column that can be sorted and grouped by.
type TableColumn struct {
	Name string
	Role results.Role
	Vary bool // a parameter that has several values
}

// TableGroups are groups, a row each, at most MaxTableGroups.
type TableGroups struct {
	Columns []TableColumn
	Rows    [][]string
	More    int // groups that there was no room for
	Best    int // index into Rows; -1: none
}

// Heat is a figure over two columns, cut to MaxHeat on both sides.
type Heat struct {
	Down, Across, Figure  string // Figure with its measure: "acc, mean"
	Rows, Columns         []string
	MoreRows, MoreColumns int
	Cells                 [][]string
	Levels                [][]int8 // 0 to HeatLevels-1; -1: no number
	Min, Max              string   // of all cells; "": there is none
}
