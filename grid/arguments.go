package grid

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"dcs-tui/internal/text"
	"dcs-tui/jobs"
)

// Arguments is a command with the values for its placeholders, as GNU parallel writes them, such as
// gzip -{1} {2} ::: 1 9 ::: a.log b.log.
type Arguments struct {
	command string
	raw     bool // the values are commands themselves and are not quoted
	sources []inputSource
	returns []string // patterns of files with placeholders
}

// inputSource holds the values that follow one separator.
type inputSource struct {
	values []string
	linked bool // each value is paired with the one at the same position in the previous source
}

// The separators before values, and before names of files with one value per line. A separator with
// + links its source to the previous one.
var separators = []string{":::", ":::+", "::::", "::::+"}

// CutArguments cuts the words of a command line before the first separator. rest is nil if there is
// none.
func CutArguments(words []string) (before, rest []string) {
	if i := slices.IndexFunc(words, func(w string) bool { return slices.Contains(separators, w) }); i >= 0 {
		return words[:i], words[i:]
	}
	return words, nil
}

// ParseArguments returns the Arguments of a command and of the words that follow it, the first of
// which is a separator. It reads the files that the words name; "-" is stdin. Without a command the
// values are the commands.
func ParseArguments(command string, words []string, stdin io.Reader) (*Arguments, error) {
	a := &Arguments{command: command, raw: strings.TrimSpace(command) == ""}
	for len(words) > 0 {
		separator := words[0]
		values, rest := CutArguments(words[1:])
		words = rest
		s := inputSource{linked: strings.HasSuffix(separator, "+")}
		switch {
		case s.linked && len(a.sources) == 0:
			return nil, fmt.Errorf("%s links values to those before it, but there are none: begin with %s", separator, strings.TrimSuffix(separator, "+"))
		case len(values) == 0:
			return nil, fmt.Errorf("no values after %s", separator)
		}
		if s.values = values; strings.HasPrefix(separator, "::::") {
			s.values = nil
			for _, file := range values {
				lines, err := readValueLines(file, stdin)
				if err != nil {
					return nil, err
				}
				s.values = append(s.values, lines...)
			}
		}
		a.sources = append(a.sources, s)
	}
	if err := a.check(command, "the command"); err != nil {
		return nil, err
	}
	switch {
	case a.raw:
		a.command = "{}"
	case !placeholder().MatchString(command):
		a.command += " {}"
	}
	return a, nil
}

// readValueLines reads a file with one value per line.
func readValueLines(file string, stdin io.Reader) ([]string, error) {
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return nil, fmt.Errorf("read values: %w", err)
		}
		defer f.Close()
		stdin = f
	}
	var values []string
	sc := bufio.NewScanner(stdin)
	sc.Buffer(nil, maxValue)
	for sc.Scan() {
		if strings.ContainsRune(sc.Text(), 0) {
			return nil, fmt.Errorf("read values: %s:%d: the line contains a NUL byte", file, len(values)+1)
		}
		value := sc.Text()
		if len(values) == 0 {
			value = strings.TrimPrefix(value, "\ufeff")
		}
		values = append(values, value)
	}
	if err := sc.Err(); err != nil {
		return nil, fmt.Errorf("read values: %s:%d: %w", file, len(values)+1, err)
	}
	return values, nil
}

