package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"ken/internal/run/sandbox/confine"
)

// devices are the device files every tool may use.
var devices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"}

// openProc are the parts of /proc that say nothing about other processes; the
// landlock profile, which sees the host's, grants only these.
var openProc = []string{"/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/proc/uptime", "/proc/loadavg",
	"/proc/version", "/proc/filesystems", "/proc/sys/kernel", "/proc/sys/vm", "/proc/sys/fs"}

// A view lists what a tool's root shows of the host: mounts and links.
type view struct {
	mounts []confine.Mount
	links  []confine.Link
}

// systemView shows paths read-only, except those that own replaces. A link is
// shown as a link, together with its target.
func systemView(paths []string, own []confine.File) view {
	var v view
	for _, p := range paths {
		if !slices.ContainsFunc(own, func(f confine.File) bool { return f.Path == p }) {
			v.show(p, confine.Mount{Maybe: true})
		}
	}
	return v
}

// ownFiles returns the files that a tool reads instead of the machine's: users
// and groups, and how names are resolved. With the host's network, the host's
// resolver files are used.
func ownFiles(s Spec) []confine.File {
	uid, gid := os.Getuid(), os.Getgid()
	if uid == 0 {
		uid, gid = confine.ToolUID, confine.ToolUID
	}
	users, groups := "root:x:0:0:root:/root:/usr/sbin/nologin\n", "root:x:0:\n"
	users += fmt.Sprintf("ken:x:%d:%d:sandbox:%s:/bin/sh\n", uid, gid, strings.ReplaceAll(strings.ReplaceAll(workPath(s.Work), ":", "_"), "\n", "_"))
	groups += fmt.Sprintf("ken:x:%d:\n", gid)
	if uid != 65534 {
		users += "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"
	}
	if gid != 65534 {
		groups += "nogroup:x:65534:\n"
	}
	list := []confine.File{{Path: "/etc/passwd", Text: users}, {Path: "/etc/group", Text: groups}}
	if !s.Open.Network {
		list = append(list, confine.File{Path: "/etc/hosts", Text: "127.0.0.1 localhost\n::1 localhost\n"},
			confine.File{Path: "/etc/nsswitch.conf", Text: "passwd: files\ngroup: files\nhosts: files\nservices: files\nprotocols: files\n"})
	}
	return list
}

// show adds path as m says, unless something that covers it is shown already.
func (v *view) show(path string, m confine.Mount) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return // absent: nothing to show
	}
	if target, err := os.Readlink(path); err == nil && real != path {
		v.links = append(v.links, confine.Link{Path: path, Target: target})
	}
	for _, have := range v.mounts {
		if within(real, have.Target) && (have.Write || !m.Write) && m.FD == 0 {
			return
		}
	}
	m.Source, m.Target = real, real
	v.mounts = append(v.mounts, m)
}

// sorted puts outer mounts before those that lie inside them, and a later one
// of the same place last, so that it wins.
func (v *view) sorted() []confine.Mount {
	slices.SortStableFunc(v.mounts, func(a, b confine.Mount) int {
		return strings.Count(a.Target, "/") - strings.Count(b.Target, "/")
	})
	return v.mounts
}

// within reports whether path is dir or lies beneath it.
func within(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}
