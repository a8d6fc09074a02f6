// Package query is the language in which jobs are selected: `@where` of a template,
// `--where` of the commands, and `/` on the screen. docs/query.md describes it for users.
//
// Parse reads a text without knowing its fields. Compile looks the fields up and returns a
// function of a row. A row is whatever the caller has: the index of a row of a table, a
// point of a grid, an event.
package query
