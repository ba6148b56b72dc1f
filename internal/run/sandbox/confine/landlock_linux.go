package confine

import (
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Rights by what they may be granted on. A rule for a file may name only
// rights that make sense for a file.
const (
	llFileRead  = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE
	llFileWrite = unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE
	llFile      = llFileRead | llFileWrite | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	llRead      = llFileRead | unix.LANDLOCK_ACCESS_FS_READ_DIR
	llWrite     = llRead | llFileWrite |
		unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE |
		unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_REG |
		unix.LANDLOCK_ACCESS_FS_MAKE_SYM | unix.LANDLOCK_ACCESS_FS_MAKE_FIFO |
		unix.LANDLOCK_ACCESS_FS_MAKE_SOCK | unix.LANDLOCK_ACCESS_FS_REFER
	llAll = llWrite | unix.LANDLOCK_ACCESS_FS_MAKE_CHAR |
		unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
)

// LandlockABI says which Landlock the kernel enforces; 0 for none.
func LandlockABI() int {
	v, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(v)
}

// llHandled is every right of the file system this ABI can refuse.
func llHandled(abi int) uint64 {
	all := uint64(llAll)
	if abi < 2 {
		all &^= unix.LANDLOCK_ACCESS_FS_REFER
	}
	if abi < 3 {
		all &^= unix.LANDLOCK_ACCESS_FS_TRUNCATE
	}
	if abi < 5 {
		all &^= unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	}
	return all
}

// A ruleset is a Landlock ruleset under construction.
type ruleset struct {
	fd      int
	handled uint64
}

// newRuleset makes a ruleset that refuses every file access this kernel can
// refuse, TCP unless there is a network, and reaching processes outside by
// signal or abstract socket.
func newRuleset(abi int, o *Order) (*ruleset, error) {
	attr := unix.LandlockRulesetAttr{Handled_access_fs: llHandled(abi)}
	if abi >= 4 && !o.Network && !o.OpenNetwork {
		attr.Handled_access_net = unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP
	}
	if abi >= 6 {
		attr.Scoped = unix.LANDLOCK_SCOPE_SIGNAL
		if !o.OpenNetwork {
			attr.Scoped |= unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET
		}
	}
	return makeRuleset(attr)
}

func makeRuleset(attr unix.LandlockRulesetAttr) (*ruleset, error) {
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET,
		uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0)
	if errno != 0 {
		return nil, fmt.Errorf("create ruleset: %w", errno)
	}
	return &ruleset{fd: int(fd), handled: attr.Handled_access_fs}, nil
}

// path grants rights on what is at path now. An absent path grants nothing.
func (r *ruleset) path(path string, rights uint64) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EACCES) {
		return nil // what we cannot reach the tool cannot either
	}
	if err != nil {
		return fmt.Errorf("open %s: %w", path, err)
	}
	defer unix.Close(fd)
	if err := r.handle(fd, rights); err != nil {
		return fmt.Errorf("grant %s: %w", path, err)
	}
	return nil
}

// handle grants rights on an open file or directory.
func (r *ruleset) handle(fd int, rights uint64) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		rights &= llFile
	}
	// The kernel's structure is packed: 12 bytes, not 16.
	var attr struct {
		access uint64
		parent int32
		_      int32
	}
	attr.access, attr.parent = rights&r.handled, int32(fd)
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(r.fd),
		unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&attr)), 0, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// grants turns an order into a ruleset. self is the canary's own binary, or -1.
func grants(o *Order, abi, self int) (*ruleset, error) {
	r, err := newRuleset(abi, o)
	if err != nil {
		return nil, err
	}
	for _, p := range o.Read {
		if err := r.path(p, llRead); err != nil {
			return nil, err
		}
	}
	for _, p := range o.Write {
		if err := r.path(p, llWrite); err != nil {
			return nil, err
		}
	}
	if o.WorkFD != 0 {
		rights := uint64(llWrite)
		if o.WorkRead {
			rights = llRead
		}
		if err := r.handle(o.WorkFD, rights); err != nil {
			return nil, fmt.Errorf("grant the work directory: %w", err)
		}
	}
	if self >= 0 {
		if err := r.handle(self, llRead); err != nil {
			return nil, fmt.Errorf("grant the canary: %w", err)
		}
	}
	return r, nil
}
