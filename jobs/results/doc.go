// Package results turns finished jobs into values and text: the Result of a job, its JSON line, its
// line in a GNU parallel job log, the Summary of a run, and its failures grouped by cause.
//
// A Table has a row for each result, with parameters, metrics, and facts of the job. Its methods
// select, sort, and group rows, and make a Pivot or a Heat map. A Table does not change once it is
// made; each operation returns another one. Write writes a table in all formats. Texts in a Table
// are as jobs and hosts wrote them; Write cleans those that people read.
//
// The package reads no files of jobs, keeps no state of a run, and makes no decisions.
package results
