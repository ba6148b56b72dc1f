//go:build unix

package executortest

import (
	"os/exec"
	"syscall"
)

func become(cmd *exec.Cmd, uid uint32) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	return nil
}
