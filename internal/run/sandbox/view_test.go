//go:build linux

package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestView: what a tool sees, and what of it it can change.
func TestView(t *testing.T) {
	full, mounts := []Profile{Full}, []Profile{Full, Landlock}
	for _, tt := range []struct {
		name, script string
		in           []Profile
		with         func(t *testing.T, s *Spec)
		want, stderr string
	}{
		{name: "a write outside is an error", in: full, want: "fine\n", stderr: "Read-only file system",
			script: "echo x >../lost.txt && echo wrote; mkdir ../lost && echo wrote; echo x >/tmp/scratch && echo x >mine && echo fine"},
		{name: "a tool's own user, none of the machine's, and what programs need", in: full, want: "0\n1\nken\nken\n127.0.0.1 localhost\npasswd: files\nnone\n",
			script: "grep -c daemon: /etc/passwd; grep -c ^ken:x: /etc/passwd; id -un; whoami; head -n 1 /etc/hosts; grep -o 'passwd: files' /etc/nsswitch.conf; cat /etc/shadow /etc/fstab /etc/hostname || echo none"},
		{name: "no users without mounts", in: []Profile{Landlock}, script: "cat /etc/passwd || echo none", want: "none\n"},
		{name: "scratch is bounded", in: full, script: "head -c 3000000 /dev/zero >/tmp/f; wc -c </tmp/f; touch /x /usr/x || echo read-only", want: "1048576\nread-only\n",
			with: func(t *testing.T, s *Spec) {
				s.Limits.Scratch = mib
				s.System = slices.DeleteFunc(SystemPaths(), func(p string) bool { return strings.HasPrefix(p, "/tmp") })
			}},
		{name: "the kernel kills it first", in: []Profile{Full, None}, script: "cat /proc/self/oom_score_adj; echo -500 >/proc/self/oom_score_adj", want: "1000\n"}, // in landlock it cannot look
		{name: "read-only work", in: mounts, script: rewrite, want: "there\n", with: func(t *testing.T, s *Spec) {
			must(t, s.Work.WriteFile("there", []byte("there\n"), 0o644))
			s.ReadOnly = true
		}},
		{name: "control: work", in: mounts, script: rewrite, want: "there\nwrote\nwrote\nwrote\n", with: func(t *testing.T, s *Spec) {
			must(t, s.Work.WriteFile("there", []byte("there\n"), 0o644))
		}},
		{name: "no hard link to what is outside", in: mounts, script: `ln "$F" stolen && cat stolen; [ -e stolen ] && echo there; echo own >a && ln a b && cat b`, want: "own\n",
			with: func(t *testing.T, s *Spec) {
				secret := filepath.Join(t.TempDir(), "secret")
				must(t, os.WriteFile(secret, []byte("secret"), 0o666))
				s.Env = []string{"F=" + secret}
			}},
		{name: "grants", in: mounts, want: "rw no x\nwrote\nnew\nno write\n",
			script: `cd "$D"; cat r/f w/f; cat x/f || echo " no x"; echo new >w/g && echo wrote; cat w/g; echo new >r/g || echo "no write"`,
			with: func(t *testing.T, s *Spec) {
				dir := t.TempDir()
				for _, d := range []string{"r", "w", "x"} {
					must(t, os.Mkdir(filepath.Join(dir, d), 0o700), os.WriteFile(filepath.Join(dir, d, "f"), []byte(d), 0o600))
				}
				s.Env, s.Read, s.Write = []string{"D=" + dir}, []string{dir + "/r"}, []string{dir + "/w"}
			}},
	} {
		for _, p := range tt.in {
			t.Run(tt.name+"/"+string(p), func(t *testing.T) {
				s := shell(inside(t), tt.script)
				if tt.with != nil {
					tt.with(t, &s)
				}
				o := mustRun(t, p, s)
				if says(t, o, tt.want); !strings.Contains(o.Stderr.Text(), tt.stderr) {
					t.Errorf("it said %q, want %q", o.Stderr.Text(), tt.stderr)
				}
			})
		}
	}
}

// rewrite changes a file that is there, and makes another one.
const rewrite = "cat there; echo x >new && echo wrote; echo x >>there && echo wrote; rm -f there && echo wrote; true"
