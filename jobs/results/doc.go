// Package results turns jobs that are over into values and text: the Result of a job, its
// JSON line, its line in a GNU parallel job log, the summary of a run, and its failures
// grouped by cause.
//
// A Table has a row for each result, with parameters, metrics, and facts of the job. It
// can be selected from, sorted, grouped, and turned into a Pivot or a HeatMap. A Table
// does not change once it is made; each operation makes another one. Write writes it in
// all formats. Its texts are as jobs and hosts wrote them; Write cleans what people read.
//
// The package reads no file, keeps no state of a run, and decides nothing.
package results
