// Package attempts defines the status file of an attempt (who claimed it, and how it
// ended) and reads the directory of attempts: status files, and which host's heartbeat file
// moves. The dispatcher uses it on its own mount and a helper on its host's, so that the
// outcome of a host that cannot be asked is found all the same, and a lost
// journal's from status files alone.
//
// It lists directories and opens only names that a listing showed: on NFS a name
// that is polled can stay invisible for half a minute. It trusts nothing that it reads:
// jobs own these files too, and may have replaced them by anything. It writes nothing,
// and what a missing file means for an attempt it leaves to its callers: a claim without
// a sentinel is a question.
package attempts
