package policy

import (
	"regexp"
	"slices"
	"strings"

	"ken/capability"
)

var (
	plainProgram = regexp.MustCompile(`^[A-Za-z0-9_./+-]{1,128}$`)
	plainWord    = regexp.MustCompile(`^[a-z][a-z0-9-]{0,31}$`)
)

// CommonPrefix returns the first words that a call's command shares with
// similar commands: "git status" for "git status -s". It is empty if no such
// prefix says what the commands do, as for interpreters and programs that start
// others, or if it would not cover the call itself. A script among files is
// part of the prefix.
func CommonPrefix(f *Facts, files []File) []string {
	if f.Opaque != "" || len(f.Commands) != 1 {
		return nil
	}
	argv := bare(f.Commands[0])
	if len(argv) == 0 || !plainProgram.MatchString(argv[0]) || strings.HasPrefix(argv[0], "-") {
		return nil
	}
	var out []string
	switch name := program(argv[0]); {
	case len(argv) > 1 && runsScripts(name):
		if script := argv[1]; plainProgram.MatchString(script) && slices.ContainsFunc(files, func(f File) bool {
			return strings.HasSuffix(f.Name, strings.TrimPrefix(script, ".")) && f.Name == f.Path
		}) {
			out = argv[:2]
		}
	case runsScripts(name), runsProject(argv), wrapper(name), hazardous(argv[0], "-"):
	case len(argv) > 1 && plainWord.MatchString(argv[1]):
		out = argv[:2]
	case !manyCommands(name):
		out = argv[:1]
	}
	if out == nil || !begins(out, f) {
		return nil
	}
	return slices.Clone(out)
}

// begins reports whether every command of a call begins with prefix, and has no
// argument that makes it run something else.
func begins(prefix []string, f *Facts) bool {
	if f.Opaque != "" || len(f.Commands) == 0 {
		return false
	}
	var p pattern
	for _, w := range prefix {
		p = append(p, []string{w})
	}
	return !slices.ContainsFunc(f.Commands, func(argv []string) bool { return !p.exactly(bare(argv)) })
}

// bare removes a leading "env --", which only starts the rest of the command.
func bare(argv []string) []string {
	if len(argv) > 2 && program(argv[0]) == "env" && argv[1] == "--" {
		return argv[2:]
	}
	return argv
}

// runsScripts reports whether a program runs code from its arguments or from
// files they name.
func runsScripts(name string) bool {
	switch strings.TrimRight(name, "0123456789.") {
	case "sh", "bash", "dash", "ash", "zsh", "ksh", "mksh", "fish", "csh", "tcsh", "pwsh", "python", "pypy", "node", "nodejs", "deno", "bun", "tsx", "ts-node",
		"ruby", "jruby", "perl", "raku", "php", "lua", "luajit", "tclsh", "wish", "expect", "Rscript", "R", "julia", "java", "groovy", "osascript", "elixir",
		"escript", "erl", "guile", "racket", "swipl", "ocaml", "runghc", "make", "gmake", "just", "rake", "find", "ssh", "watch", "parallel", "script",
		"npx", "uvx", "pipx", "strace", "ltrace", "gdb", "flock", "unshare", "nsenter", "systemd-run", "su", "runuser", "awk", "gawk", "mawk", "nawk", "sed", "vi", "vim", "ed", "emacs":
		return true
	}
	return false
}

// manyCommands reports whether a program has subcommands, so that its name
// alone says little.
func manyCommands(name string) bool {
	switch name {
	case "git", "gh", "glab", "hg", "svn", "docker", "podman", "kubectl", "helm", "npm", "pnpm", "yarn", "cargo", "go", "pip", "pip3", "uv", "poetry", "conda",
		"aws", "gcloud", "az", "terraform", "systemctl", "apt", "apt-get", "dnf", "yum", "brew", "snap", "nix", "ken", "ip", "openssl", "busybox":
		return true
	}
	return false
}

// anyProgram reports whether a recipe runs any program or code that its caller
// names, so that it can do whatever a shell can.
func anyProgram(r *capability.Recipe) bool {
	if r == nil || !strings.HasPrefix(r.Runner, "exec.") {
		return false
	}
	argv := r.Argv
	if len(argv) == 0 { // the arguments are built from the schema
		name := strings.TrimSuffix(strings.TrimSuffix(strings.TrimPrefix(r.Runner, "exec."), "_cli"), "_tool")
		return r.Action == "" && (wrapper(name) || runsScripts(name))
	}
	for len(argv) > 0 && wrapper(program(argv[0])) {
		argv = argv[1:]
		for len(argv) > 0 && strings.HasPrefix(argv[0], "-") {
			argv = argv[1:]
		}
	}
	switch {
	case len(argv) == 0:
		return false
	case strings.Contains(argv[0], "{"):
		return true
	case !runsScripts(program(argv[0])):
		return false
	}
	// For an interpreter: whether the caller chooses the first argument that is
	// not an option.
	for _, a := range argv[1:] {
		if !strings.HasPrefix(a, "-") {
			return strings.HasPrefix(a, "{")
		}
	}
	return false
}
