// Package sheet is the table of results of a grid (E3, X5): a row a job with its
// parameters, figures, state, time and host, in the order of the jobs; filtered,
// sorted, grouped with statistics, turned into a pivot and a heat map, and asked for
// its best row.
//
// It computes and prints nothing, reads no file and starts nothing: New takes results
// and figures that others read, package export writes what comes out. Texts in it are
// as they came from jobs and hosts, not cleaned. A Sheet does not change once it is
// made; each operation makes another one.
package sheet
