package programs

import (
	"slices"
	"strings"
	"testing"
)

// TestRisky: options that run another program are found alone, in a cluster,
// glued to their value, abbreviated, and in tar's first word without a dash.
func TestRisky(t *testing.T) {
	for line, want := range map[string]bool{
		"tar -cf o a":                          false,
		"tar cvf o a":                          false,
		"tar -tvf o":                           false,
		"tar -fI a":                            false, // the archive is named I
		"tar -cvI./x.sh -f o a":                true,
		"tar cIf ./x.sh o a":                   true,
		"tar -cf o -I ./x.sh a":                true,
		"tar --use-compress=./x.sh -cf o a":    true,
		"tar -T list -cf o":                    true,
		"vim a.txt":                            false,
		"vim --cmd :!./x.sh":                   true,
		"vim +!./x.sh":                         true,
		"man ls":                               false,
		"man --pager=./x.sh ls":                true,
		"less a":                               false,
		"less --lesskey-src=x a":               true,
		"zip o.zip a":                          false,
		"zip -r o.zip a":                       false,
		"zip o.zip a -T -TT ./x.sh":            true,
		"zip o.zip a --unzip-command ./x.sh":   true,
		"curl -sSfL http://x":                  false,
		"curl -XPOST http://x":                 false,
		"curl -so/tmp/x http://x":              true,
		"rsync -av a b":                        false,
		"rsync -ae ./x.sh a b":                 true,
		"sort -k2o a":                          false,
		"sort -uo b a":                         true,
		"find . -name x":                       false,
		"find . -exec id ;":                    true,
		"find . --exec id ;":                   true,
		"python3 x.py":                         false,
		"python3 -c x":                         true,
		"sed -n 1p a":                          true,
		"timeout 5 ls":                         true,
		"taskset 1 ls":                         true,
		"kubectl get pods":                     false,
		"split -l 1 a":                         false,
		"split --filter=id a":                  true,
		"split --filt=id a":                    true,
		"install -m 644 a b":                   false,
		"install -s --strip-program=./x a b":   true,
		"sqlite3 a.db select":                  false,
		"sqlite3 ./a.db select":                false,
		"sqlite3 ../a.db select":               false,
		"sqlite3 a.db .shell":                  true,
		"sqlite3 -cmd .sh a.db":                true,
		"sqlite3 a.db select.load_extension()": true,
		"psql -h x -c select":                  false,
		`psql -c \!id`:                         true,
		"psql -f x.sql":                        true,
		"psql -Atof x":                         true,
		"mysql -e select":                      false,
		"mysql -e system id":                   true,
		"tcpdump -i lo -c 1":                   false,
		"tcpdump -i lo -z ./x":                 true,
		"ip netns list":                        false,
		"ip netns exec a id":                   true,
		"ip -b f":                              true,
		"rpm -qa":                              false,
		"rpm -E %(id)":                         true,
		"dc -e !id":                            true,
		"git log -p":                           false,
		"git log -u":                           false,
		"git diff --stat":                      false,
		"git -C a log":                         false,
		"git -c a=b log":                       true,
		"git --git-dir=bare st":                true,
		"git --git-dir bare st":                true,
		"git --work-tree . st":                 true,
		"git --exec-path=. st":                 true,
		"git --config-env=a=b st":              true,
		"git --bare st":                        true,
		"git difftool -y -x ./x.sh":            true,
		"git difftool --extcmd=./x.sh -y":      true,
		"git difftool -yx./x.sh":               true,
		"git clone -u ./x.sh . z":              true,
		"git clone --upload=./x.sh . z":        true,
		"git rebase -x ./x.sh":                 true,
		"git submodule foreach ./x.sh":         true,
		"git bisect run ./x.sh":                true,
		"git grep -O./x.sh a":                  true,
		"git diff --submodule=diff":            true,
		"git fetch ext::sh":                    true,
		"git push -u origin main":              false,
		"git interpret-trailers --trailer X=1": true,
	} {
		if got := Risky(strings.Fields(line), 1); got != want {
			t.Errorf("%s: %v, want %v", line, got, want)
		}
	}
}

// TestGitLooks: only subcommands that run nothing themselves.
func TestGitLooks(t *testing.T) {
	for line, want := range map[string]bool{
		"git":                      true,
		"git --version":            true,
		"git status":               true,
		"git -C a -C b log":        true,
		"git branch":               true,
		"git branch --list x":      true,
		"git branch -av":           true,
		"git branch x":             false,
		"git branch -D x":          false,
		"git push":                 false,
		"git st":                   false,
		"git difftool":             false,
		"git web--browse a":        false,
		"git help -m log":          false,
		"git archive --format=x":   false,
		"git config user.name":     false,
		"git config --global a.b":  false,
		"git config --get a.b":     true,
		"git -C status push":       false,
		"git submodule foreach id": false,
	} {
		if got := GitLooks(strings.Fields(line)); got != want {
			t.Errorf("%s: %v, want %v", line, got, want)
		}
	}
}

