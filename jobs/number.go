package jobs

import "fmt"

// Plural writes a number of things: "1 job", "3 jobs".
func Plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// Verb is the word that follows so many: "1 job has", "3 jobs have".
func Verb(n int, one, more string) string {
	if n == 1 {
		return one
	}
	return more
}
