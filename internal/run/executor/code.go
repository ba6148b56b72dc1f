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
	"ken/internal/coldsort"
	"ken/internal/programs"
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
	coldsort.By(sorted, func(a, b File) int { return cmp.Compare(a.Name, b.Name) })
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
		Err: errors.New("the program or one of its scripts has changed since the call was approved"), Fix: "make the call again",
	}
}

// stateMark stands before the digest of [Facts.State] in the code of a call.
const stateMark = "@"

// InState returns the code of a call that is bound to a state too.
func InState(code, state string) string {
	if state == "" {
		return code
	}
	return code + fmt.Sprintf("%s%x", stateMark, sha256.Sum256([]byte(state)))
}

// SameState rejects a call if the state that decides what it does has changed since
// the decision. What names the state in the error.
func SameState(call capability.Call, state, what string) error {
	code, _, _ := strings.Cut(call.Code, stateMark)
	if call.Code == "" || call.Code == InState(code, state) {
		return nil
	}
	return &capability.Error{
		Kind: capability.Conflict, Op: "run", Target: string(call.Target), Rule: "runner.state",
		Err: errors.New(what + " has changed since the call was decided on"), Fix: "make the call again",
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
	mostFolders  = 32  // folders in which names are looked up
	mostMatches  = 64  // files that one pattern may match
	mostWords    = 500 // words that are looked up; Unknown is set in any case
	deepestStart = 8   // how many programs may start one another
	deepestLine  = 4   // how many first lines may name one another, as in the kernel
)

// A Task is what [Programs.Code] examines.
type Task struct {
	Commands [][]string // simple commands, each as its arguments

	// Shell is the program that reads Text, the whole command line; both are empty
	// if no shell does. Opaque says why there may be more to it than Commands.
	// Written are the files that its redirections write; they do not decide what
	// it does.
	Shell   string
	Text    string
	Opaque  string
	Written []string

	// Dirs are the absolute folders in which names are looked up. A cd in the
	// commands, or an option such as -C, adds to them.
	Dirs []string
}

// Code is what decides what a task does.
type Code struct {
	Files []File

	// Unknown says why other files than Files may decide it too. It is empty if
	// Files has all that the commands name.
	Unknown string
}

// Code returns the files whose bytes decide what a task does: programs, the
// interpreters that their first lines name, and scripts for interpreters. Names
// without a file, such as shell builtins, are skipped.
//
// Where an interpreter takes its code from its arguments or its input, or a shell
// works something out, every word of the task that is a file counts. Unknown says
// then what could not be followed.
func (p *Programs) Code(t Task) Code {
	l := codeList{programs: p, dirs: slices.Clone(t.Dirs), seen: map[string]bool{}}
	l.program(t.Shell)
	for _, argv := range t.Commands {
		l.command(argv, 0)
	}
	if t.Opaque != "" {
		l.unsure(t.Opaque)
	}
	if l.unknown != "" {
		l.words(t)
	}
	return Code{l.files, l.unknown}
}

// A codeList collects files, each once.
type codeList struct {
	programs *Programs
	dirs     []string
	files    []File
	seen     map[string]bool
	unknown  string // the first reason
}

func (l *codeList) unsure(why string) {
	if l.unknown == "" {
		l.unknown = why
	}
}

func (l *codeList) add(f File) {
	switch {
	case l.seen[f.Name]:
	case len(l.files) >= mostFiles:
		l.unsure(fmt.Sprintf("it names more than %d files", mostFiles))
	default:
		l.seen[f.Name] = true
		l.files = append(l.files, f)
	}
}

// command adds the files that a command runs.
func (l *codeList) command(argv []string, depth int) {
	if len(argv) == 0 || argv[0] == "" {
		return
	}
	if depth > deepestStart {
		l.unsure(fmt.Sprintf("more than %d programs start one another", deepestStart))
		return
	}
	name, args := filepath.Base(argv[0]), argv[1:]
	if name == "cd" && len(args) > 0 {
		l.enter(args[len(args)-1])
		return
	}
	l.program(argv[0])
	if !readsData(name) {
		l.folders(args)
		if !interpreter(name) {
			l.executables(args)
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
	l.arguments(name, argv)
	for _, file := range projectFiles(name) {
		l.script(file)
	}
}

// arguments adds the files in the arguments of a program that is no interpreter,
// but whose arguments can hold commands, such as sed's e or sort's
// --compress-program; and it says where a program runs code of the project.
func (l *codeList) arguments(name string, argv []string) {
	if starter(name) || interpreter(name) && name != "sed" {
		return
	}
	if programs.Risky(argv, 1) {
		switch {
		case name == "git" || programs.Is(name, programs.Editor):
			l.unsure("an argument of " + name + " may run another program") // so all words count
		case name == "sed" || name == "gsed":
			l.words(Task{Commands: [][]string{argv[1:]}}) // without a reason: every call of theirs would have it
		default: // other files may be what it writes
			l.executables(argv[1:])
		}
	}
	if programs.RunsProject(argv) && projectFiles(name) == nil && name != "sed" {
		l.unsure("code of the project that " + name + " runs")
	}
}

// program adds the program of a command.
func (l *codeList) program(name string) {
	if name == "" {
		return
	}
	if strings.Contains(name, "/") && !filepath.IsAbs(name) {
		l.script(name)
		return
	}
	if found, err := l.programs.Find(name); err == nil {
		l.add(File{name, found.Path, found.SHA256})
		l.firstLine(found.head, 0)
	} else if filepath.IsAbs(name) {
		l.script(name)
	}
}

// enter adds a folder that later commands may run in.
func (l *codeList) enter(dir string) {
	for _, path := range l.paths(dir) {
		switch {
		case slices.Contains(l.dirs, path):
		case len(l.dirs) >= mostFolders:
			l.unsure(fmt.Sprintf("it names more than %d folders", mostFolders))
		default:
			l.dirs = append(l.dirs, path)
		}
	}
}

// folders enters the folders that arguments name: those of -C, --prefix and
// their like.
func (l *codeList) folders(args []string) {
	for _, a := range args {
		for _, value := range values(a) {
			for _, path := range l.paths(value) {
				if info, err := os.Stat(path); err == nil && info.IsDir() {
					l.enter(value)
					break
				}
			}
		}
	}
}

// executables adds the arguments that are executable files: a program that is not
// known to read data may start them.
func (l *codeList) executables(args []string) {
	for _, a := range args {
		for _, value := range append(values(a), separate(a)...) {
			for _, path := range l.paths(value) {
				if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
					l.script(path)
				}
			}
		}
	}
}

// values returns what an argument may name: itself, the value after =, and for a
// short option what follows its letter.
func values(arg string) []string {
	out := []string{arg}
	if _, value, ok := strings.Cut(arg, "="); ok {
		out = append(out, value)
	}
	if len(arg) > 2 && arg[0] == '-' && arg[1] != '-' {
		out = append(out, arg[2:])
	}
	return out
}

// started adds the program that a program such as env or timeout starts: the
// first argument that names one.
func (l *codeList) started(args []string, depth int) {
	for i, a := range args {
		if name, _, ok := strings.Cut(a, "="); ok && assigns(name) {
			l.unsure("the variable " + name + " decides which program or file is run")
		}
		if strings.HasPrefix(a, "-") || strings.Contains(a, "=") {
			continue
		}
		if _, err := l.programs.Find(a); err == nil || l.there(a) {
			l.command(args[i:], depth+1)
			return
		}
	}
}

// assigns reports whether a variable names programs or files to run.
func assigns(name string) bool {
	return name == "PATH" || name == "ENV" || strings.HasSuffix(name, "_ENV") || strings.HasPrefix(name, "LD_") ||
		strings.HasSuffix(name, "PATH") || strings.HasSuffix(name, "OPT") || strings.HasSuffix(name, "OPTIONS") || strings.HasSuffix(name, "STARTUP")
}

// scripts adds the files that an interpreter's arguments name: the values of
// its options, and the first argument that is not an option. An interpreter
// without a file takes its code from its arguments or its input.
func (l *codeList) scripts(name string, args []string, depth int) {
	option, given := false, false
	for i, a := range args {
		value := a
		if strings.HasPrefix(a, "-") && len(a) > 1 {
			option = true
			if code(name, a) {
				l.unsure("code in the arguments of " + name)
				if i+1 < len(args) && shellName(name) {
					l.inline(args[i+1], depth)
					return
				}
			}
			var ok bool
			if _, value, ok = strings.Cut(a, "="); !ok {
				if len(a) > 2 && a[1] != '-' && l.there(a[2:]) {
					l.script(a[2:])
					given = true
				}
				continue
			}
		} else if l.there(a) && !option {
			l.script(a)
			return
		} else {
			option = false
		}
		if l.there(value) {
			l.script(value)
			given = true
		}
	}
	if !given && len(projectFiles(name)) == 0 && !slices.Contains(args, "--version") {
		l.unsure("code that " + name + " is not given as a file")
	}
}

// code reports whether an option of an interpreter is followed by code, or by the
// name of a module.
func code(name, option string) bool {
	if strings.HasPrefix(option, "--") {
		return strings.HasPrefix(option, "--eval") || strings.HasPrefix(option, "--print") || strings.HasPrefix(option, "--command")
	}
	if shellName(name) {
		return strings.Contains(option, "c")
	}
	return strings.ContainsAny(option, "ceEpm") && projectFiles(name) == nil && name != "sed"
}

// inline adds every word of a shell's command-line argument that is a program
// or a file.
func (l *codeList) inline(line string, depth int) {
	words := separate(line)
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

// separate returns the words of a command line or of code.
func separate(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" \t\n;&|()<>`$'\"{}=,!", r) })
}

