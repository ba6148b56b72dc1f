package executor

import (
	"slices"
	"strings"
)

// Environment makes the environment of a program: what every program gets, and
// the variables that were named and that get knows. Nothing else of Ken's own
// environment reaches it. HOME is not among them; the sandbox sets it.
//
// It also gives the names that were asked for and not passed on, because they
// change which code a program loads.
func Environment(path string, names []string, get func(string) (string, bool)) (env, refused []string) {
	env = []string{
		"PATH=" + path, "LANG=C.UTF-8", "TERM=dumb", "NO_COLOR=1",
		// No person can answer, and there is no pager.
		"GIT_TERMINAL_PROMPT=0", "PAGER=cat", "GIT_PAGER=cat", "DEBIAN_FRONTEND=noninteractive",
	}
	env = append(env, gitEnvironment()...)
	const language = "LANG" // only a default, which a person's own replaces
	fixed := func(name string) bool {
		return name == "HOME" || name != language && slices.ContainsFunc(env, func(e string) bool { return strings.HasPrefix(e, name+"=") })
	}
	names = slices.Compact(slices.Sorted(slices.Values(names)))
	var more []string
	for _, name := range names {
		if LoadsCode(name) {
			refused = append(refused, name)
			continue
		}
		if get == nil || fixed(name) {
			continue
		}
		if v, ok := get(name); ok && !strings.ContainsRune(v, 0) {
			if name == language {
				env = slices.DeleteFunc(env, func(e string) bool { return strings.HasPrefix(e, language+"=") })
			}
			more = append(more, name+"="+v)
		}
	}
	return append(env, more...), refused
}

// LoadsCode reports whether a variable decides which code a program runs.
func LoadsCode(name string) bool {
	switch name {
	case "BASH_ENV", "ENV", "SHELLOPTS", "BASHOPTS", "PROMPT_COMMAND", "IFS", "CDPATH", "GLOBIGNORE",
		"PYTHONPATH", "PYTHONSTARTUP", "PYTHONHOME", "PYTHONINSPECT", "PERL5LIB", "PERL5OPT", "PERLLIB",
		"RUBYOPT", "RUBYLIB", "NODE_OPTIONS", "NODE_PATH", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "CLASSPATH",
		"GCONV_PATH", "LOCPATH", "EDITOR", "VISUAL", "BROWSER", "LESSOPEN", "MANPAGER", "GIT_SSH", "GIT_SSH_COMMAND",
		"GIT_EXEC_PATH", "GIT_EXTERNAL_DIFF", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM", "GIT_CONFIG_COUNT", "GIT_CONFIG_PARAMETERS",
		"GIT_DIR", "GIT_COMMON_DIR", "GIT_EDITOR", "GIT_SEQUENCE_EDITOR", "GIT_TEMPLATE_DIR", "GIT_PROXY_COMMAND", "GIT_ASKPASS", "SSH_ASKPASS":
		return true
	}
	for _, prefix := range []string{"LD_", "DYLD_", "BASH_FUNC_", "GIT_CONFIG_KEY_", "GIT_CONFIG_VALUE_", "KEN_"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}
