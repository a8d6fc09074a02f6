package jobs

import (
	"cmp"
	"encoding/binary"
	"iter"
	"slices"
	"strings"
)

// packed holds the specifications and rows of a table. A finished job with a short command takes
// about 100 bytes without pointers, instead of 350. PackIdle does not pack all rows.
type packed struct {
	blocks  blocks
	specs   []address       // job id - 1
	rows    []address       // of accepted jobs; 0: the job is unchanged since it was accepted
	open    map[ID]*openRow // rows that are not packed
	spare   *openRow        // for the next row that is unpacked; nil: none
	options Numbering[*Options]
	hosts   Numbering[string]
	start   Stamp // Attempt.Launched of the attempt that was packed first
	buf     []byte

	isWorking bool // made by NewWorking
	unpacked  []ID // rows that PackIdle may pack; may have repeats, and rows that are packed
}

// openRow is a row that is not packed. Its Spec is set if the table was made by NewWorking.
type openRow struct {
	RowReader
	isChanged bool // since it was unpacked
}

// Numbering numbers distinct values from 0, in the order in which they are added.
type Numbering[V comparable] struct {
	Values  []V // by number
	numbers map[V]int
}

// Number returns the number of a value, and adds the value if it is new.
func (n *Numbering[V]) Number(value V) int {
	number, ok := n.numbers[value]
	if !ok {
		number = len(n.Values)
		n.Values = append(n.Values, value)
		Insert(&n.numbers, value, number)
	}
	return number
}

// NewPacked returns an empty table that keeps its rows packed, for a reader with a million of them.
// Specs, Jobs, and Past stay empty. Spec, Job, RowReader, and Rows unpack copies. Fold unpacks the
// row that it changes, and PackIdle packs it again.
func NewPacked() *Table {
	return &Table{packed: &packed{open: map[ID]*openRow{}}}
}

// NewWorking returns an empty table for a dispatcher with a million jobs. It keeps rows packed,
// like NewPacked. But it has Past, and Job returns the row itself, which stays unpacked until
// PackIdle.
func NewWorking() *Table {
	t := NewPacked()
	t.packed.isWorking = true
	return t
}

// PackIdle packs the rows that have been unpacked, except those with open attempts, and changed ones
// of unfinished jobs that have more than maxRepacked attempts. Rows that Job has returned are then
// copies that nothing changes any more. It does nothing for a table that is not packed.
func (t *Table) PackIdle() {
	p := t.packed
	if p == nil {
		return
	}
	for _, id := range p.unpacked {
		r := p.open[id]
		switch {
		case r == nil || slices.ContainsFunc(r.job.Attempts, (*Attempt).isOpen):
			continue
		case r.isChanged && !r.job.State.Terminal() && len(r.job.Attempts) > maxRepacked:
			continue
		case r.isChanged:
			p.replace(&p.rows[id-1], p.addRow(&r.job))
		}
		delete(p.open, id)
		if !p.isWorking && r.attempts == nil { // nobody else has its memory
			p.spare = r
		}
	}
	p.unpacked = p.unpacked[:0]
	if b := &p.blocks; b.numReplaced > max(minReplaced, b.num/2) {
		t.compact()
	}
}

// minReplaced is the number of replaced texts below which a table is not compacted.
const minReplaced = 1000

// replace sets an address, which may be 0, to that of a newer text.
func (p *packed) replace(old *address, newer address) {
	p.blocks.drop(*old)
	*old = newer
}

// compact packs what is in blocks with many replaced texts again, and frees these blocks. A job that
// is changed again and again thus takes no more and more memory. At most a quarter of the texts in the
// other blocks are replaced, so the cost of a change does not depend on the number of jobs.
func (t *Table) compact() {
	p := t.packed
	old := p.blocks.all
	isSparse := func(at address) bool {
		return at != 0 && int(at>>32) <= len(old) && old[at>>32-1].isSparse()
	}
	p.blocks.last = 0 // add nothing to a block that is freed
	var r RowReader
	for i, at := range p.specs {
		if isSparse(at) {
			p.replace(&p.specs[i], p.addSpec(r.Spec(t, ID(i+1))))
		}
	}
	for i, at := range p.rows {
		if isSparse(at) {
			p.replace(&p.rows[i], p.addRow(r.load(t, ID(i+1))))
		}
	}
	for i, x := range old {
		if x.num == x.numReplaced {
			p.blocks.num, p.blocks.numReplaced = p.blocks.num-x.num, p.blocks.numReplaced-x.num
			p.blocks.all[i] = new(block)
		}
	}
}

