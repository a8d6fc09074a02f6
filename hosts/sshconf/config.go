package sshconf

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// Bounds on what is read: an Include of itself must end.
const (
	maxDepth     = 16 // OpenSSH's own
	maxFiles     = 500
	maxFileBytes = 4 << 20
)

// Config is an ssh_config with everything that it includes, parsed. It does not
// change after Load and may be used by several goroutines.
type Config struct {
	path  string // as given to Load, "": the usual files
	files [][]item
	env   *environment

	openssh  string // the ssh program, "" if there is none
	baseline func() (map[string]bool, error)
}

// item is a directive, or an Include with what it includes.
type item struct {
	keyword  string // lower case
	args     []string
	file     string
	line     int
	system   bool // from /etc/ssh/ssh_config
	problem  string
	included [][]item
}

// where gives "file:line".
func (it *item) where() string { return fmt.Sprintf("%s:%d", it.file, it.line) }

// value returns the first argument.
func (it *item) value() string { return it.args[0] }

// Load reads an ssh configuration file; path "" means ~/.ssh/config and then
// /etc/ssh/ssh_config, each if it exists. With a path the system's file is left
// aside, as `ssh -F` does. A line that is wrong does not stop it: it is named in
// a warning for every host that it concerns.
func Load(path string) (*Config, error) {
	env, err := thisUser()
	if err != nil {
		return nil, fmt.Errorf("ssh configuration: %w", err)
	}
	return load(path, env, "/etc/ssh/ssh_config")
}

func load(path string, env *environment, system string) (*Config, error) {
	c := &Config{path: path, env: env}
	c.openssh, _ = exec.LookPath("ssh")
	c.baseline = sync.OnceValues(c.readBaseline)
	l := &loader{env: env}
	sources := []item{{file: path}}
	if path == "" {
		sources = []item{{file: filepath.Join(env.home, ".ssh", "config")}, {file: system, system: true}}
	}
	for _, s := range sources {
		items, err := l.file(s.file, s.system, 0)
		if errors.Is(err, fs.ErrNotExist) && path == "" {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("ssh configuration: %w", err)
		}
		c.files = append(c.files, items)
	}
	return c, nil
}

type loader struct {
	env  *environment
	read int
}

func (l *loader) file(path string, system bool, depth int) ([]item, error) {
	if l.read++; depth > maxDepth || l.read > maxFiles {
		return nil, fmt.Errorf("%s: Include goes too deep; does a file include itself?", path)
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.IsDir() || info.Size() > maxFileBytes {
		return nil, fmt.Errorf("%s is not an ssh configuration file", path)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if bytes.IndexByte(data, 0) >= 0 {
		return nil, fmt.Errorf("%s contains NUL bytes; it is not an ssh configuration file", path)
	}
	var items []item
	n := 0
	for line := range strings.Lines(string(data)) {
		n++
		keyword, args, err := splitLine(strings.TrimRight(line, "\n"))
		if keyword == "" && err == nil {
			continue
		}
		it := item{keyword: keyword, args: args, file: path, line: n, system: system}
		switch {
		case err != nil:
			it.problem = err.Error()
		case len(args) == 0 || args[0] == "" && keyword != "match":
			it.problem = keyword + " has no value"
		case keyword == "include":
			if err := l.include(&it, depth); err != nil {
				return nil, err
			}
		}
		items = append(items, it)
	}
	return items, nil
}

// include reads what an Include names; patterns that fit no file are no error.
func (l *loader) include(it *item, depth int) error {
	for _, pattern := range it.args {
		pattern = l.env.tilde(l.env.variables(pattern))
		if !filepath.IsAbs(pattern) {
			dir := filepath.Join(l.env.home, ".ssh")
			if it.system {
				dir = "/etc/ssh"
			}
			pattern = filepath.Join(dir, pattern)
		}
		paths, err := filepath.Glob(pattern)
		if err != nil {
			it.problem = fmt.Sprintf("Include %s: %v", pattern, err)
			continue
		}
		slices.Sort(paths)
		for _, p := range paths {
			items, err := l.file(p, it.system, depth+1)
			if err != nil {
				return fmt.Errorf("%s: Include: %w", it.where(), err)
			}
			it.included = append(it.included, items)
		}
	}
	return nil
}
