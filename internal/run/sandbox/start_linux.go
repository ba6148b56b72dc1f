package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"ken/internal/run/sandbox/confine"
)

// selfExe is the running binary even when its file was replaced since.
const selfExe = "/proc/self/exe"

// A launch collects what a helper is started with, and closes it all.
type launch struct {
	order  confine.Order
	files  []*os.File // handles the order refers to, by number from 1
	closes []*os.File

	missing []string // what was asked for and cannot be had
	covered map[string]int
}

func (l *launch) close() {
	for _, f := range l.closes {
		f.Close()
	}
}

// pass returns the helper a file and returns its number in the order.
func (l *launch) pass(f *os.File) int {
	l.files = append(l.files, f)
	l.closes = append(l.closes, f)
	return len(l.files)
}

// newLaunch turns a filled spec into an order.
func newLaunch(s Spec, p Profile, g *group) (l *launch, err error) {
	l = new(launch)
	defer func() {
		if err != nil {
			l.close()
		}
	}()
	o := &l.order
	*o = confine.Order{
		Path: s.Path, Args: toBytes(s.Args), Env: toBytes(s.Env), Self: s.self,
		Namespaces: p == Full, Landlock: p != None, Seccomp: p != None,
		Network: s.Egress != nil, Dir: s.Dir, Scratch: s.Limits.Scratch,
		OpenFiles: s.Open.Files, OpenNetwork: s.Open.Network, UnixSockets: s.Open.UnixSockets && p == Full,
	}
	o.Limits, o.Processes = rlimits(s.Limits, g), uint64(max(s.Limits.Processes, 0))
	if !g.has("memory") {
		o.Memory = memoryOf(s.Limits)
	}
	if s.Open.Files {
		return l, l.leaveOpen(s, p)
	}
	o.Read = append(append(o.Read, s.System...), s.Read...)
	if !s.self {
		o.Read = append(o.Read, s.Path)
	}
	if s.Open.Network {
		o.Read = append(o.Read, resolver)
	}
	o.Write = append(append(o.Write, s.Write...), devices...)
	work := workPath(s.Work)
	dir, err := s.Work.Open(".")
	if err != nil {
		return l, fmt.Errorf("open work directory: %w", err)
	}
	if p != Full {
		o.WorkFD, o.WorkRead = l.pass(dir), s.ReadOnly
		begin, err := openDir(s)
		if err != nil {
			return l, err
		}
		o.DirFD = l.pass(begin)
		o.Read = append(o.Read, openProc...)
		if os.Getuid() == 0 {
			o.Processes = 0 // root is never refused a process; its cgroup counts
		}
		return l, nil
	}
	l.closes = append(l.closes, dir)
	o.Write = append(o.Write, "/tmp")
	o.Read = append(o.Read, "/proc", work)
	if !s.ReadOnly {
		o.Write = append(o.Write, work)
	}
	return l, l.view(s, dir, work)
}

// view fills in what the tool's root shows.
func (l *launch) view(s Spec, dir *os.File, work string) error {
	l.order.Files = ownFiles(s)
	for _, f := range l.order.Files {
		l.order.Read = append(l.order.Read, f.Path)
	}
	v := systemView(s.System, l.order.Files)
	granted := func(dir string) bool { // a folder that is opened here, where others may not enter
		rel, err := filepath.Rel(dir, s.Path)
		return err == nil && filepath.IsLocal(rel)
	}
	if !s.self && !slices.ContainsFunc(s.Read, granted) {
		v.show(s.Path, confine.Mount{})
	}
	for _, d := range devices {
		v.show(d, confine.Mount{Device: true})
	}
	if s.Open.Network {
		v.show(resolver, confine.Mount{Maybe: true})
	}
	for _, grant := range []struct {
		paths []string
		write bool
	}{{s.Read, false}, {s.Write, true}} {
		for _, p := range grant.paths {
			f, err := os.OpenFile(p, unix.O_PATH|unix.O_CLOEXEC, 0)
			if errors.Is(err, os.ErrNotExist) {
				continue
			}
			if err != nil {
				return fmt.Errorf("grant: %w", err)
			}
			l.closes = append(l.closes, f)
			m, err := l.grant(f, confine.Mount{Write: grant.write})
			if err != nil {
				return fmt.Errorf("grant %s: %w", p, err)
			}
			v.show(p, m)
		}
	}
	m, err := l.grant(dir, confine.Mount{Write: !s.ReadOnly})
	if err != nil {
		return fmt.Errorf("work directory %s: %w", work, err)
	}
	m.Source, m.Target = work, work
	v.mounts = append(v.mounts, m)
	for _, name := range s.Protect {
		if err := l.cover(s, name, confine.Frozen); err != nil {
			return fmt.Errorf("protect %s: %w", name, err)
		}
	}
	for _, name := range s.Mask {
		if err := l.cover(s, name, confine.Masked); err != nil {
			return fmt.Errorf("mask %s: %w", name, err)
		}
	}
	slices.SortStableFunc(l.order.Covers, func(a, b confine.Cover) int {
		return strings.Count(a.Path, "/") - strings.Count(b.Path, "/")
	})
	l.order.Mounts, l.order.Links = v.sorted(), v.links
	return nil
}

