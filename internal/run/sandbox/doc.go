// Package sandbox runs one program in a sandbox and reports which layers were
// in force.
//
// A [Spec] is plain data: what to run, where, what it may see and how much it
// may use. [Run] runs it to its end and returns an [Outcome] with an
// [Isolation], the layers that were in force. Which layers this machine can
// give is found once by [Probe], which lets a canary try real escapes. A Spec
// that requires more than there is is refused with a [*Refusal] before
// anything starts; nothing degrades in silence.
//
// On Linux the program is started by a helper, which is this very binary in
// another mode, chosen by the name it is started under while packages are
// initialised; see package confine. One helper is kept waiting for the next
// run. What the helper's start costs is measured by cmd/ken's tests.
//
// Profiles:
//
//   - full: user, mount, pid, network, ipc and uts namespaces; a root that
//     holds only what was granted; Landlock; seccomp; no capabilities; limits.
//     Run by root, the tool runs as an unprivileged user, to whom the granted
//     directories are shown as its own.
//   - landlock: Landlock, seccomp, no capabilities, limits, and a sweep of every
//     descendant. Names and attributes of other files stay visible, and those
//     of the tool's own can be changed: modes, owners and times through the
//     helper, which looks where the file lies; extended attributes not at all.
//     Run by root, the tool stays root, without any capability.
//   - none: limits, a clean environment, and the sweep.
//
// A program that is to run as it ran before, such as a server a person uses
// already, leaves files, the network or both open with [Open]. It keeps the
// person's own user, and what it may open of theirs is theirs to give; what
// stays is said there, and what is open in [Isolation.Missing]. Hidden places
// are covered by mounts, and so only in the full profile. Other users' files
// then look unowned to it, unless the person is root, and no 32-bit
// program runs. [Start] does not wait for the end of such a server.
//
// In the first two, with files not open, nothing can be made that runs as its
// owner or group: what a tool makes is the person's who runs Ken; with files
// open, nothing that runs as its owner. Since a filter cannot tell files
// from directories, no directory can be given a set-group-id bit either; one
// made in a directory that has it inherits it, as its owner arranged. A file
// that had such a bit before, in what may be written to, is the caller's to
// care for: the kernel takes the bit away when a tool writes to it, except
// through a mapping.
//
// Not promised: secrecy of what the granted paths hold, protection against
// kernel bugs, timing, and on other systems than Linux anything but the
// environment, the time limit and the output limit.
package sandbox
