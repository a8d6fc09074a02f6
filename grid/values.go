package grid

import (
	"fmt"
	"iter"
	"slices"
	"sort"
	"strings"

	"dcs-tui/jobs"
)

// values holds all values of a parameter. Those of ranges are computed on demand.
type values struct {
	parts []part
	ends  []int // number of values up to the end of each part
}

// maxValues bounds the number of values of one parameter, far above the number of jobs that can be
// run.
const maxValues = 1 << 50

func (v *values) add(p part) bool {
	n := v.count()
	if p.count() > maxValues-n {
		return false
	}
	if list, ok := p.(texts); ok && len(v.parts) > 0 {
		if before, ok := v.parts[len(v.parts)-1].(texts); ok {
			v.parts[len(v.parts)-1] = append(before, list...)
			v.ends[len(v.ends)-1] += len(list)
			return true
		}
	}
	v.parts = append(v.parts, p)
	v.ends = append(v.ends, n+p.count())
	return true
}

// written yields the values that were written one by one, without those of ranges.
func (v *values) written() iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, part := range v.parts {
			list, _ := part.(texts)
			for _, text := range list {
				if !yield(text) {
					return
				}
			}
		}
	}
}

func (v *values) count() int {
	if len(v.ends) == 0 {
		return 0
	}
	return v.ends[len(v.ends)-1]
}

func (v *values) at(k int) string {
	i := 0
	if len(v.parts) > 1 {
		i = sort.SearchInts(v.ends, k+1)
	}
	return v.parts[i].at(k - v.ends[i] + v.parts[i].count())
}

// word is a word of a list as it is written.
type word struct {
	text   string
	offset int
	quoted bool
	comma  bool // a comma follows
}

// splitWords splits a list, which begins at offset from of the line, at commas and blanks. A text
// in quotes is one word; see jobs.CutQuoted. With an error it returns the offset of the error.
func splitWords(text string, from int) (words []word, at int, err error) {
	i := from
	for {
		for i < len(text) && strings.IndexByte(blanks, text[i]) >= 0 {
			i++
		}
		if i == len(text) {
			if n := len(words); n > 0 && words[n-1].comma {
				return nil, i - 1, fmt.Errorf("the list ends in a comma: remove it, or write '' for an empty value")
			}
			return words, 0, nil
		}
		if text[i] == ',' {
			if len(words) == 0 || words[len(words)-1].comma {
				return nil, i, fmt.Errorf("there is no value before this comma: remove it, " +
					"or write '' for an empty value")
			}
			words[len(words)-1].comma = true
			i++
			continue
		}
		w := word{offset: i}
		if text[i] == '\'' || text[i] == '"' {
			var rest string
			w.text, rest, w.quoted = jobs.CutQuoted(text[i:])
			if !w.quoted {
				return nil, i, fmt.Errorf("the closing %c is missing", text[i])
			}
			i = len(text) - len(rest)
			if i < len(text) && text[i] != ',' && strings.IndexByte(blanks, text[i]) < 0 {
				return nil, i, fmt.Errorf("a comma or a space must follow the closing quote")
			}
		} else {
			end := strings.IndexAny(text[i:], ","+blanks)
			if end < 0 {
				end = len(text) - i
			}
			w.text = text[i : i+end]
			if q := strings.IndexAny(w.text, `'"`); q >= 0 {
				return nil, i + q, fmt.Errorf("a quote inside the value %s: put the whole value in quotes", w.text)
			}
			i += end
		}
		words = append(words, w)
	}
}

