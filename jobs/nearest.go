package jobs

import "strings"

// Nearest returns the known word that s was probably meant to be, "" if none is
// near: one slip, in words of four letters and more also two that have changed places,
// in those of five and more any two behind the first letter. Upper and lower case are
// the same, and "-" counts as "_".
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
		if d := editDistance(s, p); d < bestD && d < len(k) && (d < 2 || swapped(s, p) || max(len(s), len(p)) > 4 && s[0] == p[0]) {
			best, bestD = k, d
		}
	}
	return best
}

func plainWord(s string) string { return strings.ToLower(strings.ReplaceAll(s, "-", "_")) }

// swapped says that two neighbours of a are the other way round in b, and all else is equal.
func swapped(a, b string) bool {
	i := 0
	for i < len(a) && i < len(b) && a[i] == b[i] {
		i++
	}
	return len(a) == len(b) && i+1 < len(a) && a[i] == b[i+1] && a[i+1] == b[i] && a[i+2:] == b[i+2:]
}

// editDistance is Levenshtein's.
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
