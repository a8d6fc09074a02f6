package memdisk

import (
	"path/filepath"
	"slices"
)

// Snapshot saves the current state of a directory. restore restores it durably: with the same inode
// numbers, like a restored snapshot, or with new ones, like a copy. Open files keep their content
// and lose their names.
func (s *Server) Snapshot(dir string) (restore func(copied bool), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, err := s.findDirectory(dir)
	if err != nil {
		return nil, err
	}
	kept := s.clone(n, false)
	return func(copied bool) {
		s.mu.Lock()
		defer s.mu.Unlock()
		parent, name, err := s.parent(filepath.Clean(dir))
		if err != nil {
			return
		}
		n := s.clone(kept, copied)
		parent.names[name], parent.durable[name] = n, n
		for _, m := range s.mounts {
			m.seen = map[*node][]string{}
		}
	}, nil
}

// clone copies a tree. The content of the copy is durable.
func (s *Server) clone(n *node, anew bool) *node {
	c := &node{ino: n.ino, path: n.path, dir: n.dir, perm: n.perm, mod: n.mod, data: slices.Clone(n.data),
		onDisk: slices.Clone(n.data)}
	if anew {
		s.inodes++
		c.ino = s.inodes
	}
	if n.dir {
		c.names, c.durable = map[string]*node{}, map[string]*node{}
		for name, child := range n.names {
			one := s.clone(child, anew)
			c.names[name], c.durable[name] = one, one
		}
	}
	return c
}
