package files

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
)

// CheckPattern checks a pattern of files that a job returns: a path relative to its
// directory, with the wildcards *, ?, [a-z], and ** (any number of directories).
func CheckPattern(p string) error {
	if err := CheckLocal(p); err != nil {
		return err
	}
	_, err := globRegexp(filepath.Clean(p))
	return err
}

// CheckLocal checks that a relative path does not lead out of its directory.
func CheckLocal(p string) error {
	switch {
	case p == "" || strings.ContainsRune(p, 0):
		return fmt.Errorf("%q is not a path", p)
	case filepath.IsAbs(p):
		return fmt.Errorf("%q must be relative to the directory of the job", p)
	case !filepath.IsLocal(p):
		return fmt.Errorf("%q leads out of the directory of the job", p)
	}
	return nil
}

// globRegexp translates a pattern of whole paths, as gitignore(5) describes it.
func globRegexp(glob string) (*regexp.Regexp, error) {
	var b strings.Builder
	b.WriteString(`(?s)\A`)
	for i := 0; i < len(glob); {
		rest := glob[i:]
		atStart := i == 0 || glob[i-1] == '/'
		switch c := glob[i]; {
		case atStart && strings.HasPrefix(rest, "**/"):
			b.WriteString(`(?:[^/]+/)*`)
			i += 3
		case atStart && rest == "**":
			b.WriteString(`.+`)
			i += 2
		case c == '*':
			b.WriteString(`[^/]*`)
			i++
		case c == '?':
			b.WriteString(`[^/]`)
			i++
		case c == '[':
			class, n := globClass(rest)
			if n == 0 {
				return nil, fmt.Errorf("%q: the ] of [ is missing", glob)
			}
			b.WriteString(class)
			i += n
		case c == '\\' && i+1 < len(glob):
			b.WriteString(quoteByte(glob[i+1]))
			i += 2
		default:
			b.WriteString(quoteByte(c))
			i++
		}
	}
	re, err := regexp.Compile(b.String() + `\z`)
	if err != nil {
		return nil, fmt.Errorf("%q is not a pattern", glob)
	}
	return re, nil
}

// quoteByte returns the regular expression for one byte of a pattern. Bytes of multi-byte
// characters stand for themselves.
func quoteByte(c byte) string {
	if c < 0x80 {
		return regexp.QuoteMeta(string(rune(c)))
	}
	return string([]byte{c})
}

// globClass translates [...] at the beginning of s. n is its length, or 0 if the ] is missing.
func globClass(s string) (class string, n int) {
	i := 1
	if i < len(s) && (s[i] == '!' || s[i] == '^') {
		i++
	}
	first := i
	for i < len(s) && (s[i] != ']' || i == first) {
		if s[i] == '\\' {
			i++
		}
		i++
	}
	if i >= len(s) {
		return "", 0
	}
	in := strings.NewReplacer(`[`, `\[`, `&&`, `&\&`).Replace(s[first:i])
	if strings.HasPrefix(in, "]") {
		in = `\` + in
	}
	if first > 1 {
		return `[^/` + in + `]`, i + 1
	}
	return `[` + in + `]`, i + 1
}

// ignoreFile is the name of files that list what is not sent, in the syntax of .gitignore.
const ignoreFile = ".dcsignore"

// ignoreRule is one line of an ignore file.
type ignoreRule struct {
	re     *regexp.Regexp // of paths relative to the directory of the file
	negate bool
	dirs   bool // matches directories only
}

// ignoreRules is an ignore file in the directory dir ("." for the top).
type ignoreRules struct {
	dir  string
	list []ignoreRule
}

// parseIgnore parses an ignore file; see gitignore(5).
func parseIgnore(dir string, text string) (r ignoreRules, err error) {
	r.dir = dir
	for n, line := range strings.Split(text, "\n") {
		line = strings.TrimSuffix(line, "\r")
		for strings.HasSuffix(line, " ") && !strings.HasSuffix(line, `\ `) {
			line = line[:len(line)-1]
		}
		if line == "" || line[0] == '#' {
			continue
		}
		var rule ignoreRule
		line, rule.negate = strings.CutPrefix(line, "!")
		line, rule.dirs = strings.CutSuffix(line, "/")
		anchored := strings.Contains(line, "/")
		line = strings.TrimPrefix(line, "/")
		if line == "" {
			continue
		}
		if !anchored {
			line = "**/" + line
		}
		if rule.re, err = globRegexp(line); err != nil {
			return r, fmt.Errorf("%s: line %d: %w", filepath.Join(dir, ignoreFile), n+1, err)
		}
		r.list = append(r.list, rule)
	}
	return r, nil
}

// isIgnored reports whether a path is not sent. The last matching rule of the deepest file with
// a matching rule decides.
func isIgnored(files []ignoreRules, path string, isDir bool) bool {
	for i := len(files) - 1; i >= 0; i-- {
		below := path
		if d := files[i].dir; d != "." {
			var ok bool
			if below, ok = strings.CutPrefix(path, d+"/"); !ok {
				continue
			}
		}
		for j := len(files[i].list) - 1; j >= 0; j-- {
			if r := &files[i].list[j]; (isDir || !r.dirs) && r.re.MatchString(below) {
				return !r.negate
			}
		}
	}
	return false
}