// maxRepacked bounds how often the row of an unfinished job is packed because of its attempts. The
// bytes of earlier times are not used again, so they would grow with the square of the attempts.
const maxRepacked = 16

// row returns the row of a job for Fold to change, or nil if there is none.
func (t *Table) row(id ID) *Job {
	if t.packed == nil {
		return t.Job(id)
	}
	r := t.unpack(id)
	if r == nil {
		return nil
	}
	r.isChanged = true
	t.packed.unpacked = append(t.packed.unpacked, id)
	return &r.job
}

// unpack returns the row of a job of a packed table, and keeps it unpacked. It returns nil if there
// is none.
func (t *Table) unpack(id ID) *openRow {
	p := t.packed
	if r := p.open[id]; r != nil {
		return r
	}
	if id < 1 || int(id) > len(p.rows) {
		return nil
	}
	r := p.spare
	if r == nil {
		r = new(openRow)
	}
	p.spare, r.isChanged = nil, false
	r.load(t, id)
	if p.isWorking {
		r.job.Spec = r.Spec(t, id)
	}
	p.open[id] = r
	p.unpacked = append(p.unpacked, id)
	return r
}

// NumJobs returns the number of accepted jobs.
func (t *Table) NumJobs() int {
	if t.packed != nil {
		return len(t.packed.rows)
	}
	return len(t.Jobs)
}

// NumSpecs returns the number of known specifications.
func (t *Table) NumSpecs() int {
	if t.packed != nil {
		return len(t.packed.specs)
	}
	return len(t.Specs)
}

// Spec returns a known specification.
func (t *Table) Spec(id ID) *Spec { return new(RowReader).Spec(t, id) }

// State returns the state of an accepted job.
func (t *Table) State(id ID) JobState {
	if t.packed == nil {
		return t.Jobs[id-1].State
	}
	if r := t.packed.open[id]; r != nil {
		return r.job.State
	}
	if at := t.packed.rows[id-1]; at != 0 {
		var s JobState
		codeNumber(t.packed.unpacking(at), &s)
		return s
	}
	return Queued
}

// SetSpecs replaces the specifications after the first n. It keeps those of accepted jobs, because
// they may have been edited.
func (t *Table) SetSpecs(n int, specs []*Spec) {
	if more := t.NumJobs() - n; more > 0 {
		n, specs = n+more, specs[min(more, len(specs)):]
	}
	if t.packed == nil {
		if n < len(t.Specs) {
			t.Specs = slices.Clip(t.Specs[:n])
		}
		t.Specs = append(t.Specs, specs...)
		return
	}
	for _, at := range t.packed.specs[n:] {
		t.packed.blocks.drop(at)
	}
	t.packed.specs = t.packed.specs[:n]
	for _, s := range specs {
		t.AddSpec(s)
	}
}

// AddSpec adds the specification of the next job.
func (t *Table) AddSpec(s *Spec) {
	if t.packed == nil {
		t.Specs = append(t.Specs, s)
		return
	}
	t.packed.specs = append(t.packed.specs, t.packed.addSpec(s))
}

// setSpec replaces the specification of a job.
func (t *Table) setSpec(j *Job, s *Spec) {
	if t.packed != nil {
		t.packed.replace(&t.packed.specs[s.ID-1], t.packed.addSpec(s))
		if t.packed.isWorking {
			j.Spec = s
		}
		return
	}
	j.Spec, t.Specs[s.ID-1] = s, s
}

