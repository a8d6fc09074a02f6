package sshconf

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/kevinburke/ssh_config"
)

// library reads the files where there is no ssh program. Its limits: Match
// blocks other than `Match all` are left out (in an included file the library
// refuses them, or takes `Match host` for Host), ProxyJump comes before
// ProxyCommand whatever their order, unknown directives pass unnoticed, and
// names are not canonicalised.
type library struct {
	files  []*ssh_config.Config
	system *ssh_config.Config // the one of files that is for everybody, nil if none is
}

// severalTimes are the directives whose values add up.
var severalTimes = words("identityfile certificatefile")

var (
	matchLine = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?mi)^[ \t]*match[ \t=][^\r\n]*`)
	})
	matchAll = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)^[ \t]*match[ \t=]+all[ \t]*$`)
	})
)

func readLibrary(paths []string, system string) (*library, error) {
	l := &library{}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		c, err := decode(data)
		if err != nil {
			return nil, fmt.Errorf("%s cannot be read without an ssh program: %w; install the OpenSSH client", path, err)
		}
		l.files = append(l.files, c)
		if path == system {
			l.system = c
		}
	}
	return l, nil
}

// decode keeps line numbers and turns the library's panics into errors.
func decode(data []byte) (c *ssh_config.Config, err error) {
	defer func() {
		if p := recover(); p != nil {
			c, err = nil, fmt.Errorf("%v", p)
		}
	}()
	return ssh_config.DecodeBytes(matchLine().ReplaceAllFunc(data, func(line []byte) []byte {
		if matchAll().Match(line) {
			return line
		}
		return []byte("Host !*") // fits no host
	}))
}

func (l *library) settings(q query) (*settings, error) {
	s := &settings{values: map[string][]string{}}
	for _, keyword := range readByLibrary() {
		for _, f := range l.files {
			values, err := f.GetAll(q.alias, keyword)
			if err != nil {
				return nil, err
			}
			for _, v := range values {
				if v != "" && (severalTimes[keyword] || s.values[keyword] == nil) {
					s.add(keyword, v)
				}
			}
		}
	}
	name := q.alias
	if h := s.text("hostname"); h != "" {
		var err error
		if name, err = (tokens{'h': q.alias}).expand(h); err != nil {
			return nil, fmt.Errorf("HostName: %w", err)
		}
	}
	s.values["hostname"] = []string{strings.ToLower(name)}
	return s, nil
}

func (l *library) forEverybody(keyword, value string) bool {
	if l.system == nil {
		return false
	}
	v, err := l.system.Get(nobody, keyword)
	return err == nil && v == value
}

// readByLibrary lists the directives that matter, in a fixed order.
func readByLibrary() []string {
	return append(slices.Sorted(maps.Keys(honoured)), slices.Sorted(maps.Keys(beyond))...)
}
