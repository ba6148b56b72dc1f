package policy

import (
	"slices"
	"strings"
)

// Programs that run the project's code, as make runs recipes and npm runs
// scripts, are one class. The name of such a program does not tell what it
// does. Permission for the name covers only the bare name; permission for "make
// test" or "npm run build" covers that, without options that lead to other
// code.

// runsProject reports whether a command runs code that files of the project
// hold: a recipe, a script, a test, a build step, or a file it names.
func runsProject(argv []string) bool {
	name := program(argv[0])
	if interpreter(name) {
		return true
	}
	switch name {
	case "make", "gmake", "bmake", "ninja", "cmake", "ctest", "meson", "just", "task", "rake", "bundle", "bundler", "invoke", "fab", "nox", "tox", "pytest", "poetry", "pdm", "hatch",
		"npm", "npx", "pnpm", "pnpx", "yarn", "bun", "bunx", "deno", "jest", "vitest", "mocha", "eslint", "prettier", "webpack", "vite", "rollup", "gulp", "grunt", "turbo", "nx",
		"cargo", "gradle", "gradlew", "mvn", "mvnw", "ant", "sbt", "lein", "mill", "bazel", "buck", "dotnet", "msbuild", "mix", "rebar3", "composer", "stack", "cabal",
		"pre-commit", "ansible-playbook", "terraform", "tofu", "vagrant", "docker-compose", "R":
		return true
	case "go":
		return len(argv) < 2 || slices.Contains([]string{"run", "test", "generate", "tool", "build", "install", "vet"}, argv[1]) || strings.HasPrefix(argv[1], "-")
	case "uv", "pip", "pip3", "pipx":
		return slices.ContainsFunc(argv[1:], func(a string) bool {
			return a == "run" || a == "install" || a == "sync" || a == "wheel" || a == "build"
		})
	case "swift", "zig", "dart", "flutter", "docker", "podman":
		return slices.ContainsFunc(argv[1:], func(a string) bool { return a == "run" || a == "test" || a == "build" || a == "compose" })
	}
	return false
}

// otherCode reports whether an argument makes a program of the class run other
// code than its earlier arguments name: another makefile, another folder, a
// program in between.
func otherCode(name, arg string) bool {
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
	return interpreter(name) && strings.HasPrefix(arg, "-")
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

// Prefix returns the shortest prefix of a command that allows it when added to
// the allowed prefixes, or nil if none does.
func Prefix(argv []string) []string {
	var p pattern
	for i, arg := range argv {
		if p = append(p, []string{arg}); p.exactly(argv) {
			return argv[:i+1]
		}
	}
	return nil
}
