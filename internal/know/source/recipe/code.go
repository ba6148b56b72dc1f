package recipe

import (
	"path"
	"slices"
	"strings"
)

// An interpreter is a program that may be given code as an argument.
type interpreter struct {
	flags string   // letters after which the next argument is code; "" when the first one always is
	words []string // whole arguments that do the same
	rest  bool     // all that follows is code, not only one argument
	stops []string // flags after which no code follows
	takes []string // flags with a value of their own that is no code
}

func interpreterOf(program string) (interpreter, bool) {
	name := strings.ToLower(path.Base(strings.ReplaceAll(program, `\`, "/")))
	name = strings.TrimSuffix(name, ".exe")
	switch strings.TrimRight(name, "0123456789.-") {
	case "sh", "bash", "zsh", "dash", "ksh", "mksh", "ash", "fish", "csh", "tcsh":
		return interpreter{flags: "c", words: []string{"--command"}}, true
	case "python", "pypy":
		return interpreter{flags: "c", stops: []string{"-m"}}, true
	case "pwsh", "powershell":
		return interpreter{flags: "cC", rest: true}, true
	case "cmd":
		return interpreter{words: []string{"/c", "/C", "/k", "/K"}, flags: "cC", rest: true}, true
	case "node", "nodejs", "bun", "deno":
		return interpreter{flags: "ep", words: []string{"--eval", "--print", "eval"}}, true
	case "perl", "ruby", "lua", "luajit", "osascript", "rscript", "r", "julia", "elixir", "groovy":
		return interpreter{flags: "eE", words: []string{"--eval", "--print"}}, true
	case "php":
		return interpreter{flags: "rBRE", words: []string{"--run"}}, true
	case "awk", "gawk", "mawk", "nawk":
		return interpreter{takes: []string{"-v", "-F", "--assign", "--field-separator"}, stops: []string{"-f", "--file"}}, true
	}
	return interpreter{}, false
}

// placeholderInCode returns the index of the first argument that an interpreter
// would read as code and in which a value is to stand, or -1. The interpreter
// may stand behind another program: env, xargs, find -exec.
func placeholderInCode(argv []string) int {
	for i, program := range argv {
		if in, ok := interpreterOf(program); ok {
			if j := in.codeWithPlaceholder(argv[i+1:]); j >= 0 {
				return i + 1 + j
			}
		}
	}
	return -1
}

func (in interpreter) codeWithPlaceholder(args []string) int {
	always := in.flags == ""
	code, value := always, false // value: the argument may belong to the flag before it
	for i, arg := range args {
		if slices.Contains(in.stops, arg) {
			return -1
		}
		isFlag := len(arg) > 1 && (arg[0] == '-' || slices.Contains(in.words, arg))
		if isFlag {
			opens := !always && in.opensCode(arg)
			if (opens || code && !always) && Placeholder().MatchString(arg) {
				return i // -c{code}
			}
			code, value = code || opens, !always || slices.Contains(in.takes, arg)
			continue
		}
		switch {
		case always && value:
		case code && Placeholder().MatchString(arg):
			return i
		case code && !in.rest, !code && !value:
			return -1 // the code, or a script: what follows are its arguments
		}
		value = false
	}
	return -1
}

// opensCode: -c, -lc, --eval, and what is written in one with them.
func (in interpreter) opensCode(flag string) bool {
	name, _, _ := strings.Cut(flag, "=")
	if slices.Contains(in.words, name) {
		return true
	}
	if strings.HasPrefix(flag, "--") {
		return false
	}
	letters, _, _ := strings.Cut(flag[1:], "{")
	return strings.ContainsAny(letters, in.flags)
}
