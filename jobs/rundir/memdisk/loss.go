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
	m.powerLoss(fate)
}

// PowerLoss fails the power of all machines, in the order in which they mounted.
func (s *Server) PowerLoss(fate func(Loss) Fate) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.mounts {
		m.powerLoss(fate)
	}
}

func (m *Mount) powerLoss(fate func(Loss) Fate) {
	if fate == nil {
		fate = func(Loss) Fate { return Fate{} }
	}
	m.boots++
	m.seen = map[*node][]string{}
	m.server.root.loseAll(m, fate, map[*node]bool{})
}

// WriteBack makes all changes of the machine durable, as a kernel does by itself some time later,
// even if the process that made them has ended.
func (m *Mount) WriteBack() {
	m.server.mu.Lock()
	defer m.server.mu.Unlock()
	m.server.root.loseAll(m, func(l Loss) Fate { return Fate{Keep: l.Len} }, map[*node]bool{})
}

// WriteBack makes the changes of all machines durable.
func (s *Server) WriteBack() {
	s.mu.Lock()
	mounts := slices.Clone(s.mounts)
	s.mu.Unlock()
	for _, m := range mounts {
		m.WriteBack()
	}
}

// Undone returns the machine's changes that are not durable, in the order in which PowerLoss would
// ask about them.
func (m *Mount) Undone() []Loss {
	m.server.mu.Lock()
	defer m.server.mu.Unlock()
	var all []Loss
	m.server.root.walk(map[*node]bool{}, func(n *node) {
		for _, c := range n.renames {
			if c.by == m && !c.durable {
				all = append(all, c.loss(n))
			}
		}
		for _, c := range n.writes {
			if c.by == m && !c.durable {
				all = append(all, c.loss(n))
			}
		}
	})
	return all
}

func (c *naming) loss(n *node) Loss {
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

// walk visits a directory and then its content, under the current names and under the names that a
// power failure may restore.
func (n *node) walk(been map[*node]bool, visit func(*node)) {
	if been[n] {
		return
	}
	been[n] = true
	visit(n)
	for _, names := range []map[string]*node{n.names, n.durable} {
		for _, name := range slices.Sorted(maps.Keys(names)) {
			names[name].walk(been, visit)
		}
	}
	for _, c := range n.renames {
		if c.node != nil {
			c.node.walk(been, visit)
		}
	}
}

func (n *node) loseAll(m *Mount, fate func(Loss) Fate, been map[*node]bool) {
	var all []*node
	n.walk(been, func(n *node) { all = append(all, n) })
	for _, n := range all {
		n.loseNames(m, fate)
		n.lose(m, fate)
	}
}

func (n *node) loseNames(m *Mount, fate func(Loss) Fate) {
	changed := false
	n.renames = slices.DeleteFunc(n.renames, func(c naming) bool {
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

// lose applies fate to a machine's writes to a file. What is left is durable.
func (n *node) lose(m *Mount, fate func(Loss) Fate) {
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
