package sshconf

import (
	"slices"
	"strings"
)

// settings is what the configuration says of one host, keyword by keyword in
// lower case, in the form in which `ssh -G` prints it.
type settings struct {
	values map[string][]string
	order  []string  // the keywords
	usual  *settings // what is said of any host without a configuration; nil: nothing
}

// parseSettings reads the "keyword value" lines that `ssh -G` prints.
func parseSettings(text string) *settings {
	s := &settings{values: map[string][]string{}}
	for line := range strings.Lines(text) {
		keyword, value, _ := strings.Cut(strings.TrimRight(line, "\r\n"), " ")
		if value != "" {
			s.add(strings.ToLower(keyword), value)
		}
	}
	return s
}

func (s *settings) add(keyword, value string) {
	if s.values[keyword] == nil {
		s.order = append(s.order, keyword)
	}
	s.values[keyword] = append(s.values[keyword], value)
}

// list returns the values of a directive, nil when they are the usual ones: what
// the user spelled out and OpenSSH does anyway is no wish of its own.
func (s *settings) list(keyword string) []string {
	v := s.values[keyword]
	if s.usual != nil && slices.Equal(v, s.usual.values[keyword]) {
		return nil
	}
	return v
}

// text returns the first value of a directive, "" when it is the usual one.
func (s *settings) text(keyword string) string {
	if v := s.list(keyword); len(v) > 0 {
		return v[0]
	}
	return ""
}

// isNone says that a value means nothing at all.
func isNone(value string) bool { return strings.EqualFold(value, "none") }

// isOff and isOn know both spellings: the file's and that of `ssh -G`.
func isOff(value string) bool {
	switch strings.ToLower(value) {
	case "", "no", "false", "off":
		return true
	}
	return false
}

func isOn(value string) bool { return !isOff(value) }
