//go:build linux

// Package labfs is a file system for tests: a loopback (FUSE) of a directory that can be made to
// behave as badly as a network file system does: stale caches, hanging, stale
// handles, a full disk. It is for tests only and is part of no program of ours.
package labfs

import _ "github.com/hanwen/go-fuse/v2/fs"
