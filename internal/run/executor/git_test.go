package executor

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"ken/internal/testkit"
)

// TestGitPrograms: it finds the programs that a repository's configuration
// makes git run.
func TestGitPrograms(t *testing.T) {
	for text, want := range map[string]string{
		"":                                       "",
		"[core]\n\tbare = false\n":               "",
		"[remote \"origin\"]\n\turl = x\n":       "",
		"[alias]\n\tst = status\n":               "",
		"[filter \"x\"]\n\tclean = evil\n":       "filter.clean",
		"[filter \"x\"] clean = evil":            "filter.clean",
		"[FILTER \"x\"]\n Process=evil":          "filter.process",
		"[diff \"x\"]\n\ttextconv = evil\n":      "diff.textconv",
		"[diff]\n\texternal = evil\n":            "diff.external",
		"[include]\n\tpath = other\n":            "include.path",
		"[includeIf \"gitdir:/\"]\n\tpath = o\n": "includeif.path",
		"[alias]\n\tst = !evil\n":                "alias.st",
		"[merge \"x\"]\n\tdriver = evil\n":       "merge.driver",
		"[gpg]\n\tprogram = evil\n":              "gpg.program",
		// A line may be continued, a value quoted, a key in its section's line.
		"[alias]\n\tst = \\\n!evil\n":                        "alias.st",
		"[alias] st = \"!evil\"":                             "alias.st",
		"[alias]\n\tst = -c alias.z=!evil z\n":               "alias.st",
		"[alias]\n\td = difftool -x evil\n":                  "alias.d",
		"[alias]\n\tlg = log --oneline --graph # !no\n":      "",
		"[core]\n\teditor = a \\\n[filter]\n\tbare = true\n": "",
		"[core]\n\tbare = true ; x\n[diff.x]\ntextconv=y":    "diff.textconv",
		"\ufeff[core]\r\n\tworktree = /x\r\n":                "core.worktree",
		// Programs that a list of bad keys did not know.
		"[trailer \"x\"]\n\tcommand = evil\n":   "trailer.command",
		"[tar \"x\"]\n\tcommand = evil\n":       "tar.command",
		"[gc]\n\trecentObjectsHook = evil\n":    "gc.recentobjectshook",
		"[pager]\n\tlog = evil\n":               "pager.log",
		"[pager]\n\tlog = false\n":              "",
		"[newthing]\n\tkey = x\n":               "newthing.key",
		"[core]\n\t= x\n":                       "that cannot be read",
		"[core \"x]\n":                          "that cannot be read",
		"[core]\n\tb_c = d\n":                   "that cannot be read",
		"[core]\n\tx = \\x\n":                   "that cannot be read",
		"[core]\n\tbare\n":                      "",
		"# x\n[alias] # y\n; z\n\tst = !evil\n": "alias.st",
		// What git clone and people write.
		"[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\tlogallrefupdates = true\n" +
			"[remote \"origin\"]\n\turl = https://x/y\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n" +
			"[branch \"main\"]\n\tremote = origin\n\tmerge = refs/heads/main\n[user]\n\tname = A \\\"B\\\"\n\temail = a@b\n": "",
	} {
		dir := place(t, map[string]string{".git/config": text})
		got := GitPrograms([][]string{{"git", "status"}}, dir, filepath.Join(dir, "a/b"))
		if strings.HasPrefix(want, "that ") {
			want = ".git/config " + want
		} else if want != "" {
			want += " in .git/config"
		}
		if got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	dir := place(t, map[string]string{".git": "gitdir: evil"})
	if got := GitPrograms([][]string{{"git", "status"}}, dir, dir); !strings.Contains(got, "no folder") {
		t.Errorf("a file .git: %q", got)
	}
}

// TestGitProgramsFolders: git is found behind other programs and in code, and the
// folder that it runs in is found through cd, -C and links.
func TestGitProgramsFolders(t *testing.T) {
	dir := place(t, map[string]string{
		".git/config": "[core]\n\tbare = false\n", "sub/.git/config": "[alias]\n\tst = !evil\n", "bare/HEAD": "ref: refs/heads/main", "bare/objects/x": "",
		"bare/config": "[alias]\n\tst = !evil\n", "common/.git/commondir": "../../sub/.git", "modules/.git/config": "",
		"modules/.gitmodules": "[submodule \"x\"]\n\tpath = x\n\tignore = none\n", "p/a": "", "sub/deep/a": "",
	})
	must(t, os.Symlink("sub/deep", filepath.Join(dir, "link")))
	for line, want := range map[string]string{
		"git status":                      "",
		"git -C p status":                 "",
		"ls sub":                          "",
		"cd sub; git st":                  "alias.st",
		"git -C sub st":                   "alias.st",
		"git -C p -C ../sub st":           "alias.st",
		"git -C link st":                  "alias.st",
		"git log -C sub":                  "",
		"timeout 5 git -C sub st":         "alias.st",
		"env -- git -C sub st":            "alias.st",
		"env -C sub git st":               "alias.st",
		"/usr/bin/git -C " + dir + "/sub": "alias.st",
		"git -C bare st":                  "without .git",
		"cd bare; sh -c git|st":           "without .git",
		"git -C common st":                "commondir",
		"git -C modules status":           "submodule.ignore",
	} {
		var commands [][]string
		for c := range strings.SplitSeq(line, "; ") {
			argv := strings.Fields(c)
			for i := range argv {
				argv[i] = strings.ReplaceAll(argv[i], "|", " ")
			}
			commands = append(commands, argv)
		}
		if got := GitPrograms(commands, dir, dir); want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
}

// TestGitEnvironment: with the environment of every program git runs neither a
// monitor that the repository names, nor an alias of the home folder or of a folder
// that looks like a repository; without it, it does.
func TestGitEnvironment(t *testing.T) {
	testkit.Programs(t, "git")
	dir := place(t, map[string]string{"evil": "#!/bin/sh\necho ran >>\"$HOME/ran\"\n"})
	evil, ran := filepath.Join(dir, "evil"), filepath.Join(dir, "ran")
	git := func(env []string, args ...string) string {
		c := exec.Command("git", args...)
		c.Dir, c.Env = dir, append([]string{"HOME=" + dir, "PATH=" + os.Getenv("PATH"), "GIT_CONFIG_NOSYSTEM=1"}, env...)
		out, err := c.CombinedOutput()
		return fmt.Sprintf("git %v: %s %v", args, out, err)
	}
	for _, setup := range [][]string{
		{"init", "-q"}, {"config", "core.fsmonitor", evil}, {"config", "--global", "alias.st", "!" + evil},
		{"init", "-q", "--bare", "bare"}, {"-C", "bare", "config", "alias.bt", "!" + evil},
	} {
		if out := git(nil, setup...); !strings.HasSuffix(out, " <nil>") {
			t.Fatal(out)
		}
	}
	env, _ := Environment(os.Getenv("PATH"), nil, nil)
	for _, args := range [][]string{{"status"}, {"st"}, {"-C", "bare", "bt"}} {
		if out := git(env, args...); is(ran) {
			t.Errorf("evil ran: %s", out)
		}
		if out := git(nil, args...); !is(ran) {
			t.Errorf("control: without the environment evil did not run: %s", out)
		}
		must(t, os.Remove(ran))
	}
}
