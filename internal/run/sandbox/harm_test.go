//go:build linux

package sandbox

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"ken/internal/run/sandbox/confine"
)

// held are the profiles that must hold a tool; None, in which it does as it
// likes, is the control.
var held = []Profile{Full, Landlock}

// canary is a spec for attempts of the canary, which know nothing of a libc.
func canary(work *os.Root, attempts ...string) Spec {
	return Spec{self: true, Work: work, Require: BestEffort, Args: append([]string{confine.CanaryName}, attempts...)}
}

// asOwner lists what below a directory runs as its owner or group.
func asOwner(t *testing.T, dir string) (list []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if info, err := d.Info(); err == nil && info.Mode()&(os.ModeSetuid|os.ModeSetgid) != 0 {
			list = append(list, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// TestNothingRunsAsOwner plants files that run as their owner, who may be root,
// in the work directory and in a granted one, in every way there is. Without a
// sandbox each must succeed.
func TestNothingRunsAsOwner(t *testing.T) {
	type way struct {
		name string
		spec func(work *os.Root) Spec
	}
	var ways []way
	for _, script := range []string{
		"chmod 4755 bash", "chmod 2755 bash", "chmod 6755 bash", "chmod u+s bash", "chmod g+s bash",
		"install -m 4755 bash planted", "mkdir d && chmod 2755 d",
		"chmod 4000 bash; chmod 4755 bash", "mv bash x && chmod 4755 x && mv x bash",
	} {
		ways = append(ways, way{script, func(work *os.Root) Spec { return shell(work, "cp /bin/sh bash; "+script) }})
	}
	for _, call := range []string{"openat", "openat2", "tmpfile", "mknodat", "fchmod", "fchmodat", "fchmodat2"} {
		ways = append(ways, way{call, func(work *os.Root) Spec { return canary(work, "mode="+call+":planted") }})
	}
	if runtime.GOARCH == "amd64" {
		for name, program := range oldCalls() {
			before := ""
			if strings.HasPrefix(name, "chmod") {
				before = "touch planted; "
			}
			ways = append(ways, way{name, func(work *os.Root) Spec {
				if err := work.WriteFile("program", program, 0o755); err != nil {
					t.Fatal(err)
				}
				return shell(work, before+"./program")
			}})
		}
	}
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			attack := func(p Profile) (planted []string, o Outcome) {
				work, granted := inside(t), inside(t)
				for i, where := range []*os.Root{work, granted} {
					s := way.spec(where)
					if i == 1 {
						s.Work, s.Write, s.Dir = work, []string{granted.Name()}, granted.Name()
					}
					o = mustRun(t, p, s)
				}
				return append(asOwner(t, work.Name()), asOwner(t, granted.Name())...), o
			}
			if planted, o := attack(None); len(planted) != 2 {
				if way.name == "fchmodat2" && strings.Contains(o.Stdout.Text(), "not implemented") || way.name == "chmod, 32 bits" && o.Signal+o.Stderr.Text() != "" {
					t.Skip("cannot here: this kernel has no such call")
				}
				t.Errorf("control: without a sandbox %v, want one in each: %q %q", planted, o.Stdout.Text(), o.Stderr.Text())
			}
			for _, p := range held {
				if planted, o := attack(p); len(planted) > 0 {
					t.Errorf("%s: %v run as their owner: %q %q", p, planted, o.Stdout.Text(), o.Stderr.Text())
				}
			}
		})
	}
}

// oldCalls are programs that make calls only old machines have, by their
// numbers: those that take no directory, and one of 32 bits, as a program of
// 64 bits can make it.
func oldCalls() map[string][]byte {
	const mode = unix.S_ISUID | unix.S_ISGID | 0o755
	wide := func(nr, second, third uint32) []byte {
		code := []byte{0xb8}
		code = binary.LittleEndian.AppendUint32(code, nr)
		code = append(code, 0xbf) // edi
		code = binary.LittleEndian.AppendUint32(code, 0x400000+elfHeaders+64)
		code = append(code, 0xbe) // esi
		code = binary.LittleEndian.AppendUint32(code, second)
		code = append(code, 0xba) // edx
		code = binary.LittleEndian.AppendUint32(code, third)
		return elf(append(code, 0x0f, 0x05))
	}
	narrow := []byte{0xb8, 15, 0, 0, 0, 0xbb} // chmod; ebx
	narrow = binary.LittleEndian.AppendUint32(narrow, 0x400000+elfHeaders+64)
	narrow = append(narrow, 0xb9) // ecx
	narrow = binary.LittleEndian.AppendUint32(narrow, mode)
	return map[string][]byte{
		"open":           wide(2, unix.O_CREAT|unix.O_WRONLY, mode),
		"creat":          wide(85, mode, 0),
		"mknod":          wide(133, unix.S_IFREG|mode, 0),
		"chmod":          wide(90, mode, 0),
		"chmod, 32 bits": elf(append(narrow, 0xcd, 0x80)),
	}
}

