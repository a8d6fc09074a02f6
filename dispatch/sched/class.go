package sched

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"dcs-tui/dispatch/sched/blame"
	"dcs-tui/internal/heap"
	"dcs-tui/internal/text"
	"dcs-tui/jobs"
)

// needs are the properties of a job that decide which hosts could run it, whatever became of its attempts.
type needs struct {
	queue  string
	tags   string // sorted, joined by newlines
	gpus   jobs.GPUs
	slots  int
	tokens string
	mem    int64
	// Longest run time by timeout and estimate; 0: not known, or without effect (slurm_allocation.go).
	maxRunTime time.Duration
}

// fits holds which hosts could run the jobs with the same needs, as far as is known.
type fits struct {
	version       fitsVersion // of the following; epoch -1: not computed
	canRun        []bool      // by column of the host: whether it has what the jobs need
	numCanRun     int         // number of hosts in canRun
	exceeds       string      // why they need more than a pool has; "": they do not
	unsatisfiable string      // why no host of the inventory can ever run them; "": one can
}

// classKey holds the properties of a job that determine where and when it can run.
type classKey struct {
	needs
	estimateStep int    // of the user's estimate; 0: none, or without effect (hybrid.go)
	avoid        string // hosts that the job avoids because it failed there, joined by newlines
	// Hosts where an attempt of it runs, or may still run although it was given up.
	excluded string
}

// class holds the ready jobs with one key.
type class struct {
	key       classKey
	stats     *queueStats // of its queue
	spec      *jobs.Spec  // has the options of one of its jobs, which all use the same pools
	tags      []string
	kind      blame.Kinds
	numReady  int // ready jobs
	ranks     map[rank]*bucket
	heap      heap.Heap[*bucket]
	listIndex int // in queue.list; -1: not there

	line        *line   // in which it is while it has ready jobs
	first       jobs.ID // the next job; 0: none
	firstRank   rank
	isMisplaced bool // it is in line.changed

	*fits                    // that of all classes with its needs
	avoid, excluded []string // the hosts of the key

	stuckSince time.Duration // since when its next job has fit on no host; 0: it fits
	reservedOn *host         // the host that was last reserved for it (reservedHost)
}

// isBufferable reports whether jobs of the class may be sent to a host ahead of need. Jobs that use
// tokens may not, because they would take from others what they do not use yet.
func (k classKey) isBufferable() bool {
	return k.slots == 1 && k.gpus == 0 && k.mem == 0 && k.tokens == ""
}

// classOf returns the class of a queued job.
func (c *Core) classOf(j *jobs.Job) *class { return c.classWith(c.keyOf(j), j) }

// classWith returns the class with a key for a job.
func (c *Core) classWith(key classKey, j *jobs.Job) *class {
	cl := c.queue.classes[key]
	if cl == nil {
		cl = c.newClass(key, j)
		c.queue.classes[key] = cl
	}
	c.updateFits(cl)
	return cl
}

// sharedClassOf returns the class that a job with open attempts would have without them, and the hosts of
// these attempts. Jobs thus share a class although each has an attempt elsewhere.
func (c *Core) sharedClassOf(j *jobs.Job) (cl *class, excluded []string) {
	key := c.keyOf(j)
	excluded = strings.Split(key.excluded, "\n")
	key.excluded = ""
	return c.classWith(key, j), excluded
}

func (c *Core) keyOf(j *jobs.Job) classKey {
	q := &c.queue
	if q.lastOpts != j.Spec.Options {
		q.lastOpts = j.Spec.Options
		q.lastKey = classKey{estimateStep: c.estimateStep(j.Spec), needs: needs{
			queue: j.Spec.Queue, tags: strings.Join(j.Spec.Tags, "\n"), gpus: j.Spec.GPUs, slots: j.Spec.SlotCount(),
			tokens: j.Spec.TokenText(), mem: j.Spec.MemBytes, maxRunTime: c.roundedMaxRunTime(j.Spec),
		}}
	}
	key := q.lastKey
	if j.Failures > 0 {
		key.mem = c.memoryRequest(j)
		key.maxRunTime = grownLimit(key.maxRunTime, c.cfg.TimeoutGrowth, j)
	}
	key.avoid, key.excluded = c.excludedHosts(j)
	if q.avoidanceOver[j.Spec.ID] {
		key.avoid = ""
	}
	return key
}