// TestGitDestroys: what discards work is known by subcommand, option and
// refspec, also shortened and in a cluster.
func TestGitDestroys(t *testing.T) {
	for line, want := range map[string]bool{
		"git":                               false,
		"git status":                        false,
		"git push":                          false,
		"git push -u origin main":           false,
		"git push --follow-tags":            false,
		"git push --force":                  true,
		"git push --forc":                   true,
		"git push --force-with-lease=main":  true,
		"git push -uf origin main":          true,
		"git push origin +main":             true,
		"git push origin :main":             true,
		"git push origin -d main":           true,
		"git push --mirror":                 true,
		"git push --prune origin":           true,
		"git checkout main":                 false,
		"git checkout --track origin/main":  false,
		"git checkout -b main":              false,
		"git checkout -- a.txt":             true,
		"git checkout .":                    true,
		"git checkout -f main":              true,
		"git checkout -B main origin/main":  true,
		"git -C sub checkout -- .":          true,
		"git switch main":                   false,
		"git switch --discard main":         true,
		"git switch -C main":                true,
		"git restore a.txt":                 true,
		"git restore --staged a.txt":        false,
		"git restore -SW a.txt":             true,
		"git reset":                         false,
		"git reset --soft HEAD~1":           false,
		"git reset --hard":                  true,
		"git reset --har":                   true,
		"git reset --merge":                 true,
		"git rm a.txt":                      true,
		"git rm --cached a.txt":             false,
		"git stash":                         false,
		"git stash drop":                    true,
		"git stash clear":                   true,
		"git branch -a":                     false,
		"git branch new":                    false,
		"git branch -d old":                 true,
		"git branch -D old":                 true,
		"git branch -f main HEAD~3":         true,
		"git tag v1":                        false,
		"git tag -d v1":                     true,
		"git worktree remove w":             true,
		"git worktree list":                 false,
		"git remote rm origin":              true,
		"git remote -v":                     false,
		"git reflog":                        false,
		"git reflog expire --expire=now":    true,
		"git gc":                            false,
		"git gc --prune=now":                true,
		"git update-ref -d refs/heads/main": true,
		"git clean -n":                      true,
		"git filter-branch --all":           true,
		"git commit -m fix":                 false,
		"git commit --fixup=abc":            false,
		"git fetch --all":                   false,
		"git log --format=%h":               false,
	} {
		if got := GitDestroys(strings.Fields(line)); got != want {
			t.Errorf("%s: %v, want %v", line, got, want)
		}
	}
}

func TestStarted(t *testing.T) {
	for line, want := range map[string]string{
		"timeout 5 ls -l":         "ls -l",
		"timeout -k 1 5 ls":       "ls",
		"env A=1 -u B ls":         "ls",
		"env -- ls":               "ls",
		"nice -n 5 ls":            "ls",
		"nice -n5 ls":             "ls",
		"xargs -I X ls":           "ls",
		"xargs -0I X ls":          "ls",
		"flock /dev/null ls":      "ls",
		"timeout --signal KILL 5": "?",
		"tmux new ls":             "?",
	} {
		got, ok := Started(strings.Fields(line))
		if text := strings.Join(got, " "); ok && text != want || !ok && want != "?" {
			t.Errorf("%s: %q %v, want %q", line, text, ok, want)
		}
	}
}

// TestOf: every program that starts others or runs code is known as such, with
// version numbers too.
func TestOf(t *testing.T) {
	for kind, names := range map[Kind]string{
		Starter:     "env sudo taskset setpriv prlimit chrt valgrind bwrap capsh run-parts tmux screen socat pkexec flock ld-linux-x86-64.so.2 busybox",
		Shell:       "sh bash zsh ksh93 fish",
		Interpreter: "sh python python3 python3.12 perl m4 awk make find-nothing",
		Project:     "make npm npx pytest cargo",
		Editor:      "vim less man",
	} {
		for name := range strings.FieldsSeq(names) {
			if got := Is(name, kind); got == (name == "find-nothing") {
				t.Errorf("%s: %b, want %b", name, Of(name), kind)
			}
		}
	}
	for _, name := range []string{"ls", "cat", "git", "find", "grep", "", "go"} {
		if got := Of(name); got != 0 {
			t.Errorf("%q: %b", name, got)
		}
	}
	if names := []string{"env", "ssh", "tmux"}; slices.ContainsFunc(names, func(n string) bool { return !HidesCommand(n) }) || HidesCommand("timeout") {
		t.Error("HidesCommand")
	}
}
