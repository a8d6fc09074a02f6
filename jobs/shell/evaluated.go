package shell

import (
	"path"
	"reflect"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Bash evaluates some words again after it has removed their quotes: it expands the subscript of a
// variable's name, the value of an integer, and the text of a command. A placeholder that is a whole
// command (eval {}, sh -c {}, trap {} EXIT) is meant to run its value; one in another such word is not.

// evaluatedVariables are the variables of bash whose values it evaluates.
var evaluatedVariables = []string{"RANDOM", "SRANDOM", "OPTIND", "HISTCMD", "PS4", "BASH_ENV", "ENV"}

// shells are the programs that run the argument after -c.
var shells = []string{"sh", "bash", "dash", "ash", "ksh", "mksh", "zsh"}

// Attributes of variables, as options of declare, with which bash evaluates the values.
const (
	scalarAttributes = "in" // integers and references
	arrayAttributes  = "aA" // only in a declaration, and not the elements in (…)

	functionsOrPrint = "fFp" // names of functions, or variables to print: nothing is evaluated
)

// evaluatedNames returns the variables whose values bash evaluates: its own, and those that a command
// declares as integers or references. It also returns those that are declared as arrays.
func evaluatedNames(file *syntax.File) (names, arrays map[string]bool) {
	names, arrays = map[string]bool{}, map[string]bool{}
	for _, name := range evaluatedVariables {
		names[name] = true
	}
	syntax.Walk(file, func(n syntax.Node) bool {
		if n, ok := n.(*syntax.DeclClause); ok && !hasAttribute(n, functionsOrPrint) {
			for _, arg := range n.Args {
				if arg.Name != nil && hasAttribute(n, scalarAttributes) {
					names[arg.Name.Value] = true
				}
				if arg.Name != nil && hasAttribute(n, arrayAttributes) {
					arrays[arg.Name.Value] = true
				}
			}
		}
		return true
	})
	return names, arrays
}

// hasAttribute reports whether a declaration has an option of which a letter is in attributes.
func hasAttribute(n *syntax.DeclClause, attributes string) bool {
	return n.Variant.Value != "export" && slices.ContainsFunc(n.Args, func(arg *syntax.Assign) bool {
		option := literal(arg.Value)
		return arg.Name == nil && strings.HasPrefix(option, "-") && strings.ContainsAny(option, attributes)
	})
}

// evaluatedInDeclaration returns the parts of a declaration that bash evaluates.
func evaluatedInDeclaration(n *syntax.DeclClause, arrays map[string]bool) (nodes []syntax.Node) {
	if hasAttribute(n, functionsOrPrint) {
		return nil
	}
	isOfArrays := hasAttribute(n, arrayAttributes)
	for _, arg := range n.Args {
		if hasAttribute(n, scalarAttributes) {
			nodes = append(nodes, arg)
			continue
		}
		if arg.Name != nil && arg.Value != nil && (isOfArrays || arrays[arg.Name.Value]) {
			nodes = append(nodes, arg.Value)
		}
		switch {
		case n.Variant.Value == "export" || n.Variant.Value == "readonly" && !isOfArrays:
			// They refuse a name with a subscript.
		case arg.Naked:
			nodes = append(nodes, arg)
		case arg.Name != nil:
			nodes = append(nodes, arg.Name)
		}
	}
	return nodes
}

// evaluatedWords returns the words of a command that bash evaluates, and those that are commands
// themselves.
func evaluatedWords(args []*syntax.Word) (words, commands []*syntax.Word) {
	commands = append(commands, commandsOfShells(args)...)
	for len(args) > 1 && (literal(args[0]) == "command" || literal(args[0]) == "builtin") {
		args = args[1:]
	}
	if len(args) == 0 {
		return nil, nil
	}
	name, args := literal(args[0]), args[1:]
	switch name {
	case "let":
		return args, commands
	case "declare", "typeset", "local", "unset":
		names, options := operands(args, "")
		if options.has(functionsOrPrint) || name == "unset" && options.has("n") {
			return nil, commands
		}
		return names, commands
	case "read":
		names, _ := operands(args, "adinNptu")
		return names, commands
	case "wait":
		_, options := operands(args, "p")
		return options['p'], commands
	case "compgen":
		_, options := operands(args, "ACFGPSVWXo")
		return slices.Concat(options['V'], options['W']), append(commands, options['C']...)
	case "test", "[":
		return after(args, "-v"), commands
	case "printf":
		if len(args) > 0 && strings.HasPrefix(literal(args[0]), "-v") && literal(args[0]) != "-v" {
			return args[:1], commands
		}
		return after(args, "-v"), commands
	case "mapfile", "readarray":
		commands = append(commands, after(args, "-C")...)
	case "trap":
		commands = append(commands, args[:min(len(args), 1)]...)
	case "eval":
		if len(args) == 1 {
			return nil, args
		}
		return args, commands
	}
	return nil, commands
}

// options are the options of a command by letter, with the words that hold their values.
type options map[byte][]*syntax.Word

// has reports whether one of the letters is given.
func (o options) has(letters string) bool {
	return slices.ContainsFunc([]byte(letters), func(letter byte) bool { _, ok := o[letter]; return ok })
}

// operands splits the arguments of a command at the end of its options. The options whose letters are
// in valued have values. The shell may expand a word to options: it counts as an operand.
func operands(args []*syntax.Word, valued string) (rest []*syntax.Word, given options) {
	given = options{}
	for len(args) > 0 {
		word := args[0]
		option := literal(word)
		if len(option) < 2 || option[0] != '-' {
			break
		}
		args = args[1:]
		if option == "--" {
			break
		}
		for i := 1; i < len(option); i++ {
			letter := option[i]
			given[letter] = append(given[letter], nil...)
			if strings.IndexByte(valued, letter) < 0 {
				continue
			}
			if i+1 == len(option) && len(args) > 0 {
				word, args = args[0], args[1:]
			}
			given[letter] = append(given[letter], word)
			break
		}
	}
	return args, given
}

// starters are programs that start the command in their arguments.
var starters = []string{"chrt", "command", "doas", "env", "exec", "flock", "ionice", "nice", "nohup", "numactl",
	"setsid", "sshpass", "stdbuf", "sudo", "taskset", "timeout"}

// isCopier reports whether a program has an option for the program with which it connects, such as ssh.
func isCopier(name string) bool { return name == "rsync" || name == "scp" || name == "sftp" }

// remoteWords returns the words that ssh joins to a command for the shell of another machine.
func remoteWords(args []*syntax.Word) []*syntax.Word {
	const valued = "BbcDEeFIiJLlmOoPpQRSWw"
	names := make([]string, len(args))
	for i, w := range args {
		names[i] = path.Base(literal(w))
	}
	at := slices.Index(names, "ssh")
	if at < 0 || at > 0 && !slices.Contains(starters, names[0]) || slices.ContainsFunc(names[:at], isCopier) {
		return nil
	}
	destination, _ := operands(args[at+1:], valued)
	if len(destination) == 0 {
		return nil
	}
	words, _ := operands(destination[1:], valued)
	return words
}

// commandsOfShells returns the commands of sh -c COMMAND, also where another program starts the shell.
func commandsOfShells(args []*syntax.Word) (commands []*syntax.Word) {
	for i, w := range args {
		if slices.Contains(shells, path.Base(literal(w))) {
			words, _ := commandOfShell(args[i+1:])
			commands = append(commands, words...)
		}
	}
	return commands
}

// commandsIfOption returns those of commandsOfShells that are commands only if a variable before them is an
// option and not the name of a script.
func commandsIfOption(args []*syntax.Word) (commands []*syntax.Word) {
	for i, w := range args {
		if slices.Contains(shells, path.Base(literal(w))) {
			if words, isSure := commandOfShell(args[i+1:]); !isSure {
				commands = append(commands, words...)
			}
		}
	}
	return commands
}

// commandOfShell returns the command among the arguments of a shell. Those after the name of a script
// are the script's. isSure reports that no variable before it may be that name.
func commandOfShell(args []*syntax.Word) (command []*syntax.Word, isSure bool) {
	hasCommand := false
	isSure = true
	for len(args) > 0 {
		option := literal(args[0])
		if mayBeOption(args[0]) {
			begin := prefix(args[0]) // -$X may be -c
			hasCommand = hasCommand || strings.HasPrefix(begin, "-") && !strings.HasPrefix(begin, "--")
			args, isSure = args[1:], false
			continue
		}
		if len(option) < 2 || option[0] != '-' && option[0] != '+' || option == "--" {
			break
		}
		args = args[1:]
		isLong := strings.HasPrefix(option, "--")
		hasCommand = hasCommand || option[0] == '-' && !isLong && strings.Contains(option, "c")
		hasValue := option == "--rcfile" || option == "--init-file" || !isLong && strings.ContainsAny(option, "oO")
		if hasValue && len(args) > 0 {
			args = args[1:]
		}
	}
	if len(args) > 0 && (literal(args[0]) == "--" || literal(args[0]) == "-") {
		args = args[1:]
	}
	if !hasCommand {
		return nil, isSure
	}
	return args[:min(len(args), 1)], isSure
}

// mayBeOption reports whether the shell may expand a word to options, or to nothing. Quotes do not prevent
// that: "$X" may be -e, and "${X[@]}" nothing. A slash does, because no option has one, and so does a
// first character that begins no option.
func mayBeOption(w *syntax.Word) bool {
	isExpanded, hasSlash := false, false
	syntax.Walk(w, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Lit:
			isExpanded = isExpanded || strings.ContainsAny(n.Value, "{*?[")
			hasSlash = hasSlash || strings.Contains(n.Value, "/")
		case *syntax.SglQuoted:
			hasSlash = hasSlash || strings.Contains(n.Value, "/")
		case *syntax.Word, *syntax.DblQuoted, nil:
			return true
		default:
			isExpanded = true
			return false // what is inside is not part of the word
		}
		return true
	})
	begin := prefix(w)
	return isExpanded && !hasSlash && (begin == "" || strings.ContainsRune("-+{*?[", rune(begin[0])))
}

