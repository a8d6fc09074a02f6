package sched

// Linked says whether the core holds the host's link for alive: from HostUp
// until it has ordered Disconnect or has heard HostDown, hellos of a helper
// that is mute every time aside. Only signs of life taken note of meanwhile may
// extend a lease.
func (c *Core) Linked(name string) bool {
	h := c.byName[name]
	return h != nil && h.linked && !h.doubted()
}
