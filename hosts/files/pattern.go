package files

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"dcs-tui/jobs"
)

// neverMoved are the names of directories that are neither sent nor returned. A file that a host
// could write there would be a program that runs on this machine, or a part of a run.
var neverMoved = []string{".git", "dcs-runs"}

// isNeverMoved reports whether a path has one of those names.
func isNeverMoved(path string) bool {
	for name := range strings.SplitSeq(path, "/") {
		// A directory of this machine may ignore the case of names.
		if slices.ContainsFunc(neverMoved, func(n string) bool { return strings.EqualFold(n, name) }) {
			return true
		}
	}
	return false
}

// ignoreFile is the name of files that list what is not sent, in the syntax of .gitignore.
const ignoreFile = ".dcsignore"

// ignoreRule is one line of an ignore file.
type ignoreRule struct {
	jobs.Pattern // of paths relative to the directory of the file
	negate       bool
	dirs         bool // matches directories only
}

// ignoreRules is an ignore file in the directory dir ("." for the top).
type ignoreRules struct {
	dir  string
	list []ignoreRule
}

// parseIgnore parses an ignore file; see gitignore(5).
func parseIgnore(dir string, text string) (r ignoreRules, err error) {
	r.dir = dir
	for n, line := range strings.Split(strings.TrimPrefix(text, "\ufeff"), "\n") {
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
		if slices.ContainsFunc(strings.Split(line, "/"), isNoName) {
			continue // matches nothing
		}
		if !anchored {
			line = "**/" + line
		}
		if rule.Pattern, err = jobs.ParsePattern(line); err != nil {
			return r, fmt.Errorf("%s: line %d: %w", filepath.Join(dir, ignoreFile), n+1, err)
		}
		r.list = append(r.list, rule)
	}
	return r, nil
}

// isNoName reports whether no file has a name.
func isNoName(name string) bool { return name == "" || name == "." || name == ".." }

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
			if r := &files[i].list[j]; (isDir || !r.dirs) && r.Match(below) {
				return !r.negate
			}
		}
	}
	return false
}
