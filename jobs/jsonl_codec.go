package jobs

import (
	"encoding/base64"
	"fmt"
	"strconv"
)

// AppendSpec adds the line of one specification, newline included, to b:
//
//	{"id":2,"line":7,"command":"./sim 2","name":"two","params":[["x","1"]],"options":{"queue":"a"},"crc":"0badcafe"}
//
// What is unset is left out; durations are nanoseconds. A text that is not valid
// UTF-8 becomes {"b64":"…"}, so that every byte survives. crc is the CRC-32C of
// the line before the comma of that key. DecodeSpecs reads it.
func AppendSpec(b []byte, s *Spec) []byte {
	from := len(b)
	return append(AppendLineSum(appendSpec(b, s), from), '\n')
}

// appendSpec leaves out what ends the line.
func appendSpec(b []byte, s *Spec) []byte {
	b = strconv.AppendInt(append(b, `{"id":`...), int64(s.ID), 10)
	if s.Line != 0 {
		b = strconv.AppendInt(append(b, `,"line":`...), int64(s.Line), 10)
	}
	b = appendJSONString(append(b, `,"command":`...), s.Command)
	if s.Name != "" {
		b = appendJSONString(append(b, `,"name":`...), s.Name)
	}
	if s.Key != "" {
		b = appendJSONString(append(b, `,"key":`...), s.Key)
	}
	if len(s.Params) > 0 {
		b = append(b, `,"params":`...)
		b = appendPairs(b, len(s.Params), func(i int) (string, string) { return s.Params[i].Name, s.Params[i].Value })
	}
	if s.Options != nil && s.Options != NoOptions {
		key := len(b)
		b = append(b, `,"options":`...)
		start := len(b)
		if b = appendOptions(b, s.Options); len(b) == start {
			b = b[:key] // nothing is set
		}
	}
	return b
}

// specDecoder reads the lines of AppendSpec: fields in that order and no other.
type specDecoder struct {
	jsonCursor
	arena   arena
	slab    specSlab
	options map[string]*Options // by their text
}

// decode reads a line without what lineText takes off its end.
func (d *specDecoder) decode(line []byte) (*Spec, error) {
	d.b, d.i = line, 0
	s := Spec{Options: NoOptions}
	id, err := int64(0), error(nil)
	if !d.lit(`{"id":`) {
		return nil, d.want("an id")
	}
	if id, err = d.integer(); err != nil {
		return nil, err
	}
	s.ID = ID(id)
	if d.lit(`,"line":`) {
		n, err := d.integer()
		if err != nil {
			return nil, err
		}
		s.Line = int(n)
	}
	if !d.lit(`,"command":`) {
		return nil, d.want("a command")
	}
	if s.Command, err = d.text(); err != nil {
		return nil, err
	}
	if d.lit(`,"name":`) {
		if s.Name, err = d.text(); err != nil {
			return nil, err
		}
	}
	if d.lit(`,"key":`) {
		if s.Key, err = d.text(); err != nil {
			return nil, err
		}
	}
	if d.lit(`,"params":`) {
		if err = d.pairs(func(n, v string) { s.Params = append(s.Params, Param{n, v}) }); err != nil {
			return nil, err
		}
	}
	if d.lit(`,"options":`) {
		if s.Options, err = d.shared(); err != nil {
			return nil, err
		}
	}
	if d.i != len(d.b) {
		return nil, d.want("the end of the line")
	}
	p := d.slab.next()
	*p = s
	return p, nil
}

// shared reads the options, which are the last field of a line.
func (d *specDecoder) shared() (*Options, error) {
	end := len(d.b)
	raw := d.b[d.i:]
	if o := d.options[string(raw)]; o != nil {
		d.i = end
		return o, nil
	}
	o, err := d.decodeOptions()
	if err == nil && d.i == end {
		d.options[string(raw)] = o
	}
	return o, err
}

// text reads what appendJSONString wrote.
func (d *specDecoder) text() (string, error) {
	coded := d.lit(`{"b64":`)
	p, err := d.str()
	if err != nil {
		return "", err
	}
	if !coded {
		return d.arena.add(p), nil
	}
	raw, err := base64.StdEncoding.Strict().DecodeString(string(p))
	if err != nil {
		return "", fmt.Errorf("base64: %w", err)
	}
	if !d.lit("}") {
		return "", d.want("}")
	}
	return d.arena.add(raw), nil
}

func appendBase64(b []byte, s string) []byte {
	b = append(b, `{"b64":"`...)
	b = base64.StdEncoding.AppendEncode(b, []byte(s))
	return append(b, `"}`...)
}

// appendPairs writes [["name","value"],…]: an object would lose the order in
// other readers.
func appendPairs(b []byte, n int, pair func(int) (name, value string)) []byte {
	b = append(b, '[')
	for i := range n {
		if i > 0 {
			b = append(b, ',')
		}
		name, value := pair(i)
		b = appendJSONString(append(b, '['), name)
		b = appendJSONString(append(b, ','), value)
		b = append(b, ']')
	}
	return append(b, ']')
}

func (d *specDecoder) pairs(add func(name, value string)) error {
	return d.list(func() error {
		if !d.lit("[") {
			return d.want("[")
		}
		name, err := d.text()
		if err != nil {
			return err
		}
		if !d.lit(",") {
			return d.want("a comma")
		}
		value, err := d.text()
		if err != nil {
			return err
		}
		if !d.lit("]") {
			return d.want("]")
		}
		add(name, value)
		return nil
	})
}

// list reads [item,…] with at least one item.
func (d *specDecoder) list(item func() error) error {
	if !d.lit("[") {
		return d.want("[")
	}
	for {
		if err := item(); err != nil {
			return err
		}
		if d.lit("]") {
			return nil
		}
		if !d.lit(",") {
			return d.want("a comma or ]")
		}
	}
}
