// Package export writes a Sheet for people and for other programs (X9): an aligned
// table, CSV, TSV, JSON lines, Markdown, LaTeX, and a heat map in characters.
//
// What stands in a cell came from jobs and is not trusted: each format has its own
// quoting, and what is made for people holds nothing that moves a cursor. It computes
// nothing and decides nothing; package sheet does.
package export
