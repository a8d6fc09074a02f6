package jobs

import (
	"encoding/binary"
	"iter"
	"slices"
	"strings"
	"time"
)

// packed holds the specifications and rows of a table that only shows a run: about 130 bytes
// for a finished job with a short command, without pointers, instead of 350. Rows with
// open attempts are not packed.
type packed struct {
	blocks  blocks
	specs   []address   // job id - 1
	rows    []address   // of accepted jobs; 0: the job is as it was when it was accepted
	open    map[ID]*Job // rows that are not packed; their Spec is nil
	options []*Options  // each once
	number  map[*Options]uint64
	hosts   []string
	hostAt  map[string]uint64
	buf     []byte
}

// NewPacked returns an empty table that keeps its rows packed, for a reader that has a
// million of them. Specs and Jobs stay empty: Spec, Job, RowReader, and Rows unpack copies.
// Fold takes the row that it changes out; Pack packs it again. Past stays empty.
func NewPacked() *Table {
	return &Table{packed: &packed{open: map[ID]*Job{}, number: map[*Options]uint64{}, hostAt: map[string]uint64{}}}
}

// Pack packs the row of a job of a packed table, unless an attempt is open.
func (t *Table) Pack(id ID) {
	if t.packed == nil {
		return
	}
	p := t.packed
	if j := p.open[id]; j != nil && len(j.Open()) == 0 {
		p.rows[id-1] = p.addRow(j)
		delete(p.open, id)
	}
}

// row returns the row of a job for Fold to change, nil if there is none.
func (t *Table) row(id ID) *Job {
	if t.packed == nil {
		return t.Job(id)
	}
	p := t.packed
	if j := p.open[id]; j != nil {
		return j
	}
	if id < 1 || int(id) > len(p.rows) {
		return nil
	}
	j := new(Job)
	if at := p.rows[id-1]; at != 0 {
		j = new(RowReader).load(p, id)
	} else {
		j.Round, j.Priority = 1, p.priority(id)
	}
	p.open[id] = j
	return j
}

// NumJobs returns how many jobs were accepted.
func (t *Table) NumJobs() int {
	if t.packed != nil {
		return len(t.packed.rows)
	}
	return len(t.Jobs)
}

// NumSpecs returns how many specifications are known.
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
	if j := t.packed.open[id]; j != nil {
		return j.State
	}
	if at := t.packed.rows[id-1]; at != 0 {
		return JobState(t.packed.blocks.at(at)[0] & stateBits)
	}
	return Queued
}

// SetSpecs replaces the specifications after the first n, except those of accepted jobs:
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
	t.packed.specs = t.packed.specs[:n]
	for _, s := range specs {
		t.packed.specs = append(t.packed.specs, t.packed.addSpec(s))
	}
}

// setSpec gives a job another specification.
func (t *Table) setSpec(j *Job, s *Spec) {
	if t.packed != nil {
		t.packed.specs[s.ID-1] = t.packed.addSpec(s)
		return
	}
	j.Spec, t.Specs[s.ID-1] = s, s
}

// Rows returns the rows of the table. Each is valid until the next.
func (t *Table) Rows() iter.Seq[*Job] {
	return func(yield func(*Job) bool) {
		var r RowReader
		for id := range ID(t.NumJobs()) {
			if !yield(r.Job(t, id+1)) {
				return
			}
		}
	}
}

// RowReader unpacks rows of a packed table one after the other into the same memory. It is
// for one goroutine.
type RowReader struct {
	job      Job
	spec     Spec
	pointers []*Attempt
	attempts []Attempt
	outcomes []Outcome
}

// Job is Table.Job. The row is valid until the next call.
func (r *RowReader) Job(t *Table, id ID) *Job {
	p := t.packed
	if p == nil {
		return t.Job(id)
	}
	if id < 1 || int(id) > len(p.rows) {
		return nil
	}
	r.load(p, id)
	r.job.Spec = r.Spec(t, id)
	return &r.job
}

// Spec is Table.Spec. The specification is valid until the next call.
func (r *RowReader) Spec(t *Table, id ID) *Spec {
	if t.packed == nil {
		return t.Specs[id-1]
	}
	u := unpacker(t.packed.blocks.at(t.packed.specs[id-1]))
	s := &r.spec
	s.ID, s.Options = id, t.packed.options[u.number()]
	s.Line = int(u.number())
	s.Command, s.Name, s.Key = u.text(), u.text(), u.text()
	s.Params = s.Params[:0]
	for range u.number() {
		s.Params = append(s.Params, Param{u.text(), u.text()})
	}
	return s
}

func (p *packed) priority(id ID) int32 {
	u := unpacker(p.blocks.at(p.specs[id-1]))
	return int32(p.options[u.number()].Priority)
}

