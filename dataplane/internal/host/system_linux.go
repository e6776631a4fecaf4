package host

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// supported returns an error where this package cannot run HAProxy.
func supported() error { return nil }

const closeOnExec = unix.SOCK_CLOEXEC

// setFSUID sets the user of this thread for the kernel's checks of rights, and returns the
// one before. An invalid user changes nothing.
func setFSUID(uid int) (was int) {
	was, _ = unix.SetfsuidRetUid(uid)
	return was
}

// widen gives a pipe more room. The kernel may allow less.
func widen(pipe *os.File, size int) { _, _ = unix.FcntlInt(pipe.Fd(), unix.F_SETPIPE_SZ, size) }

// endWithParent has the kernel end a process with the thread that started it.
func endWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGTERM }

// keepLowPorts gives a process the right to bind to ports below 1024, if this process may pass
// it on. HAProxy keeps that right although it runs unprivileged.
func keepLowPorts(attr *syscall.SysProcAttr) {
	var data [2]unix.CapUserData
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	if err := unix.Capget(&header, &data[0]); err == nil && data[0].Permitted&(1<<unix.CAP_NET_BIND_SERVICE) != 0 {
		attr.AmbientCaps = []uintptr{unix.CAP_NET_BIND_SERVICE}
	}
}

// syncAll makes all files of the file system of a folder durable.
func syncAll(dir *os.File) error { return unix.Syncfs(int(dir.Fd())) }

// exchange lets two paths change places in one step.
func exchange(a, b string) error {
	return unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE)
}
