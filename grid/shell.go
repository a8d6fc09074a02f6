package grid

import "strings"

// quoteForShell quotes a text so that a shell reads it as one word.
func quoteForShell(s string) string {
	if s != "" && strings.Trim(s, wordBytes+"@%+=:,./-") == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// needsQuoting reports whether a shell would not read a text as one plain word.
func needsQuoting(s string) bool {
	return s == "" || strings.ContainsAny(s, " \t*?[]~#&|;<>()$`\"'\\!{}")
}

// shellQuotes calls visit for each byte of a command with the quote that encloses it, or 0. It
// returns the offset of a quote that is never closed, or -1. It does not handle nested quotes; see
// nests.
func shellQuotes(text string, visit func(i int, quote byte)) int {
	var quote byte
	opened := -1
	for i := 0; i < len(text); i++ {
		visit(i, quote)
		c := text[i]
		switch {
		case c == '\\' && quote != '\'':
			if i++; i < len(text) {
				visit(i, quote)
			}
		case quote != 0 && c == quote:
			quote, opened = 0, -1
		case quote == 0 && (c == '\'' || c == '"'):
			quote, opened = c, i
			if c == '\'' && i > 0 && text[i-1] == '$' {
				quote = '$' // $'…' has escapes
			}
		case quote == '$' && c == '\'':
			quote, opened = 0, -1
		case quote == 0 && c == '#' && (i == 0 || strings.IndexByte(blanks+";&|(", text[i-1]) >= 0):
			for i++; i < len(text); i++ {
				visit(i, 0)
			}
		}
	}
	return opened
}

// nests reports whether a command may have nested quotes, which shellQuotes does not handle.
func nests(text string) bool {
	return strings.Contains(text, "$(") || strings.Contains(text, "`") || strings.Contains(text, "<<") || strings.Contains(text, "${")
}
