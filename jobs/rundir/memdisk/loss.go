package memdisk

import (
	"maps"
	"slices"
)

// Loss is a change that is not durable at a power failure.
type Loss struct {
	Op   string // "write", "truncate", or "name" (a name was created, moved, or removed)
	Path string // the file, or the directory that contains the name
	Name string // for "name": the created name, or else the removed one
	Len  int    // number of bytes of a write; otherwise 1
}

// Fate decides what happens to a Loss.
type Fate struct {
	// 0: the change is lost; Loss.Len or more: it is kept; between: a write is torn there.
	Keep int
	// The lost end of a write that extended the file reads as zeros; otherwise the file is not
	// extended.
	Zeros bool
}

// PowerLoss simulates a power failure and a reboot of the machine. fate decides about every change
// of the machine that is not durable. It gets them directory by directory in the order of the tree;
// in each directory names come first, then the files, each with its oldest change first. A nil fate
// loses all changes. What is left is durable. fate must not use the server.
func (m *Mount) PowerLoss(fate func(Loss) Fate) {
	m.server.mu.Lock()
	defer m.server.mu.Unlock()
	if fate == nil {
		fate = func(Loss) Fate { return Fate{} }
	}
	m.boots++
	m.seen = map[*node][]string{}
	m.server.decide(m, fate)
}

// WriteBack makes the changes of all machines durable, as their kernels do by themselves some time
// later, even if the processes that made them have ended.
func (s *Server) WriteBack() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.mounts {
		s.decide(m, func(l Loss) Fate { return Fate{Keep: l.Len} })
	}
}

// decide applies fate to all changes of a machine that are not durable.
func (s *Server) decide(m *Mount, fate func(Loss) Fate) {
	for _, n := range s.nodes() {
		n.loseNames(m, fate)
		n.loseWrites(m, fate)
	}
}

func (c *nameChange) loss(n *node) Loss {
	l := Loss{Op: "name", Path: n.path, Name: c.made, Len: 1}
	if l.Name == "" {
		l.Name = c.gone
	}
	return l
}

func (c *write) loss(n *node) Loss {
	if c.truncate {
		return Loss{Op: "truncate", Path: n.path, Len: 1}
	}
	return Loss{Op: "write", Path: n.path, Len: len(c.data)}
}

// nodes returns all nodes, each directory before its content, under the current names and under the
// names that a power failure may restore.
func (s *Server) nodes() (all []*node) {
	been := map[*node]bool{}
	var walk func(n *node)
	walk = func(n *node) {
		if been[n] {
			return
		}
		been[n] = true
		all = append(all, n)
		for _, names := range []map[string]*node{n.names, n.durable} {
			for _, name := range slices.Sorted(maps.Keys(names)) {
				walk(names[name])
			}
		}
		for _, c := range n.renames {
			if c.node != nil {
				walk(c.node)
			}
		}
	}
	walk(s.root)
	return all
}

func (n *node) loseNames(m *Mount, fate func(Loss) Fate) {
	changed := false
	n.renames = slices.DeleteFunc(n.renames, func(c nameChange) bool {
		if c.by != m || c.durable {
			return false
		}
		lost := fate(c.loss(n)).Keep <= 0
		changed = changed || lost
		return lost
	})
	for i := range n.renames {
		n.renames[i].durable = n.renames[i].durable || n.renames[i].by == m
	}
	n.settleNames()
	if !changed {
		return
	}
	n.names = maps.Clone(n.durable)
	for i := range n.renames {
		n.renames[i].apply(n.names)
	}
}

// loseWrites applies fate to a machine's writes to a file. What is left is durable.
func (n *node) loseWrites(m *Mount, fate func(Loss) Fate) {
	changed := false
	kept := n.writes[:0]
	for _, c := range n.writes {
		if c.by == m && !c.durable {
			l := c.loss(n)
			f := fate(l)
			if f.Keep < l.Len {
				changed = true
				if c.truncate || f.Keep <= 0 && !f.Zeros {
					continue
				}
				if f.Zeros {
					c.grows = c.off + int64(len(c.data))
				}
				c.data = c.data[:max(0, f.Keep)]
			}
			c.durable = true
		}
		kept = append(kept, c)
	}
	n.writes = kept
	n.settleWrites()
	if !changed {
		return
	}
	n.data = slices.Clone(n.onDisk)
	for i := range n.writes {
		n.data = n.writes[i].apply(n.data)
	}
}