// placeholder matches {}, {.}, {/}, {//}, {/.}, {#}, and {2}, {2.}, {2/} and so on.
var placeholder = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\{(?:(\d*)(\.|/|//|/\.)?|(#))\}`) })

// SetReturn gives the patterns that have placeholders to the jobs as options, and returns them.
func (a *Arguments) SetReturn(patterns []string) (taken []string, err error) {
	for _, p := range patterns {
		if placeholder().MatchString(p) {
			if err := a.check(p, strconv.Quote(p)); err != nil {
				return nil, err
			}
			a.returns = append(a.returns, p)
		}
	}
	return a.returns, nil
}

// check returns an error for a placeholder in a text of a source that does not exist.
func (a *Arguments) check(text, what string) error {
	for _, m := range placeholder().FindAllStringSubmatch(text, -1) {
		if m[1] == "" {
			continue
		}
		if n, err := strconv.Atoi(m[1]); err != nil || n < 1 || n > len(a.sources) {
			return fmt.Errorf("%s in %s: there %s", m[0], what, jobs.Verb(len(a.sources), "is one source of values", fmt.Sprintf("are %d sources of values", len(a.sources))))
		}
	}
	return nil
}

// Jobs returns a job for each combination of values. Values of the last source change fastest.
// Linked sources are combined by position, up to the length of the shortest. More than limit
// combinations are an error.
func (a *Arguments) Jobs(limit int) ([]*jobs.Spec, error) {
	var groups [][]inputSource
	for _, s := range a.sources {
		if s.linked {
			groups[len(groups)-1] = append(groups[len(groups)-1], s)
		} else {
			groups = append(groups, []inputSource{s})
		}
	}
	lengths, n := make([]int, len(groups)), 1
	for i, g := range groups {
		lengths[i] = len(g[0].values)
		for _, s := range g {
			lengths[i] = min(lengths[i], len(s.values))
		}
		if n *= lengths[i]; n > limit {
			return nil, fmt.Errorf("the values have more than %d combinations", limit)
		}
	}
	specs, options := make([]*jobs.Spec, n), new(jobs.Options)
	values := make([]string, 0, len(a.sources))
	for k := range specs {
		values = values[:0]
		rest, at := k, make([]int, len(groups))
		for i := len(groups) - 1; i >= 0; i-- {
			at[i], rest = rest%lengths[i], rest/lengths[i]
		}
		for i, g := range groups {
			for _, s := range g {
				values = append(values, s.values[at[i]])
			}
		}
		specs[k] = a.job(k+1, values)
		specs[k].Options = options
		if a.returns == nil {
			continue
		}
		made := new(jobs.Options)
		for _, p := range a.returns {
			made.Return = append(made.Return, expand(p, k+1, values, jobs.QuotePattern))
		}
		if _, err := jobs.ParseReturn(made.Return); err != nil {
			return nil, fmt.Errorf("--return: job %d: %w", k+1, err)
		}
		specs[k].Options = made
	}
	return specs, nil
}

// job returns the job of number n with these values.
func (a *Arguments) job(n int, values []string) *jobs.Spec {
	params := make([]jobs.Param, len(values))
	for i, v := range values {
		params[i] = jobs.Param{Name: strconv.Itoa(i + 1), Value: v}
	}
	spec := &jobs.Spec{ID: jobs.ID(n), Labels: jobs.NewLabels("", params)}
	quote := text.ShellWord
	if a.raw {
		quote = verbatim
	}
	spec.Command = expand(a.command, n, values, quote)
	return spec
}

// expand returns a text of job n with its values in place of the placeholders.
func expand(text string, n int, values []string, quote func(string) string) string {
	return placeholder().ReplaceAllStringFunc(text, func(p string) string {
		m := placeholder().FindStringSubmatch(p)
		if m[3] == "#" {
			return strconv.Itoa(n)
		}
		chosen := values
		if m[1] != "" {
			i, _ := strconv.Atoi(m[1])
			chosen = values[i-1 : i]
		}
		words := make([]string, len(chosen))
		for i, v := range chosen {
			words[i] = quote(pathPart(v, m[2]))
		}
		return strings.Join(words, " ")
	})
}

// dirname is dirname(1). Unlike path.Dir it keeps ".." and repeated slashes in the result.
func dirname(v string) string {
	trimmed := strings.TrimRight(v, "/")
	dir := strings.TrimRight(trimmed[:strings.LastIndexByte(trimmed, '/')+1], "/")
	switch {
	case dir != "":
		return dir
	case strings.HasPrefix(v, "/"):
		return "/"
	}
	return "."
}

// extension returns the part of a value that {.} removes.
var extension = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\.[^/.]+$`) })

// pathPart returns the part of a value that the letters of a placeholder select.
func pathPart(v, letters string) string {
	switch letters {
	case ".":
		return extension().ReplaceAllString(v, "")
	case "/":
		return v[strings.LastIndexByte(v, '/')+1:]
	case "//":
		return dirname(v)
	case "/.":
		return extension().ReplaceAllString(v[strings.LastIndexByte(v, '/')+1:], "")
	}
	return v
}
