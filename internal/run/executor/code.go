package executor

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"ken/capability"
)

// A File is a file whose bytes decide what a call does: a program, the
// interpreter of a script, or a script for an interpreter.
type File struct {
	// Name is the name that the call uses: a program's name as written, or the
	// absolute path of a script. The same name with another path or digest was
	// not approved.
	Name   string `json:"name"`
	Path   string `json:"path"`
	SHA256 string `json:"sha256"`
}

// Digest returns one digest for a list of files in any order, or "" for an
// empty list.
func Digest(files []File) string {
	if len(files) == 0 {
		return ""
	}
	sorted := slices.Clone(files)
	slices.SortFunc(sorted, func(a, b File) int { return cmp.Compare(a.Name, b.Name) })
	h := sha256.New()
	for _, f := range sorted {
		for _, s := range [...]string{f.Name, f.Path, f.SHA256} {
			fmt.Fprintf(h, "%d:%s", len(s), s)
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

// SameCode rejects a call if its files have changed since the decision. It is
// called directly before anything starts.
func SameCode(call capability.Call, files []File) error {
	if call.Code == "" || call.Code == Digest(files) {
		return nil
	}
	return &capability.Error{
		Kind: capability.Conflict, Op: "run", Target: string(call.Target), Rule: "runner.code",
		Err: errors.New("the program, or a script that it is given, has changed since the call was decided on"), Fix: "make the call again",
	}
}

// MetaChanged is the key of Result.Meta that names the files which changed while
// a call ran.
const MetaChanged = "changed"

// Changed adds to a result which files changed while the call ran, because
// other bytes than the approved ones may have run.
func Changed(r *capability.Result, before, after []File) {
	var names []string
	for _, f := range before {
		if !slices.Contains(after, f) {
			names = append(names, f.Path)
		}
	}
	if len(names) == 0 {
		return
	}
	if r.Meta == nil {
		r.Meta = map[string]string{}
	}
	r.Meta[MetaChanged] = strings.Join(names, ", ")
}

const (
	mostFiles    = 128 // files examined for one call
	deepestStart = 8   // how many programs may start one another
)

// Files returns the files whose bytes decide what the commands do: programs,
// the interpreters that their first lines name, and scripts for interpreters.
// Names are looked up in dirs, which are absolute; a cd in the commands adds to
// them. Names without a file, such as shell builtins, are skipped.
func (p *Programs) Files(commands [][]string, dirs ...string) []File {
	l := codeList{programs: p, dirs: slices.Clone(dirs), seen: map[string]bool{}}
	for _, argv := range commands {
		l.command(argv, 0)
	}
	return l.files
}

// A codeList collects files, each once.
type codeList struct {
	programs *Programs
	dirs     []string
	files    []File
	seen     map[string]bool
}

func (l *codeList) add(f File) {
	if !l.seen[f.Name] && len(l.files) < mostFiles {
		l.seen[f.Name] = true
		l.files = append(l.files, f)
	}
}

// command adds the files that a command runs.
func (l *codeList) command(argv []string, depth int) {
	if len(argv) == 0 || argv[0] == "" || depth > deepestStart || len(l.files) >= mostFiles {
		return
	}
	name, args := filepath.Base(argv[0]), argv[1:]
	if name == "cd" && len(args) > 0 {
		l.enter(args[len(args)-1])
		return
	}
	switch {
	case strings.Contains(argv[0], "/") && !filepath.IsAbs(argv[0]):
		l.script(argv[0])
	default:
		if found, err := l.programs.Find(argv[0]); err == nil {
			l.add(File{argv[0], found.Path, found.SHA256})
			l.firstLine(found.head)
		} else if filepath.IsAbs(argv[0]) {
			l.script(argv[0])
		}
	}
	switch {
	case starter(name):
		l.started(args, depth)
	case name == "find":
		for i, a := range args {
			if strings.HasPrefix(a, "-exec") || strings.HasPrefix(a, "-ok") {
				l.command(args[i+1:], depth+1)
			}
		}
	case interpreter(name):
		l.scripts(name, args, depth)
	}
	for _, file := range projectFiles(name) {
		l.script(file)
	}
}

// enter adds a folder that later commands may run in.
func (l *codeList) enter(dir string) {
	if filepath.IsAbs(dir) {
		l.dirs = append(l.dirs, dir)
		return
	}
	for _, d := range slices.Clone(l.dirs) {
		l.dirs = append(l.dirs, filepath.Join(d, dir))
	}
}

// started adds the program that a program such as env or timeout starts: the
// first argument that names one.
func (l *codeList) started(args []string, depth int) {
	for i, a := range args {
		if strings.HasPrefix(a, "-") || strings.Contains(a, "=") {
			continue
		}
		if _, err := l.programs.Find(a); err == nil || l.there(a) {
			l.command(args[i:], depth+1)
			return
		}
	}
}

// scripts adds the files that an interpreter's arguments name: the values of
// its options, and the first argument that is not an option.
func (l *codeList) scripts(name string, args []string, depth int) {
	option := false
	for i, a := range args {
		value := a
		if strings.HasPrefix(a, "-") && len(a) > 1 {
			option = true
			if a == "-c" && i+1 < len(args) && shellName(name) {
				l.inline(args[i+1], depth)
				return
			}
			var ok bool
			if _, value, ok = strings.Cut(a, "="); !ok {
				continue
			}
		} else if l.there(a) && !option {
			l.script(a)
			return
		} else {
			option = false
		}
		l.script(value)
	}
}

// inline adds every word of a shell's command-line argument that is a program
// or a file.
func (l *codeList) inline(line string, depth int) {
	words := strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(" \t\n;&|()<>`$'\"{}=", r) })
	for i, w := range words {
		if l.there(w) {
			l.script(w)
		} else if !strings.HasPrefix(w, "-") && depth < deepestStart {
			if found, err := l.programs.Find(w); err == nil {
				l.add(File{w, found.Path, found.SHA256})
				if starter(w) {
					l.started(words[i+1:], depth+1)
				}
			}
		}
	}
}

// script adds a file by its path, in every folder that contains it.
func (l *codeList) script(name string) {
	for _, path := range l.paths(name) {
		if sum, ok := l.programs.digests.of(path); ok {
			l.add(File{path, path, sum.sha256})
			l.firstLine(sum.head)
		}
	}
}

func (l *codeList) paths(name string) []string {
	if name == "" || len(name) > 4096 || strings.ContainsRune(name, 0) {
		return nil
	}
	if filepath.IsAbs(name) {
		return []string{filepath.Clean(name)}
	}
	var out []string
	for _, d := range l.dirs {
		out = append(out, filepath.Join(d, name))
	}
	return out
}

func (l *codeList) there(name string) bool {
	return slices.ContainsFunc(l.paths(name), func(path string) bool {
		info, err := os.Stat(path)
		return err == nil && info.Mode().IsRegular()
	})
}

// firstLine adds the interpreter that the first line of a script names.
func (l *codeList) firstLine(head string) {
	if !strings.HasPrefix(head, "#!") {
		return
	}
	line, _, _ := strings.Cut(head[2:], "\n")
	words := strings.Fields(line)
	if len(words) == 0 || !filepath.IsAbs(words[0]) {
		return
	}
	if d, ok := l.programs.digests.of(words[0]); ok {
		l.add(File{words[0], words[0], d.sha256})
	}
	if starter(filepath.Base(words[0])) {
		l.started(words[1:], deepestStart-1)
	}
}

// starter reports whether a program only starts another.
func starter(name string) bool {
	switch name {
	case "env", "sudo", "doas", "nice", "nohup", "timeout", "time", "command", "exec", "xargs", "stdbuf", "setsid", "busybox", "chroot", "ionice", "eval", "builtin":
		return true
	}
	return false
}

func shellName(name string) bool {
	switch name {
	case "sh", "bash", "dash", "ash", "zsh", "ksh", "mksh", "fish", "csh", "tcsh":
		return true
	}
	return false
}

// interpreter reports whether a program runs files that its arguments name.
func interpreter(name string) bool {
	if shellName(name) {
		return true
	}
	switch strings.TrimRight(name, "0123456789.") {
	case "", "source", "pwsh", "python", "pythonw", "pypy", "node", "nodejs", "deno", "bun", "tsx", "ts-node", "ruby", "jruby", "perl", "raku", "php",
		"lua", "luajit", "tclsh", "wish", "expect", "Rscript", "R", "julia", "java", "kotlin", "scala", "groovy", "awk", "gawk", "mawk", "nawk", "sed",
		"osascript", "elixir", "escript", "erl", "guile", "racket", "swipl", "ocaml", "runghc", "go", "dotnet", "make", "gmake", "just", "rake", "bc", "gdb":
		return true
	}
	return false
}

// projectFiles returns the files from which a program reads its commands by
// default.
func projectFiles(name string) []string {
	switch name {
	case "make", "gmake":
		return []string{"GNUmakefile", "makefile", "Makefile"}
	case "npm", "npx", "pnpm", "yarn", "bun":
		return []string{"package.json"}
	case "just":
		return []string{"justfile", "Justfile", ".justfile"}
	case "rake":
		return []string{"Rakefile", "rakefile"}
	}
	return nil
}