// words adds every word of a task that is, or may become, a file: as it is, after
// an option's letter, behind each slash, as a module, and what a pattern matches.
func (l *codeList) words(t Task) {
	var all []string
	for _, argv := range t.Commands {
		for _, a := range argv {
			all = append(all, a)
			all = append(all, separate(a)...)
		}
	}
	all = append(all, separate(t.Text)...)
	slices.Sort(all)
	all = slices.Compact(all)
	if len(all) > mostWords {
		all = all[:mostWords]
	}
	l.folders(all)
	for _, w := range all {
		for _, value := range values(w) {
			if slices.Contains(t.Written, value) {
				continue
			}
			for at := value; at != ""; {
				l.word(at)
				_, rest, ok := strings.Cut(at, "/")
				if !ok {
					break
				}
				at = rest
			}
		}
	}
}

func (l *codeList) word(w string) {
	if strings.ContainsAny(w, "*?[") {
		l.pattern(w)
		return
	}
	for _, name := range [...]string{w, w + ".py", w + "/__main__.py", w + "/__init__.py", w + ".js", w + ".mjs", w + ".cjs", w + "/index.js"} {
		if l.there(name) {
			l.script(name)
		}
	}
}

// pattern adds the files that a pattern matches.
func (l *codeList) pattern(p string) {
	for _, path := range l.paths(p) {
		matches, err := filepath.Glob(path)
		if err != nil {
			continue
		}
		if len(matches) > mostMatches {
			l.unsure(fmt.Sprintf("a pattern matches more than %d files", mostMatches))
			matches = matches[:mostMatches]
		}
		for _, m := range matches {
			l.script(m)
		}
	}
}

