package sched

// A helper that says hello and then gives no beat is started anew with the next
// connection, and its host keeps its jobs (DESIGN 5). When that has failed some
// times in a row the host is treated as one that does not answer: its hellos extend
// no lease and put off no loss, or a run could wait for it for ever.
const muteLinks = 3

// doubted says that the host has a helper that may be one more that is mute.
func (h *host) doubted() bool { return h.mute >= muteLinks && !h.beaten }

// answers says that a helper answers that may be given jobs.
func (h *host) answers() bool { return h.linked && h.barred == "" && !h.doubted() }
