package jobs

import (
	"bytes"
	"cmp"
	"errors"
	"sync"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"
)

// JSON is the format of stored specifications and records. Durations are in nanoseconds, unset
// fields are omitted, and unknown fields are refused.
var JSON = json.JoinOptions(jsonv1.FormatDurationAsNano(true), json.RejectUnknownMembers(true))

// anyText also encodes texts that are not valid UTF-8, as {"b64":"…"}, so that every byte survives.
// It takes twice as long, so it is used only where JSON fails.
var anyText = json.JoinOptions(JSON,
	json.WithMarshalers(json.MarshalToFunc(marshalText)), json.WithUnmarshalers(json.UnmarshalFromFunc(unmarshalText)))

type base64Text struct {
	B64 []byte `json:"b64"`
}

func marshalText(enc *jsontext.Encoder, s string) error {
	if utf8.ValidString(s) {
		return errors.ErrUnsupported // use the default encoding
	}
	return json.MarshalEncode(enc, base64Text{[]byte(s)})
}

func unmarshalText(dec *jsontext.Decoder, s *string) error {
	if dec.PeekKind() != '{' {
		return errors.ErrUnsupported
	}
	var t base64Text
	err := json.UnmarshalDecode(dec, &t)
	*s = string(t.B64)
	return err
}

// storedSpec is the stored form of a Spec. O is the type of its options.
type storedSpec[O any] struct {
	ID      ID      `json:"id"`
	Line    int     `json:"line,omitzero"`
	Command *string `json:"command"`
	Name    string  `json:"name,omitzero"`
	Key     string  `json:"key,omitzero"`
	Params  []Param `json:"params,omitempty"`
	Options O       `json:"options,omitempty"`
}

// storedOptions separates the dependencies in stored options from the others, which jobs share.
type storedOptions struct {
	After   []ID           `json:"after"`
	AfterOn []Condition    `json:"after_on"`
	Others  jsontext.Value `json:",embed"`
}

// AppendSpecJSON appends a specification to b as a JSON object:
//
//	{"id":2,"line":7,"command":"./sim 2","name":"two","params":[{"name":"x","value":"1"}],"options":{"queue":"a"}}
func AppendSpecJSON(b []byte, s *Spec) []byte {
	o := s.Options
	if after := s.After(); len(after) > 0 {
		own := *cmp.Or(o, NoOptions)
		for id, on := range after.All() {
			own.After, own.AfterOn = append(own.After, id), append(own.AfterOn, on)
		}
		if after.NeedSuccess() {
			own.AfterOn = nil
		}
		o = &own
	}
	return appendJSON(b, &storedSpec[*Options]{s.ID, s.Line, &s.Command, s.Name, s.Key(), s.Params(), o})
}

func appendJSON(b []byte, v any) []byte {
	text, err := json.Marshal(v, JSON)
	if err != nil {
		text, err = json.Marshal(v, anyText)
	}
	if err != nil {
		panic(err) // no specification has a value that JSON cannot encode
	}
	return append(b, text...)
}

// unmarshal parses the output of appendJSON.
func unmarshal[T any](b []byte) (*T, error) {
	v := new(T)
	err := json.Unmarshal(b, v, JSON)
	if err != nil {
		v = new(T)
		err = json.Unmarshal(b, v, anyText)
	}
	return v, err
}

// AppendSpec appends the line of one specification in jobs.jsonl to b, including the newline.
func AppendSpec(b []byte, s *Spec) []byte {
	from := len(b)
	b = AppendSpecJSON(b, s)
	return append(AppendLineSum(b[:len(b)-1], from), '\n')
}

// SpecReader parses the output of AppendSpecJSON and shares equal options.
type SpecReader struct {
	shared        Interner
	withoutParams bool // specifications may lack their parameters
}

// Read parses b, which must hold one specification and nothing else.
func (r *SpecReader) Read(b []byte) (*Spec, error) {
	if s := r.readUsual(b); s != nil {
		return s, nil
	}
	return r.readAny(b)
}

// readAny reads any specification.
func (r *SpecReader) readAny(b []byte) (*Spec, error) {
	s, err := unmarshal[storedSpec[jsontext.Value]](b)
	if err != nil {
		return nil, err
	}
	if s.Command == nil {
		return nil, errors.New("the specification has no command")
	}
	o, after, err := r.readOptions(s.Options)
	if err != nil {
		return nil, err
	}
	return &Spec{ID: s.ID, Line: s.Line, Command: *s.Command, Name: s.Name,
		Labels: NewLabels(s.Key, s.Params, after...), Options: o}, nil
}

