package shell

import (
	"path/filepath"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// zsh and the Korn shells evaluate more words than bash: arguments of builtins that are numbers or names
// of variables, and the values of variables that are numbers.

// evaluatesMore reports whether the program that runs the commands, with its arguments, is zsh, a Korn
// shell, or a shell that is not known to evaluate at most the words that bash evaluates. "" is /bin/sh.
func evaluatesMore(shell string) bool {
	isKnown := shell == ""
	for word := range strings.FieldsSeq(shell) {
		name := filepath.Base(word)
		if name == "zsh" || strings.HasSuffix(name, "ksh") || name == "ksh93" {
			return true
		}
		isKnown = isKnown || slices.Contains([]string{"sh", "bash", "dash", "ash"}, name)
	}
	return !isKnown
}

// numberVariables are the variables that are numbers in zsh or mksh, besides evaluatedVariables.
var numberVariables = []string{"BASHPID", "COLUMNS", "EGID", "EUID", "FUNCNEST", "GID", "HISTSIZE", "KEYTIMEOUT",
	"KSHEGID", "KSHGID", "KSHUID", "LINENO", "LINES", "LISTMAX", "MAILCHECK", "PGRP", "PPID", "SAVEHIST", "SECONDS",
	"SHLVL", "TMOUT", "TRY_BLOCK_ERROR", "TRY_BLOCK_INTERRUPT", "TTYIDLE", "UID", "USER_ID"}

// numberBuiltins are the builtins of which zsh or mksh evaluates arguments that bash takes as they are.
var numberBuiltins = []string{"break", "bye", "continue", "exit", "float", "getln", "getopts", "integer", "logout",
	"nameref", "private", "read", "repeat", "return", "shift", "ulimit", "unset", "vared"}

// numberOperators are operators of test whose operands are numbers.
var numberOperators = []string{"-t", "-eq", "-ne", "-lt", "-le", "-gt", "-ge"}

// markMore calls mark for the nodes of a command that zsh or a Korn shell evaluates, and bash does not.
func markMore(file *syntax.File, mark func(syntax.Node)) {
	names := map[string]bool{}
	for _, name := range numberVariables {
		names[name] = true
	}
	syntax.Walk(file, func(n syntax.Node) bool { // an assignment may precede the declaration
		switch n := n.(type) {
		case *syntax.DeclClause:
			for _, arg := range n.Args {
				if arg.Name != nil && hasOption(n) {
					names[arg.Name.Value] = true
				}
			}
		case *syntax.CallExpr:
			for _, w := range moreWords(n.Args) {
				name, _, _ := strings.Cut(literal(w), "=")
				names[name] = true
			}
		}
		return true
	})
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CallExpr:
			for _, w := range moreWords(n.Args) {
				mark(w)
			}
		case *syntax.DeclClause:
			for _, arg := range n.Args {
				if arg.Naked || hasOption(n) {
					mark(arg)
				} else if arg.Name != nil {
					mark(arg.Name)
				}
			}
		case *syntax.Assign:
			if n.Name != nil && names[n.Name.Value] {
				mark(n)
			}
		case *syntax.WordIter:
			if names[n.Name.Value] {
				mark(n)
			}
		case *syntax.UnaryTest:
			if n.Op == syntax.TsFdTerm { // -t
				mark(n.X)
			}
		}
		return true
	})
}

// hasOption reports whether a declaration has an option, or is nameref, which is typeset -n.
func hasOption(n *syntax.DeclClause) bool {
	return n.Variant.Value == "nameref" || slices.ContainsFunc(n.Args, func(arg *syntax.Assign) bool {
		option := literal(arg.Value)
		return arg.Name == nil && (strings.HasPrefix(option, "-") || strings.HasPrefix(option, "+"))
	})
}

// moreWords returns the arguments of a simple command that zsh or a Korn shell evaluates, and bash does
// not.
func moreWords(args []*syntax.Word) (words []*syntax.Word) {
	for len(args) > 1 && slices.Contains([]string{"command", "builtin", "noglob", "nocorrect", "time", "-"},
		literal(args[0])) {
		args = args[1:]
	}
	if len(args) < 2 {
		return nil
	}
	name, args := literal(args[0]), args[1:]
	switch {
	case slices.Contains(numberBuiltins, name):
		return args
	case name == "set" && strings.Contains(literal(args[0]), "A"):
		return args // set -A NAME
	case name == "printf" && hasNumber(args[0]):
		return args[1:]
	case name == "test" || name == "[":
		for i, w := range args {
			if slices.Contains(numberOperators, literal(w)) {
				words = append(words, args[max(0, i-1):min(len(args), i+2)]...)
			}
		}
	}
	return words
}

// hasNumber reports whether a format of printf may have a conversion of a number.
func hasNumber(format *syntax.Word) bool {
	s, texts := literal(format), strings.NewReplacer("%%", "", "%s", "", "%b", "", "%q", "", "%c", "")
	return s == "" || strings.Contains(texts.Replace(s), "%")
}
