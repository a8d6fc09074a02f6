package jobs

import (
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Pattern selects files by their paths. Each name of a path matches as path.Match defines it: * and
// ? stand for any characters of the name, [a-z] for one of a class, and \ takes the meaning from the
// next character. None of them matches a slash. Unlike in path.Match, [!a-z] negates a class, and
// the name ** stands for any number of directories or, at the end, for everything below.
type Pattern struct {
	text  string   // as written, without superfluous slashes and dots
	names []string // in the form of path.Match
}

// anyNames is the name in a pattern that stands for any number of names.
const anyNames = "**"

// ParsePattern parses a pattern.
func ParsePattern(text string) (Pattern, error) {
	p := Pattern{text: filepath.Clean(text)}
	for name := range strings.SplitSeq(p.text, "/") {
		name, err := plainClasses(name)
		if err == nil {
			_, err = path.Match(name, "")
		}
		if err != nil {
			return p, fmt.Errorf("%q is not a pattern: %w; a bracket of a name is written \\[, a backslash \\\\",
				text, err)
		}
		p.names = append(p.names, name)
	}
	return p, nil
}

// plainClasses returns a name of a pattern with its classes in the form of path.Match, which does
// not know [!a], []a], and [a-].
func plainClasses(name string) (string, error) {
	var b strings.Builder
	for i := 0; i < len(name); i++ {
		b.WriteByte(name[i])
		switch {
		case name[i] == '\\' && i+1 < len(name):
			i++
			b.WriteByte(name[i])
		case name[i] == '[':
			n := classLength(name[i:])
			if n == 0 {
				return "", errors.New("the ] of [ is missing")
			}
			class := name[i+1 : i+n-1]
			if strings.Contains(class, "[:") {
				return "", errors.New("classes such as [:alpha:] are not known, write [a-zA-Z]")
			}
			if class[0] == '!' || class[0] == '^' {
				b.WriteByte('^')
				class = class[1:]
			}
			for k := range len(class) {
				if edge := k == 0 || k == len(class)-1; class[k] == ']' && k == 0 || class[k] == '-' && edge &&
					(k == 0 || class[k-1] != '\\') {
					b.WriteByte('\\')
				}
				b.WriteByte(class[k])
			}
			b.WriteByte(']')
			i += n - 1
		}
	}
	return b.String(), nil
}

// classLength returns the length of the class at the beginning of s, with its brackets, or 0 if it
// is not closed. A ] that comes first is a character of the class.
func classLength(s string) int {
	i := 1
	if i < len(s) && (s[i] == '!' || s[i] == '^') {
		i++
	}
	for first := i; i < len(s); i++ {
		switch {
		case s[i] == '\\':
			i++
		case s[i] == ']' && i > first:
			return i + 1
		}
	}
	return 0
}

// Match reports whether the pattern matches a path.
func (p *Pattern) Match(file string) bool {
	names, want := strings.Split(file, "/"), p.names
	// As in the usual match of *, only the last ** has to be tried again.
	after, from := -1, 0
	at, n := 0, 0
	for n < len(names) {
		switch {
		case at < len(want) && want[at] == anyNames:
			at++
			after, from = at, n
			continue
		case at < len(want):
			if ok, _ := path.Match(want[at], names[n]); ok {
				at, n = at+1, n+1
				continue
			}
		}
		if after < 0 {
			return false
		}
		from++
		at, n = after, from
	}
	return at == len(want)
}

// QuotePattern returns a pattern that matches only this text.
func QuotePattern(text string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(text)
}

// CheckLocal checks that a relative path does not lead out of its directory.
func CheckLocal(path string) error {
	switch {
	case path == "" || strings.IndexByte(path, 0) >= 0:
		return fmt.Errorf("%q is not a path", path)
	case filepath.IsAbs(path):
		return fmt.Errorf("%q must be relative to the directory of the job", path)
	case !filepath.IsLocal(path):
		return fmt.Errorf("%q leads out of the directory of the job", path)
	}
	return nil
}

// ReturnPatterns are the patterns of the files that a job returns.
type ReturnPatterns []Pattern

// ParseReturn parses the patterns of files that a job returns, which are relative to its directory.
func ParseReturn(texts []string) (ReturnPatterns, error) {
	var all ReturnPatterns
	for _, text := range texts {
		if err := CheckLocal(text); err != nil {
			return nil, err
		}
		p, err := ParsePattern(text)
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

// Match reports whether a file may be one that the job returns: it, or a directory above it, has
// the name of a pattern or matches one.
func (r ReturnPatterns) Match(file string) bool {
	return slices.ContainsFunc(r, func(p Pattern) bool {
		return matchesAbove(file, p.isNamed) || matchesAbove(file, p.Match)
	})
}

// Select reports which of the files of a job are returned: those that match a pattern, or are below
// a directory that does. If a file has the very name of a pattern, or is below that name, the
// pattern stands for this name, and its wildcards mean nothing. missing is the first pattern that no
// file matches; "" if there is none. Of the files that are selected, Select selects all.
func (r ReturnPatterns) Select(files []string) (selected []bool, missing string) {
	selected = make([]bool, len(files))
	for i := range r {
		matches := r[i].Match
		if slices.ContainsFunc(files, func(file string) bool { return matchesAbove(file, r[i].isNamed) }) {
			matches = r[i].isNamed
		}
		found := false
		for k, file := range files {
			if matchesAbove(file, matches) {
				selected[k], found = true, true
			}
		}
		if !found && missing == "" {
			missing = r[i].text
		}
	}
	return selected, missing
}

// Dirs returns the directories in which the files are expected: of each pattern the part before its
// first name with a wildcard, or else before its last name.
func (r ReturnPatterns) Dirs() (dirs []string) {
	for i := range r {
		names := strings.Split(r[i].text, "/")
		n := slices.IndexFunc(names, func(name string) bool { return strings.ContainsAny(name, `*?[\`) })
		if n < 0 {
			n = len(names) - 1
		}
		if n > 0 {
			dirs = append(dirs, strings.Join(names[:n], "/"))
		}
	}
	return dirs
}

// isNamed reports whether a path is the pattern itself.
func (p *Pattern) isNamed(file string) bool { return file == p.text || p.text == "." }

// matchesAbove reports whether a path or a directory above it matches.
func matchesAbove(file string, match func(string) bool) bool {
	for !match(file) {
		i := strings.LastIndexByte(file, '/')
		if i < 0 {
			return false
		}
		file = file[:i]
	}
	return true
}