// OptionsOf returns the options of a known specification.
func (t *Table) OptionsOf(id ID) *Options {
	if t.packed == nil {
		return t.Specs[id-1].Options
	}
	var n int
	codeNumber(t.packed.unpacking(t.packed.specs[id-1]), &n)
	return t.packed.options.Values[n]
}

// AnyOptions reports whether f holds for the options of a job. For a packed table, it calls f once for
// equal options, also for those that no job has any more.
func (t *Table) AnyOptions(f func(*Options) bool) bool {
	if t.packed != nil {
		return slices.ContainsFunc(t.packed.options.Values, f)
	}
	return slices.ContainsFunc(t.Specs, func(s *Spec) bool { return f(cmp.Or(s.Options, NoOptions)) })
}

// SeqOf returns the result number of an accepted job.
func (t *Table) SeqOf(id ID) int64 {
	p := t.packed
	switch {
	case p == nil:
		return t.Jobs[id-1].Seq
	case p.open[id] != nil:
		return p.open[id].job.Seq
	case p.rows[id-1] == 0:
		return 0
	}
	var j Job
	codeRow(p.unpacking(p.rows[id-1]), &j, new(int32))
	return j.Seq
}

// Rows returns the rows of the table. Each is valid until the next one.
func (t *Table) Rows() iter.Seq[*Job] { return t.readRows(RowReader{}) }

// RowsWithOptions is like Rows, and faster. The Spec of a row may have only its ID and its Options.
func (t *Table) RowsWithOptions() iter.Seq[*Job] { return t.readRows(RowReader{optionsOnly: true}) }

// RowsIn returns the rows of the jobs in a state, much faster than Rows if they are few. Each is valid
// until the next one.
func (t *Table) RowsIn(state JobState) iter.Seq[*Job] {
	return func(yield func(*Job) bool) {
		var r RowReader
		for id := range ID(t.NumJobs()) {
			if t.State(id+1) == state && !yield(r.Job(t, id+1)) {
				return
			}
		}
	}
}

func (t *Table) readRows(r RowReader) iter.Seq[*Job] {
	return func(yield func(*Job) bool) {
		for id := range ID(t.NumJobs()) {
			if !yield(r.Job(t, id+1)) {
				return
			}
		}
	}
}

// AllSpecs returns the known specifications. Each is valid until the next one.
func (t *Table) AllSpecs() iter.Seq[*Spec] { return t.readSpecs(RowReader{}) }

// SpecsWithOptions is like AllSpecs, and faster. A specification may have only its ID and its
// Options.
func (t *Table) SpecsWithOptions() iter.Seq[*Spec] { return t.readSpecs(RowReader{optionsOnly: true}) }

func (t *Table) readSpecs(r RowReader) iter.Seq[*Spec] {
	return func(yield func(*Spec) bool) {
		for id := range ID(t.NumSpecs()) {
			if !yield(r.Spec(t, id+1)) {
				return
			}
		}
	}
}

// RowReader unpacks rows of a packed table one after the other into the same memory. It is not safe
// for concurrent use.
type RowReader struct {
	optionsOnly bool // of specifications

	job      Job
	spec     Spec
	labels   Labels
	pointers []*Attempt
	attempts []Attempt
	outcomes []Outcome
}

// Job returns the row of id, or nil if there is none. It is valid until the next call, and must not
// be changed.
func (r *RowReader) Job(t *Table, id ID) *Job {
	p := t.packed
	if p == nil {
		return t.Job(id)
	}
	if id < 1 || int(id) > len(p.rows) {
		return nil
	}
	r.load(t, id)
	r.job.Spec = r.Spec(t, id)
	return &r.job
}

// Spec is Table.Spec. The specification is valid until the next call.
func (r *RowReader) Spec(t *Table, id ID) *Spec {
	if t.packed == nil {
		return t.Specs[id-1]
	}
	if r.optionsOnly {
		r.spec = Spec{ID: id, Options: t.OptionsOf(id)}
		return &r.spec
	}
	r.spec.ID = id
	t.packed.codeSpec(t.packed.unpacking(t.packed.specs[id-1]), &r.spec, &r.labels)
	r.spec.Labels = nil
	if l := &r.labels; l.key != "" || len(l.params) > 0 || len(l.dependencies()) > 0 {
		r.spec.Labels = &r.labels
	}
	return &r.spec
}

