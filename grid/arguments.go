package grid

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"dcs-tui/internal/text"
	"dcs-tui/jobs"
)

// Arguments is a command with the values for its placeholders, as GNU parallel writes them, such as
// gzip -{1} {2} ::: 1 9 ::: a.log b.log.
type Arguments struct {
	shell   string // path; "": /bin/sh
	command []argumentPart
	raw     bool // the values are commands themselves and are not quoted
	sources []inputSource
	returns [][]argumentPart // patterns of files with placeholders
	hasRead bool             // standard input is a source
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
// values are the commands. shell is the path of the shell that runs them; "" is /bin/sh.
func ParseArguments(shell, command string, words []string, stdin io.Reader) (*Arguments, error) {
	a := &Arguments{shell: shell, raw: strings.TrimSpace(command) == ""}
	for len(words) > 0 {
		separator := words[0]
		values, rest := CutArguments(words[1:])
		if err := a.addSources(separator, values, stdin); err != nil {
			return nil, err
		}
		words = rest
	}
	parts, found, err := a.parse(command, "the command")
	switch {
	case err != nil:
		return nil, err
	case a.raw:
		parts, _, err = a.parse("{}", "the command")
	case !found:
		parts, _, err = a.parse(command+" {}", "the command")
	}
	a.command = parts
	return a, err
}

// addSources adds the source of the values after :::, or a source for each of the files after ::::.
func (a *Arguments) addSources(separator string, values []string, stdin io.Reader) error {
	linked := strings.HasSuffix(separator, "+")
	isFiles := strings.HasPrefix(separator, "::::")
	switch {
	case len(values) == 0:
		return fmt.Errorf("no values after %s", separator)
	case linked && len(a.sources) == 0 && !(isFiles && len(values) > 1):
		return fmt.Errorf("%s links values to those before it, but there are none: begin with %s", separator,
			strings.TrimSuffix(separator, "+"))
	case !isFiles:
		for _, v := range values {
			if strings.Contains(v, "\n") {
				return text.Errorf("the value %s after %s has a newline, which begins another value in GNU parallel",
					quoteText(v), separator).WithAdvice("echo {} :::: FILE has a value for each line of a file; " +
					"a .jsonl jobs file can have commands of several lines")
			}
		}
		a.sources = append(a.sources, inputSource{values: values, linked: linked})
		return nil
	}
	for _, file := range values {
		if file == Stdin && a.hasRead {
			return errors.New("standard input (-) can be one source of values only")
		}
		a.hasRead = a.hasRead || file == Stdin
		lines, err := readValueLines(file, stdin)
		if err != nil {
			return err
		}
		a.sources = append(a.sources, inputSource{values: lines, linked: linked && len(a.sources) > 0})
	}
	return nil
}

// readValueLines reads a file with one value per line.
func readValueLines(file string, stdin io.Reader) ([]string, error) {
	if file != Stdin {
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
	if errors.Is(sc.Err(), bufio.ErrTooLong) {
		return nil, fmt.Errorf("read values: %s:%d: the line is longer than %d KiB, more than Linux hands to a program",
			file, len(values)+1, maxValue>>10)
	}
	if err := sc.Err(); err != nil {
		return nil, fmt.Errorf("read values: %s:%d: %w", file, len(values)+1, err)
	}
	return values, nil
}

// SetReturn gives the patterns that have placeholders to the jobs as options, and returns them.
func (a *Arguments) SetReturn(patterns []string) (taken []string, err error) {
	for _, p := range patterns {
		parts, found, err := a.parse(p, "--return "+strconv.Quote(p))
		if err != nil {
			return nil, err
		}
		if found {
			a.returns, taken = append(a.returns, parts), append(taken, p)
		}
	}
	return taken, nil
}

// Jobs returns a job for each combination of values. Values of the last source change fastest.
// Linked sources are combined by position, up to the length of the shortest. More than limit
// combinations are an error. order returns a permutation of the numbers below n, such as rand.Perm,
// in which the n combinations become jobs; nil keeps their order.
func (a *Arguments) Jobs(limit int, order func(n int) []int) ([]*jobs.Spec, error) {
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
		n *= lengths[i]
		if n > limit {
			return nil, fmt.Errorf("the values have more than %d combinations", limit)
		}
	}
	var permutation []int
	if order != nil {
		permutation = order(n)
	}
	specs, options := make([]*jobs.Spec, n), new(jobs.Options)
	values := make([]string, 0, len(a.sources))
	for k := range specs {
		values = values[:0]
		rest, at := k, make([]int, len(groups))
		if order != nil {
			rest = permutation[k]
		}
		for i := len(groups) - 1; i >= 0; i-- {
			at[i], rest = rest%lengths[i], rest/lengths[i]
		}
		for i, g := range groups {
			for _, s := range g {
				values = append(values, s.values[at[i]])
			}
		}
		if err := checkQuotes(a.command, k+1, values); err != nil {
			return nil, err
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
