package jobs

// AppendSpecJSON adds a specification as AppendSpec writes it, without checksum and
// newline: for a record that carries its own.
func AppendSpecJSON(b []byte, s *Spec) []byte { return append(appendSpec(b, s), '}') }

// SpecReader reads what AppendSpecJSON writes and gives equal options one value. It
// is for one goroutine.
type SpecReader struct{ d specDecoder }

// Read reads b, which holds nothing else.
func (r *SpecReader) Read(b []byte) (*Spec, error) {
	if len(b) == 0 || b[len(b)-1] != '}' {
		return nil, errJSONEnd
	}
	return r.decode(b[:len(b)-1])
}

// ReadLine reads a line of AppendSpec without its newline. ok is false if it is damaged.
func (r *SpecReader) ReadLine(line []byte) (s *Spec, ok bool) {
	body, sum := lineText(line)
	if sum != sumRight {
		return nil, false
	}
	s, err := r.decode(body)
	return s, err == nil
}

func (r *SpecReader) decode(body []byte) (*Spec, error) {
	if r.d.options == nil {
		r.d.options = map[string]*Options{}
	}
	return r.d.decode(body)
}

// MarshalJSON writes the form of AppendSpecJSON.
func (s *Spec) MarshalJSON() ([]byte, error) { return AppendSpecJSON(nil, s), nil }

// UnmarshalJSON reads it, strictly: what else it could be is damage.
func (s *Spec) UnmarshalJSON(b []byte) error {
	got, err := new(SpecReader).Read(b)
	if err == nil {
		*s = *got
	}
	return err
}
