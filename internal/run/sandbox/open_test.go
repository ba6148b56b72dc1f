//go:build linux

package sandbox

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"ken/internal/testkit"
)

// open is a spec for a script that has the host's files and network.
func open(script string, hide ...string) Spec {
	return Spec{
		Path: "/bin/sh", Args: []string{"sh", "-c", script}, Dir: "/", Require: BestEffort,
		Open: Open{Files: true, Network: true, Hide: hide}, Limits: Limits{Wall: -1, CPU: -1, Processes: -1, OpenFiles: -1, FileSize: -1, Memory: -1},
	}
}

// TestOpenFiles: the tree, the user and HOME are as they were.
func TestOpenFiles(t *testing.T) {
	eachProfile(t, func(t *testing.T, p Profile) {
		dir := t.TempDir()
		must(t, os.WriteFile(filepath.Join(dir, "f"), []byte("old"), 0o600))
		s := open(`cat "$D/f"; echo; echo new >"$D/g"; chmod 0640 "$D/g"; ls -d "$HOME"; id -u; pwd; umask; grep -c . /proc/self/status >/dev/null && echo proc`)
		s.Env = []string{"D=" + dir, "HOME=/usr", "PATH=/usr/bin:/bin"}
		o := mustRun(t, p, s)
		want := fmt.Sprintf("old\n/usr\n%d\n/\n", os.Getuid())
		if got := o.Stdout.Text(); !strings.HasPrefix(got, want) || !strings.HasSuffix(got, "proc\n") {
			t.Errorf("Run = %q %q, want %q…", got, o.Stderr.Text(), want)
		}
		st, err := os.Stat(filepath.Join(dir, "g"))
		if err != nil || st.Mode().Perm() != 0o640 {
			t.Errorf("a file made = %v, %v, want mode 0640", st, err)
		}
		text := strings.Join(o.Isolation.Missing, "\n")
		if !strings.Contains(text, "files: as before") || !strings.Contains(text, "network: open") || o.Isolation.NetNS || o.Isolation.ReadOnly {
			t.Errorf("Isolation = %+v, want it to say that files and network are open", o.Isolation)
		}
	})
}

// TestOpenNoHome: no HOME is made up where the files are the person's own.
func TestOpenNoHome(t *testing.T) {
	says(t, mustRun(t, Full, open(`echo "${HOME-none}"`)), "none\n")
}

// The attacks on what is hidden: $K is a directory in which a directory and a
// file are hidden, $D/key and $F, with a word in both.
var seeks = []struct{ name, script string }{
	{"read", `cat "$D/key" "$F"`},
	{"link", `ln "$F" "$K/other" && cat "$K/other"; ln -s "$D" "$K/l" && cat "$K/l/key"`},
	{"list", `ls "$D"`},
	{"write", `echo evil >"$D/key"; echo evil >"$F"; echo evil >"$D/more"`},
	{"remove", `rm -rf "$D" "$F"`},
	{"rename", `mv "$D" "$K/d2"; cat "$K/d2/key"; mv "$F" "$K/f2"; cat "$K/f2"`},
	{"replace", `echo evil >"$K/new"; mv -f "$K/new" "$F"`},
	{"rename the parent", `mv "$K" "$K.2" && mkdir -p "$D" && echo evil >"$D/key" && echo evil >"$F"; cat "$K.2/state/key"`},
	{"unmount", `umount "$D"; umount "$F"; umount -l "$D"; cat "$D/key" "$F"`},
	{"unmount in a namespace of its own", `unshare -Urm sh -c 'umount "$D"; umount -l "$D"; umount "$F"; cat "$D/key" "$F"'`},
	{"bind past it", `unshare -Urm sh -c 'mkdir "$K/b"; mount --bind "$K" "$K/b"; cat "$K/b/state/key" "$K/b/token"; mount --rbind "$K" "$K/b"; umount -l "$K/b/state"; cat "$K/b/state/key"'`},
	{"another process's root", `for p in /proc/[0-9]*; do cat "$p/root$D/key" "$p/root$F"; done`},
	{"enter another process", `for p in /proc/[0-9]*; do nsenter -m -t "${p#/proc/}" cat "$D/key"; done`},
}

// TestHide looks for what is hidden and tries to change it. Without hiding
// each attack does something.
func TestHide(t *testing.T) {
	testkit.CI(t, "starts dozens of tools")
	never := map[string]bool{"unmount in a namespace of its own": true, "unmount": true}
	for _, tt := range seeks {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			attack := func(hidden bool) (got string, o Outcome) {
				top := t.TempDir()
				k := filepath.Join(top, "ken")
				d, f := filepath.Join(k, "state"), filepath.Join(k, "token")
				must(t, os.MkdirAll(d, 0o700), os.WriteFile(filepath.Join(d, "key"), []byte("s3cret"), 0o600), os.WriteFile(f, []byte("s3cret"), 0o600))
				s := open(`echo beside >"$K/beside" && echo fine; { ` + tt.script + `; } 2>&1`)
				s.Env = []string{"K=" + k, "D=" + d, "F=" + f, "PATH=/usr/sbin:/usr/bin:/sbin:/bin"}
				if hidden {
					s.Open.Hide = []string{d, f}
				}
				o = mustRun(t, Full, s)
				if !strings.HasPrefix(o.Stdout.Text(), "fine\n") {
					t.Errorf("control: writing beside = %q", o.Stdout.Text())
				}
				if strings.Contains(o.Stdout.Text(), "s3cret") || strings.Contains(o.Stdout.Text(), "\nkey\n") {
					got += "seen "
				}
				for _, name := range []string{filepath.Join(d, "key"), f} {
					if data, err := os.ReadFile(name); err != nil || string(data) != "s3cret" {
						got += "changed "
					}
				}
				if _, err := os.Stat(filepath.Join(d, "more")); err == nil {
					got += "added "
				}
				return got, o
			}
			if got, o := attack(false); got == "" && !never[tt.name] && !strings.Contains(o.Stdout.Text(), "Operation not permitted") {
				t.Errorf("control: without hiding it came to nothing: %q", o.Stdout.Text())
			}
			got, o := attack(true)
			if got != "" {
				t.Errorf("hidden, it was %s: %q", got, o.Stdout.Text())
			}
			if text := strings.Join(o.Isolation.Missing, "\n"); !strings.Contains(text, "files: as before, but not ") {
				t.Errorf("Missing = %q, want it to name what is hidden", text)
			}
		})
	}
}

