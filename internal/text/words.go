package text

import (
	"slices"
	"strconv"
	"strings"
)

// Nearest returns the known word that s was probably meant to be, or "" if none is close. One typo
// is accepted. In words of four letters or more, two swapped letters are accepted as well. In words
// of five letters or more, any two typos after the first letter are accepted. The same words in
// another order are accepted, too. Case is ignored, and "-" equals "_".
func Nearest(s string, known []string) string {
	s = plainWord(s)
	if len(s) > 40 {
		return ""
	}
	best, bestD := "", 3
	if len(s) < 4 {
		bestD = 2
	}
	for _, k := range known {
		p := plainWord(k)
		if sameWords(s, p) {
			return k
		}
		if d := editDistance(s, p); d < bestD && d < len(k) && (d < 2 || swapped(s, p) || max(len(s), len(p)) > 4 &&
			s[0] == p[0]) {
			best, bestD = k, d
		}
	}
	return best
}

func plainWord(s string) string { return strings.ToLower(strings.ReplaceAll(s, "-", "_")) }

// sameWords reports whether a and b have the same words, perhaps in another order.
func sameWords(a, b string) bool {
	sorted := func(s string) []string { return slices.Sorted(strings.SplitSeq(s, "_")) }
	return len(a) == len(b) && slices.Equal(sorted(a), sorted(b))
}

// swapped reports whether b equals a with two neighboring letters swapped.
func swapped(a, b string) bool {
	i := 0
	for i < len(a) && i < len(b) && a[i] == b[i] {
		i++
	}
	return len(a) == len(b) && i+1 < len(a) && a[i] == b[i+1] && a[i+1] == b[i] && a[i+2:] == b[i+2:]
}

// editDistance returns the Levenshtein distance.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// Each returns a text for each element of a list.
func Each[T any](list []T, f func(T) string) []string {
	texts := make([]string, len(list))
	for i, x := range list {
		texts[i] = f(x)
	}
	return texts
}

// If returns a text that is there only under a condition: s or "".
func If(is bool, s string) string {
	if is {
		return s
	}
	return ""
}

// Join joins the texts that are not empty.
func Join(separator string, texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(s string) bool { return s == "" }), separator)
}

// List joins names. If there are more than limit+1, it names limit and counts the others: "a, b and 3
// more".
func List(names []string, limit int) string {
	if more := len(names) - limit; more > 1 {
		return strings.Join(names[:limit], ", ") + " and " + Thousands(more) + " more"
	}
	return strings.Join(names, ", ")
}

// Thousands formats a number with commas: 100,000.
func Thousands(n int) string {
	text := strconv.Itoa(max(n, -n))
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	if n < 0 {
		return "-" + text
	}
	return text
}

// Plural formats a number of things: "1 job", "1,200 jobs", "3 processes".
func Plural(n int, thing string) string { return Thousands(n) + " " + Noun(n, thing) }

// Noun returns the noun for n things: "job", "jobs", "processes".
func Noun(n int, thing string) string {
	switch {
	case n == 1:
		return thing
	case strings.HasSuffix(thing, "s"):
		return thing + "es"
	}
	return thing + "s"
}

// Verb returns the verb form for n things: "1 job has", "3 jobs have".
func Verb(n int, one, more string) string {
	if n == 1 {
		return one
	}
	return more
}
