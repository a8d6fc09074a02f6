package memdisk

import (
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Server is a file server: one tree that Mounts access. It is safe for concurrent use. A simulator
// needs no goroutine for it.
type Server struct {
	// Now returns the times of files. If it is nil, every time is the Unix epoch.
	Now func() time.Time
	// NamesDurable makes every name durable at once, as an NFS server does.
	NamesDurable bool
	// MaxFiles is the number of files and directories from which on none can be created. 0: no limit.
	MaxFiles int

	mu     sync.Mutex
	root   *node
	inodes uint64
	mounts []*Mount
}

// New returns a server whose tree has only the directory "/".
func New() *Server {
	s := new(Server)
	s.root = s.newNode("/", true)
	return s
}

// Mount returns a new machine's view of the server.
func (s *Server) Mount(name string) *Mount {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := &Mount{Name: name, server: s, seen: map[*node][]string{}}
	s.mounts = append(s.mounts, m)
	return m
}

// node is a file or a directory. It holds the durable state and the changes since.
type node struct {
	ino  uint64
	path string // newest path, for Loss
	dir  bool
	perm uint32
	mod  time.Time

	data, onDisk []byte // of a file: with all changes; the durable content
	writes       []write

	names, durable map[string]*node // of a directory: with all changes; the durable names
	renames        []nameChange
}

// write is a change of a file's bytes.
type write struct {
	by       *Mount
	durable  bool
	truncate bool
	off      int64 // offset of data; the new size when truncate is set
	data     []byte
	grows    int64 // the minimum length of the file afterwards
}

// nameChange is a change of a directory: a name is removed, created, or both.
type nameChange struct {
	by         *Mount
	durable    bool
	gone, made string // "" if there is none
	node       *node  // the node of made
}

func (s *Server) now() time.Time {
	if s.Now == nil {
		return time.Unix(0, 0)
	}
	return s.Now()
}

func (s *Server) newNode(path string, dir bool) *node {
	s.inodes++
	n := &node{ino: s.inodes, path: path, dir: dir, mod: s.now()}
	if dir {
		n.perm, n.names, n.durable = 0o755, map[string]*node{}, map[string]*node{}
	}
	return n
}

// NumFiles returns the number of files and directories, without the root.
func (s *Server) NumFiles() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.root.numFiles()
}

func (n *node) numFiles() int {
	sum := len(n.names)
	for _, child := range n.names {
		sum += child.numFiles()
	}
	return sum
}

// canCreate returns the error of creating one more file.
func (s *Server) canCreate() error {
	if s.MaxFiles > 0 && s.root.numFiles() >= s.MaxFiles {
		return syscall.ENOSPC
	}
	return nil
}

// find returns the node of a path.
func (s *Server) find(path string) (*node, error) {
	n := s.root
	for name := range strings.SplitSeq(strings.Trim(filepath.Clean(path), "/"), "/") {
		if name == "" || name == "." {
			continue
		}
		if !n.dir {
			return nil, syscall.ENOTDIR
		}
		n = n.names[name]
		if n == nil {
			return nil, syscall.ENOENT
		}
	}
	return n, nil
}

// findDirectory returns the node of a path, which must be a directory.
func (s *Server) findDirectory(path string) (*node, error) {
	d, err := s.find(path)
	if err == nil && !d.dir {
		return nil, syscall.ENOTDIR
	}
	return d, err
}

// parent returns the directory that contains a path and the last part of the path.
func (s *Server) parent(path string) (*node, string, error) {
	path = filepath.Clean(path)
	d, err := s.findDirectory(filepath.Dir(path))
	switch {
	case err != nil:
		return nil, "", err
	case path == "/" || path == ".":
		return nil, "", syscall.EBUSY
	}
	return d, filepath.Base(path), nil
}

// rename applies a mount's change of names. It is durable at once with Server.NamesDurable.
func (s *Server) rename(d *node, c nameChange) {
	if c.node != nil {
		c.node.path = filepath.Join(d.path, c.made)
	}
	c.durable = s.NamesDurable
	c.apply(d.names)
	d.renames = append(d.renames, c)
	d.settleNames()
	d.mod = s.now()
	delete(c.by.seen, d) // a machine sees its own changes
}

func (c *nameChange) apply(names map[string]*node) {
	if c.gone != "" {
		delete(names, c.gone)
	}
	if c.made != "" {
		names[c.made] = c.node
	}
}

// settleNames applies the oldest durable changes to the durable names.
func (n *node) settleNames() {
	k := 0
	for ; k < len(n.renames) && n.renames[k].durable; k++ {
		n.renames[k].apply(n.durable)
	}
	n.renames = slices.Delete(n.renames, 0, k)
}

// write applies a change of a file's bytes.
func (s *Server) write(n *node, c write) {
	n.data = c.apply(n.data)
	n.writes = append(n.writes, c)
	n.mod = s.now()
}

func (c *write) apply(b []byte) []byte {
	if c.truncate {
		if c.off < int64(len(b)) {
			clear(b[c.off:])
			return b[:c.off]
		}
		return grown(b, c.off)
	}
	b = grown(b, max(c.grows, c.off+int64(len(c.data))))
	copy(b[c.off:], c.data)
	return b
}

// grown returns b extended with zeros to at least size bytes.
func grown(b []byte, size int64) []byte {
	if n := int(size) - len(b); n > 0 {
		b = append(b, make([]byte, n)...)
	}
	return b
}

// settleWrites applies the oldest durable changes to the durable content.
func (n *node) settleWrites() {
	k := 0
	for ; k < len(n.writes) && n.writes[k].durable; k++ {
		n.onDisk = n.writes[k].apply(n.onDisk)
	}
	n.writes = slices.Delete(n.writes, 0, k)
}
