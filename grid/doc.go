// Package grid turns a template (commands with parameters in brackets, and a line of
// values a parameter) into the jobs of the parameters' product, lazily: a job is
// made when it is requested.
//
// Use it to read what `dcs-tui grid` is given. It runs nothing but the commands that
// a template asks for values, stores nothing, and knows nothing about hosts. Options of
// jobs are read by package jobs. docs/grid.md is the language's description.
package grid