func (p *packed) addSpec(s *Spec) address {
	own, labels := *s, Labels{}
	if s.Labels != nil {
		labels = *s.Labels
	}
	return p.add(func(c *codec) { p.codeSpec(c, &own, &labels) })
}

func (p *packed) addRow(j *Job) address {
	return p.add(func(c *codec) {
		newer := int32(len(j.Attempts)) - j.Counted
		codeRow(c, j, &newer)
		codeNumber(c, new(len(j.Attempts)))
		for _, a := range j.Attempts {
			p.codeAttempt(c, a, a.Outcome)
		}
	})
}

// load unpacks a row without its specification.
func (r *RowReader) load(t *Table, id ID) *Job {
	p, j := t.packed, &r.job
	if open := p.open[id]; open != nil {
		*j = open.job
		return j
	}
	at := p.rows[id-1]
	if at == 0 {
		*j = Job{Round: 1, Priority: int32(t.OptionsOf(id).Priority)}
		return j
	}
	*j = Job{}
	c := p.unpacking(at)
	var newer int32
	codeRow(c, j, &newer)
	var n int
	codeNumber(c, &n)
	if n == 0 {
		return j
	}
	j.Counted = int32(n) - newer
	if n > len(r.attempts) {
		r.attempts, r.outcomes, r.pointers = make([]Attempt, n), make([]Outcome, n), make([]*Attempt, n)
		for i := range r.attempts {
			r.pointers[i] = &r.attempts[i]
		}
	}
	for i := range n {
		r.attempts[i] = Attempt{ID: AttemptID{id, i + 1}}
		p.codeAttempt(c, &r.attempts[i], &r.outcomes[i])
	}
	j.Attempts = r.pointers[:n:n]
	return j
}

// add appends the values that code passes to the codec.
func (p *packed) add(code func(c *codec)) address {
	c := codec{packing: true, packed: p.buf[:0]}
	code(&c)
	c.packZeros()
	p.buf = c.packed
	return p.blocks.add(c.packed)
}

func (p *packed) unpacking(at address) *codec { return &codec{text: p.blocks.at(at)} }

// codeSpec packs or unpacks a specification without its ID, which is set, and its labels. The number
// of its options comes first.
func (p *packed) codeSpec(c *codec, s *Spec, l *Labels) {
	var n int
	if c.packing {
		n = p.options.Number(cmp.Or(s.Options, NoOptions))
	}
	codeNumber(c, &n)
	s.Options = p.options.Values[n]
	codeNumber(c, &s.Line)
	c.codeTexts(&s.Command, &s.Name, &l.key)
	params := len(l.params)
	codeNumber(c, &params)
	if !c.packing {
		l.params = slices.Grow(l.params[:0], params)[:params]
	}
	for i := range l.params {
		c.codeTexts(&l.params[i].Name, &l.params[i].Value)
	}
	l.codeAfter(c, s.ID)
}

// codeAfter packs or unpacks the dependencies of the job id.
func (l *Labels) codeAfter(c *codec, id ID) {
	n := len(l.dependencies())
	codeNumber(c, &n)
	if l.after == nil {
		if n == 0 {
			return
		}
		l.after = new(Dependencies)
	}
	if !c.packing {
		*l.after = slices.Grow((*l.after)[:0], n)[:n]
	}
	for i := range *l.after {
		d := &(*l.after)[i]
		back, length := id-d.First, d.Last-d.First
		codeNumber(c, &back)
		codeNumber(c, &length)
		codeNumber(c, &d.On)
		if !c.packing {
			d.Range = Range{id - back, id - back + length}
		}
	}
}