// readUsual reads a specification with the members that most have. It returns nil if it is another
// one.
func (r *SpecReader) readUsual(b []byte) *Spec {
	s, command, labels, after := &Spec{Options: NoOptions}, false, Labels{}, Dependencies(nil)
	if !readObject(b, func(o *objectReader) {
		readNumber(o, "id", &s.ID)
		readNumber(o, "line", &s.Line)
		if o.has("command") {
			s.Command, command = string(o.readText()), true
		}
		o.readString("name", &s.Name)
		o.readString("key", &labels.key)
		switch {
		case !o.has("params"):
		case r.withoutParams:
			o.readList(func() { o.readMembers(checkParam) })
		default:
			labels.params = make([]Param, 0, 4) // most jobs have no more
			o.readList(func() { labels.params = append(labels.params, readParam(o)) })
		}
		if o.has("options") {
			var err error
			s.Options, after, err = r.readOptions(o.readValue('{'))
			o.failed = o.failed || err != nil
		}
	}) || !command {
		return nil
	}
	s.Labels = NewLabels(labels.key, labels.params, after...)
	return s
}

func readParam(o *objectReader) (p Param) {
	o.readMembers(func(o *objectReader) {
		o.readString("name", &p.Name)
		o.readString("value", &p.Value)
	})
	return p
}

// checkParam reads the members of a parameter like readParam, without their texts.
func checkParam(o *objectReader) {
	for _, name := range []string{"name", "value"} {
		if o.has(name) {
			o.readValue('"')
		}
	}
}

// readOptions returns the shared options and the dependencies of a job whose stored options are b.
func (r *SpecReader) readOptions(b []byte) (o *Options, after Dependencies, err error) {
	// A name may have escapes.
	if bytes.Contains(b, []byte(`"after`)) || bytes.IndexByte(b, '\\') >= 0 {
		stored, err := unmarshal[storedOptions](b)
		if err != nil {
			return nil, nil, err
		}
		for i, id := range stored.After {
			on := AfterSuccess
			if i < len(stored.AfterOn) {
				on = stored.AfterOn[i]
			}
			after.Add(id, on)
		}
		b = stored.Others
	}
	o, err = r.sharedOptions(b)
	return o, after, err
}

// sharedOptions returns the shared options whose JSON is b, which is empty for NoOptions.
func (r *SpecReader) sharedOptions(b []byte) (*Options, error) {
	if len(b) == 0 {
		return NoOptions, nil
	}
	return r.shared.findOrMake(b, func() (*Options, error) { return readOptions(b) })
}

func readOptions(b []byte) (*Options, error) {
	o, err := unmarshal[Options](b)
	if err == nil {
		err = sortTokens(o.Tokens)
	}
	if o.RetryDelay != nil {
		o.RetryDelay = new(max(0, *o.RetryDelay))
	}
	return o, err
}

// MarshalJSON returns the form of AppendSpecJSON.
func (s *Spec) MarshalJSON() ([]byte, error) { return AppendSpecJSON(nil, s), nil }

// UnmarshalJSON parses it strictly, because any other form is damage.
func (s *Spec) UnmarshalJSON(b []byte) error {
	got, err := new(SpecReader).Read(b)
	if err == nil {
		*s = *got
	}
	return err
}

// Interner returns one shared value for equal options.
type Interner struct {
	mu    sync.Mutex
	known map[string]*Options
}

// Share returns the shared value of options that equal o.
func (in *Interner) Share(o *Options) *Options {
	shared, _ := in.findOrMake(appendJSON(nil, o), func() (*Options, error) {
		own := *o
		return &own, nil
	})
	return shared
}

// findOrMake returns the options whose JSON is text. It calls make if there are none yet.
func (in *Interner) findOrMake(text []byte, make func() (*Options, error)) (*Options, error) {
	if string(text) == "{}" {
		return NoOptions, nil
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	if o := in.known[string(text)]; o != nil {
		return o, nil
	}
	o, err := make()
	if err == nil {
		Insert(&in.known, string(text), o)
	}
	return o, err
}
