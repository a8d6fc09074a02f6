// Package files moves the files of jobs between this machine and hosts that share no
// directory with it. Dispatch serves what hosts ask for, and hosts/helper/remote asks.
//
// A Manifest describes the files: paths, sizes, times, and SHA-256 sums. A host asks for the
// manifest, compares the sums with what it has, and asks for the rest in pieces. Small contents
// share a piece. It limits the pieces that it has requested to what it can write, and requests
// fewer when they begin to queue, because launches and heartbeats wait behind them. It names a
// content by its sum and gets only contents that a manifest lists, so it cannot name a path of
// this machine.
//
// On this machine a Source makes manifests and remembers sums. On the host a Store keeps
// each content once, read-only. A job gets a directory of its own with hard links to the
// Store. If the host sees the original with the same size and time, the job gets a symbolic
// link to that, and nothing is copied.
//
// When a job has succeeded, Store.Collect lists the files that its patterns match, except
// files that were sent and are unchanged. A pattern without a match is a failure of the job.
// Place writes the files on this machine: it writes and fsyncs all of them under other
// names, renames them, and syncs the directories. The outcome is recorded only afterwards,
// so a job that has succeeded has its files here, and other attempts leave none.
//
// Both sides open the files of jobs and users through os.Root: no symbolic link and no ".."
// leads out of the job's directory or of the tree that is sent.
//
// Files fetch*.go copy outputs of ended attempts from hosts that share no directory into the
// run directory. They use connections of their own, and request files by the uid of the run
// and the number of the attempt, so that a host cannot choose what is read or written. They
// change nothing on a host and do not disturb a dispatcher.
package files
