//go:build linux

package sandbox

import (
	"context"
	"encoding/binary"
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
	"ken/internal/testkit"
)

// held are the profiles that must hold a tool; None, in which it does as it
// likes, is the control.
var held = []Profile{Full, Landlock}

// canary is a spec for attempts of the canary, which know nothing of a libc.
func canary(work *os.Root, attempts ...string) Spec {
	return Spec{self: true, Work: work, Require: BestEffort, Args: append([]string{confine.CanaryName}, attempts...),
		Env: []string{"GORACE=atexit_sleep_ms=0"}}
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
	must(t, err)
	return list
}

// TestNothingRunsAsOwner plants files that run as their owner, who may be root,
// in the work directory and in a granted one, in every way there is. Without a
// sandbox each must succeed.
func TestNothingRunsAsOwner(t *testing.T) {
	testkit.CI(t, "starts a hundred tools")
	t.Parallel()
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
				if err := writeProgram(func() error { return work.WriteFile("program", program, 0o755) }); err != nil {
					t.Fatal(err)
				}
				return shell(work, before+"./program")
			}})
		}
	}
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			t.Parallel()
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
		must(t, os.Chmod(work.Name(), 0o755|os.ModeSetgid))
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
		must(t, unix.Lstat(path, &st))
		fmt.Fprintln(&b, st.Mode, st.Uid, st.Gid, st.Mtim, st.Ctim)
	}
	return b.String()
}

// TestAttributesOutside changes modes, owners, times and attributes of files
// outside and of files that may only be read, in scratch directories.
func TestAttributesOutside(t *testing.T) {
	testkit.CI(t, "starts a hundred tools")
	t.Parallel()
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
			t.Parallel()
			changed := func(p Profile, granted bool) (bool, Outcome) {
				outside := t.TempDir()
				file := filepath.Join(outside, "file")
				must(t, os.WriteFile(file, []byte("good"), 0o644))
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
	testkit.CI(t, "400 turns of a race")
	outside := t.TempDir()
	file := filepath.Join(outside, "file")
	must(t, os.WriteFile(file, []byte("good"), 0o644))
	before := state(t, outside, file)
	work := inside(t)
	s := shell(work, `touch own; mkdir d; touch d/file
		(while :; do ln -sfn own link; ln -sfn "$F" link; ln -sfn d dir; ln -sfn "$(dirname "$F")" dir; done) 2>/dev/null &
		i=0; while [ $i -lt 400 ]; do chmod 777 link dir/file; chmod 700 link dir/file; i=$((i+1)); done 2>/dev/null; echo done`)
	s.Env = []string{"F=" + file}
	says(t, mustRun(t, Landlock, s), "done\n")
	if after := state(t, outside, file); after != before {
		t.Errorf("outside is now %s, was %s", after, before)
	}
	if st, err := work.Stat("own"); err != nil || st.Mode().Perm() == 0o644 {
		t.Errorf("control: its own file is %v, %v, want its mode changed", st.Mode(), err)
	}
}

// TestAttributesOwn changes what is the tool's own, in the same ways.
func TestAttributesOwn(t *testing.T) {
	testkit.CI(t, "starts hundreds of processes")
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
		says(t, mustRun(t, p, s), want)
		work := inside(t)
		must(t, work.WriteFile("f", nil, 0o644))
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
		must(t, err)
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

// TestBrokerKilled kills tools while the broker works for them.
func TestBrokerKilled(t *testing.T) {
	testkit.CI(t, "changes modes at full speed")
	for range 5 {
		ctx, cancel := context.WithCancel(context.Background())
		s := shell(inside(t), "touch f; for i in 1 2 3 4; do (while :; do chmod 600 f; chmod 644 f; done) & done; echo up; wait")
		s.Live = writerFunc(func([]byte) { cancel() })
		if o, err := runIn(ctx, Landlock, s); err != nil || o.End != Cancelled || o.Unfinished {
			t.Errorf("Run = %s, %v, unfinished %v, want cancelled", o.End, err, o.Unfinished)
		}
	}
}
