// Package grid parses the templates of `dcs-tui grid`: commands with parameters in brackets, and a
// line of values for each parameter. Parse returns a Template. Template.Jobs yields the jobs of the
// product of the values lazily. ParseArguments does the same for the command lines of GNU parallel,
// and ReadBatch for several files.
//
// The package runs only the commands from which a template takes values, and stores nothing.
// Package jobs parses the options of jobs, and package grid/search chooses the points of a search.
// docs/grid.md describes the language.
package grid
