package confine

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A broker changes modes, owners and times of files for a tool that has no
// mounts of its own. Landlock does not govern those, so that a tool could
// change them of every file of its user; and a filter sees numbers and no
// files. So the kernel asks the helper, which opens the file that the tool
// means, looks where it lies, and does the change itself to what it has open:
// the tool can exchange what it likes meanwhile. It does so without
// capabilities, and so as the tool could.
type broker struct {
	trees    []int // handles of what may be changed, with all beneath
	listener int
	buf      []byte
}

// A notification is the kernel's struct seccomp_notif.
type notification struct {
	id       uint64
	pid      uint32
	_        uint32 // flags
	nr       int32
	_        uint32 // architecture
	_        uint64 // instruction
	argument [6]uint64
}

// A reply is the kernel's struct seccomp_notif_resp.
type reply struct {
	id    uint64
	_     int64 // the value where there is no error: 0
	errno int32
	_     uint32
}

// newBroker serves the directories and files an order lets be written to.
// Devices are not among them: a tool of root would own them.
func newBroker(o *Order) (*broker, error) {
	b := &broker{listener: -1, buf: make([]byte, unix.PathMax)}
	if o.WorkFD != 0 {
		b.trees = append(b.trees, o.WorkFD)
	}
	for _, path := range o.Write {
		fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
		if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EACCES) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("open %s: %w", path, err)
		}
		var st unix.Stat_t
		if err := unix.Fstat(fd, &st); err != nil {
			return nil, err
		}
		if kind := st.Mode & unix.S_IFMT; kind != unix.S_IFDIR && kind != unix.S_IFREG {
			unix.Close(fd)
			continue
		}
		b.trees = append(b.trees, fd)
	}
	return b, nil
}

// install makes the kernel ask about calls of this thread and of the processes
// it makes. The thread must be locked, and stay so: another goroutine on it
// could be held up by itself.
func (b *broker) install() error {
	var f filter
	f.begin()
	f.onAny(unix.SECCOMP_RET_USER_NOTIF, brokered, archBrokered)
	f.op(bpfReturn, retAllow, 0, 0)
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	prog := &unix.SockFprog{Len: uint16(len(f)), Filter: &f[0]}
	fd, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER,
		unix.SECCOMP_FILTER_FLAG_NEW_LISTENER, uintptr(unsafe.Pointer(prog)))
	runtime.KeepAlive(f)
	if errno != 0 {
		return errno
	}
	b.listener = int(fd)
	return nil
}

// serve answers until the listener is of no more use.
func (b *broker) serve() {
	runtime.LockOSThread()
	header := &unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	if err := unix.Capset(header, &new([2]unix.CapUserData)[0]); err != nil {
		unix.Close(b.listener) // callers get ENOSYS
		return
	}
	for {
		var n notification
		errno := b.ioctl(unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(&n))
		if errno == unix.EINTR || errno == unix.ENOENT {
			continue // it was interrupted, or killed, before we looked
		}
		if errno != 0 {
			unix.Close(b.listener)
			return
		}
		r := reply{id: n.id, errno: -int32(b.answer(&n))}
		b.ioctl(unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&r)) // it may be gone
	}
}

func (b *broker) ioctl(command uintptr, p unsafe.Pointer) unix.Errno {
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(b.listener), command, uintptr(p))
	return errno
}

// answer does what a call asks for and returns the error for it, or 0.
func (b *broker) answer(n *notification) unix.Errno {
	err := b.change(n)
	var errno unix.Errno
	switch {
	case err == nil:
		return 0
	case errors.As(err, &errno):
		return errno
	}
	return unix.EPERM
}

func (b *broker) change(n *notification) error {
	w, err := b.wanted(n)
	if err != nil {
		return err
	}
	fd, err := b.open(n.pid, w)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if !b.may(fd) {
		return unix.EPERM
	}
	// Whatever we looked at by its number was the caller's: it is still there.
	if errno := b.ioctl(unix.SECCOMP_IOCTL_NOTIF_ID_VALID, unsafe.Pointer(&n.id)); errno != 0 {
		return errno
	}
	return w.change(fd)
}

// A wish is a call, understood: the file it means and what is to become of it.
type wish struct {
	dir    int    // as the caller numbers it
	path   uint64 // in the caller's memory; 0 means dir itself
	flags  int    // AT_SYMLINK_NOFOLLOW, AT_EMPTY_PATH
	change func(fd int) error
}

// brokered exist on every architecture served.
var brokered = []uintptr{
	unix.SYS_FCHMOD, unix.SYS_FCHMODAT, unix.SYS_FCHMODAT2, unix.SYS_FCHOWN, unix.SYS_FCHOWNAT, unix.SYS_UTIMENSAT,
}

// wanted reads a call.
func (b *broker) wanted(n *notification) (wish, error) {
	a := n.argument
	w := wish{dir: int(int32(a[0])), path: a[1]}
	switch n.nr {
	case unix.SYS_FCHMOD:
		w.path, w.change = 0, chmod(a[1])
	case unix.SYS_FCHMODAT:
		w.change = chmod(a[2])
	case unix.SYS_FCHMODAT2:
		w.change, w.flags = chmod(a[2]), int(int32(a[3]))
	case unix.SYS_FCHOWN:
		w.path, w.change = 0, chown(a[1], a[2])
	case unix.SYS_FCHOWNAT:
		w.change, w.flags = chown(a[2], a[3]), int(int32(a[4]))
	case unix.SYS_UTIMENSAT:
		times, err := b.times(n.pid, a[2])
		if err != nil {
			return w, err
		}
		w.change, w.flags = utimens(times), int(int32(a[3]))
	default:
		return archWanted(b, n)
	}
	if w.flags&^(unix.AT_SYMLINK_NOFOLLOW|unix.AT_EMPTY_PATH) != 0 {
		return w, unix.EINVAL
	}
	return w, nil
}

