package sandbox

import (
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

// A view is what of the host a tool's root shows: mounts and links. Landlock
// is finer: a mount of /etc may be shown for the sake of one granted file.
type view struct {
	mounts []confine.Mount
	links  []confine.Link
}

// systemView shows paths read-only. A link is shown as a link, and what it
// leads to as well; below /etc the whole of it is mounted once.
func systemView(paths []string) view {
	var v view
	etc := false
	for _, p := range paths {
		if strings.HasPrefix(p, "/etc/") {
			if etc {
				continue
			}
			p, etc = "/etc", true
		}
		v.show(p, confine.Mount{Maybe: true})
	}
	return v
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
