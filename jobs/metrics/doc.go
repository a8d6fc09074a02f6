// Package metrics finds the metrics of jobs in what they wrote: their standard output in
// the directory of attempts, and files of their own. A Metric is how one is found
// (`--result`, and `@result` of a template). A Reader reads them for a list of results.
//
// Jobs own these files, so nothing is trusted: a Reader reads at most MaxRead bytes of a
// file and opens a bounded number at a time. It lists a directory before it opens anything
// in it, because on NFS a name that is requested can stay invisible for half a minute. It
// asks no host: what only a host has is reported, unless Reader.Fetch can fetch it. Values
// are texts as the jobs wrote them, not cleaned.
//
// The package writes what it found, and nothing else: metrics of outputs that had to be
// fetched, because nobody may be able to later (KeptFile, Keeper), and, if asked to, all
// metrics, because opening 100,000 files is slow (CacheFile).
package metrics
