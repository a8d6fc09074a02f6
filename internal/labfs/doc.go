//go:build linux

// Package labfs is a file system for tests: a loopback (FUSE) of a directory that can be made to
// behave as badly as a network file system does: stale caches, hanging, stale
// handles, a full disk, replies that are lost. It is for tests only and is part of no program of ours.
//
// A Server stands for a file server, each Mount for a client of it: what one
// client does another sees as late as over NFS. A name that was looked for before
// it existed stays invisible until its directory is listed; attributes are kept;
// what is written reaches the server at fsync or close (WriteBack). Files are known by
// handle, as on NFS: one that another client has renamed can still be opened, one
// that it has removed is stale.
//
//	server := labfs.New(t)          // leaves the test out where FUSE cannot work
//	a := server.Mount(labfs.Options{Stale: time.Minute})
//	b := server.Mount(labfs.Options{Stale: time.Minute, WriteBack: true})
//	b.Wedge()                       // every call hangs, as when the server is gone
//	b.Fail(labfs.Fault{Ops: labfs.Write, Errno: syscall.EIO, Count: 3})
//
// It does not model locks, mmap of shared pages or permissions between users. The process that
// serves a mount must not work in it: a fork into it can wait for the very process.
package labfs
