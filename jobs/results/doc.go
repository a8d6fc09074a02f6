// Package results is what reads well after a run, or while its jobs end: the
// Result of a job as consumers get it, its JSON line, its line in a GNU parallel
// job log, the summary of a run and its failures grouped by cause.
//
// It turns folded facts (jobs.Table) into values and text. It reads no file,
// keeps no state of a run and decides nothing.
package results
