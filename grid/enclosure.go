package grid

// enclosure is the syntax of a shell around a placeholder. In every one but unenclosed, the quotes
// that text.ShellWord adds to a value do not have their meaning: they become part of the value, and
// the shell may run code in it.
type enclosure byte

const (
	unenclosed     enclosure = 0
	doubleQuotes   enclosure = '"'
	singleQuotes   enclosure = '\''
	escapedQuotes  enclosure = '$' // $'…', also after a $ that would form it with the quotes of the value
	backticks      enclosure = '`'
	arithmetic     enclosure = '+' // $((…)) or ((…))
	hereDocument   enclosure = '<'
	comment        enclosure = '#'
	afterBackslash enclosure = '\\'

	// These frames of a shellScanner do not change the meaning of quotes.
	parentheses enclosure = '(' // $(…) or (…)
	braces      enclosure = '{' // ${…}
)

// String returns the place of a placeholder for messages.
func (e enclosure) String() string {
	switch e {
	case doubleQuotes:
		return `inside "…"`
	case singleQuotes:
		return "inside '…'"
	case escapedQuotes:
		return "after $ or inside $'…'"
	case backticks:
		return "inside `…`"
	case arithmetic:
		return "inside ((…))"
	case hereDocument:
		return "inside a here-document"
	case comment:
		return "inside a comment"
	case afterBackslash:
		return "after a backslash"
	}
	return "outside of quotes"
}

// enclosures returns the enclosure of each of the spans of a command, which are in order and do not
// overlap. The text of the spans is skipped. Where the syntax is rare, it returns an enclosure
// rather than unenclosed.
func enclosures(command string, spans [][]int) []enclosure {
	s := shellScanner{text: command}
	found := make([]enclosure, len(spans))
	for n, span := range spans {
		for s.at < span[0] {
			s.step()
		}
		found[n] = s.enclosure()
		s.at, s.previous = span[1], 0
	}
	return found
}

// shellScanner tracks the quotes and the nested commands of a shell command.
type shellScanner struct {
	text       string
	at         int
	previous   byte        // character before at, or '\\' for a backslash that escapes; 0: none
	frames     []enclosure // from the outermost to the innermost
	inHereDocs bool        // a here-document has begun: what follows is not parsed
	hereDoc    bool        // a here-document begins on the next line
}

// top returns the innermost frame.
func (s *shellScanner) top() enclosure {
	if len(s.frames) == 0 {
		return unenclosed
	}
	return s.frames[len(s.frames)-1]
}

func (s *shellScanner) push(e enclosure) { s.frames = append(s.frames, e) }
func (s *shellScanner) pop()             { s.frames = s.frames[:len(s.frames)-1] }

// backtick returns the index of the frame of a command in backticks, or -1.
func (s *shellScanner) backtick() int {
	for i, f := range s.frames {
		if f == backticks {
			return i
		}
	}
	return -1
}

// enclosure returns the enclosure of the character at at.
func (s *shellScanner) enclosure() enclosure {
	if s.inHereDocs {
		return hereDocument
	}
	if s.backtick() >= 0 {
		return backticks
	}
	for i := len(s.frames) - 1; i >= 0; i-- {
		switch s.frames[i] {
		case braces: // "${x:-{}}" is inside the quotes
			continue
		case parentheses:
			i = 0
		default:
			return s.frames[i]
		}
	}
	switch s.previous {
	case '\\':
		return afterBackslash
	case '$':
		return escapedQuotes
	}
	return unenclosed
}

// step handles one character, or two that belong together.
func (s *shellScanner) step() {
	c, top := s.text[s.at], s.top()
	rest := s.text[s.at:]
	s.at++
	before := s.previous
	s.previous = c
	if s.inHereDocs {
		return
	}
	begins := func(prefix string) bool { return len(rest) >= len(prefix) && rest[:len(prefix)] == prefix }
	switch {
	case top == comment:
		if c == '\n' {
			s.pop()
		}
		return
	case top == singleQuotes:
		if c == '\'' {
			s.pop()
		}
		return
	case before == '\\':
		s.previous = 0
		return
	case c == '\\':
		return
	case top == escapedQuotes:
		if c == '\'' {
			s.pop()
		}
		return
	case c == '`':
		if i := s.backtick(); i >= 0 {
			s.frames = s.frames[:i]
		} else {
			s.push(backticks)
		}
		return
	case begins("$(("):
		s.push(arithmetic)
		s.at += 2
		return
	case begins("$("):
		s.push(parentheses)
		s.at++
		return
	case begins("${"):
		s.push(braces)
		s.at++
		return
	case c == '"' && top == doubleQuotes:
		s.pop()
		return
	case top == doubleQuotes:
		return
	case top == braces && c == '}':
		s.pop()
		return
	case top == braces && s.enclosure() == doubleQuotes:
		if c == '"' {
			s.push(doubleQuotes)
		}
		return
	case top == arithmetic && begins("))"):
		s.pop()
		s.at++
		return
	}
	s.stepUnquoted(c, before, begins)
}

// stepUnquoted handles a character that no quotes enclose.
func (s *shellScanner) stepUnquoted(c, before byte, begins func(string) bool) {
	switch {
	case c == '\'' && before == '$':
		s.push(escapedQuotes)
	case c == '\'':
		s.push(singleQuotes)
	case c == '"':
		s.push(doubleQuotes)
	case begins("((") && s.top() != arithmetic:
		s.push(arithmetic)
		s.at++
	case c == '(' && s.enclosure() == arithmetic:
		s.push(braces) // of the arithmetic, ended by the parenthesis
	case c == '(':
		s.push(parentheses)
	case c == ')' && (s.top() == parentheses || s.top() == braces):
		s.pop()
	case c == '#' && (before == 0 && s.at == 1 || before == ' ' || before == '\t' || before == '\n' || before == ';' ||
		before == '&' || before == '|' || before == '('):
		s.push(comment)
	case begins("<<<"):
		s.at += 2
	case begins("<<") && s.top() != arithmetic:
		s.hereDoc = true
		s.at++
	case c == '\n' && s.hereDoc:
		s.inHereDocs = true
	}
}
