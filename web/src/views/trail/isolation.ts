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
  if (i.landlock_abi) holds.push("access to allowed files only (Landlock " + i.landlock_abi + ")");
  if (i.seccomp) holds.push("dangerous system calls blocked (seccomp)");
  if (i.netns) holds.push("isolated network without outside access");
  if (i.pidns) holds.push("other processes hidden");
  if (i.ro_root) holds.push("file system read-only except for its folder");
  if (i.cgroup && i.cgroup !== "none") holds.push("cgroup limits (" + i.cgroup + ")");
  if (i.rlimits?.length) holds.push("limits on " + i.rlimits.join(", "));
  if (!holds.length) holds.push(i.profile === "none" || !i.profile ? "none: it ran without a sandbox" : i.profile);
  return { holds, missing: i.missing ?? [] };
}
