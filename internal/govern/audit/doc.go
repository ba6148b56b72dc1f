// Package audit is the audit log: what was asked, what was decided, what ran
// and how it ended, in files in which every change or truncation is detected.
//
// Every process that opens a [Log] writes a chain of its own, so processes
// never wait for one another. A chain is a run of segment files of JSON lines
// in Config.Dir. Each line carries its number and the hash of the line before;
// all lines together are the leaves of a Merkle tree whose head is signed and
// kept apart, in Config.CheckpointDir:
//
//	dir/<chain>.000001.jsonl     records 0 … n
//	dir/<chain>.000002.jsonl     after a rotation; numbers and hashes go on
//	checkpoints/<chain>.head     512-byte slots, each a signed note: the newest
//	                             head, then one for every interval
//
// [Log.Append] returns when its record is on disk and a signed head covers it:
// one fsync serves everyone who is waiting. [Log.Announce], for the beginning of a
// call, returns when its record is on disk; the head that the end of the call signs
// covers both, and a call that takes long is signed by itself after a moment. What was
// not acknowledged may be missing or unfinished after a crash, and [Verify] says so
// without alarm; what was acknowledged may not.
//
// A full disk stops nothing for good: what could not be recorded is refused,
// with what to do about it, and the next append tries again. The files go back
// to the last record that was acknowledged, the chain goes on in a new segment,
// and its first record there, [Resumed], says since when how many were refused.
//
// Nothing reaches a line before the [Redactor] has seen it, and raw arguments
// never do: a record holds the redacted command line and a keyed digest.
//
// What is not promised: a person who holds the signing key, or rewinds both
// directories together to an earlier moment, is found only by a head that was
// kept elsewhere ([Log.Head], handed to [Verify]) or by a chain opened later,
// because every chain begins by naming the heads of the newest others.
package audit
