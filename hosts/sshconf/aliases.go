package sshconf

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// maxInclude is how deep ssh lets files include files.
const maxInclude = 16

// Aliases returns the names of the Host lines of an ssh configuration file, in their order
// and without patterns; path "" means ~/.ssh/config. Files that it includes are read, too.
// The error is that of the file itself: what cannot be read of the others is left out, as
// ssh does.
func Aliases(path string) ([]string, error) {
	env, err := thisUser()
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(env.home, ".ssh")
	if path == "" {
		path = filepath.Join(dir, "config")
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var names []string
	var read func(data []byte, depth int)
	read = func(data []byte, depth int) {
		for line := range bytes.Lines(data) {
			words := configWords(string(line))
			if len(words) < 2 {
				continue
			}
			switch strings.ToLower(words[0]) {
			case "host":
				for _, name := range words[1:] {
					if !strings.ContainsAny(name, "*?!") && !slices.Contains(names, name) {
						names = append(names, name)
					}
				}
			case "include":
				for _, pattern := range words[1:] {
					if pattern = env.tilde(pattern); !filepath.IsAbs(pattern) {
						pattern = filepath.Join(dir, pattern)
					}
					files, _ := filepath.Glob(pattern) // a bad pattern fits no file
					for _, file := range files {
						if data, err := os.ReadFile(file); err == nil && depth < maxInclude {
							read(data, depth+1)
						}
					}
				}
			}
		}
	}
	read(data, 0)
	return names, nil
}

// configWords splits a line of an ssh configuration: a keyword, blanks or one "=", and words
// that may be quoted. # begins a comment.
func configWords(line string) []string {
	line = strings.TrimSpace(line)
	end := strings.IndexAny(line, " \t=")
	if end < 0 || line[0] == '#' {
		return nil
	}
	words := []string{line[:end]}
	line = strings.TrimPrefix(strings.TrimLeft(line[end:], " \t"), "=")
	for line = strings.TrimLeft(line, " \t"); line != "" && line[0] != '#'; line = strings.TrimLeft(line, " \t") {
		word, rest := line, ""
		if line[0] == '"' {
			word, rest, _ = strings.Cut(line[1:], `"`)
		} else if end := strings.IndexAny(line, " \t"); end >= 0 {
			word, rest = line[:end], line[end:]
		}
		words, line = append(words, word), rest
	}
	return words
}
