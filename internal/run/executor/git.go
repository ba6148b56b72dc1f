package executor

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"ken/internal/programs"
)

// gitEnvironment returns variables that keep git from running the programs that
// a repository's configuration names for every command: file monitors, hooks,
// pagers, helpers. The environment overrides the repository's configuration.
// Configuration of the user and the machine is not read, because commands can
// write it in the home folder they are given. A repository without .git, which
// any folder can be, is not used. Git does not look into submodules, which have
// a configuration of their own.
func gitEnvironment() []string {
	settings := [][2]string{
		{"core.fsmonitor", "false"}, {"core.hooksPath", os.DevNull}, {"core.pager", "cat"}, {"core.sshCommand", "ssh"}, {"core.editor", "false"},
		{"sequence.editor", "false"}, {"core.askPass", ""}, {"credential.helper", ""}, {"protocol.ext.allow", "never"},
		{"safe.bareRepository", "explicit"}, {"diff.ignoreSubmodules", "dirty"},
	}
	env := []string{"GIT_CONFIG_GLOBAL=" + os.DevNull, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_COUNT=" + strconv.Itoa(len(settings))}
	for i, s := range settings {
		n := strconv.Itoa(i)
		env = append(env, "GIT_CONFIG_KEY_"+n+"="+s[0], "GIT_CONFIG_VALUE_"+n+"="+s[1])
	}
	return env
}

const mostGitConfig = 1 << 20

// GitPrograms returns why git in one of the commands may run a program that the
// project names, despite gitEnvironment, or "". The commands may start in any
// of dirs, which are absolute. Repositories above top do not count for what is
// below it.
func GitPrograms(commands [][]string, top string, dirs ...string) string {
	dirs = slices.Clone(dirs)
	for _, argv := range commands {
		if len(argv) == 0 {
			continue
		}
		name := programs.Name(argv[0])
		if name == "cd" || name == "pushd" {
			dirs = enter(dirs, argv[len(argv)-1])
			continue
		}
		for _, git := range gitCommands(argv) {
			at := dirs
			if len(git.in) > 0 {
				at = enter(dirs, git.in...)[len(dirs):]
			}
			for _, dir := range at {
				if found := gitFolder(top, dir); found != "" {
					return found
				}
			}
		}
	}
	return ""
}

// enter adds the folders that are reached from dirs by going to each of names in
// turn.
func enter(dirs []string, names ...string) []string {
	for _, dir := range dirs[:len(dirs):len(dirs)] {
		for _, name := range names {
			if filepath.IsAbs(name) {
				dir = filepath.Clean(name)
			} else {
				dir = filepath.Join(dir, name)
			}
		}
		dirs = append(dirs, dir)
	}
	return dirs
}

// A gitStart is a git that a command starts, and the folders it goes to first.
type gitStart struct{ in []string }

// gitCommands finds git in a command: as its program, behind programs that start
// others, and in code.
func gitCommands(argv []string) []gitStart {
	name := programs.Name(argv[0])
	if name == "git" {
		_, in := programs.GitCommand(argv)
		return []gitStart{{in}}
	}
	if !programs.Is(name, programs.Starter|programs.Shell|programs.Interpreter) {
		return nil
	}
	var out []gitStart
	var before []string // folders that a starter goes to
	for i, arg := range argv[1:] {
		if dir, ok := strings.CutPrefix(arg, "--chdir="); ok {
			before = append(before, dir)
		} else if (arg == "-C" || arg == "-D" || arg == "--chdir") && i+2 < len(argv) {
			before = append(before, argv[i+2])
		}
		if programs.Name(arg) == "git" {
			_, in := programs.GitCommand(argv[i+1:])
			return append(out, gitStart{slices.Concat(before, in)})
		}
		words := strings.FieldsFunc(arg, func(r rune) bool { return strings.ContainsRune(" \t\n;&|()<>`$'\"{}=,", r) })
		if slices.ContainsFunc(words, func(w string) bool { return programs.Name(w) == "git" }) {
			out = append(out, gitStart{before})
		}
	}
	return out
}

// gitFolder returns what git may run because of the repository that a folder is
// in, under its name and under the one that its links lead to.
func gitFolder(top, dir string) string {
	if found := gitAbove(top, dir); found != "" {
		return found
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil || real == dir {
		return ""
	}
	if realTop, err := filepath.EvalSymlinks(top); err == nil {
		top = realTop
	}
	return gitAbove(top, real)
}

func gitAbove(top, dir string) string {
	for at := dir; ; at = filepath.Dir(at) {
		git := filepath.Join(at, ".git")
		if found := gitPrograms(git); found != "" {
			return found
		}
		if is(git) {
			return gitModules(filepath.Join(at, ".gitmodules"))
		}
		if is(filepath.Join(at, "HEAD")) && (is(filepath.Join(at, "objects")) || is(filepath.Join(at, "commondir"))) {
			return "a repository without .git"
		}
		if at == top || at == filepath.Dir(at) {
			return ""
		}
	}
}

func is(name string) bool {
	_, err := os.Lstat(name)
	return err == nil
}

func gitPrograms(git string) string {
	info, err := os.Lstat(git)
	if err != nil {
		return ""
	}
	if !info.IsDir() {
		return ".git that is no folder" // it points to a configuration elsewhere
	}
	if is(filepath.Join(git, "commondir")) {
		return ".git/commondir" // as above
	}
	for _, name := range []string{"config", "config.worktree"} {
		settings, err := gitFile(filepath.Join(git, name))
		if i := slices.IndexFunc(settings, func(s gitSetting) bool { return !s.harmless() }); i >= 0 {
			return settings[i].name() + " in .git/" + name
		}
		if err != nil {
			return ".git/" + name + " that cannot be read"
		}
	}
	return ""
}

// gitModules: a submodule that is not to be ignored is looked into with its own
// configuration.
func gitModules(name string) string {
	settings, err := gitFile(name)
	if err != nil || slices.ContainsFunc(settings, func(s gitSetting) bool { return s.key == "ignore" }) {
		return "submodule.ignore in .gitmodules"
	}
	return ""
}

// gitFile reads a configuration; one that is not there is empty.
func gitFile(name string) ([]gitSetting, error) {
	info, err := os.Stat(name)
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil || !info.Mode().IsRegular() || info.Size() > mostGitConfig {
		return nil, errGitConfig
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	return readGitConfig(string(data))
}
