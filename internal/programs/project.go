package programs

import (
	"slices"
	"strings"
)

// RunsProject reports whether a command runs code that files of the project
// hold: a recipe, a script, a test, a build step, or a file that it names.
func RunsProject(argv []string) bool {
	name := Name(argv[0])
	if Is(name, Interpreter|Project) {
		return true
	}
	has := func(words ...string) bool {
		return slices.ContainsFunc(argv[1:], func(a string) bool { return slices.Contains(words, a) })
	}
	switch name {
	case "go":
		return len(argv) < 2 || slices.Contains([]string{"run", "test", "generate", "tool", "build", "install", "vet"}, argv[1]) || strings.HasPrefix(argv[1], "-")
	case "uv", "pip", "pip3":
		return has("run", "install", "sync", "wheel", "build")
	case "swift", "zig", "dart", "flutter":
		return has("run", "test", "build")
	case "docker", "podman", "nerdctl":
		return has("run", "test", "build", "compose", "exec", "buildx")
	case "kubectl", "oc":
		return has("exec", "run", "debug", "attach", "plugin")
	case "apt", "apt-get", "dnf", "yum", "brew", "snap", "nix", "conda", "gem", "helm":
		return has("run", "shell", "develop", "exec", "plugin", "build")
	}
	return false
}

// OtherCode reports whether an argument makes a program that runs the project's
// code run other code than its earlier arguments name: another makefile, another
// folder, a program in between.
func OtherCode(name, arg string) bool {
	switch name {
	case "make", "gmake", "bmake", "just", "task", "rake", "ninja":
		return true // a target, a variable, or an option
	case "go":
		return optionOf(arg, "-exec", "-toolexec", "-vettool", "-o", "-C", "-modfile", "-overlay", "-ldflags", "-gcflags", "-asmflags", "-cpuprofile", "-memprofile", "-coverprofile", "-blockprofile", "-mutexprofile", "-trace", "-outputdir", "-pkgdir")
	case "npm", "npx", "pnpm", "pnpx", "yarn", "bun", "bunx":
		return optionOf(arg, "--prefix", "-C", "--dir", "--cwd", "--script-shell", "--node-options", "--userconfig", "--globalconfig", "--shell", "-c", "--call", "--package", "-p")
	case "cargo":
		return optionOf(arg, "--config", "--manifest-path", "-C", "-Z", "--target-dir") || strings.HasPrefix(arg, "+")
	}
	return Is(name, Interpreter) && strings.HasPrefix(arg, "-")
}

// optionOf reports whether an argument is one of the options: alone, with an
// equals sign and a value, or as one letter with its value attached.
// Single-dash options may be written with two dashes.
func optionOf(arg string, options ...string) bool {
	name, _, _ := strings.Cut(arg, "=")
	return slices.ContainsFunc(options, func(o string) bool {
		return name == o || !strings.HasPrefix(o, "--") && len(o) > 2 && name == "-"+o || len(o) == 2 && strings.HasPrefix(arg, o)
	})
}
