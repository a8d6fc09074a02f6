package jobs

import (
	"cmp"
	"fmt"
	"strings"

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

// Read reads the JSON of one record into r. The error is an *UnknownFieldError if the record has a
// field that this program does not know.
func (reader *RecordReader) Read(b []byte, r *Record) error {
	*r = Record{}
	if reader.readUsual(b, r) {
		return nil
	}
	return reader.readAny(b, r)
}

// readAny reads any record.
func (reader *RecordReader) readAny(b []byte, r *Record) error {
	*r = Record{}
	if err := json.Unmarshal(b, r, JSON); err != nil {
		return cmp.Or(checkFields(err), err)
	}
	r.setOldReasonKind()
	if r.Spec != nil {
		r.Spec.Options = reader.specs.Share(r.Spec.Options)
	}
	for _, text := range []*string{(*string)(&r.Kind), &r.Host, &r.Reason, &r.How, &r.Request} {
		*text = reader.intern([]byte(*text))
	}
	if o := r.Outcome; o != nil {
		for _, text := range []*string{&o.Signal, &o.Error, &o.LastLine, &o.ProcessLimit.Path} {
			*text = reader.intern([]byte(*text))
		}
	}
	return nil
}

// setOldReasonKind sets the ReasonKind of a record of an earlier version, which had only the text.
func (r *Record) setOldReasonKind() {
	if r.How != "" {
		return
	}
	switch {
	case r.Kind == KindEvent && r.Host != "":
		if r.Reason == r.Host+" is up" {
			r.How = string(ReasonHostUp)
		}
	case r.Kind == KindEvent && r.Job > 0:
		var id ID
		var v Reported
		if n, _ := fmt.Sscanf(r.Reason, reportedText, &id, &v.Value, &v.Step); n == 3 {
			r.How = fmt.Sprintf(reportedHow, v.Step, v.Value)
		}
	case r.Kind == KindJob && r.Next == Skipped && strings.HasPrefix(r.Reason, "it is at least as hard as job "):
		r.How = string(ReasonTooHard)
	case (r.Kind == KindJob || r.Kind == KindCanceling || r.Kind == KindCanceled) &&
		strings.HasPrefix(r.Reason, "halving: "):
		r.How = string(ReasonPoorValues)
	}
}

// readUsual reads a record with the members that most records have, and reports whether it was one.
func (reader *RecordReader) readUsual(b []byte, r *Record) bool {
	return readObject(b, func(o *objectReader) {
		reader.readText(o, "k", (*string)(&r.Kind))
		readNumber(o, "t", &r.At)
		readNumber(o, "j", &r.Job)
		readNumber(o, "n", &r.N)
		reader.readText(o, "h", &r.Host)
		readNumber(o, "slot", &r.Slot)
		if o.has("next") {
			o.failed = r.Next.UnmarshalText(o.readText()) != nil || o.failed
		}
		readNumber(o, "seq", &r.Seq)
		if o.has("o") {
			r.Outcome = new(Outcome)
			o.readMembers(func(o *objectReader) { reader.readOutcome(o, r.Outcome) })
		}
		readNumber(o, "started", &r.Started)
	})
}

// readOutcome reads the members of an outcome.
func (reader *RecordReader) readOutcome(m *objectReader, o *Outcome) {
	readNumber(m, "exit", &o.Exit)
	reader.readText(m, "signal", &o.Signal)
	readNumber(m, "started", &o.Started)
	readNumber(m, "ended", &o.Ended)
	readNumber(m, "cpu_ns", &o.CPU)
	readNumber(m, "max_rss", &o.MaxRSSBytes)
	reader.readText(m, "last_line", &o.LastLine)
}

// readText sets s to the value of the next member, a text, if that has the name.
func (reader *RecordReader) readText(o *objectReader, name string, s *string) {
	if o.has(name) {
		*s = reader.intern(o.readText())
	}
}

// intern returns text. Equal texts share memory.
func (reader *RecordReader) intern(text []byte) string {
	s, known := reader.texts[string(text)]
	if !known {
		s = string(text)
		if s != "" && len(reader.texts) < maxTexts {
			Insert(&reader.texts, s, s)
		}
	}
	return s
}
