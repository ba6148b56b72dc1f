package shim

import "syscall"

// poll says what can be done; where wait is true it waits until something can. It
// does so by select, which cannot tell that the client reads no more answers.
func poll(fds []pollFd, wait bool) error {
	limit := &syscall.Timeval{}
	if wait {
		limit = nil
	}
	for {
		var reads, writes syscall.FdSet
		most := 0
		for i := range fds {
			f := &fds[i]
			f.revents = 0
			if f.fd < 0 || f.events == 0 {
				continue
			}
			most = max(most, int(f.fd))
			if f.events&pollIn != 0 {
				reads.Bits[f.fd/32] |= 1 << (f.fd % 32)
			}
			if f.events&pollOut != 0 {
				writes.Bits[f.fd/32] |= 1 << (f.fd % 32)
			}
		}
		err := syscall.Select(most+1, &reads, &writes, nil, limit)
		if err == syscall.EINTR {
			continue
		}
		if err != nil {
			return err
		}
		for i := range fds {
			f := &fds[i]
			if f.fd < 0 {
				continue
			}
			if f.events&pollIn != 0 && reads.Bits[f.fd/32]&(1<<(f.fd%32)) != 0 {
				f.revents |= pollIn
			}
			if f.events&pollOut != 0 && writes.Bits[f.fd/32]&(1<<(f.fd%32)) != 0 {
				f.revents |= pollOut
			}
		}
		return nil
	}
}
