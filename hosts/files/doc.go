// Package files moves the files of jobs between this machine and hosts that share no
// directory with it. Dispatch serves what hosts ask for, and hosts/helper/remote asks.
//
// What travels is described by a Manifest: paths, sizes, times, and SHA-256 sums. A host
// pulls. It asks for the manifest, compares the sums with what it has, and asks for the
// rest piece by piece, so that it never has more under way than it can write. It asks for
// fewer at once when they begin to queue, because launches and heartbeats wait behind them.
// A host names what it wants by its sum. It gets only what stands in a manifest, and can
// name no path of ours.
//
// On our side a Source makes manifests and remembers sums. On the host a Store keeps each
// content once, read-only. A job gets a directory of its own, in which hard links lead to
// the Store. On a host that sees the original with the same size and time, a symbolic
// link leads to that, and nothing is copied.
//
// When a job has succeeded, Store.Collect lists what its patterns match, without what was
// sent and is unchanged. A pattern without a match is a failure of the job. Place writes
// the files on our side: all of them beside their places first, each fsynced, then it
// renames them and syncs the directories. Only then is the outcome believed, so a job
// that has succeeded has its files here, and nothing else leaves any.
//
// Both sides open what a job or a user has made through os.Root: no symbolic link and no
// ".." leads out of the job's directory or of the tree that is sent.
//
// Files fetch*.go read the outputs of attempts on hosts that keep them to themselves, over
// connections of their own, and bring those that are over into the run directory, where
// everybody who looks for them looks first. They ask by the uid of the run and the number
// of the attempt alone: no host says what is read or where it is written. They start
// nothing on a host, change nothing there, and disturb no dispatcher.
package files