// openDir opens where the tool starts. Within the work directory no link leads
// out of it; elsewhere the caller has granted what is at the path.
func openDir(s Spec) (*os.File, error) {
	if s.Work == nil {
		return openOutside(s.Dir)
	}
	if rel, err := filepath.Rel(workPath(s.Work), s.Dir); err == nil && filepath.IsLocal(rel) {
		f, err := s.Work.OpenFile(rel, unix.O_DIRECTORY, 0)
		if err != nil {
			return nil, fmt.Errorf("open the start directory: %w", err)
		}
		return f, nil
	}
	return openOutside(s.Dir)
}

func openOutside(dir string) (*os.File, error) {
	f, err := os.OpenFile(dir, unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, fmt.Errorf("open the start directory: %w", err)
	}
	return f, nil
}

// cover covers a name in the work directory, or an absolute one within a
// granted path. A frozen file must stay in its place: each directory on the way
// to it becomes an unchanged mount, because a mount cannot be renamed and the
// tool could otherwise replace the directory. A masked file needs none of that:
// it stays masked wherever it is moved.
func (l *launch) cover(s Spec, name string, as confine.CoverAs) error {
	return s.at(name, func(root *os.Root, rel string) error {
		for i, c := range rel + "/" {
			if c != '/' {
				continue
			}
			part := rel[:i]
			info, err := root.Lstat(part)
			if errors.Is(err, os.ErrNotExist) {
				if as == confine.Frozen {
					l.missing = append(l.missing, "protect: "+name+" is not there, and a tool can make it")
				}
				return nil
			}
			if err != nil {
				return err
			}
			link := as == confine.Frozen && info.Mode().Type() == fs.ModeSymlink
			if !info.IsDir() && (part != rel || !info.Mode().IsRegular() && !link) {
				return fmt.Errorf("%s is %s: only files and directories can be masked; only files, directories and links can be protected", part, info.Mode().Type())
			}
			st, ok := info.Sys().(*syscall.Stat_t)
			if !ok {
				return fmt.Errorf("%s: the file has no unique identity", part)
			}
			c := confine.Cover{Path: filepath.Join(workPath(root), part), Dev: uint64(st.Dev), Ino: st.Ino, As: as}
			if part != rel {
				if c.As = confine.Pinned; as == confine.Masked {
					continue
				}
			}
			l.addCover(c)
		}
		return nil
	})
}

// addCover adds a cover; if there is one already, the stricter one is used.
func (l *launch) addCover(c confine.Cover) {
	if l.covered == nil {
		l.covered = map[string]int{}
	}
	if i, ok := l.covered[c.Path]; ok {
		l.order.Covers[i].As = max(l.order.Covers[i].As, c.As)
		return
	}
	l.covered[c.Path] = len(l.order.Covers)
	l.order.Covers = append(l.order.Covers, c)
}

// grant makes a mount of an open file or directory. As root that is a detached
// mount of exactly what is open, in which the owner's files are the tool's; as
// anyone else the helper opens the path again and insists on the same inode.
func (l *launch) grant(f *os.File, m confine.Mount) (confine.Mount, error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return m, err
	}
	if os.Getuid() != 0 {
		m.Dev, m.Ino = uint64(st.Dev), st.Ino
		return m, nil
	}
	fd, err := unix.OpenTree(int(f.Fd()), "", unix.AT_EMPTY_PATH|unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return m, fmt.Errorf("open_tree: %w", err)
	}
	t := os.NewFile(uintptr(fd), "mount")
	m.FD = l.pass(t)
	attr := unix.MountAttr{Attr_set: m.Attributes()}
	if st.Uid != confine.ToolUID {
		ns, err := ownerNamespace(int(st.Uid), int(st.Gid))
		if err != nil {
			return m, fmt.Errorf("map the owner: %w", err)
		}
		attr.Attr_set |= unix.MOUNT_ATTR_IDMAP
		attr.Userns_fd = uint64(ns.Fd())
	}
	if err := unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH, &attr); err != nil {
		return m, fmt.Errorf("map it to the tool's user (the file system must support id-mapped mounts, or belong to uid %d): %w", confine.ToolUID, err)
	}
	return m, nil
}

