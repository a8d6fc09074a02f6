package jobs

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

var replaceBadText = json.JoinOptions(JSON, jsontext.AllowInvalidUTF8(true))

// AppendRecord appends the JSON of a record to b. It replaces bytes that are not valid UTF-8 by
// U+FFFD, except in a specification.
func AppendRecord(b []byte, r *Record) []byte {
	text, err := json.Marshal(r, replaceBadText)
	if err != nil {
		panic(err) // a record has no value that JSON cannot hold
	}
	return append(b, text...)
}

// RecordReader reads the output of AppendRecord. Host names and other repeated texts share memory.
// It is not safe for concurrent use.
type RecordReader struct {
	texts map[string]string
	specs Interner
}

// maxTexts is the maximum number of texts that a RecordReader remembers.
const maxTexts = 4096

// Read reads the JSON of one record into r.
func (d *RecordReader) Read(b []byte, r *Record) error {
	if *r = (Record{}); d.readUsual(b, r) {
		return nil
	}
	*r = Record{}
	if err := json.Unmarshal(b, r, JSON); err != nil {
		return err
	}
	if r.Spec != nil {
		r.Spec.Options = d.specs.Share(r.Spec.Options)
	}
	for _, text := range []*string{(*string)(&r.Kind), &r.Host, &r.Reason, &r.How, &r.Request} {
		*text = d.intern([]byte(*text))
	}
	if o := r.Outcome; o != nil {
		for _, text := range []*string{&o.Signal, &o.Error, &o.LastLine} {
			*text = d.intern([]byte(*text))
		}
	}
	return nil
}

// readUsual reads a record with the members that most records have, and reports whether it was one.
func (d *RecordReader) readUsual(b []byte, r *Record) bool {
	return readObject(b, func(o *objectReader, name []byte) bool {
		switch string(name) {
		case "k":
			r.Kind = Kind(d.intern(o.bytes()))
		case "t":
			readNumber(o, &r.At)
		case "j":
			readNumber(o, &r.Job)
		case "n":
			readNumber(o, &r.N)
		case "h":
			r.Host = d.intern(o.bytes())
		case "slot":
			readNumber(o, &r.Slot)
		case "next":
			o.failed = r.Next.UnmarshalText(o.bytes()) != nil
		case "seq":
			readNumber(o, &r.Seq)
		case "started":
			readNumber(o, &r.Started)
		case "o":
			r.Outcome = new(Outcome)
			o.object(func(_ *objectReader, name []byte) bool { return d.readOutcome(o, name, r.Outcome) })
		default:
			return false
		}
		return true
	})
}

// readOutcome reads a member of an outcome.
func (d *RecordReader) readOutcome(m *objectReader, name []byte, o *Outcome) bool {
	switch string(name) {
	case "exit":
		readNumber(m, &o.Exit)
	case "signal":
		o.Signal = d.intern(m.bytes())
	case "started":
		readNumber(m, &o.Started)
	case "ended":
		readNumber(m, &o.Ended)
	case "cpu_ns":
		readNumber(m, &o.CPU)
	case "max_rss":
		readNumber(m, &o.MaxRSSBytes)
	case "last_line":
		o.LastLine = d.intern(m.bytes())
	default:
		return false
	}
	return true
}

// intern returns text. Equal texts share memory.
func (d *RecordReader) intern(text []byte) string {
	s, known := d.texts[string(text)]
	if !known {
		if s = string(text); s != "" && len(d.texts) < maxTexts {
			insert(&d.texts, s, s)
		}
	}
	return s
}
