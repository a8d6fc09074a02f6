package journal

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"unicode/utf8"

	"dcs-tui/jobs"
)

// Decoder reads records. It remembers host names and other texts that repeat,
// so that a million records hold one copy, and is for one goroutine.
type Decoder struct {
	texts map[string]string
	slab  []jobs.Outcome
	specs jobs.SpecReader
}

// maxTexts bounds what a Decoder remembers.
const maxTexts = 4096

// Decode reads the JSON of one record into r. Everything that AppendRecord
// writes is read without encoding/json; the rest is left to it, strictly.
func (d *Decoder) Decode(b []byte, r *jobs.Record) error {
	*r = jobs.Record{}
	s := scan{b: b, d: d}
	if s.record(r) && s.i == len(b) {
		return nil
	}
	*r = jobs.Record{}
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(r); err != nil {
		return err
	}
	if _, err := dec.Token(); err != io.EOF {
		return errors.New("something follows the record")
	}
	return nil
}

// text returns b as a string, the same one for the same bytes.
func (d *Decoder) text(b []byte) string {
	if s, ok := d.texts[string(b)]; ok {
		return s
	}
	s := string(b)
	if d.texts == nil {
		d.texts = make(map[string]string)
	}
	if len(d.texts) < maxTexts {
		d.texts[s] = s
	}
	return s
}

// outcome hands out Outcomes from blocks: a million of them are few allocations.
func (d *Decoder) outcome() *jobs.Outcome {
	if len(d.slab) == 0 {
		d.slab = make([]jobs.Outcome, 128)
	}
	o := &d.slab[0]
	d.slab = d.slab[1:]
	return o
}

// scan reads JSON of the shape that AppendRecord writes, without blanks or
// escapes. Every method returns false for anything else and then leaves the
// position anywhere.
type scan struct {
	b []byte
	i int
	d *Decoder
}

func (s *scan) record(r *jobs.Record) bool {
	return s.object(func(key []byte) bool {
		switch string(key) {
		case "k":
			return s.textTo((*string)(&r.Kind))
		case "t":
			return intTo(s, &r.At)
		case "j":
			return intTo(s, &r.Job)
		case "n":
			return intTo(s, &r.N)
		case "h":
			return s.textTo(&r.Host)
		case "slot":
			return intTo(s, &r.Slot)
		case "count":
			return intTo(s, &r.Count)
		case "next":
			word, ok := s.str()
			return ok && r.Next.UnmarshalText(word) == nil
		case "charged":
			return s.boolTo(&r.Charged)
		case "retry":
			return intTo(s, &r.Retry)
		case "seq":
			return intTo(s, &r.Seq)
		case "o":
			r.Outcome = s.d.outcome()
			*r.Outcome = jobs.Outcome{}
			return s.outcome(r.Outcome)
		case "why":
			return s.textTo(&r.Reason)
		case "prio":
			return intTo(s, &r.Priority)
		case "started":
			return intTo(s, &r.Started)
		case "epoch":
			return intTo(s, &r.Epoch)
		case "how":
			return s.textTo(&r.How)
		case "req":
			return s.textTo(&r.Request)
		case "spec":
			return s.specTo(&r.Spec)
		}
		return false // owner and files stand in one record of a file
	})
}

func (s *scan) outcome(o *jobs.Outcome) bool {
	return s.object(func(key []byte) bool {
		switch string(key) {
		case "exit":
			return intTo(s, &o.Exit)
		case "signal":
			return s.textTo(&o.Signal)
		case "started":
			return intTo(s, &o.Started)
		case "ended":
			return intTo(s, &o.Ended)
		case "cpu_ns":
			return intTo(s, &o.CPU)
		case "suspended_ns":
			return intTo(s, &o.Suspended)
		case "max_rss":
			return intTo(s, &o.MaxRSSBytes)
		case "timed_out":
			return s.boolTo(&o.TimedOut)
		case "stopped":
			return s.boolTo(&o.Stopped)
		case "disk_full":
			return s.boolTo(&o.DiskFull)
		case "unreturned":
			return s.boolTo(&o.Unreturned)
		case "memory":
			return s.textTo(&o.Memory)
		case "files":
			return intTo(s, &o.Files)
		case "left_children":
			return intTo(s, &o.LeftChildren)
		case "error":
			return s.textTo(&o.Error)
		case "last_line":
			return s.textTo(&o.LastLine)
		}
		return false
	})
}

// object reads {"key":value,…}; value is called where a value starts.
func (s *scan) object(value func(key []byte) bool) bool {
	if !s.byte('{') {
		return false
	}
	for {
		key, ok := s.str()
		if !ok || !s.byte(':') || !value(key) {
			return false
		}
		if s.byte('}') {
			return true
		}
		if !s.byte(',') {
			return false
		}
	}
}

func (s *scan) byte(c byte) bool {
	if s.i < len(s.b) && s.b[s.i] == c {
		s.i++
		return true
	}
	return false
}

// str returns the inside of a string without escapes or bytes that are not UTF-8.
func (s *scan) str() ([]byte, bool) {
	if !s.byte('"') {
		return nil, false
	}
	start, ascii := s.i, true
	for i := start; i < len(s.b); i++ {
		switch c := s.b[i]; {
		case c == '"':
			s.i = i + 1
			return s.b[start:i], ascii || utf8.Valid(s.b[start:i])
		case c == '\\' || c < ' ':
			return nil, false
		case c >= utf8.RuneSelf:
			ascii = false
		}
	}
	return nil, false
}

func (s *scan) textTo(to *string) bool {
	b, ok := s.str()
	if ok {
		*to = s.d.text(b)
	}
	return ok
}

// specTo reads a specification that is all that is left of the record.
func (s *scan) specTo(to **jobs.Spec) bool {
	end := len(s.b) - 1
	if s.i >= end {
		return false
	}
	spec, err := s.d.specs.Read(s.b[s.i:end])
	*to, s.i = spec, end
	return err == nil
}

func (s *scan) boolTo(to *bool) bool {
	for _, w := range []struct {
		text string
		is   bool
	}{{"true", true}, {"false", false}} {
		if end := s.i + len(w.text); end <= len(s.b) && string(s.b[s.i:end]) == w.text {
			s.i, *to = end, w.is
			return true
		}
	}
	return false
}

// intTo reads an integer as JSON defines it; others (1e3, 1.0, too large) are
// left to encoding/json, which refuses them.
func intTo[T ~int | ~int64 | ~int32](s *scan, to *T) bool {
	neg := s.byte('-')
	start := s.i
	n := uint64(0)
	for s.i < len(s.b) && s.b[s.i] >= '0' && s.b[s.i] <= '9' && s.i-start < 19 {
		n = 10*n + uint64(s.b[s.i]-'0')
		s.i++
	}
	digits := s.i - start
	if digits == 0 || digits > 1 && s.b[start] == '0' || n > math.MaxInt64 {
		return false
	}
	if neg {
		*to = T(-int64(n))
	} else {
		*to = T(n)
	}
	return true
}
