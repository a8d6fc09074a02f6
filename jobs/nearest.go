package jobs

import "strings"

// Nearest returns the known word that s was probably meant to be, "" if none is
// near: one slip in a word of three letters, two in a longer one. Upper and lower case are
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
		if d := editDistance(s, plainWord(k)); d < bestD && d < len(k) {
			best, bestD = k, d
		}
	}
	return best
}

func plainWord(s string) string { return strings.ToLower(strings.ReplaceAll(s, "-", "_")) }

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