func chmod(mode uint64) func(int) error {
	return func(fd int) error {
		if mode&asOwner != 0 {
			return unix.EPERM // refused by the other filter before anyone asks
		}
		err := unix.Chmod(own(fd), uint32(mode)&0o7777)
		if errors.Is(err, unix.ELOOP) {
			return unix.EOPNOTSUPP // a link has no mode
		}
		return err
	}
}

func chown(uid, gid uint64) func(int) error {
	return func(fd int) error {
		return unix.Fchownat(fd, "", int(int32(uid)), int(int32(gid)), unix.AT_EMPTY_PATH)
	}
}

func utimens(times *[2]unix.Timespec) func(int) error {
	return func(fd int) error {
		var empty byte
		_, _, errno := unix.Syscall6(unix.SYS_UTIMENSAT, uintptr(fd), uintptr(unsafe.Pointer(&empty)),
			uintptr(unsafe.Pointer(times)), unix.AT_EMPTY_PATH, 0, 0)
		if errno != 0 {
			return errno
		}
		return nil
	}
}

// open opens what a wish means, as its caller would find it, for nothing but
// to be named.
func (b *broker) open(pid uint32, w wish) (int, error) {
	base := fmt.Sprintf("/proc/%d/fd/%d", pid, w.dir)
	if w.dir == unix.AT_FDCWD {
		base = fmt.Sprintf("/proc/%d/cwd", pid)
	}
	const handle = unix.O_PATH | unix.O_CLOEXEC
	if w.path == 0 {
		return unix.Open(base, handle, 0)
	}
	path, err := b.text(pid, w.path)
	if err != nil {
		return -1, err
	}
	if path == "" {
		if w.flags&unix.AT_EMPTY_PATH == 0 {
			return -1, unix.ENOENT
		}
		return unix.Open(base, handle, 0)
	}
	// A C library's way to change what it has open for nothing but its name.
	// What we ourselves have open under that number is something else.
	if number, ok := strings.CutPrefix(path, "/proc/self/fd/"); ok && strings.Trim(number, "0123456789") == "" && number != "" {
		return unix.Open(fmt.Sprintf("/proc/%d/fd/%s", pid, number), handle, 0)
	}
	how := &unix.OpenHow{Flags: handle, Resolve: unix.RESOLVE_NO_MAGICLINKS}
	if w.flags&unix.AT_SYMLINK_NOFOLLOW != 0 {
		how.Flags |= unix.O_NOFOLLOW
	}
	if path[0] == '/' {
		return unix.Openat2(unix.AT_FDCWD, path, how)
	}
	at, err := unix.Open(base, handle|unix.O_DIRECTORY, 0)
	if err != nil {
		return -1, err
	}
	defer unix.Close(at)
	return unix.Openat2(at, path, how)
}

// may reports whether an open file lies in what may be changed.
func (b *broker) may(fd int) bool {
	name, err := os.Readlink(own(fd))
	if err != nil || !strings.HasPrefix(name, "/") {
		return false
	}
	for _, tree := range b.trees {
		top, err := os.Readlink(own(tree))
		if err == nil && (name == top || strings.HasPrefix(name, strings.TrimSuffix(top, "/")+"/")) {
			return true
		}
	}
	return false
}

// own is a name for what we have open.
func own(fd int) string { return fmt.Sprintf("/proc/self/fd/%d", fd) }

// text reads a string of the caller's, page by page, since what follows it may
// not be there.
func (b *broker) text(pid uint32, at uint64) (string, error) {
	page := uint64(os.Getpagesize())
	for n := 0; n < len(b.buf); {
		size := min(int(page-(at+uint64(n))%page), len(b.buf)-n)
		if err := read(pid, at+uint64(n), b.buf[n:n+size]); err != nil {
			return "", err
		}
		if i := bytes.IndexByte(b.buf[n:n+size], 0); i >= 0 {
			return string(b.buf[:n+i]), nil
		}
		n += size
	}
	return "", unix.ENAMETOOLONG
}

// times reads two times of the caller's; nil means now.
func (b *broker) times(pid uint32, at uint64) (*[2]unix.Timespec, error) {
	if at == 0 {
		return nil, nil
	}
	t := new([2]unix.Timespec)
	return t, read(pid, at, unsafe.Slice((*byte)(unsafe.Pointer(t)), unsafe.Sizeof(*t)))
}

// read reads the memory of a process.
func read(pid uint32, at uint64, p []byte) error {
	local := []unix.Iovec{{Base: &p[0]}}
	local[0].SetLen(len(p))
	n, err := unix.ProcessVMReadv(int(pid), local, []unix.RemoteIovec{{Base: uintptr(at), Len: len(p)}}, 0)
	if err == nil && n != len(p) {
		err = unix.EFAULT
	}
	return err
}