// ownClassOf returns the class of a job that is not queued, outside the queue.
func (c *Core) ownClassOf(j *jobs.Job) *class {
	cl := c.newClass(c.keyOf(j), j)
	c.updateFits(cl)
	return cl
}

// newClass returns an empty class with the key for a job. It does not add the class to the queue.
func (c *Core) newClass(key classKey, j *jobs.Job) *class {
	stats := c.statsOf(j.Spec)
	line := &stats.others
	if key.isBufferable() {
		line = &stats.bufferable
	}
	return &class{key: key, stats: stats, spec: &jobs.Spec{Options: j.Spec.Options}, tags: j.Spec.Tags,
		kind: c.kinds.KindOf(j.Spec), ranks: make(map[rank]*bucket), listIndex: -1, line: line,
		fits: c.queue.fitsFor(key.needs), avoid: strings.Split(key.avoid, "\n"),
		excluded: strings.Split(key.excluded, "\n")}
}

// maxUnusedFits is how many fits are kept beyond twice the number of classes. If there are more, most are unused.
const maxUnusedFits = 1024

// fitsFor returns the fits of jobs with these needs.
func (q *queue) fitsFor(n needs) *fits {
	f := q.fits[n]
	if f == nil {
		if len(q.fits) >= 2*len(q.classes)+maxUnusedFits {
			clear(q.fits) // classes keep theirs
		}
		f = &fits{version: fitsVersion{epoch: -1}}
		q.fits[n] = f
	}
	return f
}

// fitsOn reports whether jobs of the class could run on the host, and are not excluded there.
func (cl *class) fitsOn(h *host) bool {
	return cl.canRun[h.column] && !slices.Contains(cl.excluded, h.spec.Name)
}

// avoids reports whether jobs of the class have failed on the host.
func (cl *class) avoids(h *host) bool { return slices.Contains(cl.avoid, h.spec.Name) }

// excludedHosts returns the hosts that the job avoids, and those where an attempt of it is open or
// orphaned (excluded). Avoided are those where it has failed in this round, or else those where it
// died. Each list is sorted and joined by newlines. Both are "" for nearly every job.
func (c *Core) excludedHosts(j *jobs.Job) (avoid, excluded string) {
	if len(j.Attempts) == 0 {
		return "", ""
	}
	var failed, died, lost []string
	for _, a := range j.Attempts {
		switch {
		case a.State == jobs.AttemptExited && a.Round == j.Round:
			failed = insertSorted(failed, a.Host)
		case a.State.Open():
			lost = insertSorted(lost, a.Host) // a copy runs elsewhere
		case c.isOrphanThere(a):
			lost = insertSorted(lost, a.Host)
		case a.State == jobs.AttemptLost && a.Round == j.Round:
			died = insertSorted(died, a.Host)
		}
	}
	if failed == nil {
		failed = died
	}
	return strings.Join(failed, "\n"), strings.Join(lost, "\n")
}

// orphanHosts returns the hosts where a lost attempt of the job may still run.
func (c *Core) orphanHosts(j *jobs.Job) (names []string) {
	for _, a := range j.Attempts {
		if c.isOrphanThere(a) {
			names = append(names, a.Host)
		}
	}
	return names
}

// isOrphanThere reports whether the attempt was given up and may still run on the host of its name.
func (c *Core) isOrphanThere(a *jobs.Attempt) bool {
	return a.State == jobs.AttemptLost && c.orphaned[a.ID] && c.byName[a.Host] != nil && c.byName[a.Host].owns(a)
}

// insertSorted adds a name to a sorted list without repeats.
func insertSorted(names []string, name string) []string {
	if i, ok := slices.BinarySearch(names, name); !ok {
		return slices.Insert(names, i, name)
	}
	return names
}

func (cl *class) add(c *Core, id jobs.ID, j *jobs.Job) {
	r := c.rankOf(j)
	b := cl.ranks[r]
	if b == nil {
		b = &bucket{rank: r}
		cl.ranks[r] = b
		cl.heap.Push(b)
	}
	b.ids.Push(queuedID(id))
	cl.numReady++
	if cl.first == 0 || cmp.Or(r.compare(cl.firstRank), cmp.Compare(id, cl.first)) < 0 {
		cl.changeHead()
	}
	if cl.listIndex < 0 {
		c.queue.addToList(cl)
	}
}