const elfHeaders = 64 + 56

// elf is a program for amd64 that runs the code and exits. 64 bytes after its
// beginning lies the name of the program itself.
func elf(code []byte) []byte {
	code = append(code, 0x31, 0xff, 0xb8, 60, 0, 0, 0, 0x0f, 0x05) // exit(0)
	code = append(append(code, make([]byte, 64-len(code))...), "planted\x00"...)
	b := append([]byte("\x7fELF\x02\x01\x01"), make([]byte, 9)...)
	for _, v := range []uint64{
		2 | 62<<16 | 1<<32, 0x400000 + elfHeaders, 64, 0, // executable, amd64; entry; headers of segments and sections
		64<<32 | 56<<48, 1, // sizes and number of headers
		1 | 5<<32, 0, 0x400000, 0x400000, // load, readable and executable
		uint64(elfHeaders + len(code)), uint64(elfHeaders + len(code)), 4096,
	} {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	return append(b, code...)
}

// TestInheritedGroup: a directory whose owner gave it a set-group-id bit hands
// it on to directories, and to nothing that runs.
func TestInheritedGroup(t *testing.T) {
	for _, p := range held {
		work := inside(t)
		if err := os.Chmod(work.Name(), 0o755|os.ModeSetgid); err != nil {
			t.Fatal(err)
		}
		o := mustRun(t, p, shell(work, "mkdir d && cp /bin/sh d/sh && install -m 755 d/sh d/other && echo done"))
		if got, want := asOwner(t, work.Name()), []string{work.Name(), work.Name() + "/d"}; o.Stdout.Text() != "done\n" || !slices.Equal(got, want) {
			t.Errorf("%s: %v have the bit, want %v: %q %q", p, got, want, o.Stdout.Text(), o.Stderr.Text())
		}
	}
}

// state is everything of a file that a tool could change, its change time too.
func state(t *testing.T, paths ...string) string {
	t.Helper()
	var b strings.Builder
	for _, path := range paths {
		var st unix.Stat_t
		if err := unix.Lstat(path, &st); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(&b, st.Mode, st.Uid, st.Gid, st.Mtim, st.Ctim)
	}
	return b.String()
}

// TestAttributesOutside changes modes, owners, times and attributes of files
// outside and of files that may only be read, in scratch directories.
func TestAttributesOutside(t *testing.T) {
	attacks := map[string]func(work *os.Root, file string) Spec{
		"fchmod":    func(w *os.Root, f string) Spec { return canary(w, "fchmod="+f) },
		"fchown":    func(w *os.Root, f string) Spec { return canary(w, "fchown="+f) },
		"futime":    func(w *os.Root, f string) Spec { return canary(w, "futime="+f) },
		"chmod":     func(w *os.Root, f string) Spec { return canary(w, "chmod="+f) },
		"utime":     func(w *os.Root, f string) Spec { return canary(w, "utime="+f) },
		"attribute": func(w *os.Root, f string) Spec { return canary(w, "attribute="+f) },
	}
	for name, script := range map[string]string{
		"chmod by name":              `chmod 777 "$F"`,
		"chmod of directory":         `chmod 777 "$(dirname "$F")"`,
		"chmod from there":           `cd "$(dirname "$F")" && chmod 777 "$(basename "$F")"`,
		"chmod by dots":              `d=$(pwd -P | sed 's,[^/]*,..,g'); chmod 777 "./$d$F"`,
		"chmod by link":              `ln -s "$F" link && chmod 777 link`,
		"chmod by link to directory": `ln -s "$(dirname "$F")" link && chmod 777 "link/$(basename "$F")"`,
		"chmod by number":            `exec 3<"$F" && chmod 777 /proc/self/fd/3`,
		"chmod by process":           `exec 3<"$F" && chmod 777 /proc/$$/fd/3`,
		"chmod by cwd":               `cd "$(dirname "$F")" && chmod 777 "/proc/$$/cwd/$(basename "$F")"`,
		"touch":                      `touch -d @1 "$F"`,
		"touch now":                  `touch "$F"`,
		"touch link":                 `ln -s "$F" link && touch -d @1 link`,
		"chown":                      `chown "$(id -u):$(id -g)" "$F"`,
	} {
		attacks[name] = func(w *os.Root, f string) Spec {
			s := shell(w, script)
			s.Env = []string{"F=" + f}
			return s
		}
	}
	for name, attack := range attacks {
		t.Run(name, func(t *testing.T) {
			changed := func(p Profile, granted bool) (bool, Outcome) {
				outside := t.TempDir()
				file := filepath.Join(outside, "file")
				if err := os.WriteFile(file, []byte("good"), 0o644); err != nil {
					t.Fatal(err)
				}
				before := state(t, outside, file)
				s := attack(inside(t), file)
				if granted {
					s.Read = []string{outside}
				}
				o := mustRun(t, p, s)
				return state(t, outside, file) != before, o
			}
			if is, o := changed(None, false); !is && name == "attribute" && strings.Contains(o.Stdout.Text(), "not supported") {
				t.Skip("cannot here: this file system has no extended attributes")
			} else if !is {
				t.Errorf("control: without a sandbox nothing changed: %q %q", o.Stdout.Text(), o.Stderr.Text())
			}
			for _, p := range held {
				for _, granted := range []bool{false, true} {
					if is, o := changed(p, granted); is {
						t.Errorf("%s, may be read %v: it changed: %q %q", p, granted, o.Stdout.Text(), o.Stderr.Text())
					}
				}
			}
		})
	}
}

// TestAttributesRace exchanges what a name means while its mode is changed.
func TestAttributesRace(t *testing.T) {
	outside := t.TempDir()
	file := filepath.Join(outside, "file")
	if err := os.WriteFile(file, []byte("good"), 0o644); err != nil {
		t.Fatal(err)
	}
	before := state(t, outside, file)
	work := inside(t)
	s := shell(work, `touch own; mkdir d; touch d/file
		(while :; do ln -sfn own link; ln -sfn "$F" link; ln -sfn d dir; ln -sfn "$(dirname "$F")" dir; done) 2>/dev/null &
		i=0; while [ $i -lt 400 ]; do chmod 777 link dir/file; chmod 700 link dir/file; i=$((i+1)); done 2>/dev/null; echo done`)
	s.Env = []string{"F=" + file}
	if o := mustRun(t, Landlock, s); o.Stdout.Text() != "done\n" {
		t.Errorf("Run = %s %q %q", o.End, o.Stdout.Text(), o.Stderr.Text())
	}
	if after := state(t, outside, file); after != before {
		t.Errorf("outside is now %s, was %s", after, before)
	}
	if st, err := work.Stat("own"); err != nil || st.Mode().Perm() == 0o644 {
		t.Errorf("control: its own file is %v, %v, want its mode changed", st.Mode(), err)
	}
}

// TestAttributesOwn changes what is the tool's own, in the same ways.
func TestAttributesOwn(t *testing.T) {
	const script = `touch f; mkdir d; ln -s f l
		chmod 640 f && touch -d @1000 f && stat -c '%a %Y' f
		chmod 600 l && touch -d @2000 l && stat -c '%a %Y' f
		touch -h -d @3000 l && stat -c %Y l
		exec 3<f && chmod 604 /proc/self/fd/3 && stat -c %a f
		cd d && chmod 700 . && touch -d @4000 ../d && stat -c '%a %Y' . && chmod 641 ../f && stat -c %a ../f
		chown "$(id -u):$(id -g)" ../f && chown -h "$(id -u)" ../l && echo chown
		cd "$G" && touch g && chmod 646 g && stat -c %a g
		touch "$PWD/h" && chmod 664 "$PWD/h" && stat -c %a h
		rm -f i; exec 4>i; rm i; chmod 600 /proc/self/fd/4 && echo unlinked
		chmod 600 absent || echo absent`
	const want = "640 1000\n600 2000\n3000\n604\n700 4000\n641\nchown\n646\n664\nunlinked\nabsent\n"
	eachProfile(t, func(t *testing.T, p Profile) {
		granted := t.TempDir()
		s := shell(inside(t), script)
		s.Write, s.Env = []string{granted}, []string{"G=" + granted}
		if o := mustRun(t, p, s); o.Stdout.Text() != want {
			t.Errorf("own files = %q, want %q\n%s", o.Stdout.Text(), want, o.Stderr.Text())
		}
		work := inside(t)
		if err := work.WriteFile("f", nil, 0o644); err != nil {
			t.Fatal(err)
		}
		o := mustRun(t, p, canary(work, "fchmod=f", "fchown=f", "futime=f"))
		st, err := work.Stat("f")
		if err != nil || strings.Contains(o.Stdout.Text(), "stopped") || st.Mode().Perm() != 0o777 || st.ModTime().Unix() != 1 {
			t.Errorf("by descriptor = %q, %v %v, want all done", o.Stdout.Text(), st, err)
		}
	})
}

// TestDatagrams sends to a listener that lies in the work directory.
func TestDatagrams(t *testing.T) {
	send := func(p Profile) (bool, Outcome) {
		work := inside(t)
		fd, err := local(unix.SOCK_DGRAM, filepath.Join(work.Name(), "gram"))
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(fd)
		o := mustRun(t, p, canary(work, "datagram="+filepath.Join(work.Name(), "gram")))
		n, _, err := unix.Recvfrom(fd, make([]byte, 16), 0)
		return err == nil && n > 0, o
	}
	if came, o := send(None); !came {
		t.Errorf("control: without a sandbox nothing came: %q", o.Stdout.Text())
	}
	for _, p := range held {
		if came, o := send(p); came {
			t.Errorf("%s: a datagram came: %q", p, o.Stdout.Text())
		}
	}
}

// TestOrdinaryTools does ordinary work with programs that change modes, owners
// and times, use pairs of sockets, or reserve much memory.
func TestOrdinaryTools(t *testing.T) {
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
		{"sqlite", "/usr/bin/sqlite3", "sqlite3 db 'pragma journal_mode=wal; create table t (x); insert into t values (1); select * from t'", "wal\n1\n"},
		{"node", "/usr/bin/node", `node -e '
const fs = require("fs"), { execFileSync } = require("child_process");
fs.writeFileSync("f", "x"); fs.chmodSync("f", 0o640); fs.utimesSync("f", 1, 1); fs.copyFileSync("f", "g");
console.log(execFileSync("/bin/echo", ["sub"]).toString().trim(), fs.statSync("f").mode & 0o777);
new WebAssembly.Memory({ initial: 1, maximum: 65536 })'`, "sub 416\n"},
		{"curl", "/usr/bin/curl", `echo x >f; curl -s "file://$PWD/f"`, "x\n"},
		{"go", "/usr/local/go/bin/go", "export TMPDIR=$PWD GOCACHE=$PWD/c GOTELEMETRY=off; /usr/local/go/bin/go list fmt", "fmt\n"},
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
				if err := errors.Join(work.Mkdir(".git", 0o755), work.WriteFile(".git/config", nil, 0o644)); err != nil {
					t.Fatal(err)
				}
				s := shell(work, tt.script)
				s.Write, s.Env = []string{granted}, []string{"G=" + granted}
				s.Protect = []string{".git/config", ".git/hooks", ".git/commondir", ".ken", "new/name", granted + "/.ken"}
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

// TestFirstToDie: the kernel, out of memory, kills a tool before its runtime.
func TestFirstToDie(t *testing.T) {
	mine, err := os.ReadFile("/proc/self/oom_score_adj")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []Profile{Full, None} { // in landlock a tool cannot look
		o := mustRun(t, p, shell(inside(t), "cat /proc/self/oom_score_adj; echo -500 >/proc/self/oom_score_adj"))
		if got := o.Stdout.Text(); got != "1000\n" || got == string(mine) {
			t.Errorf("%s: oom_score_adj = %q, want 1000 (ours is %s)", p, got, mine)
		}
	}
}

// TestOtherProcesses changes priorities and limits of a process outside, and
// of its own.
func TestOtherProcesses(t *testing.T) {
	if _, err := os.Stat("/usr/bin/renice"); err != nil {
		t.Skip("cannot here: no renice")
	}
	victim := newSleeper(t)
	nice := func() int {
		n, err := unix.Getpriority(unix.PRIO_PROCESS, victim)
		if err != nil {
			t.Fatal(err)
		}
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

// newSleeper starts a process that does nothing.
func newSleeper(t *testing.T) int {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	p, err := os.StartProcess(selfExe, []string{confine.HoldName}, &os.ProcAttr{Files: []*os.File{r}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		w.Close()
		p.Wait()
	})
	return p.Pid
}

// TestBrokerKilled kills tools while the broker works for them.
func TestBrokerKilled(t *testing.T) {
	for range 5 {
		ctx, cancel := context.WithCancel(context.Background())
		s := shell(inside(t), "touch f; for i in 1 2 3 4; do (while :; do chmod 600 f; chmod 644 f; done) & done; echo up; wait")
		s.Live = writerFunc(func([]byte) { cancel() })
		if o, err := runIn(ctx, Landlock, s); err != nil || o.End != Cancelled || o.Unfinished {
			t.Errorf("Run = %s, %v, unfinished %v, want cancelled", o.End, err, o.Unfinished)
		}
	}
}
