package memdisk

import (
	"path/filepath"
	"slices"
)

// Snapshot keeps a directory as it is now and returns what puts it back, durably:
// with the same inode numbers, as a restored snapshot, or with new ones, as a copy.
// Files that are open stay what they were, without a name.
func (s *Server) Snapshot(dir string) (restore func(copied bool), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, err := s.directory(dir)
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

// clone copies a tree; what it holds is durable.
func (s *Server) clone(n *node, anew bool) *node {
	c := &node{ino: n.ino, path: n.path, dir: n.dir, perm: n.perm, mod: n.mod, data: slices.Clone(n.data), onDisk: slices.Clone(n.data)}
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
