package policy

import (
	"path"
	"slices"
	"strings"

	"ken/internal/programs"
)

// Named returns the files that the arguments of commands may refer to, relative
// to the workspace, if the commands start in dir. How a program interprets its
// arguments is unknown, so everything that could name a file counts, and counts
// as written unless the program is known to only read. It is meant for the
// lists of protected and secret files, whose names rarely mean anything else.
func Named(dir string, commands [][]string) []Path {
	var out []Path
	for _, argv := range commands {
		if len(argv) == 0 || opensNothing(argv) {
			continue
		}
		write, code := !readsOnly(argv), takesCode(argv)
		for _, arg := range argv[1:] {
			for _, name := range spellings(arg, code) {
				if name = seenFrom(dir, name); name != "" {
					out = append(out, Path{Name: name, Write: write})
				}
			}
		}
	}
	return out
}

// spellings returns the ways in which an argument may name a file: as a whole,
// after an equals sign, an @ or a colon, or attached to a short option. In
// code, every word may name one.
func spellings(arg string, code bool) []string {
	if arg == "" || len(arg) > longestCode {
		return nil
	}
	out := []string{arg}
	add := func(name string) {
		if name != "" && name != arg {
			out = append(out, name)
		}
	}
	if arg[0] == '-' && len(arg) > 2 && arg[1] != '-' {
		add(arg[2:])
	}
	for rest := arg; ; {
		i := strings.IndexAny(rest, "=@:,")
		if i < 0 {
			break
		}
		rest = rest[i+1:]
		add(rest)
	}
	if code {
		for _, word := range codeWords(arg) {
			add(word)
		}
	}
	return out
}

const longestCode = 64 << 10

// seenFrom returns a name in the form that the lists are matched against, or ""
// if it cannot be a file name.
func seenFrom(dir, name string) string {
	if len(name) > longestPath || strings.ContainsAny(name, "\x00\n") {
		return ""
	}
	name = strings.ReplaceAll(name, `\`, "/")
	if dir != "" && dir != "." && !absolute(name) && !strings.HasPrefix(name, "$") {
		name = path.Join(dir, name)
	}
	return path.Clean(name)
}

// opensNothing reports whether a command is known to use only the names, not
// the files.
func opensNothing(argv []string) bool {
	switch programs.Name(argv[0]) {
	case "echo", "printf", "ls", "dir", "stat", "basename", "dirname", "realpath", "readlink", "test", "[", "cd", "pwd", "du", "df", "tree", "which", "type", "true", "false", "date", "uname", "whoami", "id", "mkdir":
		return true
	case "find":
		return !programs.Risky(argv, 1)
	case "git":
		return slices.Contains([]string{"status", "ls-files", "ls-tree", "rev-parse", "check-ignore"}, gitCommand(argv))
	}
	return false
}

// readsOnly reports whether a command is known not to write the files that its
// arguments name.
func readsOnly(argv []string) bool {
	name := programs.Name(argv[0])
	switch name {
	case "cat", "head", "tail", "grep", "egrep", "fgrep", "zgrep", "rg", "ag", "file", "wc", "diff", "cmp", "comm", "cut", "tr", "tac", "nl", "od", "xxd", "hexdump", "strings",
		"md5sum", "sha1sum", "sha256sum", "sha512sum", "b2sum", "cksum", "sum", "jq", "less", "more", "source", ".", "sort":
		return name == "less" || name == "more" || name == "source" || name == "." || !programs.Risky(argv, 1)
	case "git":
		return !programs.Risky(argv, 1) && slices.Contains([]string{"log", "diff", "show", "blame", "grep", "cat-file", "describe", "shortlog"}, gitCommand(argv))
	}
	return false
}

// gitCommand returns git's subcommand, skipping git's own options.
func gitCommand(argv []string) string {
	if at, _ := programs.GitCommand(argv); at >= 0 {
		return argv[at]
	}
	return ""
}

// takesCode reports whether a program runs code or another command from its
// arguments.
func takesCode(argv []string) bool {
	name := programs.Name(argv[0])
	return programs.Is(name, programs.Starter|programs.Interpreter) && !programs.Is(name, programs.Project)
}

// Protected reports whether changing a file needs approval. The name is
// relative to the workspace, or absolute.
func (r *Rules) Protected(name string) bool { return r != nil && r.protect.match(path.Clean(name)) }

// Secret reports whether reading a file needs approval.
func (r *Rules) Secret(name string) bool {
	return r != nil && r.secrets.match(path.Clean(name)) && !exampleOfSecrets(name)
}

// ProtectedWhole reports whether everything in a folder is protected.
func (r *Rules) ProtectedWhole(dir string) bool { return r != nil && whole(&r.protect, dir) }

// SecretWhole reports whether everything in a folder holds secrets.
func (r *Rules) SecretWhole(dir string) bool { return r != nil && whole(&r.secrets, dir) }

func whole(set *globSet, dir string) bool {
	dir = path.Clean(dir)
	for _, below := range []string{"a", "a/b", ".b.c/d.e/f"} {
		if !set.match(dir + "/" + below) {
			return false
		}
	}
	return true
}

// exampleOfSecrets reports whether a file is only a template for a file with
// secrets, such as .env.example.
func exampleOfSecrets(name string) bool {
	base := strings.ToLower(path.Base(name))
	if !strings.HasPrefix(base, ".env.") {
		return false
	}
	return slices.Contains([]string{"example", "sample", "template", "dist", "defaults"}, base[strings.LastIndexByte(base, '.')+1:])
}