// TestOpenNetwork reaches a listener of the host by TCP and by a unix socket,
// with and without the host's files; and neither when the network is not open.
func TestOpenNetwork(t *testing.T) {
	testkit.CI(t, "starts a dozen canaries")
	t.Parallel()
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer tcp.Close()
	go serveHello(tcp)
	port := tcp.Addr().(*net.TCPAddr).Port
	eachProfile(t, func(t *testing.T, p Profile) {
		for _, files := range []bool{false, true} {
			for _, network := range []bool{false, true} {
				s, err := canary(inside(t), fmt.Sprintf("tcp=%d", port)).filled()
				must(t, err)
				s.Open = Open{Files: files, Network: network}
				o, err := runUnder(context.Background(), s, Isolation{Profile: p})
				must(t, err)
				stopped := strings.Contains(o.Stdout.Text(), "stopped")
				if want := !network && p != None; stopped != want {
					t.Errorf("files %v, network %v: a connection = %q, want stopped %v", files, network, o.Stdout.Text(), want)
				}
			}
		}
	})
}

func serveHello(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		c.Close()
	}
}

// TestOpenPrivileges: whichever user the tool runs as, it has no more rights than
// root over files, cannot gain any, and reaches no process outside.
func TestOpenPrivileges(t *testing.T) {
	eachProfile(t, func(t *testing.T, p Profile) {
		o := mustRun(t, p, open(`grep -e ^NoNewPrivs -e ^CapEff -e ^CapBnd /proc/self/status`))
		caps := "0000000000000000"
		if os.Getuid() == 0 {
			caps = "00000000000000fb" // chown, dac_override, fowner, fsetid, kill, setgid, setuid
		}
		for _, want := range []string{"CapEff:\t" + caps, "NoNewPrivs:\t1"} {
			if !strings.Contains(o.Stdout.Text(), want) {
				t.Errorf("status = %q, want %q", o.Stdout.Text(), want)
			}
		}
		read := fmt.Sprintf("read=/proc/%d/environ", os.Getpid())
		if p == None && os.Getuid() == 0 {
			return // it could not look into us either: we have rights that it gave up
		}
		if p == None {
			s := canary(inside(t), read)
			s.Open = Open{Files: true, Network: true}
			if o := mustRun(t, p, s); strings.Contains(o.Stdout.Text(), "stopped") != shielded() {
				t.Errorf("control: without isolation %s, want it stopped only where we are shielded", o.Stdout.Text())
			}
			return
		}
		s, err := canary(inside(t), fmt.Sprintf("signal=%d", os.Getpid()), fmt.Sprintf("syscall=%d", unix.SYS_INIT_MODULE), "mount", "ptrace", read).filled()
		must(t, err)
		s.Open = Open{Files: true, Network: true}
		if o, err = runUnder(context.Background(), s, Isolation{Profile: p}); err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSpace(o.Stdout.Text()), "\n")
		if len(lines) != 5 {
			t.Fatalf("the canary said %q", o.Stdout.Text())
		}
		for _, line := range lines {
			if !strings.Contains(line, "stopped") {
				t.Errorf("%s was not stopped", line)
			}
		}
	})
}

// TestOpenRoot: root's files stay root's whoever owns them, and what lies
// beneath them is closed.
func TestOpenRoot(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("cannot here: only root stays root")
	}
	dir := t.TempDir()
	theirs := filepath.Join(dir, "theirs")
	must(t, os.WriteFile(theirs, []byte("x"), 0o600), os.Chown(theirs, 1234, 1234))
	s := open(`cat "$F"; stat -c %u "$F"; echo y >>"$F" && chown 4321 "$F" && echo owned
		for d in /sys/class/block/*; do b=/dev/${d##*/}; [ -e "$b" ] && head -c 1 "$b" | wc -c; done | sort -u
		echo 1 2>&- >/proc/sys/vm/drop_caches || echo settings closed; touch /sys/x 2>&- || echo sys closed`)
	s.Env = []string{"F=" + theirs}
	o := mustRun(t, Full, s)
	want := "x1234\nowned\n0\nsettings closed\nsys closed\n"
	if got := o.Stdout.Text(); got != want && got != strings.Replace(want, "0\n", "", 1) {
		t.Errorf("Run = %q %q, want %q", got, o.Stderr.Text(), want)
	}
}
