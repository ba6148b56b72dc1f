//go:build linux

package sandbox

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"ken/internal/testkit"
)

// TestOrdinaryTools does ordinary work with programs that change modes, owners
// and times, use pairs of sockets, or reserve much memory.
func TestOrdinaryTools(t *testing.T) {
	t.Parallel()
	testkit.CI(t, "runs programs of others")
	tests := []struct{ name, program, script, want string }{
		{"tar", "/usr/bin/tar", "mkdir -p a/b; echo x >a/b/f; ln -s f a/b/l; chmod 750 a/b/f; touch -d @1000 a/b/f; tar cf t.tar a && mkdir o && tar xpf t.tar -C o && stat -c '%a %Y' o/a/b/f", "750 1000\n"},
		{"cp", "/usr/bin/cp", "mkdir a; echo x >a/f; ln -s f a/l; chmod 711 a/f; touch -d @1000 a/f; cp -a a b && cp -p a/f g && stat -c '%a %Y' b/f g", "711 1000\n711 1000\n"},
		{"mv", "/usr/bin/mv", "echo x >f; chmod 711 f; mv f $T/ && mv $T/f . && stat -c %a f", "711\n"},
		{"git", "/usr/bin/git", "git init -q . && git config user.email a@b && git config user.name n && echo x >f && git add f && git commit -q -m m && git gc -q && git clone -q . c && git -C c log --oneline | wc -l", "1\n"},
		{"python", "/usr/bin/python3", `python3 -c '
import os, shutil, socket, sqlite3, subprocess, tempfile, threading, asyncio
os.makedirs("a"); open("a/f", "w").write("x"); os.chmod("a/f", 0o751); os.utime("a/f", (1000, 1000))
shutil.copytree("a", "b"); assert os.stat("b/f").st_mode & 0o777 == 0o751
a, b = socket.socketpair(); a.send(b"x"); assert b.recv(1) == b"x"
db = sqlite3.connect("db"); db.execute("create table t (x)"); db.commit()
async def run():
    p = await asyncio.create_subprocess_exec("/bin/echo", "sub", stdout=-1)
    return (await p.communicate())[0]
print(asyncio.run(run()))'`, "b'sub\\n'\n"},
		{"node", "/usr/bin/node", `node -e '
const fs = require("fs"), { execFileSync } = require("child_process");
fs.writeFileSync("f", "x"); fs.chmodSync("f", 0o640); fs.utimesSync("f", 1, 1); fs.copyFileSync("f", "g");
console.log(execFileSync("/bin/echo", ["sub"]).toString().trim(), fs.statSync("f").mode & 0o777);
new WebAssembly.Memory({ initial: 1, maximum: 65536 })'`, "sub 416\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := os.Stat(tt.program); err != nil {
				t.Skipf("cannot here: no %s", tt.program)
			}
			for _, p := range held {
				other := t.TempDir()
				s := shell(inside(t), tt.script)
				s.Write, s.Env = []string{other}, []string{"T=" + other}
				if o := mustRun(t, p, s); o.ExitCode != 0 || o.Stdout.Text() != tt.want || strings.Contains(o.Stderr.Text(), "ermission") || strings.Contains(o.Stderr.Text(), "ermitted") {
					t.Errorf("%s: %s %d %q %q, want %q", p, o.End, o.ExitCode, o.Stdout.Text(), o.Stderr.Text(), tt.want)
				}
			}
		})
	}
}