// prefix returns the text of a word, without its quotes, before the first expansion.
func prefix(w *syntax.Word) string {
	plain := *w
	for n := len(w.Parts); n > 0; n-- {
		plain.Parts = w.Parts[:n]
		if literal(&plain) != "" {
			break
		}
	}
	return literal(&plain)
}

// knownVariables returns the variables that the statements at the beginning of a command line set to plain
// texts without a placeholder, and the command that follows. It finds these values; later, anything may have
// changed them. The spans are those of the placeholders.
func knownVariables(file *syntax.File, spans [][]int) (known map[string]string, first *syntax.CallExpr) {
	known = map[string]string{}
	for _, s := range file.Stmts {
		cmd := s.Cmd
		for b, ok := cmd.(*syntax.BinaryCmd); ok; b, ok = cmd.(*syntax.BinaryCmd) {
			cmd = b.X.Cmd
		}
		call, ok := cmd.(*syntax.CallExpr)
		if !ok || len(call.Args) > 0 || call != s.Cmd || s.Background || s.Negated || len(s.Redirs) > 0 {
			return known, call
		}
		for _, a := range call.Assigns {
			value := literal(a.Value)
			isPlain := a.Index == nil && a.Array == nil && !a.Append && isPlainValue(value) &&
				!ignoresAssignment(a.Name.Value) &&
				!slices.ContainsFunc(spans, func(s []int) bool {
					return int(a.Pos().Offset()) <= s[0] && s[1] <= int(a.End().Offset())
				})
			delete(known, a.Name.Value)
			if isPlain {
				known[a.Name.Value] = value
			}
		}
	}
	return known, nil
}