// remove removes a job. Its entry in a bucket stays until it reaches the front. An empty class is
// dropped with all its entries.
func (cl *class) remove(c *Core, id jobs.ID) {
	q := &c.queue
	cl.numReady--
	if id == cl.first {
		cl.changeHead()
	}
	if cl.numReady > 0 {
		return
	}
	q.removeFromList(cl)
	delete(q.classes, cl.key)
	if c.keeper == cl {
		c.setKeeper(nil)
	}
	if h := cl.reservedHost(); h != nil {
		h.reserved = nil
		h.touch()
	}
}

// findHead returns the class's next job and its rank. The job is 0 if there is none.
func (cl *class) findHead(c *Core) (jobs.ID, rank) {
	for cl.numReady > 0 && len(cl.heap) > 0 {
		b := cl.heap[0]
		if len(b.ids) == 0 {
			cl.heap.Pop()
			delete(cl.ranks, b.rank)
			continue
		}
		id := jobs.ID(b.ids[0])
		if c.queue.states[id-1] == stateReady {
			j := c.peek(id)
			isHere := c.rankOf(j) == b.rank && (len(j.Attempts) == 0 && !c.queue.hasStaleEntries || c.classOf(j) == cl)
			if isHere {
				return id, b.rank
			}
		}
		b.ids.Pop()
	}
	return 0, rank{}
}

// updateFits computes on which hosts the class could run, as far as is known, and whether it can
// never run on any. It only visits the hosts whose capacities have changed since the last call for a class
// with the same needs.
func (c *Core) updateFits(cl *class) {
	q := &c.queue
	now := q.fitsVersion()
	if cl.version == now {
		return
	}
	cl.canRun = append(cl.canRun, make([]bool, len(q.columns)-len(cl.canRun))...)
	if cl.version.epoch >= 0 && cl.version.numChanges >= q.firstChange {
		for _, column := range q.changed[cl.version.numChanges-q.firstChange:] {
			q.updateFit(cl, column)
		}
	} else {
		for column := range q.columns {
			q.updateFit(cl, column)
		}
	}
	if cl.version.epoch != now.epoch {
		cl.exceeds = c.whyExceedsPools(cl)
	}
	cl.version, cl.unsatisfiable = now, ""
	if c.failUnsatisfiableAt > 0 {
		return
	}
	switch {
	case cl.exceeds != "":
		cl.unsatisfiable = cl.exceeds
	case cl.numCanRun > 0, len(c.HostSpecs()) == 0, c.hasProviderFor(cl):
	case len(c.hosts) == 1:
		cl.unsatisfiable = c.hosts[0].whyCannotRun(cl)
	default:
		cl.unsatisfiable = c.whyUnsatisfiable(cl, c.hosts[0].whyCannotRun(cl))
	}
	q.hasUnsatisfiable = q.hasUnsatisfiable || cl.unsatisfiable != ""
}

// updateFit computes whether the class could run on the host of a column.
func (q *queue) updateFit(cl *class, column int) {
	q.numFitChecks++
	h := q.columns[column]
	can := h != nil && h.lackFor(cl) == lacksNothing
	switch is := &cl.canRun[column]; {
	case can && !*is:
		*is = true
		cl.numCanRun++
	case !can && *is:
		*is = false
		cl.numCanRun--
	}
}

// lack is what a host lacks for a class.
type lack uint8

const (
	lacksNothing lack = iota
	lacksMembership
	lacksTag
	lacksQueue
	lacksTime
	lacksSlots
	lacksGPUs
	lacksMemory
)

// lackFor returns what the host lacks for the class. A host that has not sent a hello yet is assumed
// to have everything that only a hello reports.
func (h *host) lackFor(cl *class) lack {
	k := &cl.key
	keptSlots, keptGPUs := h.keptFrom(cl)
	switch n := h.maxSlots(); {
	case h.removed:
		return lacksMembership
	case h.missingTag(cl) != "":
		return lacksTag
	case cl.stats != nil && !h.spec.IsOpenTo(k.queue):
		return lacksQueue
	case h.instance != nil && cl.whyTooLongFor(h.instance.provider.spec) != "":
		return lacksTime
	case n > 0 && k.slots > n-keptSlots:
		return lacksSlots
	case k.gpus > 0 && (h.hello != nil || h.spec.GPUNumbers(nil) != nil) && k.gpus.Devices() > h.numGPUs()-keptGPUs:
		return lacksGPUs
	case k.mem > 0 && h.hello != nil && h.hello.MemBytes > 0 && k.mem > h.hello.MemBytes:
		return lacksMemory
	}
	return lacksNothing
}