// codeRow packs or unpacks a row without its specification and attempts. The state comes first. What
// is usually 0 stands together, here and below, because the codec packs several zeros as a byte. So
// newer, the number of attempts after the one that counts, stands for Counted.
func codeRow(c *codec, j *Job, newer *int32) {
	codeNumber(c, &j.State)
	codeNumber(c, &j.Seq)
	round := j.Round - 1
	codeNumber(c, &round)
	c.codeFlags(&j.Urgent)
	codeNumber(c, newer)
	codeNumber(c, &j.Failures)
	codeNumber(c, &j.Priority)
	codeNumber(c, &j.Retry)
	c.codeTexts(&j.Reason, (*string)(&j.ReasonKind))
	if !c.packing {
		j.Round = 1 + round
	}
}

// codeAttempt packs or unpacks an attempt without its ID, and its outcome if there is one.
func (p *packed) codeAttempt(c *codec, a *Attempt, o *Outcome) {
	var host int
	if c.packing {
		if len(p.hosts.Values) == 0 {
			p.start = a.Launched
		}
		host = p.hosts.Number(a.Host)
	}
	ended := a.Outcome != nil
	codeNumber(c, &a.State)
	c.codeFlags(&a.Charged, &ended)
	codeNumber(c, &host)
	if !c.packing {
		a.Host = p.hosts.Values[host]
	}
	codeNumber(c, &a.Machine)
	codeNumber(c, &a.Slot)
	codeTimeSince(c, &a.Launched, p.start)
	codeTimeSince(c, &a.Started, a.Launched)
	if ended {
		codeOutcome(c, o, a.Started)
		if !c.packing {
			a.Outcome = o
		}
	}
	round := a.Round - 1
	codeNumber(c, &round)
	c.codeTexts(&a.Reason)
	if !c.packing {
		a.Round = 1 + round
	}
}

// codeOutcome packs or unpacks an outcome. CPU time is measured in microseconds and memory in KiB, so
// what remains is 0.
func codeOutcome(c *codec, o *Outcome, started Stamp) {
	const unitCPU, unitMemory = 1000, 1 << 10
	elapsed := o.Ended - o.Started
	codeNumber(c, &elapsed)
	cpu, memory := o.CPU/unitCPU, o.MaxRSSBytes/unitMemory
	codeNumber(c, &cpu)
	codeNumber(c, &memory)
	restCPU, restMemory := o.CPU%unitCPU, o.MaxRSSBytes%unitMemory
	codeNumber(c, &restCPU)
	codeNumber(c, &restMemory)
	codeTimeSince(c, &o.Started, started)
	c.codeFlags(&o.TimedOut, &o.Stopped, &o.DiskFull, &o.Unreturned)
	codeNumber(c, &o.Suspended)
	codeNumber(c, &o.Files)
	codeNumber(c, &o.LeftChildren)
	codeNumber(c, &o.Memory)
	codeNumber(c, &o.ProcessLimit.Kind)
	codeNumber(c, &o.ProcessLimit.Max)
	c.codeTexts(&o.ProcessLimit.Path, &o.Error)
	codeNumber(c, &o.Exit)
	c.codeTexts(&o.LastLine, &o.Signal)
	if !c.packing {
		o.Ended = o.Started + elapsed
		o.CPU, o.MaxRSSBytes = cpu*unitCPU+restCPU, memory*unitMemory+restMemory
	}
}

// codec packs values, or unpacks them into the same variables. One function therefore describes
// both directions. Packing writes to no variable, because others may read an outcome meanwhile.
type codec struct {
	packing bool
	packed  []byte // packed so far
	text    string // to unpack
	at      int    // index in text of what is unpacked next
	zeros   int    // number of zeros that are not packed yet, or that are unpacked next
}

// A byte from minZeros to 0x7f stands for 2 to maxZeros zeros. A number whose varint would be such a
// byte takes two bytes.
const (
	minZeros = 0x70
	maxZeros = 0x7f - minZeros + 2
)

// codeNumber packs or unpacks an integer, in one byte if it is small.
func codeNumber[T ~int | ~int32 | ~int64 | ~uint8](c *codec, n *T) {
	if c.packing {
		c.packNumber(int64(*n))
		return
	}
	*n = T(c.unpackNumber())
}

