package jobs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// parseObject parses a line of a .jsonl jobs file. Its keys are those of #DCS lines, command
// (required), id, and env and params, which are objects of texts. A value is a text or a number.
// For listKeys it may be a list of them. For speculate it may be true or false. null resets the
// option. In a stream, the line may be a request instead. Then object returns no job and sets
// s.ask.
func (s *Scanner) parseObject(line []byte, id ID, at int) (*Spec, error) {
	if line[0] != '{' {
		return nil, errors.New(`a line of a .jsonl jobs file is an object such as ` +
			`{"command": "./sim 1", "timeout": "2h"}`)
	}
	var own settings
	own.File, own.last, own.named = s.name, id-1, s.jobsNamed
	spec, submitted := &Spec{ID: id, Line: at}, Labels{}
	keys := 0 // without v and id
	err := eachMember(line, func(key string, v jsontext.Value) (err error) {
		if key != "v" && key != "id" {
			keys++
		}
		if s.stream && (key == AskCancel || key == AskRequeue) {
			return s.askFor(key, v)
		}
		switch key {
		case "command":
			if v.Kind() != '"' {
				return errors.New("command: expected a text")
			}
			spec.Command, err = scalar(key, v)
			return err
		case "id":
			submitted.key, err = option(key, v)
			if err == nil && (submitted.key == "" || len(submitted.key) > maxKey || !utf8.ValidString(submitted.key)) {
				err = fmt.Errorf("id: it must be a text of 1 to %d bytes", maxKey)
			}
			return err
		case "v":
			if v, err := scalar(key, v); err != nil || v != strconv.Itoa(FormatStream.Version) {
				return fmt.Errorf("this dcs-tui knows version %d, not %q", FormatStream.Version, v)
			}
			return nil
		case "env":
			return texts("env", v, own.setEnv)
		case "params":
			return texts("params", v, func(name, v string) error {
				if !isEnvName(name) {
					return fmt.Errorf("params: %q cannot be a part of the variable DCS_PARAM_…: "+
						"use letters, digits and _", name)
				}
				if len(v) > maxEnvValue {
					return fmt.Errorf("params.%s is longer than %d KiB, more than Linux hands to a program", name,
						maxEnvValue>>10)
				}
				submitted.params = append(submitted.params, Param{name, v})
				return nil
			})
		}
		if !slices.Contains(optionKeys, key) && !strings.HasPrefix(key, "env.") {
			return unknownOption(key, append([]string{"command", "id", "env", "params"}, optionKeys...))
		}
		return own.setJSON(key, v)
	})
	if s.stream {
		s.ask.Line, s.ask.ID = at, submitted.key
	}
	earlier := s.keys[submitted.key]
	switch {
	case err != nil:
		return nil, err
	case s.stream && s.ask.Do != "":
		if keys > 1 {
			return nil, fmt.Errorf("a line with %s has no other key but id", s.ask.Do)
		}
		return nil, nil
	case s.stream && earlier != 0:
		s.ask.Repeats = earlier
		return nil, nil
	case earlier != 0:
		return nil, fmt.Errorf("job %d has the id %q, too", earlier, submitted.key)
	case strings.Trim(spec.Command, " \t\r\n") == "":
		return nil, errors.New("the job has no command")
	}
	if err := s.checkCommand(spec.Command, false); err != nil {
		return nil, err
	}
	spec.Name, spec.Labels, spec.Options = own.name, NewLabels(submitted.key, submitted.params, own.after...),
		s.intern.Share(&own.Options)
	s.remember(spec, id)
	return spec, nil
}

// eachMember calls f for each key of the JSON object in text.
func eachMember(text []byte, f func(key string, v jsontext.Value) error) error {
	dec := jsontext.NewDecoder(bytes.NewBuffer(text))
	if _, err := dec.ReadToken(); err != nil {
		return badJSON(text, err)
	}
	for dec.PeekKind() != '}' {
		token, err := dec.ReadToken()
		if err != nil {
			return badJSON(text, err)
		}
		key := token.String()
		value, err := dec.ReadValue()
		if err != nil {
			return badJSON(text, err)
		}
		if err := f(key, value); err != nil {
			return err
		}
	}
	if _, err := dec.ReadToken(); err != nil {
		return badJSON(text, err)
	}
	if _, err := dec.ReadToken(); err != io.EOF {
		return errors.New("something follows the JSON object")
	}
	return nil
}

// badJSON returns the error for a text of a line that is not valid JSON.
func badJSON(text []byte, err error) error {
	if _, why := Ambiguous(string(text)); why != "" {
		return fmt.Errorf("the line is not valid JSON: %s", why)
	}
	if bad, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		return fmt.Errorf("the line is not valid JSON at byte %d: %w", bad.ByteOffset+1, bad.Err)
	}
	return fmt.Errorf("the line is not valid JSON: %w", err)
}

// scalar returns a text, or a number as it is written. It returns "" for null.
func scalar(key string, v jsontext.Value) (string, error) {
	switch v.Kind() {
	case 'n':
		return "", nil
	case '0':
		return string(v), nil
	case '"':
		text, err := jsontext.AppendUnquote(nil, v)
		if bytes.IndexByte(text, 0) >= 0 {
			return "", fmt.Errorf("%s holds a NUL byte, which no argument of a program can hold", key)
		}
		return string(text), err
	}
	return "", fmt.Errorf("%s: expected a text or a number", key)
}

// option is scalar for the value of an option, which must have no invisible characters.
func option(key string, v jsontext.Value) (string, error) {
	text, err := scalar(key, v)
	if why := Invisible(text); err == nil && why != "" && key != "setup" { // setup is a command
		err = fmt.Errorf("%s: %s", key, why)
	}
	return text, err
}

// items returns the texts and numbers of a list.
func items(v jsontext.Value) (list []jsontext.Value, err error) {
	if err := json.Unmarshal(v, &list); err != nil {
		return nil, badJSON(v, err)
	}
	return list, nil
}

// texts parses an object of texts and numbers.
func texts(what string, v jsontext.Value, set func(name, value string) error) error {
	if v.Kind() != '{' {
		return fmt.Errorf("%s: expected an object { }", what)
	}
	return eachMember(v, func(name string, v jsontext.Value) error {
		text, err := option(what+"."+name, v)
		if err != nil {
			return err
		}
		return set(name, text)
	})
}

// setJSON sets an option.
func (s *settings) setJSON(key string, v jsontext.Value) error {
	switch {
	case key == "speculate" && (v.Kind() == 't' || v.Kind() == 'f'):
		return s.set(key, string(v))
	case v.Kind() != '[':
		text, err := option(key, v)
		if err != nil {
			return err
		}
		return s.set(key, text)
	case !slices.Contains(listKeys, key):
		return fmt.Errorf("%s: a list is not one of its values", key)
	}
	values, err := items(v)
	var list []string
	for _, v := range values {
		text, e := option(key, v)
		list, err = append(list, text), errors.Join(err, e)
	}
	if err != nil {
		return err
	}
	return s.setList(key, list)
}
