//go:build linux

// Package labfs is a file system for tests: a loopback (FUSE) of a directory that can behave as
// badly as a network file system. It can have stale caches, hang, return stale handles, be full,
// and lose replies. It is for tests only and is part of no program.
//
// A Server simulates a file server, and each Mount simulates a client of it. One client sees the
// changes of another as late as over NFS. A name that a client looked up before it existed stays
// invisible until the directory is listed. Attributes are cached. With WriteBack, written data
// reaches the server at fsync or close. Files are identified by handle, as on NFS: a file that
// another client has renamed can still be opened, and one that it has removed is stale.
//
//	server := labfs.New(t)          // skips the test where FUSE does not work
//	a := server.Mount(labfs.Options{Stale: time.Minute})
//	b := server.Mount(labfs.Options{Stale: time.Minute, WriteBack: true})
//	b.Hang()                        // every call hangs, as when the server is gone
//	b.Fail(labfs.Fault{Ops: labfs.Write, Errno: syscall.EIO, Count: 3})
//
// It does not model locks, mmap of shared pages, or permissions between users. The process that
// serves a mount must not use it: a fork in that process can wait for the process itself.
package labfs