// namespaces of owners, made once each and kept for the life of the process.
var owners sync.Map // [2]int to func() (*os.File, error)

// ownerNamespace is a user namespace in which a file's owner is the tool.
func ownerNamespace(uid, gid int) (*os.File, error) {
	f, _ := owners.LoadOrStore([2]int{uid, gid}, onceGood(func() (*os.File, error) {
		r, w, err := os.Pipe()
		if err != nil {
			return nil, err
		}
		defer r.Close()
		defer w.Close()
		p, err := os.StartProcess(selfExe, []string{confine.HoldName}, &os.ProcAttr{
			Files: []*os.File{r},
			Sys: &syscall.SysProcAttr{
				Cloneflags:  syscall.CLONE_NEWUSER,
				UidMappings: []syscall.SysProcIDMap{{ContainerID: uid, HostID: confine.ToolUID, Size: 1}},
				GidMappings: []syscall.SysProcIDMap{{ContainerID: gid, HostID: confine.ToolUID, Size: 1}},
			},
		})
		if err != nil {
			return nil, err
		}
		defer p.Wait()
		defer w.Close()
		return os.Open(fmt.Sprintf("/proc/%d/ns/user", p.Pid))
	}))
	return f.(func() (*os.File, error))()
}

// rlimits are the limits the kernel keeps for each process.
func rlimits(l Limits, g *group) []confine.Limit {
	list := []confine.Limit{{Resource: unix.RLIMIT_CORE}}
	add := func(resource int, v int64) {
		if v > 0 {
			list = append(list, confine.Limit{Resource: resource, Value: uint64(v)})
		}
	}
	if l.CPU > 0 {
		seconds := uint64((l.CPU + time.Second - 1) / time.Second)
		// SIGXCPU first, which says why, and SIGKILL for who ignores it.
		list = append(list, confine.Limit{Resource: unix.RLIMIT_CPU, Value: seconds, Hard: seconds + 1})
	}
	add(unix.RLIMIT_AS, l.AddressSpace)
	if !g.has("memory") {
		add(unix.RLIMIT_DATA, memoryOf(l))
	}
	add(unix.RLIMIT_NOFILE, l.OpenFiles)
	add(unix.RLIMIT_FSIZE, l.FileSize)
	return list
}

// memoryOf returns how many bytes a run may use; 0: no limit.
func memoryOf(l Limits) int64 {
	if l.Memory == 0 {
		return defaultMemory()
	}
	return max(l.Memory, 0)
}

// defaultMemory is half of what the machine has, and room for an ordinary
// program on a small one. It is no reason for a cgroup, which takes longer to
// join than a tool to run: it bounds what each process may have of its own.
// That is not its address space, of which language runtimes reserve more than
// any machine has.
var defaultMemory = sync.OnceValue(func() int64 {
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) != nil {
		return 4 * 1024 * mib
	}
	return max(int64(info.Totalram)*int64(info.Unit)/2, 1024*mib)
})

// orderFile holds the order where only the helper reads it.
func orderFile(o *confine.Order) (*os.File, error) {
	fd, err := unix.MemfdCreate("order", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("memfd_create: %w", err)
	}
	f := os.NewFile(uintptr(fd), "order")
	if _, err := f.Write(o.Encode()); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// limitNames are the limits of an order as an [Isolation] names them.
func limitNames(o *confine.Order) []string {
	known := map[int]string{
		unix.RLIMIT_CORE: "core", unix.RLIMIT_CPU: "cpu", unix.RLIMIT_AS: "as", unix.RLIMIT_DATA: "data",
		unix.RLIMIT_NOFILE: "nofile", unix.RLIMIT_FSIZE: "fsize",
	}
	var names []string
	for _, l := range o.Limits {
		names = append(names, known[l.Resource])
	}
	if o.Processes > 0 {
		names = append(names, "nproc")
	}
	return names
}

func toBytes(list []string) [][]byte {
	out := make([][]byte, len(list))
	for i, s := range list {
		out[i] = []byte(s)
	}
	return out
}
