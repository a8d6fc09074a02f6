// Package memdisk is a rundir.Disk in memory: a simulated file server with any
// number of machines that mount it, power that fails, and errors on demand. It
// is for the simulator and for tests of what is written to a run directory, and
// for nothing else; nothing in it touches a real disk or reads a clock.
//
//	server := memdisk.New()
//	a, b := server.Mount("a"), server.Mount("b")
//	a.Fault = func(op, path string) error { … }   // nil: it goes well
//	a.PowerLoss(func(l memdisk.Loss) memdisk.Fate { … })
//
// # What it promises
//
// It behaves as Linux does through package os (errors are *fs.PathError around a
// syscall.Errno): O_EXCL, O_TRUNC, rename over a name, remove of a file that is
// open, holes that read as zeros, sorted listings. The same calls and answers of
// the callbacks give the same bytes, errors and order: there is no goroutine, no
// map order and no randomness in what it does.
//
// What one machine writes or names, every machine sees at once (but see
// Mount.Stale). It is durable later:
//
//   - bytes, and a change of size, when the machine that made it calls File.Sync
//     on that file;
//   - a name that was made, moved or removed when the machine that did it calls
//     SyncDir on the directory, or at once with Server.NamesDurable, as on NFS.
//
// PowerLoss of a machine asks the caller about each change of that machine that
// is not durable, oldest first: it is kept, lost, or (a write) torn at a byte,
// with or without zeros in place of the rest. Each is decided alone, so that a
// later change may outlive an earlier one; a rename is one change. What the
// machine had open answers ESTALE for ever; the machine may go on as after a
// boot. Other machines, their open files and their changes are not touched.
//
// # What it does not do
//
// Close makes nothing durable (Mount.WriteBack does, as time does). Modes are kept
// and not enforced. There are no links, no O_APPEND, no opening of directories,
// and no rename from one directory into another (EXDEV).
package memdisk
