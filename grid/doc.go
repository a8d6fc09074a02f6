// Package grid parses the templates of `dcs-tui grid`: commands with parameters in brackets,
// and a line of values for each parameter. It makes the jobs of the product of these values
// lazily.
//
// It runs only the commands from which a template takes values, and stores nothing. Package
// jobs parses the options of jobs. docs/grid.md describes the language.
package grid
