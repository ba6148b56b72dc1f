// Package programs knows what well-known programs do with their arguments:
// which of them start other programs, run code, or run the code of a project,
// and by which options. It is the only such list. It looks at words, never at
// files.
//
// No list of programs is complete. A program that is not here is taken to do
// what its name says.
package programs

import "strings"

// A Kind is a set of ways in which a program runs more than itself.
type Kind uint8

// The kinds.
const (
	Starter     Kind = 1 << iota // starts the program that its arguments name
	Shell                        // reads command lines
	Interpreter                  // runs code from its arguments or from a file they name; every shell is one
	Project                      // runs code that files of the project hold, such as recipes, scripts and tests
	Editor                       // shows or edits files, and starts programs by commands and options
)

// Name returns the bare name of a program: without folders, and without .exe.
func Name(arg string) string {
	if i := strings.LastIndexAny(arg, `/\`); i >= 0 {
		arg = arg[i+1:]
	}
	if i := len(arg) - len(".exe"); i > 0 && strings.EqualFold(arg[i:], ".exe") {
		arg = arg[:i]
	}
	return arg
}

// Of returns the kinds of a program with that bare name. Version numbers at the
// end do not count: python3.12 is python.
func Of(name string) Kind {
	if k := kind(name); k != 0 {
		return k
	}
	if strings.HasPrefix(name, "ld-linux") || strings.HasPrefix(name, "ld-musl") || strings.HasPrefix(name, "ld.so") {
		return Starter // the loader runs the program that it is given
	}
	return kind(strings.TrimRight(name, "0123456789.-"))
}

func kind(name string) Kind {
	switch name {
	case "env", "sudo", "doas", "nice", "nohup", "timeout", "time", "gtime", "command", "exec", "xargs", "stdbuf", "setsid", "chroot", "ionice", "eval", "builtin",
		"coproc", "taskset", "chrt", "setpriv", "prlimit", "flock", "unshare", "nsenter", "systemd-run", "systemd-nspawn", "su", "runuser", "sg", "newgrp", "pkexec", "gosu",
		"su-exec", "setarch", "linux32", "linux64", "i386", "x86_64", "uname26", "numactl", "cgexec", "cpulimit", "choom", "uclampset", "runcon", "capsh", "bwrap", "firejail", "proot",
		"fakeroot", "fakechroot", "valgrind", "strace", "ltrace", "perf", "rr", "gdbserver", "heaptrack", "catchsegv", "script", "scriptlive", "watch", "parallel", "entr", "unbuffer", "rlwrap",
		"tmux", "screen", "dtach", "abduco", "byobu", "socat", "ssh", "sshpass", "autossh", "mosh", "rsh", "ssh-agent", "dbus-run-session", "dbus-launch", "xvfb-run",
		"start-stop-daemon", "daemonize", "daemon", "dumb-init", "tini", "catatonit", "faketime", "chpst", "softlimit", "envdir", "setuidgid", "setlock", "s6-setuidgid", "torsocks", "torify",
		"proxychains", "tsocks", "mpirun", "mpiexec", "orterun", "srun", "ccache", "distcc", "at", "batch", "crontab", "caffeinate", "sandbox-exec", "wsl", "machinectl", "lxc", "lxc-attach", "run-parts",
		"trap", "alias", "hyperfine", "direnv", "nix-shell", "guix", "toolbox", "distrobox", "flatpak-spawn", "xterm", "gnome-terminal", "konsole", "alacritty", "kitty", "urxvt", "busybox", "toybox":
		return Starter
	case "sh", "bash", "rbash", "dash", "ash", "zsh", "ksh", "mksh", "fish", "csh", "tcsh", "yash", "posh", "elvish", "xonsh", "nu", "pwsh", "powershell", "cmd":
		return Shell | Interpreter
	case "source", ".", "python", "pythonw", "ipython", "pypy", "node", "nodejs", "tsx", "ts-node", "ruby", "jruby", "irb", "perl", "raku", "php", "lua", "luajit", "tclsh", "wish", "expect",
		"Rscript", "R", "julia", "java", "jshell", "kotlin", "scala", "groovy", "awk", "gawk", "mawk", "nawk", "sed", "gsed", "osascript", "elixir", "iex", "escript", "erl", "guile", "racket", "clojure",
		"clj", "swipl", "ocaml", "runghc", "ghci", "bc", "gdb", "lldb", "m4", "octave", "gnuplot", "qjs", "crystal", "janet", "newlisp", "sbcl", "clisp", "ecl", "pdb",
		"bpftrace", "stap", "wasmtime", "wine", "dc", "gs", "ghostscript", "lftp", "mongosh", "mongo":
		return Interpreter
	case "deno", "bun", "make", "gmake", "just", "rake", "npx", "pnpx", "bunx", "uvx", "pipx":
		return Interpreter | Project
	case "bmake", "ninja", "cmake", "ctest", "meson", "task", "bundle", "bundler", "invoke", "fab", "nox", "tox", "pytest", "poetry", "pdm", "hatch",
		"npm", "pnpm", "yarn", "jest", "vitest", "mocha", "eslint", "prettier", "webpack", "vite", "rollup", "gulp", "grunt", "turbo", "nx",
		"cargo", "gradle", "gradlew", "mvn", "mvnw", "ant", "sbt", "lein", "mill", "bazel", "buck", "dotnet", "msbuild", "mix", "rebar3", "rebar", "composer", "stack", "cabal",
		"pre-commit", "ansible", "ansible-playbook", "jupyter", "papermill", "terraform", "tofu", "vagrant", "docker-compose", "scons", "waf", "doit", "mise", "lefthook", "tsc", "esbuild", "playwright", "cypress":
		return Project
	case "less", "more", "most", "man", "info", "vi", "vim", "nvim", "gvim", "view", "vimdiff", "rvim", "ex", "nano", "pico", "ed", "emacs", "emacsclient", "joe", "mc", "w3m", "lynx", "links":
		return Editor
	}
	return 0
}

// Is reports whether a program with that bare name has one of the kinds.
func Is(name string, kinds Kind) bool { return Of(name)&kinds != 0 }

// HidesCommand reports whether a program is given a command in a form that
// cannot be read off its arguments: as code, or from elsewhere. For other
// starters, such as timeout, the command is in sight.
func HidesCommand(name string) bool {
	if !Is(name, Starter) {
		return false
	}
	switch name {
	case "env", "xargs", "sudo", "doas", "flock", "chroot", "command", "exec", "builtin", "eval":
		return true
	}
	_, known := layoutOf(name)
	return !known
}

// A layout tells where the program stands among a starter's arguments.
type layout struct {
	valued   string // short options that take the next word
	operands int    // words before the program
	assigns  bool   // NAME=VALUE may stand before it
}

func layoutOf(name string) (layout, bool) {
	switch name {
	case "env":
		return layout{valued: "uC", assigns: true}, true
	case "sudo":
		return layout{valued: "ugChpUrtTDR", assigns: true}, true
	case "doas":
		return layout{valued: "uC"}, true
	case "nice":
		return layout{valued: "n"}, true
	case "ionice":
		return layout{valued: "cn"}, true
	case "timeout":
		return layout{valued: "ks", operands: 1}, true
	case "time":
		return layout{valued: "fo"}, true
	case "exec":
		return layout{valued: "a"}, true
	case "nohup", "setsid", "command", "builtin", "eval":
		return layout{}, true
	case "stdbuf":
		return layout{valued: "ioe"}, true
	case "xargs":
		return layout{valued: "aEILnPsd"}, true
	case "taskset", "chrt", "chroot", "flock":
		return layout{valued: "wE", operands: 1}, true
	}
	return layout{}, false
}

// Started returns what is behind a starter's own arguments: the command that it
// starts. It reports false if that cannot be told.
func Started(argv []string) ([]string, bool) {
	l, known := layoutOf(Name(argv[0]))
	if !known {
		return nil, false
	}
	left := l.operands
	for i := 1; i < len(argv); i++ {
		switch arg := argv[i]; {
		case arg == "--":
			if i+1+left > len(argv) {
				return nil, false
			}
			return argv[i+1+left:], true
		case strings.HasPrefix(arg, "--"):
			if !strings.Contains(arg, "=") {
				return nil, false // the next word may be its value
			}
		case len(arg) > 1 && arg[0] == '-':
			if at := strings.IndexAny(arg[1:], l.valued); at >= 0 && at == len(arg)-2 {
				i++ // the next word is its value
			}
		case l.assigns && strings.Contains(arg, "="):
		case left > 0:
			left--
		default:
			return argv[i:], true
		}
	}
	return nil, true
}