// checkSyntax returns an error for a list in the syntax of another language.
func checkSyntax(words []word) (at int, err error) {
	for i, w := range words {
		switch {
		case w.quoted:
		case w.text == "#":
			return w.offset, fmt.Errorf("a comment must be on a line of its own; put the value # in quotes")
		case i == 0 && (w.text == "=" || w.text == ":" || w.text == ":="):
			return w.offset, fmt.Errorf("write the values after the name without %s; put the value %s in quotes",
				w.text, w.text)
		case w.text == ".." && i > 0 && i+1 < len(words) && isNumber(words[i-1].text) && isNumber(words[i+1].text):
			return words[i-1].offset, fmt.Errorf("a range has no spaces in it: %s..%s", words[i-1].text,
				words[i+1].text)
		case strings.HasPrefix(w.text, "$(") || strings.Count(w.text, "`")%2 == 1:
			return w.offset, fmt.Errorf("values of a command are written [name] command: " +
				"seq 3, in a line of their own; put a value with spaces in quotes")
		case i > 0 && w.text == "by" && looksLikeRange(words[i-1].text) && i+1 < len(words) &&
			isNumber(words[i+1].text):
			return w.offset, fmt.Errorf("write %s step %s", words[i-1].text, words[i+1].text)
		case i == 0 && strings.ContainsAny(w.text[:1], "[({") &&
			strings.HasSuffix(words[len(words)-1].text, closing[w.text[:1]]):
			return w.offset, fmt.Errorf("write the values without %s %s around them; "+
				"put a value with brackets in quotes", w.text[:1], closing[w.text[:1]])
		case strings.Count(w.text, "(") != strings.Count(w.text, ")"):
			return w.offset, fmt.Errorf("a parenthesis is missing in %s: put a value with commas or spaces in "+
				"quotes; ranges are written 1..10, 0..1 step 0.1, log 1e-3..1e2 x6", w.text)
		}
	}
	return 0, nil
}

// decimalCommas returns the words after which stands what may be a decimal comma: in a list such as
// 1,5 2,7 only whole numbers stand around commas, and spaces separate the others; and in 1,000 zeros
// begin the second part.
func decimalCommas(words []word) (at []int) {
	mixed, pairs := true, true
	var tight []int
	for i, w := range words {
		isTight := i+1 < len(words) && w.comma && words[i+1].offset == w.offset+len(w.text)+1
		isInteger := !w.quoted && allDigits(strings.TrimLeft(w.text, "+-"))
		if isTight && isInteger && !hasLeadingZeros(w.text) && hasLeadingZeros(words[i+1].text) && !words[i+1].quoted {
			at = append(at, i)
		}
		mixed = mixed && isInteger && (!w.comma || isTight)
		if isTight {
			pairs = pairs && (i == 0 || !words[i-1].comma)
			tight = append(tight, i)
		}
	}
	if mixed && pairs && len(words) > 2 && len(tight) > 0 {
		return tight
	}
	return at
}

var closing = map[string]string{"[": "]", "(": ")", "{": "}"}

// readValues returns the values that the words of a parameter's line describe. With
// continuous, a range needs no step. doubt is called with warnings, and refuse with values that may
// mean something else.
func readValues(words []word, continuous bool, doubt,
	refuse func(w word, format string, args ...any)) (v values, at int, err error) {
	// bare returns word i if it has no quotes and no comma before it.
	bare := func(i int) string {
		if i < len(words) && !words[i].quoted && !words[i-1].comma {
			return words[i].text
		}
		return ""
	}
	if at, err := checkSyntax(words); err != nil {
		return v, at, err
	}
	for _, i := range decimalCommas(words) {
		refuse(words[i], "%s,%s may be one number or two: write %[1]s.%[2]s for one, "+
			"or a space after the comma for two", words[i].text, words[i+1].text)
	}
	for i := 0; i < len(words); i++ {
		w := words[i]
		var p part
		switch {
		case w.quoted:
			p = texts{w.text}
		case continuous && (w.text == "log" || w.text == "lin") && looksLikeRange(bare(i+1)) &&
			!strings.HasPrefix(bare(i+2), "x"):
			p, err = newInterval(w.text, words[i+1].text)
			i++
		case continuous && looksLikeRange(w.text) && bare(i+1) != "step":
			p, err = newInterval("", w.text)
		case (w.text == "log" || w.text == "lin") && looksLikeRange(bare(i+1)):
			p, err = newSpread(w.text, words[i+1].text, bare(i+2))
			i += 2
		case looksLikeRange(w.text):
			step := ""
			if bare(i+1) == "step" {
				step = bare(i + 2)
				if step == "" {
					return v, words[i+1].offset, fmt.Errorf("a number must follow step: %s step 0.1", w.text)
				}
				i += 2
			} else if next := bare(i + 1); len(next) > 1 && next[0] == 'x' && isNumber(next[1:]) {
				return v, words[i+1].offset,
					fmt.Errorf("write lin %s %s or log %s %s for so many values; put a value %s in quotes", w.text,
						next, w.text, next, next)
			}
			p, err = newSteps(w.text, step)
		default:
			before := ""
			if i > 0 && !words[i-1].quoted && !words[i-1].comma {
				before = words[i-1].text
			}
			if why := guessRange(before, w.text, bare(i+1)); why != "" {
				refuse(w, "%s may be a range or a text: %s; put a text in quotes", w.text, why)
			} else if why := guessMeaning(w.text); why != "" {
				doubt(w, "%s is taken as a text: %s", w.text, why)
			}
			p = texts{w.text}
		}
		if err != nil {
			return v, w.offset, err
		}
		if !v.add(p) {
			return v, w.offset, fmt.Errorf("there are more than %d values", int64(maxValues))
		}
	}
	return v, 0, nil
}

