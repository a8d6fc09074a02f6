//go:build linux

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// pageBlock is a marker of a page of the documentation and the code block below it. A marker is an
// HTML comment, which a reader does not see:
//
//	<!-- have: COMMANDS -->        what a reader of the page must have: commands of the shell
//	<!-- run [long] [yes=COMMAND] [exit=N] -->
//	                               the block has commands: long, if they need ssh servers or a build;
//	                               yes, if this command asks, and the reader says yes
//	<!-- file NAME -->             the block is the content of a file
//	<!-- output [long] [keys] [varies=N,M] [maybe=N,M] -->
//	                               the block is what the last commands print. Numbers with a unit may
//	                               differ, on the lines of varies all numbers; lines of maybe may be
//	                               missing or others; a … is any text, alone on a line any lines. With
//	                               keys, only the names in JSON count
//	<!-- inventory -->             the block is an inventory, or keys of a host
//	<!-- tested: DIR TEST -->      a test in this directory reads the page and checks the block
//	<!-- not run: REASON -->       the block cannot be run here
type pageBlock struct {
	page   string
	line   int // of the fence, or of the marker of a block without one
	marker string
	words  []string // of the marker, after its first
	text   string   // of the marker after a colon
	code   string
}

func (b *pageBlock) at() string { return fmt.Sprintf("%s:%d", b.page, b.line) }

func (b *pageBlock) has(word string) bool { return slices.Contains(b.words, word) }

// value returns the value of a word NAME=VALUE of the marker, or "".
func (b *pageBlock) value(name string) string {
	for _, w := range b.words {
		if v, ok := strings.CutPrefix(w, name+"="); ok {
			return v
		}
	}
	return ""
}

// markerWords are the words that each marker may have.
var markerWords = map[string]*regexp.Regexp{
	"have":      regexp.MustCompile(`^long$`),
	"run":       regexp.MustCompile(`^(long|yes=[a-z]+|exit=\d+)$`),
	"file":      regexp.MustCompile(`^[\w./-]+$`),
	"output":    regexp.MustCompile(`^(long|keys|(varies|maybe)=\d+(,\d+)*)$`),
	"inventory": nil,
	"tested":    nil,
	"not":       regexp.MustCompile(`^run$`),
}

// pageBlocks returns the markers and the code blocks of a page, in order, and what is wrong with
// them.
func pageBlocks(page, text string) (blocks []*pageBlock, problems []string) {
	lines := strings.Split(text, "\n")
	var marker *pageBlock // waits for its code block
	problem := func(line int, format string, args ...any) {
		problems = append(problems, fmt.Sprintf("%s:%d: ", page, line)+fmt.Sprintf(format, args...))
	}
	for i := 0; i < len(lines); i++ {
		line := strings.TrimSpace(lines[i])
		switch {
		case strings.HasPrefix(line, "<!--"):
			if marker != nil {
				problem(marker.line, "no code block follows")
			}
			start := i
			for !strings.HasSuffix(strings.TrimSpace(lines[i]), "-->") && i+1 < len(lines) {
				i++
				line += "\n" + lines[i]
			}
			line = strings.TrimSuffix(strings.TrimPrefix(line, "<!--"), "-->")
			head, text, _ := strings.Cut(line, ":")
			words := strings.Fields(head)
			marker = &pageBlock{
				page:   page,
				line:   start + 1,
				marker: words[0],
				words:  words[1:],
				text:   strings.TrimSpace(text),
			}
			if marker.marker == "keys" || marker.marker == "end" { // for the generator of tables
				marker = nil
				continue
			}
			allowed, isMarker := markerWords[marker.marker]
			if !isMarker {
				problem(marker.line, "unknown marker %q", marker.marker)
				marker = nil
				continue
			}
			for _, w := range marker.words {
				if allowed == nil || !allowed.MatchString(w) {
					problem(marker.line, "%s has no word %q", marker.marker, w)
				}
			}
			if marker.marker == "have" {
				blocks, marker = append(blocks, marker), nil
			}
		case strings.HasPrefix(line, "```"):
			b := marker
			if b == nil {
				b = &pageBlock{page: page}
			}
			marker = nil
			b.line = i + 1
			indent := lines[i][:strings.Index(lines[i], "`")]
			for i++; i < len(lines) && !strings.HasPrefix(strings.TrimSpace(lines[i]), "```"); i++ {
				b.code += strings.TrimPrefix(lines[i], indent) + "\n"
			}
			blocks = append(blocks, b)
		case line != "" && marker != nil:
			problem(marker.line, "no code block follows")
			marker = nil
		}
	}
	if marker != nil {
		problem(marker.line, "no code block follows")
	}
	return blocks, problems
}

// TestPageBlocksAreFound checks that markers belong to the code block that follows.
func TestPageBlocksAreFound(t *testing.T) {
	page := "text `<!-- run -->`\n<!-- have: a\nb -->\n\n<!-- run long exit=3 -->\n```sh\nx\n```\n" +
		"- item\n  ```\n  y\n  ```\n" +
		"<!-- file a -->\ntext\n<!-- rum -->\n<!-- run lang -->\n```\n<!-- z -->\n```\n"
	blocks, problems := pageBlocks("p", page)
	var got []string
	for _, b := range blocks {
		got = append(got, fmt.Sprintf("%d %s %v %q %q", b.line, b.marker, b.words, b.text, b.code))
	}
	want := []string{`2 have [] "a\nb" ""`, `6 run [long exit=3] "" "x\n"`, `10  [] "" "y\n"`,
		`17 run [lang] "" "<!-- z -->\n"`}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	wantProblems := []string{
		"p:13: no code block follows", `p:15: unknown marker "rum"`, `p:16: run has no word "lang"`,
	}
	if !slices.Equal(problems, wantProblems) {
		t.Errorf("%q", problems)
	}
}