// script adds a file by its path, in every folder that contains it.
func (l *codeList) script(name string) {
	for _, path := range l.paths(name) {
		if sum, ok := l.programs.digests.of(path); ok {
			l.add(File{path, path, sum.sha256})
			l.firstLine(sum.head, 0)
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

// firstLine adds the interpreter that the first line of a script names, and the
// one that the interpreter's own first line names.
func (l *codeList) firstLine(head string, depth int) {
	if !strings.HasPrefix(head, "#!") || depth >= deepestLine {
		return
	}
	line, _, _ := strings.Cut(head[2:], "\n")
	words := strings.Fields(line)
	if len(words) == 0 {
		return
	}
	for _, path := range l.paths(words[0]) {
		if d, ok := l.programs.digests.of(path); ok {
			l.add(File{path, path, d.sha256})
			l.firstLine(d.head, depth+1)
		}
	}
	if starter(filepath.Base(words[0])) {
		l.started(words[1:], deepestStart-1)
	}
}

// readsData reports whether a program is known to treat the files in its
// arguments as data.
func readsData(name string) bool {
	switch name {
	case "git", "cat", "ls", "cp", "mv", "rm", "mkdir", "rmdir", "touch", "head", "tail", "wc", "grep", "egrep", "fgrep", "rg", "diff", "cmp", "sort", "uniq",
		"cut", "tr", "stat", "file", "chmod", "chown", "ln", "echo", "printf", "test", "[", "basename", "dirname", "realpath", "readlink", "du", "df", "tee",
		"md5sum", "sha1sum", "sha256sum", "sha512sum", "cksum", "base64", "xxd", "od", "hexdump", "strings", "jq", "tree", "which", "gzip", "gunzip", "zcat", "cd":
		return true
	}
	return false
}

// starter reports whether a program only starts another.
func starter(name string) bool { return programs.Is(name, programs.Starter) }

func shellName(name string) bool { return programs.Is(name, programs.Shell) }

// interpreter reports whether a program runs files that its arguments name.
func interpreter(name string) bool {
	return programs.Is(name, programs.Interpreter) || name == "go" || name == "dotnet"
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
