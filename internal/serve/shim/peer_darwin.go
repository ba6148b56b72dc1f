package shim

import "golang.org/x/sys/unix"

// maxPath is the longest name of a socket.
const maxPath = 103

// Peer says which user has the other end of a connected socket: as it was when
// the other end connected or began to listen.
func Peer(fd int) (uid, pid int, err error) {
	cred, err := unix.GetsockoptXucred(fd, unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
	if err != nil {
		return -1, 0, err
	}
	pid, err = unix.GetsockoptInt(fd, unix.SOL_LOCAL, unix.LOCAL_PEERPID)
	if err != nil {
		pid = 0 // only for messages
	}
	return int(cred.Uid), pid, nil
}