// ignoresAssignment reports whether a shell may give a variable another value than the assigned one, which
// may be nothing. The other such variables of bash(1) are numbers and directories.
func ignoresAssignment(name string) bool {
	return name == "_" || name == "FUNCNAME" || strings.HasPrefix(name, "BASH")
}

// isPlainValue reports whether an expansion of a variable with this value is this word, in quotes or not.
func isPlainValue(value string) bool {
	return value != "" && !strings.ContainsFunc(value, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && !strings.ContainsRune("_./-+", c)
	})
}

// substitute returns words in which plain expansions of known variables are replaced by their values.
func substitute(args []*syntax.Word, known map[string]string) []*syntax.Word {
	args = slices.Clone(args)
	for i, w := range args {
		if value, ok := known[plainExpansion(w)]; ok {
			args[i] = &syntax.Word{Parts: []syntax.WordPart{&syntax.SglQuoted{Value: value}}}
		}
	}
	return args
}

// plainExpansion returns the name of the variable if a word is $NAME, ${NAME}, or one of these in double quotes.
func plainExpansion(w *syntax.Word) string {
	parts := w.Parts
	if q, ok := parts[0].(*syntax.DblQuoted); ok && len(parts) == 1 {
		parts = q.Parts
	}
	if len(parts) != 1 {
		return ""
	}
	p, ok := parts[0].(*syntax.ParamExp)
	if !ok || p.Param == nil {
		return ""
	}
	plain := syntax.ParamExp{Dollar: p.Dollar, Rbrace: p.Rbrace, Short: p.Short, Param: p.Param}
	if !reflect.DeepEqual(*p, plain) {
		return ""
	}
	return p.Param.Value
}

// after returns the words that follow an option.
func after(args []*syntax.Word, option string) (words []*syntax.Word) {
	for i, w := range args[:max(len(args)-1, 0)] {
		if literal(w) == option {
			words = append(words, args[i+1])
		}
	}
	return words
}

// literal returns the text of a word without its quotes; "" if the shell expands something in it.
func literal(w *syntax.Word) string {
	if w == nil {
		return ""
	}
	var b strings.Builder
	parts := slices.Clone(w.Parts)
	for len(parts) > 0 {
		part := parts[0]
		parts = parts[1:]
		switch part := part.(type) {
		case *syntax.Lit:
			b.WriteString(strings.ReplaceAll(part.Value, `\`, ""))
		case *syntax.SglQuoted:
			b.WriteString(part.Value)
		case *syntax.DblQuoted:
			parts = slices.Concat(part.Parts, parts)
		default:
			return ""
		}
	}
	return b.String()
}
