package jobs

import (
	"fmt"
	"slices"
	"strings"
)

// Token is a number of tokens of a kind, such as floating licenses of a program. A run has
// so many of each kind, and a job holds some while it runs.
type Token struct {
	Name  string
	Count int // of a job at least 1
}

// String returns the token as a jobs file has it: matlab:2.
func (t Token) String() string { return fmt.Sprintf("%s:%d", t.Name, t.Count) }

// ParseToken reads NAME:N, or NAME for one.
func ParseToken(s string) (t Token, err error) {
	name, n, more := strings.Cut(s, ":")
	t = Token{name, 1}
	if err = CheckTokenName(name); err == nil && more {
		t.Count, err = count(1, MaxTokens)(n)
	}
	return t, err
}

// CheckTokenName says why a kind of tokens cannot have a name.
func CheckTokenName(name string) error {
	if name == "" || strings.ContainsAny(name, " ,:=") {
		return fmt.Errorf("%q is not a name of tokens, such as matlab", name)
	}
	_, err := parseLabel(name)
	return err
}

// parseTokens reads a list of them.
func parseTokens(items []string) (list []Token, err error) {
	for _, item := range items {
		t, err := ParseToken(item)
		if err != nil {
			return nil, err
		}
		list = append(list, t)
	}
	slices.SortFunc(list, func(a, b Token) int { return strings.Compare(a.Name, b.Name) })
	for i := 1; i < len(list); i++ {
		if list[i].Name == list[i-1].Name {
			return nil, fmt.Errorf("%s is there twice", list[i].Name)
		}
	}
	return list, nil
}

// TokenText returns the tokens of a job as a jobs file has them.
func (o *Options) TokenText() string {
	var items []string
	for _, t := range o.Tokens {
		items = append(items, t.String())
	}
	return strings.Join(items, ",")
}
