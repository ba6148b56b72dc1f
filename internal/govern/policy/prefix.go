package policy

import (
	"regexp"
	"slices"
	"strings"
	"sync"

	"ken/capability"
	"ken/internal/programs"
)

var (
	plainProgram = once(`^[A-Za-z0-9_./+-]{1,128}$`)
	plainWord    = once(`^[a-z][a-z0-9-]{0,31}$`)
)

// once returns a function that compiles an expression on its first use, because
// most starts of Ken need none of them.
func once(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}

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
	if len(argv) == 0 || !plainProgram().MatchString(argv[0]) || strings.HasPrefix(argv[0], "-") {
		return nil
	}
	var out []string
	switch name := programs.Name(argv[0]); {
	case len(argv) > 1 && programs.Is(name, programs.Interpreter):
		if script := argv[1]; plainProgram().MatchString(script) && slices.ContainsFunc(files, func(f File) bool {
			return strings.HasSuffix(f.Name, strings.TrimPrefix(script, ".")) && f.Name == f.Path
		}) {
			out = argv[:2]
		}
	case name == "find", programs.RunsProject(argv), programs.Is(name, programs.Starter|programs.Interpreter|programs.Editor):
	case len(argv) > 1 && plainWord().MatchString(argv[1]):
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
	if len(argv) > 2 && programs.Name(argv[0]) == "env" && argv[1] == "--" {
		return argv[2:]
	}
	return argv
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
	if len(r.Argv) > 0 {
		return choosesProgram(r.Argv, r.Passthrough)
	}
	// The arguments are built from the schema.
	name := strings.TrimSuffix(strings.TrimSuffix(strings.TrimPrefix(r.Runner, "exec."), "_cli"), "_tool")
	return r.Action == "" && (name == "find" && r.Passthrough || programs.Is(name, programs.Starter|programs.Interpreter|programs.Editor))
}

var (
	placeholder = once(`\{[A-Za-z_][A-Za-z0-9_.-]*\}`)
	wholeWord   = once(`^\{[A-Za-z_][A-Za-z0-9_.-]*\}$`)
)

// choosesProgram reports whether a caller who fills in the placeholders of a
// command chooses the program or the code that runs. Options says that the
// values may begin with a dash.
func choosesProgram(argv []string, options bool) bool {
	if len(argv) == 0 {
		return false
	}
	if placeholder().MatchString(argv[0]) {
		return true
	}
	name, args := programs.Name(argv[0]), argv[1:]
	whole := slices.ContainsFunc(args, wholeWord().MatchString)
	switch {
	case name == "find":
		i := slices.IndexFunc(args, func(a string) bool { return strings.HasPrefix(a, "-exec") || strings.HasPrefix(a, "-ok") })
		return options && whole || i >= 0 && choosesProgram(args[i+1:], options)
	case programs.Is(name, programs.Starter):
		started, ok := programs.Started(argv)
		before := argv[1 : len(argv)-len(started)]
		if !ok || slices.ContainsFunc(before, func(a string) bool { return strings.HasSuffix(a, "...}") }) {
			return whole // where the program stands cannot be told
		}
		return choosesProgram(started, options)
	case programs.Is(name, programs.Interpreter|programs.Editor):
		// Whether the caller chooses the first argument that is not an option, or
		// writes a part of it.
		for _, a := range args {
			if !strings.HasPrefix(a, "-") {
				return placeholder().MatchString(a)
			}
		}
	}
	return false
}