// withUnit matches numbers that differ from run to run: durations, sizes, shares, times, and dates.
var (
	withUnit = regexp.MustCompile(`<?\b(\d+(h|m|d) )?\d[\d,]*(\.\d+)? ?(ns|µs|ms|s|min|m|h|d|%|B|KiB|MiB|GiB|TiB|` +
		`kB|MB|GB)(\b|/s|\B)`)
	number    = regexp.MustCompile(`\d[\d,]*(\.\d+)?`)
	sparkline = regexp.MustCompile(`[▁-█]+`)
	blanks    = regexp.MustCompile(`[ \t]+`)
)

// printsOutput returns which line of a block of the documentation is not in what commands printed,
// or "". The first line may follow others.
func printsOutput(printed, block, varies, maybe string) string {
	varying, optional := strings.Split(varies, ","), strings.Split(maybe, ",")
	normal := func(s string, all bool) string {
		s = withUnit.ReplaceAllString(s, "#")
		if all {
			s = sparkline.ReplaceAllString(s, "#")
			s = number.ReplaceAllString(s, "#")
		}
		return strings.TrimRight(blanks.ReplaceAllString(s, " "), " ")
	}
	lines := strings.Split(strings.TrimRight(printed, "\n"), "\n")
	at, anywhere := 0, true
	for i, want := range strings.Split(strings.TrimRight(block, "\n"), "\n") {
		if strings.TrimSpace(want) == "…" {
			anywhere = true
			continue
		}
		all := slices.Contains(varying, fmt.Sprint(i+1))
		pattern := regexp.MustCompile("^" + strings.ReplaceAll(regexp.QuoteMeta(normal(want, all)), "…", ".*") + "$")
		next := at
		for next < len(lines) && !pattern.MatchString(normal(lines[next], all)) {
			next++
		}
		switch {
		case next < len(lines) && (anywhere || next == at):
			at, anywhere = next+1, false
		case slices.Contains(optional, fmt.Sprint(i+1)):
			anywhere = true
		default:
			return want
		}
	}
	return ""
}

var jsonKey = regexp.MustCompile(`"\w+":`)

// printsKeys returns which name in the JSON of a block is not in what commands printed, or "".
func printsKeys(printed, block string) string {
	for _, key := range jsonKey.FindAllString(block, -1) {
		if !strings.Contains(printed, key) {
			return key
		}
	}
	return ""
}

// TestOutputIsCompared checks what may differ between a page and the program, and what may not.
func TestOutputIsCompared(t *testing.T) {
	printed := "note\n✓ pi: 40 jobs in 13.9 s\nlongest job 31 with 871 ms\nend  of it\n"
	for _, c := range []struct{ block, varies, maybe, want string }{
		{"✓ pi: 40 jobs in 2 min\n", "", "", ""},
		{"✓ pi: 41 jobs in 2 min\n", "", "", "✓ pi: 41 jobs in 2 min"},
		{"✓ pi: 40 jobs in 2 min\nlongest job 7 with 1.5 s\n", "2", "", ""},
		{"✓ pi: 40 jobs in 2 min\nlongest job 7 with 1.5 s\n", "1", "", "longest job 7 with 1.5 s"},
		{"✓ pi: 40 jobs in 2 min\nend of it\n", "", "", "end of it"},
		{"✓ pi: 40 jobs in 2 min\n…\nend of it\n", "", "", ""},
		{"✓ … jobs in 2 min\n…\nend …\n", "", "", ""},
		{"end of it\nnote\n", "", "", "note"},
		{"note\nno such line\n✓ …\n", "", "2", ""},
		{"note\nlongest …\n✓ …\n", "", "2", ""},
		{"note\nno such line\nlongest …\n", "", "2", ""},
		{"note\nno such line\nno other\n", "", "2", "no other"},
	} {
		if got := printsOutput(printed, c.block, c.varies, c.maybe); got != c.want {
			t.Errorf("%q: %q, want %q", c.block, got, c.want)
		}
	}
}

// repositoryFiles returns the names of the files of the repository.
func repositoryFiles(t *testing.T) []string {
	t.Helper()
	files, err := exec.Command("git", "-C", "../..", "ls-files", "-z", "--cached", "--others",
		"--exclude-standard").Output()
	if err != nil {
		t.Skip("LEFT OUT: this is no git checkout")
	}
	return strings.Split(strings.TrimRight(string(files), "\x00"), "\x00")
}

func copyFiles(t *testing.T, dir string, names []string) {
	t.Helper()
	for _, name := range names {
		info, err := os.Stat(filepath.Join("../..", name))
		if err != nil {
			continue // removed but not committed yet
		}
		data, err := os.ReadFile(filepath.Join("../..", name))
		must(t, err)
		must(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700))
		must(t, os.WriteFile(filepath.Join(dir, name), data, info.Mode().Perm()))
	}
}
