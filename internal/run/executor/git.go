package executor

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// gitEnvironment returns variables that keep git from running the programs that
// a repository's configuration names for every command: file monitors, hooks,
// pagers, helpers. The environment overrides the repository's configuration.
func gitEnvironment() []string {
	settings := [][2]string{
		{"core.fsmonitor", "false"}, {"core.hooksPath", os.DevNull}, {"core.pager", "cat"}, {"core.sshCommand", "ssh"}, {"core.editor", "false"},
		{"sequence.editor", "false"}, {"core.askPass", ""}, {"credential.helper", ""}, {"protocol.ext.allow", "never"},
	}
	env := []string{"GIT_CONFIG_COUNT=" + strconv.Itoa(len(settings))}
	for i, s := range settings {
		n := strconv.Itoa(i)
		env = append(env, "GIT_CONFIG_KEY_"+n+"="+s[0], "GIT_CONFIG_VALUE_"+n+"="+s[1])
	}
	return env
}

const mostGitConfig = 1 << 20

// gitSection and gitKey find settings in a repository's configuration that name
// programs which the environment cannot override, or that include another file.
var (
	gitSection = regexp.MustCompile(`^\[\s*([A-Za-z0-9.-]+)(?:\s+"[^"]*")?\s*\]?`)
	gitKey     = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9-]*)\s*(?:=\s*(.*))?$`)
)

// GitPrograms returns the setting of dir's repository that makes git run a
// program despite gitEnvironment, or "". It looks for no repository above top.
func GitPrograms(top, dir string) string {
	for at := dir; ; at = filepath.Dir(at) {
		if found := gitPrograms(filepath.Join(at, ".git")); found != "" {
			return found
		}
		if _, err := os.Lstat(filepath.Join(at, ".git")); err == nil || at == top || at == filepath.Dir(at) {
			return ""
		}
	}
}

func gitPrograms(git string) string {
	info, err := os.Lstat(git)
	if err != nil {
		return ""
	}
	if !info.IsDir() {
		return ".git that is no folder" // it points to a configuration elsewhere
	}
	for _, name := range []string{"config", "config.worktree"} {
		file := filepath.Join(git, name)
		info, err := os.Stat(file)
		if err != nil {
			continue
		}
		if !info.Mode().IsRegular() || info.Size() > mostGitConfig {
			return ".git/" + name + " that cannot be read"
		}
		data, err := os.ReadFile(file)
		if err != nil {
			return ".git/" + name + " that cannot be read"
		}
		if found := gitRuns(string(data)); found != "" {
			return found + " in .git/" + name
		}
	}
	return ""
}

func gitRuns(text string) string {
	section := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if m := gitSection.FindStringSubmatch(line); m != nil {
			section = strings.ToLower(m[1])
			line = strings.TrimSpace(line[len(m[0]):])
		}
		m := gitKey.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		first, _, _ := strings.Cut(section, ".")
		switch key := strings.ToLower(m[1]); {
		case first == "include" || first == "includeif",
			first == "filter" && (key == "clean" || key == "smudge" || key == "process"),
			first == "diff" && (key == "external" || key == "command" || key == "textconv"),
			first == "merge" && key == "driver", first == "mergetool" || first == "difftool",
			first == "gpg" && key == "program", first == "alias" && strings.HasPrefix(strings.TrimLeft(m[2], `"' `), "!"),
			first == "core" && (key == "gitproxy" || key == "alternaterefscommand" || key == "worktree"),
			first == "interactive" && key == "difffilter", first == "uploadpack" && key == "packobjectshook", first == "remote" && (key == "uploadpack" || key == "receivepack" || key == "vcs"):
			return first + "." + key
		}
	}
	return ""
}
