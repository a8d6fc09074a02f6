// Package column knows how one figure of a result table is found in what a job
// wrote: the grammar in which people say it (`--result`, and `@result` of a
// template), and the search itself.
//
// It works on bytes that others have read: it opens no file and knows nothing of
// runs or attempts. What it finds is text as the job wrote it, bounded and not
// cleaned; whether that is a number is for those to ask who need one (Number).
package column
