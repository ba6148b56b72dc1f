package shim

import "syscall"

// maxPath is the longest name of a socket.
const maxPath = 107

// Peer says which user has the other end of a connected socket: as it was when
// the other end connected or began to listen.
func Peer(fd int) (uid, pid int, err error) {
	cred, err := syscall.GetsockoptUcred(fd, syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	if err != nil {
		return -1, 0, err
	}
	return int(cred.Uid), int(cred.Pid), nil
}
