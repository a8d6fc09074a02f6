package column

import (
	"regexp"
	"strings"
	"sync"
)

// named finds `name=` and `name:` with what stands behind it.
var named = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`([\pL_][\pL\pN_.@-]*)["']?[ \t]*(?::=|[=:])`)
})

// maxSeen is how long a name is that Names tells.
const maxSeen = 40

// Names returns the names for which a text has values, each once, as they first come:
// what Find would find in it by name. URLs are none.
func Names(t *Text) (names []string) {
	had := map[string]bool{}
	for _, m := range named().FindAllSubmatchIndex(t.words, -1) {
		name, after := string(t.words[m[2]:m[3]]), t.words[m[3]:]
		if had[name] || len(name) > maxSeen || wordBefore(t.words[:m[2]]) {
			continue
		}
		if v := valueAfter(after); v == "" || strings.HasPrefix(v, "//") {
			continue
		}
		had[name] = true
		names = append(names, name)
	}
	return names
}

// Wants says what a text lacks that does not have the column, to follow "no job
// printed": `acc=…`, a JSON object with it, a line that matches.
func (c *Column) Wants() string {
	switch {
	case c.expr != nil:
		return "a line that matches " + c.how
	case c.path != nil:
		return "a line of JSON with " + strings.Join(c.path, ".")
	}
	return c.key + "=…"
}

// Key is the name that the column looks for, "" when it looks for something else.
func (c *Column) Key() string {
	switch {
	case c.expr != nil:
		return ""
	case c.path != nil:
		return c.path[len(c.path)-1]
	}
	return c.key
}