func (p *packed) addSpec(s *Spec) address {
	o := s.Options
	if o == nil {
		o = NoOptions
	}
	n, ok := p.number[o]
	if !ok {
		n = uint64(len(p.options))
		p.options, p.number[o] = append(p.options, o), n
	}
	b := binary.AppendUvarint(p.buf[:0], n)
	b = binary.AppendUvarint(b, uint64(s.Line))
	b = appendTexts(b, s.Command, s.Name, s.Key)
	b = binary.AppendUvarint(b, uint64(len(s.Params)))
	for i := range s.Params {
		b = appendTexts(b, s.Params[i].Name, s.Params[i].Value)
	}
	p.buf = b
	return p.blocks.add(b)
}

// Bits of the first byte of a row.
const (
	stateBits   byte = 1<<4 - 1
	rowUrgent   byte = 1 << 4
	rowRetry    byte = 1 << 5
	rowReason   byte = 1 << 6
	rowAttempts byte = 1 << 7
)

func (p *packed) addRow(j *Job) address {
	b := append(p.buf[:0], byte(j.State)|flag(j.Urgent, rowUrgent)|flag(j.Retry != 0, rowRetry)|flag(j.Reason != "", rowReason)|
		flag(len(j.Attempts) > 0, rowAttempts))
	b = appendNumbers(b, int64(j.Round), int64(j.Failures), int64(j.Priority), j.Seq)
	if j.Retry != 0 {
		b = appendNumbers(b, int64(j.Retry))
	}
	if j.Reason != "" {
		b = appendTexts(b, j.Reason)
	}
	if len(j.Attempts) > 0 {
		b = binary.AppendUvarint(b, uint64(len(j.Attempts)))
	}
	for _, a := range j.Attempts {
		b = p.appendAttempt(b, a)
	}
	p.buf = b
	return p.blocks.add(b)
}

// load unpacks a row, all but its specification.
func (r *RowReader) load(p *packed, id ID) *Job {
	j := &r.job
	if open := p.open[id]; open != nil {
		*j = *open
		return j
	}
	at := p.rows[id-1]
	if at == 0 {
		*j = Job{Round: 1, Priority: p.priority(id)}
		return j
	}
	u := unpacker(p.blocks.at(at))
	bits := u.bits()
	*j = Job{State: JobState(bits & stateBits), Urgent: bits&rowUrgent != 0}
	j.Round, j.Failures, j.Priority, j.Seq = int32(u.integer()), int32(u.integer()), int32(u.integer()), u.integer()
	if bits&rowRetry != 0 {
		j.Retry = Stamp(u.integer())
	}
	if bits&rowReason != 0 {
		j.Reason = u.text()
	}
	if bits&rowAttempts == 0 {
		return j
	}
	n := int(u.number())
	if n > len(r.attempts) {
		r.attempts, r.outcomes, r.pointers = make([]Attempt, n), make([]Outcome, n), make([]*Attempt, n)
		for i := range r.attempts {
			r.pointers[i] = &r.attempts[i]
		}
	}
	for i := range n {
		p.attempt(&u, &r.attempts[i], &r.outcomes[i])
		r.attempts[i].ID = AttemptID{id, i + 1}
	}
	j.Attempts = r.pointers[:n:n]
	return j
}

// Bits of the first byte of an attempt.
const (
	attemptReason  byte = 1 << 4
	attemptCharged byte = 1 << 5
	attemptOutcome byte = 1 << 6
)

// Bits of the first byte of an outcome.
const (
	outcomeTimedOut byte = 1 << iota
	outcomeStopped
	outcomeDiskFull
	outcomeTexts
	outcomeChildren
	outcomeUnreturned
	outcomeFiles
	outcomeSuspended
)

func (p *packed) appendAttempt(b []byte, a *Attempt) []byte {
	host, ok := p.hostAt[a.Host]
	if !ok {
		host = uint64(len(p.hosts))
		p.hosts, p.hostAt[a.Host] = append(p.hosts, a.Host), host
	}
	b = append(b, byte(a.State)|flag(a.Reason != "", attemptReason)|flag(a.Charged, attemptCharged)|flag(a.Outcome != nil, attemptOutcome))
	b = binary.AppendUvarint(b, host)
	b = appendNumbers(b, int64(a.Slot), int64(a.Round), int64(a.Launched), int64(a.Started-a.Launched))
	if a.Reason != "" {
		b = appendTexts(b, a.Reason)
	}
	o := a.Outcome
	if o == nil {
		return b
	}
	texts := o.Signal != "" || o.Error != "" || o.LastLine != "" || o.Memory != ""
	b = append(b, flag(o.TimedOut, outcomeTimedOut)|flag(o.Stopped, outcomeStopped)|flag(o.DiskFull, outcomeDiskFull)|
		flag(texts, outcomeTexts)|flag(o.LeftChildren != 0, outcomeChildren)|
		flag(o.Unreturned, outcomeUnreturned)|flag(o.Files != 0, outcomeFiles)|flag(o.Suspended != 0, outcomeSuspended))
	b = appendNumbers(b, int64(o.Exit), int64(o.Started-a.Started), int64(o.Ended-o.Started), int64(o.CPU), o.MaxRSSBytes)
	if o.LeftChildren != 0 {
		b = appendNumbers(b, int64(o.LeftChildren))
	}
	if o.Files != 0 {
		b = appendNumbers(b, int64(o.Files))
	}
	if o.Suspended != 0 {
		b = appendNumbers(b, int64(o.Suspended))
	}
	if texts {
		b = appendTexts(b, o.Signal, o.Error, o.LastLine, o.Memory)
	}
	return b
}

