package jobs

import (
	"encoding/binary"
	"time"
)

// Packer packs the attempts of jobs that are over, for a reader that keeps a million of
// them: about 50 bytes for an attempt instead of 200. It is for one goroutine.
type Packer struct {
	arena arena
	buf   []byte
}

// Pack packs the attempts of a job, unless one of them is open. History returns them, and
// Fold unpacks them when a record is about the job again. They are then no longer those of
// a row in Table.Past, so only a table that nobody dispatches by may be packed.
func (p *Packer) Pack(j *Job) bool {
	if len(j.Attempts) == 0 || len(j.Open()) > 0 {
		return false
	}
	b := binary.AppendUvarint(p.buf[:0], uint64(len(j.Attempts)))
	for _, a := range j.Attempts {
		b = appendAttempt(b, a)
	}
	j.packed, j.Attempts, p.buf = p.arena.add(b), nil, b
	return true
}

// History returns every attempt that the job ever had, oldest first, also of a job whose
// attempts are packed. They are then copies.
func (j *Job) History() []*Attempt {
	if j.packed == "" {
		return j.Attempts
	}
	p := unpacker(j.packed)
	all := make([]*Attempt, p.number())
	for i := range all {
		all[i] = p.attempt()
		all[i].ID = AttemptID{j.Spec.ID, i + 1}
	}
	return all
}

// unpack undoes Pack.
func (j *Job) unpack() { j.Attempts, j.packed = j.History(), "" }

func appendAttempt(b []byte, a *Attempt) []byte {
	b = append(b, byte(a.State)|flag(a.Charged, 1<<6)|flag(a.Outcome != nil, 1<<7))
	b = appendNumbers(b, int64(a.Slot), int64(a.Round), int64(a.Launched), int64(a.Started))
	b = appendTexts(b, a.Host, a.Reason)
	o := a.Outcome
	if o == nil {
		return b
	}
	b = append(b, flag(o.TimedOut, 1)|flag(o.Stopped, 2)|flag(o.DiskFull, 4))
	b = appendNumbers(b, int64(o.Exit), int64(o.Started-a.Started), int64(o.Ended-o.Started), int64(o.CPU), o.MaxRSSBytes, int64(o.LeftChildren))
	return appendTexts(b, o.Signal, o.Error, o.LastLine)
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

// unpacker reads what appendAttempt wrote.
type unpacker string

func (p *unpacker) attempt() *Attempt {
	a := new(Attempt)
	bits := p.bits()
	a.State, a.Charged = AttemptState(bits&(1<<6-1)), bits&(1<<6) != 0
	a.Slot, a.Round, a.Launched, a.Started = int32(p.integer()), int32(p.integer()), Stamp(p.integer()), Stamp(p.integer())
	a.Host, a.Reason = p.text(), p.text()
	if bits&(1<<7) == 0 {
		return a
	}
	o := new(Outcome)
	bits = p.bits()
	o.TimedOut, o.Stopped, o.DiskFull = bits&1 != 0, bits&2 != 0, bits&4 != 0
	o.Exit = int(p.integer())
	o.Started = a.Started + Stamp(p.integer())
	o.Ended = o.Started + Stamp(p.integer())
	o.CPU, o.MaxRSSBytes, o.LeftChildren = time.Duration(p.integer()), p.integer(), int(p.integer())
	o.Signal, o.Error, o.LastLine = p.text(), p.text(), p.text()
	a.Outcome = o
	return a
}

func (p *unpacker) bits() byte {
	b := (*p)[0]
	*p = (*p)[1:]
	return b
}

func (p *unpacker) number() (n uint64) {
	for shift := 0; ; shift += 7 {
		b := p.bits()
		n |= uint64(b&0x7f) << shift
		if b < 0x80 {
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
