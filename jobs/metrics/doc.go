// Package metrics finds the metrics of jobs in their outputs: the standard output in the directory
// of attempts, and files that the jobs wrote. A Metric describes how one metric is found
// (`--result`, and `@result` of a template). A Reader reads the metrics of a list of results. A
// Keeper reads them as jobs end and keeps those that could not be read later.
//
// Jobs own these files, so nothing in them is trusted: a Reader reads at most MaxRead bytes of a
// file and opens a bounded number of files at a time. It lists a directory before it opens anything
// in it, because on NFS a name that is requested too early can stay invisible for half a minute. It
// asks no host: outputs that only a host has are reported, unless Reader.Fetch can fetch them.
// Values are texts as the jobs wrote them, not cleaned.
//
// The package writes only two files of the run directory. KeptFile holds the metrics of outputs
// that had to be fetched, because it may be impossible to fetch them later. CacheFile holds all
// metrics, if the caller wants it, because opening 100,000 files is slow.
package metrics