// missingTag returns a tag that the class needs and the host does not have, or "".
func (h *host) missingTag(cl *class) string {
	for _, t := range cl.tags {
		if !slices.Contains(h.spec.Tags, t) {
			return t
		}
	}
	return ""
}

// keptFrom returns how many slots and devices of the host are kept for other queues.
func (h *host) keptFrom(cl *class) (slots, gpus int) {
	if cl.stats == nil || len(h.spec.Queues) == 0 {
		return 0, 0
	}
	return h.spec.KeptFrom(cl.key.queue)
}

// whyCannotRun describes what the host lacks for the class, or returns "".
func (h *host) whyCannotRun(cl *class) string {
	name := h.spec.Name
	keptSlots, keptGPUs := h.keptFrom(cl)
	has := func(need string, n, kept int) string {
		text := fmt.Sprintf("it needs %s and host %s has %d", need, name, n)
		if kept > 0 {
			text += fmt.Sprintf(", of which %d are kept for queue %s", kept, h.spec.KeptText())
		}
		return text
	}
	switch h.lackFor(cl) {
	case lacksMembership:
		return fmt.Sprintf("host %s is removed from the run", name)
	case lacksTag:
		return fmt.Sprintf("host %s has no tag %s", name, h.missingTag(cl))
	case lacksQueue:
		return fmt.Sprintf("host %s is kept for queue %s", name, h.spec.KeptText())
	case lacksTime:
		return cl.whyTooLongFor(h.instance.provider.spec)
	case lacksSlots:
		return has(text.Plural(cl.key.slots, "slot"), h.maxSlots(), keptSlots)
	case lacksGPUs:
		return has(cl.key.gpus.Text(), h.numGPUs(), keptGPUs)
	case lacksMemory:
		return fmt.Sprintf("it needs %s of memory and host %s has %s", text.Size(cl.key.mem), name,
			text.Size(h.hello.MemBytes))
	}
	return ""
}

// whyUnsatisfiable explains in one line why no host can run the class. If there is a single
// requirement that every host lacks, it names that one.
func (c *Core) whyUnsatisfiable(cl *class, first string) string {
	all := func(k *class) bool { // all hosts lack something for k
		return !c.anyHost(func(h *host) bool { return h.lackFor(k) == lacksNothing })
	}
	if !c.anyHost(func(h *host) bool { return h.spec.IsOpenTo(cl.key.queue) }) {
		return "every host is kept for other queues; for example, " + first
	}
	for _, t := range cl.tags {
		if all(&class{tags: []string{t}}) {
			return "no host has tag " + t
		}
	}
	k := cl.key
	switch {
	case len(cl.tags) > 1 && all(&class{tags: cl.tags}):
		return "no host has all of the tags " + strings.Join(cl.tags, ", ")
	case all(&class{key: classKey{needs: needs{slots: k.slots}}}):
		return "no host has " + text.Plural(k.slots, "slot")
	case all(&class{key: classKey{needs: needs{gpus: k.gpus}}}):
		return "no host has " + k.gpus.Text()
	case all(&class{key: classKey{needs: needs{mem: k.mem}}}):
		return "no host has " + text.Size(k.mem) + " of memory"
	}
	return "no host has all that it asks for; for example, " + first
}

// refuseUnsatisfiable fails the ready jobs of classes that no host can run, at most maxPerStep in
// a Step.
func (c *Core) refuseUnsatisfiable() {
	q, n := &c.queue, 0
	version := q.fitsVersion()
	if version == q.checked && !q.hasUnsatisfiable {
		return
	}
	q.checked, q.hasUnsatisfiable = version, false
	for i := 0; i < len(q.list); i++ {
		cl := q.list[i]
		c.updateFits(cl)
		for cl.unsatisfiable != "" && cl.numReady > 0 && n < maxPerStep {
			id, _ := cl.head(c)
			c.emit(jobs.Record{Kind: jobs.KindJob, Job: id, Next: jobs.Failed, Reason: cl.unsatisfiable})
			n++
		}
		if cl.numReady == 0 {
			i-- // another class now has this position in the list
		} else if cl.unsatisfiable != "" {
			q.hasUnsatisfiable = true
		}
	}
	q.forgetChanges()
}