// TestMade tells which protected names a tool made that were not there.
func TestMade(t *testing.T) {
	testkit.CI(t, "starts dozens of tools")
	tests := []struct {
		name, script string
		want         []string // relative ones; "G/" begins those of the grant
	}{
		{"nothing", "echo x >other", nil},
		{"directory", "mkdir .ken", []string{".ken"}},
		{"deep", "mkdir -p .git/hooks", []string{".git/hooks"}},
		{"file", "echo x >.git/commondir", []string{".git/commondir"}},
		{"dangling link", "ln -s nowhere .ken", []string{".ken"}},
		{"link that leads out", "mkdir x && rm -r new; ln -s /etc new", []string{"new/name"}},
		{"file in the way", "echo gitdir: x >new", []string{"new/name"}},
		{"granted", `mkdir "$G/.ken"`, []string{"G/.ken"}},
		{"made and removed", "mkdir .ken; rmdir .ken", nil},
		{"killed", "mkdir .ken; kill -9 $$", []string{".ken"}},
	}
	eachProfile(t, func(t *testing.T, p Profile) {
		for _, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				work, granted := inside(t), t.TempDir()
				must(t, work.Mkdir(".git", 0o755), work.WriteFile(".git/config", nil, 0o644))
				s := shell(work, tt.script)
				s.Write, s.Env = []string{granted}, []string{"G=" + granted}
				s.Protect = []string{".git/config", ".git/hooks", "new/name"}
				s.Watch = []string{".git/commondir", ".ken", granted + "/.ken"}
				var got []string
				for _, name := range mustRun(t, p, s).Made {
					got = append(got, strings.Replace(name, granted, "G", 1))
				}
				if !slices.Equal(got, tt.want) {
					t.Errorf("Made = %q, want %q", got, tt.want)
				}
				left, err := filepath.Glob(filepath.Join(work.Name(), ".ken"))
				if err != nil || len(left) > 0 != slices.Contains(tt.want, ".ken") {
					t.Errorf("on the host there is %q, %v, want nothing of ours", left, err)
				}
			})
		}
	})
}

// TestDefaultMemory asks for more than a process may have of its own, and for
// more than any machine has without using it, as language runtimes do.
func TestDefaultMemory(t *testing.T) {
	testkit.CI(t, "starts canaries that take memory")
	t.Parallel()
	more := fmt.Sprint("memory=", defaultMemory()+mib)
	eachProfile(t, func(t *testing.T, p Profile) {
		s := canary(inside(t), more)
		o := mustRun(t, p, s)
		if !strings.Contains(o.Stdout.Text(), "cannot allocate") || !slices.Contains(o.Isolation.Rlimits, "data") {
			t.Errorf("by default = %q with %q, want it refused", o.Stdout.Text(), o.Isolation.Rlimits)
		}
		if text := strings.Join(o.Isolation.Missing, "\n"); strings.Contains(text, "memory") || o.Isolation.Cgroup != "none" && p == Full {
			t.Errorf("by default: missing %q, cgroup %q, want neither", text, o.Isolation.Cgroup)
		}
		s.Limits.Memory = -1
		if o := mustRun(t, p, s); strings.Contains(o.Stdout.Text(), "stopped") || slices.Contains(o.Isolation.Rlimits, "data") {
			t.Errorf("control: without a limit = %q with %q, want it given", o.Stdout.Text(), o.Isolation.Rlimits)
		}
	})
}

// TestOtherProcesses changes priorities and limits of a process outside, and
// of its own.
func TestOtherProcesses(t *testing.T) {
	testkit.Programs(t, "renice")
	sleeper := exec.Command("sleep", "1000")
	must(t, sleeper.Start())
	defer sleeper.Wait()
	defer sleeper.Process.Kill()
	victim := sleeper.Process.Pid
	nice := func() int {
		n, err := unix.Getpriority(unix.PRIO_PROCESS, victim)
		must(t, err)
		return n
	}
	before := nice()
	for _, p := range []Profile{Full, Landlock, None} {
		s := shell(inside(t), `renice -n 19 -p "$V" >&2; [ "$(nice -n 2 nice)" -gt "$(nice)" ] && echo own`)
		s.Env = []string{fmt.Sprint("V=", victim)}
		o := mustRun(t, p, s)
		// A process of root has capabilities, and who has none cannot slow it.
		if changed := nice() != before; changed != (p == None && os.Getuid() != 0) {
			t.Errorf("%s: niceness of another process is %d, was %d: %q", p, nice(), before, o.Stderr.Text())
		}
		if o.Stdout.Text() != "own\n" {
			t.Errorf("%s: control: its own = %q %q, want it changed", p, o.Stdout.Text(), o.Stderr.Text())
		}
	}
}