func (p *packed) attempt(u *unpacker, a *Attempt, o *Outcome) {
	bits := u.bits()
	*a = Attempt{State: AttemptState(bits & stateBits), Charged: bits&attemptCharged != 0, Host: p.hosts[u.number()]}
	a.Slot, a.Round, a.Launched = int32(u.integer()), int32(u.integer()), Stamp(u.integer())
	a.Started = a.Launched + Stamp(u.integer())
	if bits&attemptReason != 0 {
		a.Reason = u.text()
	}
	if bits&attemptOutcome == 0 {
		return
	}
	bits = u.bits()
	*o = Outcome{TimedOut: bits&outcomeTimedOut != 0, Stopped: bits&outcomeStopped != 0, DiskFull: bits&outcomeDiskFull != 0, Unreturned: bits&outcomeUnreturned != 0, Exit: int(u.integer())}
	o.Started = a.Started + Stamp(u.integer())
	o.Ended = o.Started + Stamp(u.integer())
	o.CPU, o.MaxRSSBytes = time.Duration(u.integer()), u.integer()
	if bits&outcomeChildren != 0 {
		o.LeftChildren = int32(u.integer())
	}
	if bits&outcomeFiles != 0 {
		o.Files = int32(u.integer())
	}
	if bits&outcomeSuspended != 0 {
		o.Suspended = time.Duration(u.integer())
	}
	if bits&outcomeTexts != 0 {
		o.Signal, o.Error, o.LastLine, o.Memory = u.text(), u.text(), u.text(), u.text()
	}
	a.Outcome = o
}

func flag(set bool, bit byte) byte {
	if set {
		return bit
	}
	return 0
}

func appendNumbers(b []byte, numbers ...int64) []byte {
	for _, n := range numbers {
		b = binary.AppendVarint(b, n)
	}
	return b
}

func appendTexts(b []byte, texts ...string) []byte {
	for _, s := range texts {
		b = append(binary.AppendUvarint(b, uint64(len(s))), s...)
	}
	return b
}

// unpacker reads numbers and texts one after the other.
type unpacker string

func (p *unpacker) bits() byte {
	b := (*p)[0]
	*p = (*p)[1:]
	return b
}

func (p *unpacker) number() (n uint64) {
	s := *p
	for i := 0; ; i++ {
		n |= uint64(s[i]&0x7f) << (7 * i)
		if s[i] < 0x80 {
			*p = s[i+1:]
			return n
		}
	}
}

func (p *unpacker) integer() int64 {
	n := p.number()
	return int64(n>>1) ^ -int64(n&1)
}

func (p *unpacker) text() string {
	n := p.number()
	s := (*p)[:n]
	*p = (*p)[n:]
	return string(s)
}

// blocks keep many short texts in few allocations. What is in them never changes, because
// a strings.Builder only appends.
type blocks struct {
	all  []*strings.Builder
	last int // 1 + index of the one that short texts are added to; 0: none
}

// address is where a text begins: 1 + the index of a block, and in the lower 32 bits the
// offset in it; 0 is nowhere.
type address uint64

const blockSize = 64 << 10

func (b *blocks) add(text []byte) address {
	n := b.last
	if n == 0 || b.all[n-1].Cap()-b.all[n-1].Len() < len(text) {
		long := len(text) >= blockSize/4 // it stands alone, or it would waste the rest of a block
		x, size := new(strings.Builder), len(text)
		if b.all, n = append(b.all, x), len(b.all)+1; !long {
			b.last, size = n, blockSize
		}
		x.Grow(size)
	}
	x := b.all[n-1]
	at := address(n)<<32 | address(x.Len())
	x.Write(text)
	return at
}

// at returns what begins at an address.
func (b *blocks) at(a address) string { return b.all[a>>32-1].String()[uint32(a):] }
