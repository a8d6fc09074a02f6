// Package memdisk is a rundir.Disk in memory. It simulates a file server with any number of
// machines that mount it, power failures, and errors on demand. It is only for the simulator and
// for tests of writes to a run directory. It does not touch a real disk or read a clock.
//
//	server := memdisk.New()
//	a, b := server.Mount("a"), server.Mount("b")
//	a.Fault = func(op, path string) error { … }   // nil: it succeeds
//	a.PowerLoss(func(l memdisk.Loss) memdisk.Fate { … })
//
// # What it promises
//
// It behaves like Linux through package os (errors are *fs.PathError around a syscall.Errno):
// O_EXCL, O_TRUNC, rename over an existing name, remove of an open file, holes that read as zeros,
// sorted listings. The same calls, with the same answers of the callbacks, give the same bytes,
// errors, and order. The package uses no goroutine, no map order, and no randomness.
//
// Every machine sees at once what one machine writes or names (but see Mount.Stale). The change
// becomes durable later:
//
//   - bytes, and a change of size, when the machine that made it calls File.Sync
//     on that file;
//   - a name that was created, moved or removed, when the machine that did it
//     calls SyncDir on the directory, or at once with Server.NamesDurable, as on
//     NFS.
//
// PowerLoss of a machine asks the caller about each change of that machine that is not durable,
// oldest first. The change is kept, lost, or (for a write) torn at a byte, with or without zeros in
// place of the rest. Each change is decided separately, so a later change may survive an earlier
// one. A rename is one change. Files that the machine had open answer ESTALE forever. The machine
// may continue, as after a boot. Other machines, their open files, and their changes are not
// affected.
//
// # What it does not do
//
// Close makes nothing durable. Server.WriteBack does, as the kernel does after some time. Modes are
// stored and not enforced. There are no links, no O_APPEND, no opening of directories, and no
// rename from one directory into another (EXDEV).
package memdisk
