// Package outputs reads the figures of a result table out of what the jobs of a run
// wrote: their standard output in the directory of attempts, and files of their own.
//
// It lists a directory before it opens anything in it, because on NFS a name that is
// asked for can stay invisible for half a minute (DESIGN section 5), reads at most
// MaxRead bytes of a file, opens a bounded number at a time, and trusts nothing: jobs
// own these files. It asks no host: what only a host has is told, not fetched, unless
// somebody who can fetch it is given (Reader.Fetch).
//
// It writes what it has found, and nothing else: figures of outputs that had to be
// fetched, because nobody may be able to later (KeptFile, Keeper), and where it is asked
// to those of all, because opening 100,000 files costs (MemoryDir).
package outputs