func (c *codec) packNumber(n int64) {
	if n == 0 {
		c.zeros++
		return
	}
	c.packZeros()
	u := uint64(n<<1) ^ uint64(n>>63)
	if minZeros <= u && u < 0x80 {
		c.packed = append(c.packed, byte(u)|0x80, 0)
		return
	}
	c.packed = binary.AppendUvarint(c.packed, u)
}

func (c *codec) packZeros() {
	for ; c.zeros > 1; c.zeros -= min(c.zeros, maxZeros) {
		c.packed = append(c.packed, byte(minZeros+min(c.zeros, maxZeros)-2))
	}
	if c.zeros == 1 {
		c.packed = append(c.packed, 0)
	}
	c.zeros = 0
}

func (c *codec) unpackNumber() int64 {
	if c.zeros > 0 {
		c.zeros--
		return 0
	}
	u := uint64(c.text[c.at])
	c.at++
	if u >= minZeros {
		if u < 0x80 {
			c.zeros = int(u) - minZeros + 1
			return 0
		}
		u = c.unpackLong(u)
	}
	return int64(u>>1) ^ -int64(u&1)
}

// unpackLong unpacks the rest of a number whose first byte is u.
func (c *codec) unpackLong(u uint64) uint64 {
	u &= 0x7f
	for shift := 7; ; shift += 7 {
		b := c.text[c.at]
		c.at++
		u |= uint64(b&0x7f) << shift
		if b < 0x80 {
			return u
		}
	}
}

// codeTimeSince packs or unpacks an instant as the time since another one, which takes fewer bytes.
func codeTimeSince(c *codec, at *Stamp, start Stamp) {
	d := *at - start
	codeNumber(c, &d)
	if !c.packing {
		*at = start + d
	}
}

// codeFlags packs or unpacks up to eight booleans as a byte.
func (c *codec) codeFlags(flags ...*bool) {
	var bits uint8
	for i, f := range flags {
		if *f {
			bits |= 1 << i
		}
	}
	codeNumber(c, &bits)
	if c.packing {
		return
	}
	for i, f := range flags {
		*f = bits&(1<<i) != 0
	}
}

func (c *codec) codeTexts(texts ...*string) {
	for _, s := range texts {
		n := len(*s)
		codeNumber(c, &n)
		if c.packing {
			c.packed = append(c.packed, *s...)
		} else {
			*s = c.text[c.at : c.at+n]
			c.at += n
		}
	}
}

// blocks stores many short texts in few allocations. The stored bytes never change, because a
// strings.Builder only appends.
type blocks struct {
	all  []*block
	last int // 1 + index of the block to which short texts are appended; 0: none

	num, numReplaced int // of all blocks
}

// block is a sequence of texts.
type block struct {
	strings.Builder
	num, numReplaced int // number of texts, and of those that have no address any more
}

// isSparse reports whether more than a quarter of the texts are replaced.
func (x *block) isSparse() bool { return 4*x.numReplaced > x.num }

// address is where a text begins. The upper 32 bits hold 1 + the index of a block, the lower 32
// bits the offset in it. 0 means no text.
type address uint64

const blockSize = 64 << 10

func (b *blocks) add(text []byte) address {
	n := b.last
	if n == 0 || b.all[n-1].Cap()-b.all[n-1].Len() < len(text) {
		// It gets a block of its own, because it would waste the rest of a block.
		long := len(text) >= blockSize/4
		x, size := new(block), len(text)
		b.all, n = append(b.all, x), len(b.all)+1
		if !long {
			b.last, size = n, blockSize
		}
		x.Grow(size)
	}
	x := b.all[n-1]
	at := address(n)<<32 | address(x.Len())
	x.Write(text)
	x.num++
	b.num++
	return at
}

// drop notes that a text has no address any more. An address of 0 is none.
func (b *blocks) drop(at address) {
	if at != 0 {
		b.all[at>>32-1].numReplaced++
		b.numReplaced++
	}
}

// at returns the text that begins at an address.
func (b *blocks) at(a address) string { return b.all[a>>32-1].String()[uint32(a):] }
