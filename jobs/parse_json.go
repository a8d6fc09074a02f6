package jobs

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
)

// object reads one line of a .jsonl jobs file: the keys of #DCS lines, command
// (required), id, and env and params as objects of texts. A value is a text or a
// number, for listKeys also a list of them, for speculate true or false; null is as unset.
// In a stream the line may ask for something instead: then no job is returned, and s.ask
// says what.
func (s *Scanner) object(line []byte, id ID, at int) (*Spec, error) {
	c := &s.cursor
	c.b, c.i = line, 0
	if c.peek() != '{' {
		return nil, errors.New(`a line of a .jsonl jobs file is an object such as {"command": "./sim 1", "timeout": "2h"}`)
	}
	var own settings
	own.File, own.last, own.named = s.name, id-1, s.named
	spec := Spec{ID: id, Line: at}
	seen, given := map[string]bool{}, false
	err := c.members(func(key string) (err error) {
		if seen[key] {
			return fmt.Errorf("the key %q is there twice", key)
		}
		seen[key] = true
		if s.stream && (key == AskCancel || key == AskRequeue) {
			return s.askFor(key)
		}
		switch key {
		case "command":
			text, err := c.str()
			if err != nil {
				return fmt.Errorf("command: %w", err)
			}
			if bytes.IndexByte(text, 0) >= 0 {
				return errors.New("command holds a NUL byte, which no shell can be given")
			}
			given = len(bytes.Trim(text, " \t\r\n")) > 0
			spec.Command = s.arena.add(text)
			return nil
		case "id":
			spec.Key, err = c.key()
			return err
		case "v":
			if v, err := c.scalar(); err != nil || v != streamVersion {
				return fmt.Errorf("this dcs-tui knows version %s, not %q", streamVersion, v)
			}
			return nil
		case "env":
			return c.object("env", func(name, v string) error { return own.setEnv(name, v) })
		case "params":
			return c.object("params", func(name, v string) error {
				if !validEnvName(name) {
					return fmt.Errorf("params: %q cannot be a part of the variable DCS_PARAM_…: use letters, digits and _", name)
				}
				if len(v) > maxEnvValue {
					return fmt.Errorf("params.%s is longer than %d KiB, more than Linux hands to a program", name, maxEnvValue>>10)
				}
				spec.Params = append(spec.Params, Param{name, v})
				return nil
			})
		}
		return c.option(&own, key)
	})
	if s.stream {
		s.ask.Line, s.ask.ID = at, spec.Key
	}
	if err != nil {
		return nil, err
	}
	if c.space(); c.i < len(c.b) {
		return nil, c.want("the end of the line after the object")
	}
	earlier := s.keys[spec.Key]
	switch {
	case s.stream && s.ask.Do != "":
		if delete(seen, "v"); len(seen) > 2 || len(seen) == 2 && !seen["id"] {
			return nil, fmt.Errorf("a line with %s has no other key but id", s.ask.Do)
		}
		return nil, nil
	case s.stream && earlier != 0:
		s.ask.Repeats = earlier
		return nil, nil
	case earlier != 0:
		return nil, fmt.Errorf("job %d has the id %q, too", earlier, spec.Key)
	case !given:
		return nil, errors.New("the job has no command")
	}
	spec.Name, spec.Options = own.name, s.intern.share(&own.Options)
	s.know(&spec, id)
	p := s.slab.next()
	*p = spec
	return p, nil
}

// option reads the value of a key of #DCS lines.
func (c *jsonCursor) option(own *settings, key string) error {
	for _, word := range []string{"true", "false"} {
		if key == "speculate" && c.lit(word) {
			return own.set(key, word)
		}
	}
	if c.peek() != '[' {
		v, err := c.scalar()
		if err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		return own.set(key, v)
	}
	if !slices.Contains(listKeys, key) {
		return fmt.Errorf("%s: a list is not one of its values", key)
	}
	var items []string
	err := c.items(key, func() error {
		v, err := c.scalar()
		if err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		items = append(items, v)
		return nil
	})
	if err != nil {
		return err
	}
	return own.setList(key, items)
}

// members reads an object; value is called with the cursor at each value.
func (c *jsonCursor) members(value func(key string) error) error {
	if !c.lit("{") {
		return c.want("an object { }")
	}
	c.space()
	for first := true; !c.lit("}"); first = false {
		if !first {
			if !c.lit(",") {
				return c.want("a comma or }")
			}
			c.space()
		}
		raw, err := c.str()
		if err != nil {
			return err
		}
		key := string(raw)
		if c.space(); !c.lit(":") {
			return c.want("a colon after the key " + key)
		}
		c.space()
		if err := value(key); err != nil {
			return err
		}
		c.space()
	}
	return nil
}

// object reads an object of scalars.
func (c *jsonCursor) object(what string, set func(name, value string) error) error {
	seen := map[string]bool{}
	return c.members(func(name string) error {
		if seen[name] {
			return fmt.Errorf("%s: %q is there twice", what, name)
		}
		seen[name] = true
		v, err := c.scalar()
		if err != nil {
			return fmt.Errorf("%s.%s: %w", what, name, err)
		}
		if bytes.IndexByte([]byte(v), 0) >= 0 {
			return fmt.Errorf("%s.%s holds a NUL byte", what, name)
		}
		return set(name, v)
	})
}

// scalar reads a string, or a number as the text it has; null is "".
func (c *jsonCursor) scalar() (string, error) {
	if c.lit("null") {
		return "", nil
	}
	if c.peek() == '"' {
		text, err := c.str()
		return string(text), err
	}
	if ch := c.peek(); ch == '-' || ch >= '0' && ch <= '9' {
		text, err := c.number()
		return string(text), err
	}
	return "", c.want("a text or a number")
}