// rangeFunctions are functions that give ranges in other languages.
var rangeFunctions = []string{"range", "arange", "linspace", "logspace", "geomspace", "seq", "log", "lin"}

// guessRange returns how to write a range if a text may be meant as one, as it is written in other
// languages. It returns "" for most texts. before and after are the words beside it, or "".
func guessRange(before, s, after string) string {
	written := func(first, last, step string) string {
		if step != "" {
			step = " step " + step
		}
		return "a range is written " + first + ".." + last + step
	}
	if isNumber(s) {
		return ""
	}
	if a, b, ok := strings.Cut(s, ".."); ok && a != "" && b != "" && !strings.Contains(s, "/") {
		if function, _, ok := strings.Cut(a, "("); !ok || !slices.Contains(rangeFunctions, function) {
			return "a range has numbers at its ends, such as 1..10; [name] command: PROGRAM takes what a program prints"
		}
	}
	if a, b, ok := strings.Cut(s, "-"); ok && isPlainNumber(a) && isPlainNumber(b) {
		return written(a, b, "")
	}
	isText := func(part string) bool { return !isNumber(part) }
	if p := strings.Split(s, ":"); (len(p) == 2 || len(p) == 3) && !slices.ContainsFunc(p, isText) {
		if len(p) == 2 {
			return written(p[0], p[1], "")
		}
		first, _ := jobs.ParseDecimal(p[0])
		second, _ := jobs.ParseDecimal(p[1])
		third, _ := jobs.ParseDecimal(p[2])
		if sum := first.Rat(); sum.Add(sum, second.Rat()).Cmp(third.Rat()) > 0 {
			p[1], p[2] = p[2], p[1] // the step comes last
		}
		return written(p[0], p[2], p[1])
	}
	function, _, isCall := strings.Cut(s, "(")
	function = function[strings.LastIndexByte(function, '.')+1:]
	if isCall && strings.HasSuffix(s, ")") && slices.Contains(rangeFunctions, function) {
		return "ranges are written 1..10, 0..1 step 0.1, log 1e-3..1e2 x6"
	}
	switch {
	case s == "to" && isNumber(before) && isNumber(after):
		return written(before, after, "")
	case s == "step" && before != "" && isNumber(after):
		return "step follows a range, such as 0..1 step 0.1"
	}
	return ""
}

// guessMeaning describes the probable meaning of a text, or returns "" for most texts.
func guessMeaning(s string) string {
	if kind, rest, ok := strings.Cut(s, ":"); ok && (kind == fromFile || kind == fromCommand) &&
		!strings.HasPrefix(rest, "//") {
		return "values come from a " + kind + " if it stands first and a space follows, " + kind + ": " + rest
	}
	if s[0] == '#' {
		return "a comment must be on a line of its own"
	}
	if strings.ContainsAny(s, ";|") {
		return "separate values with commas or spaces"
	}
	return ""
}

// isPlainNumber reports whether a text is a number without a sign and an exponent.
func isPlainNumber(s string) bool { return strings.Trim(s, "0123456789.") == "" && isNumber(s) }

func allDigits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// quoteValue returns a text in quotes, in the form that readValues parses.
func quoteValue(s string) string {
	return `"` + quoting.Replace(s) + `"`
}

var quoting = strings.NewReplacer(`\`, `\\`, `"`, `\"`)
