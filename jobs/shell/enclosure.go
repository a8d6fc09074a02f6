package shell

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"sync"

	"mvdan.cc/sh/v3/syntax"
)

// Enclosure is the syntax around a placeholder of a command. In every one but Unenclosed, the quotes
// that text.ShellWord adds to a value do not have their meaning: they become part of the value, and
// the shell may run code in it.
type Enclosure byte

// The enclosures.
const (
	Unenclosed Enclosure = iota
	doubleQuotes
	singleQuotes
	escapedQuotes // $'…', also after a $ that would form it with the quotes of the value
	backticks
	arithmetic
	hereDocument
	comment
	afterBackslash
	evaluated     // the shell evaluates the word again without its quotes
	kornEvaluated // zsh and the Korn shells do, and others do not
	ifOption      // the shell evaluates the word if another one is an option
	remote        // ssh passes the word on without its quotes
	unparsed      // the command is not one of sh or bash
)

// IsQuoted reports whether quotes enclose the placeholder.
func (e Enclosure) IsQuoted() bool {
	return e == doubleQuotes || e == singleQuotes || e == escapedQuotes
}

// IsEvaluated reports whether the shell evaluates the placeholder again without its quotes.
func (e Enclosure) IsEvaluated() bool { return e == evaluated || e == kornEvaluated || e == ifOption }

// IsRemote reports whether a shell on another machine reads the placeholder without its quotes.
func (e Enclosure) IsRemote() bool { return e == remote }

// String returns the place of a placeholder for messages.
func (e Enclosure) String() string {
	return [...]string{"outside of quotes", `inside "…"`, "inside '…'", "after $ or inside $'…'", "inside `…`",
		"in an arithmetic expression", "inside a here-document", "inside a comment", "after a backslash",
		"in a word that the shell evaluates", "in a word that zsh and Korn shells evaluate and bash does not",
		"in a word that a shell evaluates if the word before it expands to an option (-- before that rules it out)",
		"in a command that ssh gives to another shell",
		"in a command that sh and bash cannot read"}[e]
}

// mayEnclose matches the text before a placeholder if something may enclose it, in any shell.
var mayEnclose = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile("['\"`#]|<<|" + `\(\(|\[\[|\$\{|[\\$]$`)
})

// Enclosures returns the enclosure of each of the spans of a command for a shell, given by its path; "" is
// /bin/sh. The spans are in order and do not overlap. The text of the spans counts as a word.
func Enclosures(shell, command string, spans [][]int) []Enclosure {
	found, text := make([]Enclosure, len(spans)), []byte(command)
	for _, s := range spans {
		for i := s[0]; i < s[1]; i++ {
			text[i] = 'x'
		}
	}
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash), syntax.KeepComments(true)).
		Parse(bytes.NewReader(text), "")
	if err != nil {
		for i, s := range spans {
			if evaluatesMore(shell) || mayEnclose().MatchString(command[:s[0]]) {
				found[i] = unparsed
			}
		}
		return found
	}
	isFinal := make([]bool, len(spans)) // nothing inside changes it
	set := func(n syntax.Node, e Enclosure, final bool) {
		for i, s := range spans {
			if int(n.Pos().Offset()) <= s[0] && s[1] <= int(n.End().Offset()) && !isFinal[i] {
				found[i], isFinal[i] = e, final
			}
		}
	}
	setEvaluated := func(n syntax.Node) { set(n, evaluated, false) }
	isPlaceholder := func(w *syntax.Word) bool {
		return slices.ContainsFunc(spans,
			func(s []int) bool { return int(w.Pos().Offset()) == s[0] && s[1] == int(w.End().Offset()) })
	}
	names, arrays := evaluatedNames(file)
	known, first := knownVariables(file, spans)
	setIndex := func(n syntax.ArithmExpr) {
		if n != nil {
			set(n, arithmetic, false)
		}
	}
	if evaluatesMore(shell) {
		markMore(file, func(n syntax.Node) { set(n, kornEvaluated, false) })
	}
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CmdSubst:
			if n.Backquotes {
				set(n, backticks, true)
			} else {
				set(n, Unenclosed, false)
			}
		case *syntax.SglQuoted:
			if n.Dollar {
				set(n, escapedQuotes, false)
			} else {
				set(n, singleQuotes, false)
			}
		case *syntax.DblQuoted:
			set(n, doubleQuotes, false)
		case *syntax.ArithmExp, *syntax.ArithmCmd, *syntax.CStyleLoop, *syntax.LetClause:
			set(n, arithmetic, false)
		case *syntax.BinaryTest:
			if n.Op >= syntax.TsEql && n.Op <= syntax.TsGtr { // -eq to -gt
				set(n, arithmetic, false)
			}
		case *syntax.UnaryTest:
			if n.Op == syntax.TsVarSet {
				setEvaluated(n.X)
			}
		case *syntax.CallExpr:
			args := n.Args
			if n == first {
				args = substitute(args, known)
			}
			words, commands := evaluatedWords(args)
			for _, w := range words {
				setEvaluated(w)
			}
			for _, w := range commands {
				if !isPlaceholder(w) {
					setEvaluated(w)
				}
			}
			for _, w := range commandsIfOption(args) {
				if !isPlaceholder(w) {
					set(w, ifOption, false)
				}
			}
			if words := remoteWords(args); len(words) != 1 || !isPlaceholder(words[0]) {
				for _, w := range words {
					set(w, remote, false)
				}
			}
			for _, w := range n.Args { // {name[subscript]}>file: the parser takes it for an argument
				if strings.HasPrefix(literal(w), "{") && strings.HasSuffix(literal(w), "]}") {
					setEvaluated(w)
				}
			}
		case *syntax.DeclClause:
			for _, part := range evaluatedInDeclaration(n, arrays) {
				setEvaluated(part)
			}
		case *syntax.WordIter:
			if names[n.Name.Value] {
				setEvaluated(n)
			}
		case *syntax.Assign:
			if n.Name != nil && names[n.Name.Value] {
				setEvaluated(n)
			}
			setIndex(n.Index)
		case *syntax.ArrayElem:
			setIndex(n.Index)
		case *syntax.ParamExp:
			if n.Param != nil {
				set(n.Param, escapedQuotes, true)
			}
			setIndex(n.Index)
			if n.Slice != nil {
				setIndex(n.Slice.Offset)
				setIndex(n.Slice.Length)
			}
		case *syntax.Comment:
			set(n, comment, true)
		case *syntax.Redirect:
			if n.Op == syntax.DplOut && (n.N == nil || n.N.Value == "1") {
				setEvaluated(n.Word)
			}
			if n.Hdoc != nil {
				set(n.Hdoc, hereDocument, true)
			}
		}
		return true
	})
	for i, s := range spans {
		before := command[:s[0]]
		if found[i] == Unenclosed && (len(before)-len(strings.TrimRight(before, `\`)))%2 == 1 {
			found[i] = afterBackslash
		}
	}
	return found
}
