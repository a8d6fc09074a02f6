// Package shell finds commands that are not complete: those of several lines, of which a jobs file
// would run each line by itself. A quick scan passes nearly all commands; only a suspicious one is
// parsed. A command that some shell of the given name may accept is never refused, except a
// here-document without its text.
package shell

import (
	"cmp"
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// variants returns the languages that a shell may speak. It returns nil for a shell whose language
// is not known.
func variants(shell string) []syntax.LangVariant {
	switch filepath.Base(shell) {
	case "sh", "dash":
		// /bin/sh is bash on some machines, and `((i=1<<2))` is meant as in bash also for dash.
		return []syntax.LangVariant{syntax.LangPOSIX, syntax.LangBash}
	case "bash":
		return []syntax.LangVariant{syntax.LangBash}
	case "ksh", "mksh", "ksh93":
		return []syntax.LangVariant{syntax.LangMirBSDKorn, syntax.LangBash}
	}
	return nil
}

// Incomplete is the error for a command that is only a part of one.
type Incomplete struct {
	Missing string // what it lacks
}

// Error returns the message.
func (e *Incomplete) Error() string { return "the command is not complete: " + e.Missing }

// Checker returns a function that returns an error for a command that is not complete in the
// language of a shell, given by its path; "" is /bin/sh. The error is an Incomplete, or describes
// what is no command. It returns nil for a shell whose language is not known. The function must not
// be called by several goroutines at once.
func Checker(shell string) func(command string) error {
	langs := variants(cmp.Or(shell, "/bin/sh"))
	if langs == nil {
		return nil
	}
	c := &checker{complete: map[string]bool{}}
	for _, lang := range langs {
		c.parsers = append(c.parsers, syntax.NewParser(syntax.Variant(lang)))
	}
	return c.check
}

// jsonStarts are beginnings of lines that are JSON and no commands, also after a word processor.
var jsonStarts = []string{`["`, `[{"`, `{"`, "[“", "[{“", "{“"}

// checker checks commands in some languages.
type checker struct {
	parsers  []*syntax.Parser
	complete map[string]bool // commands that were found complete, by shape
	shape    []byte
}

// maxShapes is the maximum number of shapes that are remembered.
const maxShapes = 1024

func (c *checker) check(command string) error {
	isJSON := func(start string) bool { return strings.HasPrefix(command, start) }
	switch {
	case command == "[" || slices.ContainsFunc(jsonStarts, isJSON):
		return errors.New(`this is JSON, not a command: write one object such as {"command": "./sim 1"} per line ` +
			`into a file whose name ends in .jsonl`)
	case hasLoneCR(command):
		return errors.New("the line contains a carriage return: end lines with a newline " +
			"(tr '\\r' '\\n' <FILE converts a file)")
	case !isSuspicious(command):
		return nil
	}
	// The commands of a sweep differ in numbers, which do not matter but for the end of a
	// here-document.
	c.shape = append(c.shape[:0], command...)
	for i, b := range c.shape {
		if b >= '0' && b <= '9' {
			c.shape[i] = '0'
		}
	}
	if c.complete[string(c.shape)] {
		return nil
	}
	missing := ""
	for _, p := range c.parsers {
		missing = findMissing(command, p)
		if missing == "" {
			break
		}
	}
	if missing != "" {
		return &Incomplete{missing}
	}
	if len(c.complete) < maxShapes && !strings.Contains(command, "<<") {
		c.complete[string(c.shape)] = true
	}
	return nil
}

// findMissing describes what a command lacks at its end. It returns "" for a command that is
// complete, and for one that is wrong in another way.
func findMissing(command string, p *syntax.Parser) string {
	file, err := p.Parse(strings.NewReader(command), "")
	var parse syntax.ParseError
	switch {
	case err == nil || file == nil || !errors.As(err, &parse):
		return ""
	case parse.Incomplete && strings.Contains(command, "<<") && strings.Contains(command, "\n"):
		return "" // perhaps a here-document that ends with the command, which shells accept
	case parse.Incomplete:
		return parse.Text
	}
	missing := ""
	syntax.Walk(file, func(n syntax.Node) bool {
		r, ok := n.(*syntax.Redirect)
		// A newline precedes the text of a here-document. Without one, its text is in other lines.
		if ok && (r.Op == syntax.Hdoc || r.Op == syntax.DashHdoc) &&
			!strings.Contains(command[r.OpPos.Offset():], "\n") {
			missing = "a here-document without its text"
		}
		return missing == ""
	})
	return missing
}

// hasLoneCR reports whether there is a carriage return outside quotes that does not end a line.
func hasLoneCR(command string) bool {
	if strings.IndexByte(command, '\r') < 0 {
		return false // the usual case
	}
	var quote byte // open, or 0
	for i := 0; i < len(command); i++ {
		switch c := command[i]; {
		case c == '\\' && quote != '\'':
			i++
		case c == quote:
			quote = 0
		case quote == 0 && (c == '\'' || c == '"'):
			quote = c
		case c == '\r' && quote == 0 && !strings.HasPrefix(command[i:], "\r\n"):
			return true
		}
	}
	return false
}

// special holds the bytes that matter to isSuspicious. Other bytes are parts of words.
var special = [256]bool{
	'(': true, ')': true, '{': true, '}': true, '[': true, '<': true, '>': true,
	'\\': true, '\'': true, '"': true, '`': true, '$': true, '#': true,
	';': true, '&': true, '|': true, '!': true, '\n': true, '\r': true, ' ': true, '\t': true,
}

// isSuspicious reports whether a command may be incomplete. It passes only simple commands, with
// words, quotes, redirections, and operators between them.
func isSuspicious(command string) bool {
	first := 0         // where the simple command begins
	atStart := true    // its first word may begin here
	needsWord := false // an operator needs one
	for i := 0; i < len(command); i++ {
		c, rest := command[i], command[i+1:]
		switch {
		case !special[c]:
			if atStart && beginsCompound(command[i:]) {
				return true
			}
		case c == ' ' || c == '\t':
			continue
		case c == '\\':
			i++
			if rest == "" || rest[0] == '\n' {
				return true
			}
		case c == '\'':
			n := strings.IndexByte(rest, '\'')
			if n < 0 {
				return true
			}
			i += n + 1
		case c == '"':
			n := strings.IndexByte(rest, '"')
			if n < 0 || strings.ContainsAny(rest[:n], "\\$`") && !isPlainQuote(rest[:n]) {
				return true
			}
			i += n + 1
		case c == '$':
			if rest != "" && strings.IndexByte("({['", rest[0]) >= 0 {
				return true
			}
		case c == '#':
			if i == 0 || special[command[i-1]] { // a comment
				return true
			}
		case c == '[':
			if strings.HasPrefix(rest, "[") || i > 0 && !special[command[i-1]] {
				return true
			}
		case c == '!' && atStart:
			needsWord = true
			continue
		case c == '!':
		case c == ';' || c == '&' || c == '|':
			first, atStart, needsWord = i+1, true, needsWord || c != ';'
			continue
		case c == '<' || c == '>':
			// A command may follow a redirection that precedes it.
			needsWord = true
			if strings.HasPrefix(rest, "<") || strings.Trim(command[first:i], " \t!0123456789") == "" {
				return true
			}
			continue
		default:
			return true
		}
		atStart, needsWord = false, false
	}
	return needsWord
}

// isPlainQuote reports whether a text in double quotes has variables, but nothing that may contain a
// quote.
func isPlainQuote(s string) bool {
	if strings.ContainsAny(s, "\\`") {
		return false
	}
	for i := 0; i+1 < len(s); i++ {
		if s[i] == '$' && strings.IndexByte("({[", s[i+1]) >= 0 {
			return false
		}
	}
	return true
}

// compounds are words with which a command begins that may not be complete without another word.
var compounds = []string{"if", "for", "while", "until", "case", "select", "function", "coproc", "time", "let"}

// beginsCompound reports whether a text begins with one of them.
func beginsCompound(s string) bool {
	s = s[:min(len(s), len("function")+1)]
	if end := strings.IndexAny(s, " \t\n;&|()<>"); end >= 0 {
		s = s[:end]
	}
	return slices.Contains(compounds, s)
}
