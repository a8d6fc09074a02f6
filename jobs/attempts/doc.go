// Package attempts defines the status file of an attempt, which records who claimed the attempt and
// how it ended. It also reads the directory of attempts: status files, and the heartbeat files of
// hosts. EachFate returns the Fate of every attempt, ReadHostAttempts the attempts of one host, and
// LocalFiles.Has reports which attempts have their files in the run directory. The dispatcher reads
// the directory through its own mount, and a helper through its host's. The outcome of a host that
// does not respond can thus be found, and the outcomes of a run can be rebuilt from status files
// alone if the journal is lost.
//
// The package lists directories and opens only names that a listing contained, because on NFS a
// name that is polled can stay invisible for half a minute. It trusts nothing that it reads,
// because jobs own these files, too, and may have replaced them. It writes nothing. Callers decide
// what a missing file means for an attempt: a claim without a sentinel does not show whether the
// attempt still runs.
package attempts
