// What held a run, as the sandbox reports it.
interface Isolation {
  profile?: string; landlock_abi?: number; seccomp?: boolean; netns?: boolean; pidns?: boolean; ro_root?: boolean;
  cgroup?: string; rlimits?: string[]; missing?: string[]; required?: string;
}

// isolated puts it into words: what holds, and what is missing.
export function isolated(raw: unknown): { holds: string[]; missing: string[] } | null {
  if (!raw || typeof raw !== "object") return null;
  const i = raw as Isolation;
  const holds: string[] = [];
  if (i.landlock_abi) holds.push("files only where it was allowed (Landlock " + i.landlock_abi + ")");
  if (i.seccomp) holds.push("dangerous system calls blocked (seccomp)");
  if (i.netns) holds.push("a network of its own, without a way out");
  if (i.pidns) holds.push("no view of other processes");
  if (i.ro_root) holds.push("the file system read-only but for its folder");
  if (i.cgroup && i.cgroup !== "none") holds.push("bounded by a cgroup (" + i.cgroup + ")");
  if (i.rlimits?.length) holds.push("limits on " + i.rlimits.join(", "));
  if (!holds.length) holds.push(i.profile === "none" || !i.profile ? "nothing: it ran as any other program" : i.profile);
  return { holds, missing: i.missing ?? [] };
}
