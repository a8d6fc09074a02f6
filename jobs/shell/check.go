// Package shell finds commands that are not complete: those of several lines, of which a jobs file
// would run each line by itself. A quick scan passes nearly all commands; only a suspicious one is
// parsed. A command that some shell of the given name may accept is never refused, except a
// here-document without its text.
package shell

import (
	"errors"
	"fmt"
	"path/filepath"
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

// Checker returns a function that returns an error for a command that is not complete in the
// language of a shell, given by its path; "" is /bin/sh. It returns nil for a shell whose language
// is not known. The function must not be called by several goroutines at once.
func Checker(shell string) func(command string) error {
	if shell == "" {
		shell = "/bin/sh"
	}
	langs := variants(shell)
	if langs == nil {
		return nil
	}
	var parsers []*syntax.Parser
	for _, lang := range langs {
		parsers = append(parsers, syntax.NewParser(syntax.Variant(lang)))
	}
	return func(command string) error { return check(command, parsers) }
}

func check(command string, parsers []*syntax.Parser) error {
	if command == "[" || strings.HasPrefix(command, `["`) || strings.HasPrefix(command, `[{"`) || strings.HasPrefix(command, `{"`) {
		return errors.New(`this is JSON, not a command: write one object such as {"command": "./sim 1"} per line into a file whose name ends in .jsonl`)
	}
	suspicious, loneCR := scan(command)
	if loneCR {
		return errors.New("the line contains a carriage return: end lines with a newline (tr '\\r' '\\n' <FILE converts a file)")
	}
	if !suspicious {
		return nil
	}
	missing := ""
	for _, p := range parsers {
		if missing = findMissing(command, p); missing == "" {
			return nil
		}
	}
	return fmt.Errorf("the command is not complete in its line (%s): each line runs by itself; put a command of several lines "+
		"into a script and call that, or into a .jsonl file", missing)
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
		if ok && (r.Op == syntax.Hdoc || r.Op == syntax.DashHdoc) && !strings.Contains(command[r.OpPos.Offset():], "\n") {
			missing = "a here-document without its text"
		}
		return missing == ""
	})
	return missing
}

// special holds the bytes that matter to scan, other than letters.
var special = [256]bool{'(': true, ')': true, '{': true, '}': true, '\\': true, '\'': true, '"': true, '`': true, '<': true,
	';': true, '&': true, '|': true, '!': true, '\n': true, '\r': true, ' ': true, '\t': true}

// scan reports whether a command may be incomplete: it has a here-document, an open quote,
// parentheses or braces without a partner, or a compound command, or it ends with an operator.
// loneCR reports a carriage return outside quotes that does not end a line.
func scan(command string) (suspicious, loneCR bool) {
	type depth struct{ parens, braces int }
	var all, unquoted depth
	var quote byte // open, or 0
	var back int
	atStart := true // a command may begin here
	for i := 0; i < len(command); i++ {
		c := command[i]
		if !special[c] {
			suspicious = suspicious || atStart && beginsCompound(command[i:])
			atStart = false
			continue
		}
		var d depth
		switch c {
		case '\\':
			if quote != '\'' {
				i++
			}
		case '\'', '"':
			if quote == 0 {
				quote = c
			} else if quote == c {
				quote = 0
			}
		case '\r':
			loneCR = loneCR || quote == 0 && !strings.HasPrefix(command[i:], "\r\n")
		case '`':
			back++
		case '(', ')':
			d.parens = step(c == '(')
		case '{', '}':
			d.braces = step(c == '{')
		case '<':
			suspicious = suspicious || strings.HasPrefix(command[i:], "<<")
		}
		all = depth{all.parens + d.parens, all.braces + d.braces}
		if quote == 0 {
			unquoted = depth{unquoted.parens + d.parens, unquoted.braces + d.braces}
		}
		switch c {
		case ';', '&', '|', '(', '{', '!', '\n', '`':
			atStart = true
		case ' ', '\t':
		default:
			atStart = false
		}
	}
	end := strings.TrimRight(command, " \t")
	suspicious = suspicious || quote != 0 || back%2 != 0 || strings.HasSuffix(end, "|") || strings.HasSuffix(end, "&&")
	return suspicious || all != depth{} || unquoted != depth{}, loneCR
}

// step returns 1 for what opens, and -1 for what closes.
func step(opens bool) int {
	if opens {
		return 1
	}
	return -1
}

// beginsCompound reports whether a text begins with the first word of a compound command.
func beginsCompound(s string) bool {
	s = s[:min(len(s), len("select")+1)]
	if end := strings.IndexAny(s, " \t\n;&|()<>"); end >= 0 {
		s = s[:end]
	}
	switch s {
	case "if", "for", "while", "until", "case", "select":
		return true
	}
	return false
}
