package hosts

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// MaxHosts is the maximum number of hosts in an inventory. A larger range, such as
// node[1-999999999], is refused before it is expanded.
const MaxHosts = 10000

// Expand expands a name pattern: node[01-12], ws[1,3,5-7], r[1-2]n[1-4]. A first number with
// leading zeros determines the width. The order is that of the text, and the last bracket
// varies fastest. A pattern without brackets stands for itself.
func Expand(pattern string) ([]string, error) {
	names := []string{""}
	for rest := pattern; ; {
		open, end := strings.IndexByte(rest, '['), strings.IndexByte(rest, ']')
		switch {
		case open < 0 && end < 0:
			for i := range names {
				names[i] += rest
			}
			return names, nil
		case open < 0:
			return nil, fmt.Errorf("%q has a ] without a [", pattern)
		case end < open:
			return nil, fmt.Errorf("%q: brackets do not match", pattern)
		}
		numbers, err := expandNumbers(rest[open+1 : end])
		if err != nil {
			return nil, fmt.Errorf("%q: %w", pattern, err)
		}
		if len(names)*len(numbers) > MaxHosts {
			return nil, fmt.Errorf("%q stands for more than %d hosts", pattern, MaxHosts)
		}
		var longer []string
		for _, name := range names {
			for _, number := range numbers {
				longer = append(longer, name+rest[:open]+number)
			}
		}
		names, rest = longer, rest[end+1:]
	}
}

// expandNumbers expands the content of a bracket: 7, 05-12, or several of them.
func expandNumbers(text string) (numbers []string, err error) {
	for part := range strings.SplitSeq(text, ",") {
		part = strings.TrimSpace(part)
		low, high, isRange := strings.Cut(part, "-")
		if !isRange {
			high = low
		}
		low, high = strings.TrimSpace(low), strings.TrimSpace(high)
		from, err := rangeNumber(low)
		if err != nil {
			return nil, err
		}
		to, err := rangeNumber(high)
		if err != nil {
			return nil, err
		}
		switch {
		case to < from:
			return nil, fmt.Errorf("the range [%s] runs backwards", part)
		case len(high) > 1 && high[0] == '0' && len(high) != len(low):
			return nil, fmt.Errorf("the ends of the range [%s] differ in width", part)
		case len(numbers)+to-from >= MaxHosts:
			return nil, fmt.Errorf("the range [%s] stands for more than %d hosts", part, MaxHosts)
		}
		width := 0
		if low[0] == '0' {
			width = len(low)
		}
		for k := from; k <= to; k++ {
			numbers = append(numbers, fmt.Sprintf("%0*d", width, k))
		}
	}
	return numbers, nil
}

func rangeNumber(s string) (int, error) {
	switch {
	case s == "":
		return 0, fmt.Errorf("a number is missing in the brackets (write node[01-12] or ws[1,3,5-7])")
	case strings.Trim(s, "0123456789") != "":
		return 0, fmt.Errorf("%q in the brackets is not a number", s)
	case len(s) > 9:
		return 0, fmt.Errorf("the number %q in the brackets is too long", s)
	}
	return strconv.Atoi(s)
}

// nameProblem describes the error in a host's name, or returns "". Names are used as names of
// directories on hosts, so few characters are allowed.
func nameProblem(name string) string {
	switch {
	case name == "":
		return "a host needs a name"
	case len(name) > maxName:
		return fmt.Sprintf("the host name %.20s… has %d characters; %d are allowed", name, len(name), maxName)
	case strings.IndexByte(".-", name[0]) >= 0:
		return fmt.Sprintf("the host name %q starts with %q; start it with a letter or digit", name, name[:1])
	}
	for _, r := range name {
		if !isNameRune(r) {
			return fmt.Sprintf("the host name %q contains %q; letters, digits, . _ and - are allowed", name, r)
		}
	}
	return ""
}

func isNameRune(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-", r)
}

// maxName bounds the name of a host, in bytes.
const maxName = 63

// numberedName matches a name with a number in its first label, such as node01.lab, and splits
// it at the last of them.
var numberedName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^([^.]*?)(\d{1,9})([^0-9.]*(?:\..*)?)$`)
})

// Fold is the inverse of Expand. It returns patterns for names, each in the position of its
// first name.
func Fold(names []string) []string {
	type part struct{ before, after string }
	numbers := map[part][]string{}
	var parts []part
	for _, name := range names {
		p := part{before: name}
		if len(name) > maxName { // not the name of a host, and matching would take long
		} else if m := numberedName().FindStringSubmatch(name); m != nil {
			p = part{m[1], m[3]}
			numbers[p] = append(numbers[p], m[2])
		}
		if !slices.Contains(parts, p) {
			parts = append(parts, p)
		}
	}
	value := func(digits string) int {
		n, _ := strconv.Atoi(digits) // at most nine digits
		return n
	}
	var patterns []string
	for _, p := range parts {
		list := numbers[p]
		slices.SortFunc(list, func(a, b string) int {
			return cmp.Or(cmp.Compare(value(a), value(b)), cmp.Compare(a, b))
		})
		var segments []string
		for i := 0; i < len(list); {
			first, width := list[i], 0
			if first[0] == '0' {
				width = len(first)
			}
			k := i + 1
			for k < len(list) && list[k] == fmt.Sprintf("%0*d", width, value(first)+k-i) {
				k++
			}
			if k > i+1 {
				first += "-" + list[k-1]
			}
			segments, i = append(segments, first), k
		}
		numbers := strings.Join(segments, ",")
		if len(list) > 1 {
			numbers = "[" + numbers + "]"
		}
		patterns = append(patterns, p.before+numbers+p.after)
	}
	return patterns
}
